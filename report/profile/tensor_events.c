/* SPDX-License-Identifier: MIT
 * Handles what PyTorch's allocator allocated and freed for tensors, by range, and the open
 * ranges when it ran out of memory.
 */
#include "report/base/alloc.h"
#include "report/profile/profile_state.h"
#include "report/text/format_number.h"
#include <string.h>

#define RANGES_MAX 64u /* kept per out-of-memory event: the outermost ones, and the innermost */

/* The level has changed: updates the peaks of the innermost ranges. A range passes its peak on
 * when it closes. */
static void update_allocated(struct profile *profile, int64_t allocated)
{
	struct profile_state *state = profile->state;

	state->allocated = allocated;
	if (allocated > profile->totals.allocated_peak)
		profile->totals.allocated_peak = allocated;
	for (size_t i = 0; i < state->thread_count; i++) {
		struct profile_thread *thread = state->threads[i];

		if (thread->depth && thread->details[thread->depth - 1].allocated_peak < allocated)
			thread->details[thread->depth - 1].allocated_peak = allocated;
	}
}

/* Finds the level before the first record. The ranges up to it began with that, not with 0. An
 * observer that does not join must not see the events twice: its pass has the level of an earlier
 * one. */
static void find_start_level(struct profile *profile, int64_t level)
{
	struct profile_options *options = &profile->options;

	if (options->knows_allocated_at_start)
		return;
	options->allocated_at_start = level;
	options->knows_allocated_at_start = true;
	profile->state->needs_start_level = level != 0 &&
					    (!options->observer || options->observer_joins);
}

/* `changed`: what the record added to the level. */
static bool is_level_of(struct profile *profile, const struct trace_tensor *record, int64_t changed)
{
	struct profile_totals *totals = &profile->totals;

	if (totals->level_device == UINT32_MAX)
		totals->level_device = record->device;
	totals->has_tensors = true;
	if (totals->level_device != record->device)
		return false;
	find_start_level(profile, saturating_subtract((int64_t)record->allocated, changed));
	return true;
}

static void observe_level(
	const struct profile *profile, const struct trace_tensor *record, uint64_t at_ns)
{
	const struct profile_observer *observer = profile->options.observer;

	if (observer && observer->level)
		observer->level(observer->context, at_ns, (int64_t)record->allocated,
			profile->state->has_reserved ? profile->state->reserved
						     : (int64_t)record->reserved);
}

/* A TENSOR record whose owner is known. */
struct owned_tensor {
	const struct trace_tensor *record;
	uint64_t at_ns;
	struct memory_marks marks;
	uint32_t node;
	bool counts;
};

/* Sets `*change`, which must be zeroed. */
static void add_tensor(struct tensor_totals_by_owner *totals, const struct owned_tensor *tensor,
	struct memory_change *change)
{
	profile_mark_memory(totals->memory, &tensor->marks);
	memory_owners_record_tensor(
		totals->memory, tensor->record, tensor->node, tensor->at_ns, change);
	if (!tensor->counts || !change->freed_bytes)
		return;
	ARRAY_GROW(totals->freed_bytes, totals->freed_room, (size_t)change->freed_node + 1);
	totals->freed_bytes[change->freed_node] += change->freed_bytes;
	totals->freed_total += change->freed_bytes;
}

static void report_tensor(const struct tensor_totals_by_owner *totals,
	const struct owned_tensor *tensor, const struct memory_change *change)
{
	const struct trace_event event = {
		.kind = TRACE_TENSOR, .time_ns = tensor->at_ns, .record = tensor->record
	};

	if (change->allocated_bytes || change->freed_bytes)
		totals->observer->memory(totals->observer->context,
			&(struct observed_memory){ .event = &event,
				.change = change,
				.memory = totals->memory,
				.at_ns = tensor->at_ns,
				.address = tensor->record->address });
}

#define TENSORS_AHEAD 6u

/* May run in another thread, which has `context` and its memory until reader_run_deferred. */
static void add_tensors(void *context, const void *items, size_t count)
{
	struct tensor_totals_by_owner *totals = context;
	const struct owned_tensor *tensors = items;

	for (size_t i = 0; i < count; i++) {
		struct memory_change change = { .node = 0 };

		/* With two threads, the record has left this thread's cache. */
		if (i + TENSORS_AHEAD < count)
			__builtin_prefetch(tensors[i + TENSORS_AHEAD].record);
		add_tensor(totals, &tensors[i], &change);
		if (totals->observer)
			report_tensor(totals, &tensors[i], &change);
	}
}

void profile_tensors_begin(struct profile *profile)
{
	struct tensor_totals_by_owner *totals = xcalloc_cache_aligned(sizeof *totals);

	totals->memory = profile->memory;
	if (profile_observes_memory_later(profile))
		totals->observer = profile->options.observer;
	profile->state->tensor_totals = totals;
	reader_set_deferred(profile->reader, &(struct deferred_work){ .run = add_tensors,
						     .context = totals,
						     .item_bytes = sizeof(struct owned_tensor) });
}

void profile_tensor_record(struct profile *profile, const struct trace_event *event)
{
	const struct trace_tensor *record = event->record;
	const uint32_t node = profile_event_node(profile, event);
	const struct owned_tensor tensor = { .record = record,
		.at_ns = event->time_ns,
		.marks = profile_memory_event(profile, event),
		.node = node,
		.counts = profile->state->counting && !(record->head.flags & TRACE_TENSOR_LEVEL) };

	if (profile_observes_memory(profile) && !profile_observes_memory_later(profile)) {
		struct memory_change change = { .node = 0 };

		add_tensor(profile->state->tensor_totals, &tensor, &change);
		profile_observe_memory(profile, event, &change);
	} else {
		*(struct owned_tensor *)reader_defer(profile->reader) = tensor;
	}
	if (is_level_of(profile, record, record->bytes)) {
		update_allocated(profile, (int64_t)record->allocated);
		observe_level(profile, record, event->time_ns);
	}
	if (!tensor.counts)
		return;
	tree_tensors(profile->tree, node)->allocs += record->bytes >= 0;
	tree_tensors(profile->tree, node)->frees += record->bytes < 0;
	if (record->bytes > 0) {
		const uint64_t bytes = (uint64_t)record->bytes;

		tree_tensors(profile->tree, node)->self.alloc_bytes += bytes;
		profile->totals.tensor_alloc_bytes += bytes;
		profile_add_sums(profile, event->stream->user,
			&(struct instance_sums){ .tensor_bytes = bytes });
	}
}

static uint32_t range_label(struct profile *profile, const struct open_range *frame,
	const struct open_range_details *details)
{
	if (details->label)
		return string_table_intern(profile->texts, details->label, details->label_bytes);
	if (!frame->trace_node) /* a step section */
		return profile->tree->nodes[frame->node].name;
	return node_names_text(
		profile->names, reader_node(profile->reader, frame->trace_node)->name);
}

/* Keeps the open ranges of `thread`, and how much has been allocated since each began. Returns
 * their number. `of_tensors`: how much by tensors, else how much device memory. */
static uint32_t keep_oom_ranges(
	struct profile *profile, const struct profile_thread *thread, bool of_tensors, int64_t held)
{
	const uint32_t first = profile->oom_range_count;
	size_t room = first;

	for (uint32_t depth = 0; thread->details && depth < thread->depth; depth++) {
		const struct open_range_details *details = &thread->details[depth];

		if (depth >= RANGES_MAX - 1 && depth + 1 < thread->depth)
			continue;
		*ARRAY_ADD(profile->oom_ranges, room,
			profile->oom_range_count) = (struct oom_open_range){
			.label = range_label(profile, &thread->frames[depth], details),
			.grown = saturating_subtract(
				held, of_tensors ? details->allocated : details->reserved),
		};
	}
	return profile->oom_range_count - first;
}

#define THREADS_MAX 256u         /* kept per out-of-memory event */
#define THREADS_IN_ALL_MAX 8192u /* kept of all such events; of later ones there are none */

/* Keeps the places of all threads but `self`. Returns their number. */
static uint32_t keep_oom_threads(
	struct profile *profile, const struct profile_thread *self, bool of_tensors, int64_t held)
{
	const uint32_t first = profile->oom_thread_count;
	const struct profile_state *state = profile->state;
	size_t room = first;

	for (size_t i = 0; i < state->thread_count; i++) {
		const struct profile_thread *thread = state->threads[i];
		struct oom_thread kept = { .tid = thread->of->tid };

		if (thread == self || !thread->depth || !thread->details ||
			profile->oom_thread_count - first >= THREADS_MAX ||
			profile->oom_thread_count >= THREADS_IN_ALL_MAX)
			continue;
		kept.first_open = profile->oom_range_count;
		kept.open = keep_oom_ranges(profile, thread, of_tensors, held);
		*ARRAY_ADD(profile->oom_threads, room, profile->oom_thread_count) = kept;
	}
	return profile->oom_thread_count - first;
}

/* Notes the failed calls of CUDA by which the allocator tried to get the memory. It holds its lock
 * from the last tensor on, so these are the calls of this thread since then. */
static void note_failed_calls(
	const struct memory_owners *memory, struct memory_oom *oom, uint64_t since_ns)
{
	oom->first_failed = memory->failed_count;
	for (uint32_t i = memory->failed_count; i-- > 0;) {
		const struct failed_allocation *failed = &memory->failed[i];

		if (failed->time_ns < since_ns)
			break;
		if (failed->tid != oom->tid || failed->device != oom->device)
			continue;
		oom->first_failed = i;
		oom->failed++;
	}
}

void profile_failed_allocation(
	struct profile *profile, const struct trace_event *event, uint32_t node, uint64_t begin_ns)
{
	struct failed_allocation *failed = memory_owners_failed(
		profile->memory, event->record, node, event->time_ns);

	if (!failed)
		return;
	failed->tid = event->stream->tid;
	failed->begin_ns = begin_ns;
	failed->first_open = profile->oom_range_count;
	failed->open = keep_oom_ranges(
		profile, event->stream->user, false, profile->state->reserved);
	failed->first_thread = profile->oom_thread_count;
	failed->threads = keep_oom_threads(
		profile, event->stream->user, false, profile->state->reserved);
}

void profile_tensor_oom_record(struct profile *profile, const struct trace_event *event)
{
	const struct trace_tensor *record = event->record;
	const uint32_t node = profile_event_node(profile, event);
	const bool of_level = is_level_of(profile, record, 0);
	struct memory_oom *oom;

	reader_run_deferred(profile->reader);
	oom = memory_owners_oom(profile->memory, record, node, event->time_ns);
	profile_observe_memory_mark(profile, event);
	if (of_level)
		update_allocated(profile, (int64_t)record->allocated);
	if (!oom)
		return;
	oom->tid = event->stream->tid;
	oom->first_open = profile->oom_range_count;
	if (of_level)
		oom->open = keep_oom_ranges(
			profile, event->stream->user, true, (int64_t)oom->allocated);
	oom->first_thread = profile->oom_thread_count;
	oom->threads = keep_oom_threads(
		profile, event->stream->user, true, (int64_t)oom->allocated);
	note_failed_calls(
		profile->memory, oom, memory_owners_tensors(profile->memory, oom->device)->last_ns);
}

/* Adds to the nodes what was freed of them, and what tensors held at the peak and when memory last
 * ran out. After memory_owners_finish. */
void profile_tensors_finish(struct profile *profile)
{
	const struct memory_owners *memory = profile->memory;
	const struct tensor_totals_by_owner *totals = profile->state->tensor_totals;

	profile->totals.tensor_free_bytes = totals->freed_total;
	for (uint32_t node = 0; node < totals->freed_room; node++)
		if (totals->freed_bytes[node])
			tree_tensors(profile->tree, node)->self.free_bytes +=
				totals->freed_bytes[node];
	for (uint32_t i = 0; i < memory->site_count; i++) {
		const struct memory_site *site = &memory->sites[i];
		const struct memory_level *level = &memory->levels[site->level];

		if (level->kind != MEMORY_TENSOR || level->device != profile->totals.level_device)
			continue;
		tree_tensors(profile->tree, site->node)->self.at_peak += site->flow.at_peak;
		tree_tensors(profile->tree, site->node)->self.at_oom += site->flow.at_oom;
	}
}
