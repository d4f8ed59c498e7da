/* SPDX-License-Identifier: MIT
 * fold_tensors.c: what PyTorch's allocator gave to tensors and took back, in the ranges that asked, and what was going on
 * when it had none left.
 */
#include "report/base/alloc.h"
#include "report/profile/profile_state.h"
#include "report/text/format_number.h"
#include <string.h>

#define RANGES_MOST 64u /* of those open as memory ran out: the outermost, and the innermost */

/* The level has changed: the peaks of what is open. A peak of a range is one of those around it when it closes. */
static void level_changed(struct fold *fold, int64_t allocated)
{
	struct fold_state *state = fold->state;

	state->allocated = allocated;
	if (allocated > fold->totals.allocated_peak)
		fold->totals.allocated_peak = allocated;
	for (size_t i = 0; i < state->thread_count; i++) {
		struct thread *thread = state->threads[i];

		if (thread->depth && thread->more[thread->depth - 1].allocated_peak < allocated)
			thread->more[thread->depth - 1].allocated_peak = allocated;
	}
}

static bool is_level_of(struct fold *fold, const struct trace_tensor *record)
{
	struct fold_totals *totals = &fold->totals;

	if (totals->level_device == UINT32_MAX)
		totals->level_device = record->device;
	totals->has_tensors = true;
	return totals->level_device == record->device;
}

static void tell_level(const struct fold *fold, const struct trace_tensor *record, uint64_t at_ns)
{
	const struct fold_observer *observer = fold->options.observer;

	if (observer && observer->level)
		observer->level(observer->context, at_ns, (int64_t)record->allocated,
			fold->state->has_reserved ? fold->state->reserved : (int64_t)record->reserved);
}

void fold_tensor(struct fold *fold, const struct trace_event *event)
{
	const struct trace_tensor *record = event->record;
	const uint32_t node = fold_place(fold, event);
	const struct memory_change change = memory_tensor(fold->memory, record, node, event->time_ns);

	if (is_level_of(fold, record)) {
		level_changed(fold, (int64_t)record->allocated);
		tell_level(fold, record, event->time_ns);
	}
	if (!fold->state->counting || record->head.flags & TRACE_TENSOR_LEVEL)
		return;
	tree_tensors(fold->tree, node)->allocs += record->bytes >= 0;
	tree_tensors(fold->tree, node)->frees += record->bytes < 0;
	if (change.given) {
		tree_tensors(fold->tree, change.given_node)->self.free_bytes += change.given;
		fold->totals.tensor_free_bytes += change.given;
	}
	if (change.taken) {
		tree_tensors(fold->tree, node)->self.alloc_bytes += change.taken;
		fold->totals.tensor_alloc_bytes += change.taken;
		fold_add_flows(fold, event->stream->user, &(struct instance_flows){ .tensor_bytes = change.taken });
	}
}

static uint32_t label_of(struct fold *fold, const struct frame *frame, const struct frame_more *more)
{
	if (more->label)
		return text_id(fold->texts, more->label, more->label_bytes);
	if (!frame->place) /* a section */
		return fold->tree->nodes[frame->node].name;
	return names_text(fold->names, reader_place(fold->reader, frame->place)->name);
}

/* What was open on the thread, and what has become of the level since it began. */
static void keep_ranges(struct fold *fold, const struct thread *thread, struct memory_oom *oom)
{
	size_t room = fold->oom_range_count;

	oom->first_open = fold->oom_range_count;
	for (uint32_t depth = 0; depth < thread->depth; depth++) {
		const struct frame_more *more = &thread->more[depth];

		if (depth >= RANGES_MOST - 1 && depth + 1 < thread->depth)
			continue;
		grow(&fold->oom_ranges, &room, (size_t)fold->oom_range_count + 1, sizeof *fold->oom_ranges);
		fold->oom_ranges[fold->oom_range_count++] = (struct fold_open_range){
			.label = label_of(fold, &thread->frames[depth], more),
			.grown = number_difference((int64_t)oom->allocated, more->allocated),
		};
	}
	oom->open = fold->oom_range_count - oom->first_open;
}

void fold_tensor_oom(struct fold *fold, const struct trace_event *event)
{
	const struct trace_tensor *record = event->record;
	const uint32_t node = fold_place(fold, event);
	struct memory_oom *oom = memory_exhausted(fold->memory, record, node, event->time_ns);
	const bool of_level = is_level_of(fold, record);

	if (of_level)
		level_changed(fold, (int64_t)record->allocated);
	if (!oom)
		return;
	oom->tid = event->stream->tid;
	if (of_level)
		keep_ranges(fold, event->stream->user, oom);
}

/* What was live at the moments that count, by place. After memory_finish. */
void fold_tensors_end(struct fold *fold)
{
	const struct memory *memory = fold->memory;

	for (uint32_t i = 0; i < memory->site_count; i++) {
		const struct memory_site *site = &memory->sites[i];
		const struct memory_level *level = &memory->levels[site->level];

		if (level->kind != MEMORY_TENSOR || level->device != fold->totals.level_device)
			continue;
		tree_tensors(fold->tree, site->node)->self.at_peak += site->flow.at_peak;
		tree_tensors(fold->tree, site->node)->self.at_oom += site->flow.at_oom;
	}
}
