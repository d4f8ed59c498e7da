/* SPDX-License-Identifier: MIT */
#include "report/views/memory_summary.h"
#include "report/views/memory_growth.h"
#include "report/views/missing_data.h"
#include "report/views/memory_oom.h"
#include "report/base/compare.h"
#include "report/analysis/allocation_sites.h"
#include "report/base/alloc.h"
#include "report/print/node_words.h"
#include "report/run/call_stack.h"
#include <stdlib.h>
#include <string.h>

#define OWNERS_SHOWN 4 /* nodes named in a sentence */
#define OWNER_SHARE 10 /* of the peak: nodes with less than a tenth are not named */
#define RANGES_SHOWN 6 /* open ranges */
#define OOMS_SHOWN 5   /* times that memory ran out, in the view `memory`: the last ones */

/* Appends what of PyTorch's reserved memory no tensor holds, and how much was allocated outside its
 * allocator. */
static void add_not_in_tensors(
	struct paragraph *paragraph, uint64_t allocated, uint64_t reserved, int64_t outside)
{
	if (reserved > allocated) {
		paragraph_add(paragraph, ", ");
		paragraph_value(paragraph, UNIT_BYTES, reserved - allocated);
		paragraph_add(paragraph, " (");
		paragraph_percent(paragraph, reserved - allocated, reserved);
		paragraph_add(paragraph, ") of it unallocated");
	}
	if (outside > 0) {
		paragraph_add(paragraph, "; ");
		paragraph_value(paragraph, UNIT_BYTES, (uint64_t)outside);
		paragraph_add(paragraph, " more were allocated outside PyTorch's allocator");
	} else if (outside < 0) {
		paragraph_add(paragraph, "; part of it was reserved before the trace began");
	}
}

/* ---- out of memory ---- */

/* A merged site and what it held when memory ran out. */
struct site_at_oom {
	uint64_t bytes;
	uint32_t index;
};

COMPARE_BY_LARGEST(by_site_at_oom, struct site_at_oom, bytes, index)

/* Returns the merged sites of `kind` whose memory was live then, the largest first, to be freed.
 * All kinds of device memory count as one. */
static struct site_at_oom *sites_at_oom(
	struct process *process, uint32_t kind, uint32_t device, size_t *count)
{
	const struct memory_owners *memory = process->profile->memory;
	struct site_at_oom *sites;

	allocation_sites_merge(process);
	sites = xcalloc((memory->merged_count + 1) * sizeof *sites);
	*count = 0;
	for (uint32_t i = 0; i < memory->merged_count; i++) {
		const struct memory_level *level = &memory->levels[memory->merged[i].level];

		if (level->device == device && memory->merged[i].flow.at_oom &&
			(level->kind == kind ||
				(memory_is_device(level->kind) && memory_is_device(kind))))
			sites[(*count)++] = (struct site_at_oom){ memory->merged[i].flow.at_oom,
				i };
	}
	qsort(sites, *count, sizeof *sites, by_site_at_oom);
	return sites;
}

/* Appends the first frame that is shown of a stack, if there is one. */
static void add_caller(
	struct paragraph *paragraph, struct process *process, uint32_t node, uint32_t stack)
{
	uint32_t shown[CALL_STACK_SHOWN];
	char caller[256];

	if (!call_stack_shown_frames(process, node, stack, shown))
		return;
	call_stack_frame(process, stack, shown[0], true, caller, sizeof caller);
	paragraph_add(paragraph, ", called from ");
	paragraph_text(paragraph, caller, strlen(caller));
}

static void add_site_owner(
	struct paragraph *paragraph, struct process *process, const struct memory_site *site)
{
	paragraph_add_call_path(paragraph, process, site->node, site->omits_steps);
	add_caller(paragraph, process, site->node, site->stack);
}

/* `held`: what all of them held. */
static void put_sites_at_oom(struct process *process, uint32_t kind, uint32_t device, uint64_t held,
	const struct style *style)
{
	const struct memory_owners *memory = process->profile->memory;
	struct paragraph paragraph = { .style = style };
	size_t count;
	struct site_at_oom *sites = sites_at_oom(process, kind, device, &count);

	for (size_t i = 0; i < count && i < OWNERS_SHOWN; i++) {
		paragraph_add(&paragraph, i ? "; " : "live at that time: ");
		paragraph_value(&paragraph, UNIT_BYTES, sites[i].bytes);
		paragraph_add(&paragraph, " (");
		paragraph_percent(&paragraph, sites[i].bytes, held);
		paragraph_add(&paragraph, ") allocated ");
		add_site_owner(&paragraph, process, &memory->merged[sites[i].index]);
	}
	if (count > OWNERS_SHOWN)
		paragraph_add(&paragraph, "; the rest at %zu other call path%s",
			count - OWNERS_SHOWN, count - OWNERS_SHOWN == 1 ? "" : "s");
	if (count)
		paragraph_print(&paragraph, "");
	free(sites);
}

static void add_growth(struct paragraph *paragraph, const struct process *process,
	const struct oom_open_range *range)
{
	const struct string_view label = string_table_get(process->texts, range->label);
	const uint64_t size = range->grown < 0 ? 0 - (uint64_t)range->grown
					       : (uint64_t)range->grown;

	paragraph_text(paragraph, label.bytes, label.length);
	paragraph_add(paragraph, range->grown < 0 ? " -" : " +");
	paragraph_value(paragraph, UNIT_BYTES, size);
}

/* Prints the open ranges in which memory of that kind grew or shrank since they began, and by how
 * much. */
static void put_growth(const struct process *process, uint32_t first, uint32_t open,
	const char *kind, const struct style *style)
{
	const struct oom_open_range *ranges = process->profile->oom_ranges + first;
	struct paragraph paragraph = { .style = style };
	uint32_t changed = 0, shown = 0;

	for (uint32_t i = 0; i < open; i++)
		changed += ranges[i].grown != 0;
	if (!changed)
		return;
	paragraph_add(&paragraph, "growth of %s memory since the start of: ", kind);
	for (uint32_t i = 0; i < open; i++) {
		const bool is_left_out = changed > RANGES_SHOWN && shown >= RANGES_SHOWN - 2 &&
					 shown + 2 < changed;

		if (!ranges[i].grown)
			continue;
		if (!is_left_out) {
			paragraph_add(&paragraph, shown ? ", " : "");
			add_growth(&paragraph, process, &ranges[i]);
		} else if (shown == RANGES_SHOWN - 2) {
			paragraph_add(&paragraph, ", ...");
		}
		shown++;
	}
	paragraph_print(&paragraph, "");
}

static void add_oom_holders(
	struct paragraph *paragraph, const struct process *process, const struct memory_oom *oom)
{
	const struct trace_device *device = process_device(process, oom->device);

	paragraph_add(paragraph, "allocated by tensors: ");
	paragraph_value(paragraph, UNIT_BYTES, oom->allocated);
	paragraph_add(paragraph, "; reserved by PyTorch: ");
	paragraph_value(paragraph, UNIT_BYTES, oom->reserved);
	if (device) {
		paragraph_add(paragraph, " of the GPU's ");
		paragraph_value(paragraph, UNIT_BYTES, device->memory_bytes);
	}
	add_not_in_tensors(paragraph, oom->allocated, oom->reserved, oom->outside_allocator);
}

static void put_oom_sentence(
	const struct process *process, const struct memory_oom *oom, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	paragraph_add(&paragraph, "out of memory on GPU %u after ", oom->device);
	paragraph_value(&paragraph, UNIT_TIME, oom->time_ns);
	paragraph_add(&paragraph, ": ");
	paragraph_value(&paragraph, UNIT_BYTES, oom->requested_bytes);
	paragraph_add(&paragraph, " requested ");
	paragraph_add_call_path(&paragraph, process, oom->node, false);
	add_caller(&paragraph, (struct process *)(uintptr_t)process, oom->node, oom->stack);
	paragraph_print(&paragraph, "OOM");
	add_oom_holders(&paragraph, process, oom);
	paragraph_print(&paragraph, "");
	put_growth(process, oom->first_open, oom->open, "tensor", style);
}

/* ---- a CUDA allocation that failed ---- */

/* Appends the ranges that were open, as they were named, or else the path of the node. */
static void add_failed_path(struct paragraph *paragraph, const struct process *process,
	const struct failed_allocation *failed)
{
	const struct oom_open_range *ranges = process->profile->oom_ranges + failed->first_open;

	if (!failed->open) {
		paragraph_add_call_path(paragraph, process, failed->node, false);
		return;
	}
	for (uint32_t i = 0; i < failed->open; i++) {
		const struct string_view label = string_table_get(process->texts, ranges[i].label);

		paragraph_add(paragraph, i ? " / " : "in `");
		paragraph_name(paragraph, label.bytes, label.length);
	}
	paragraph_add(paragraph, "`");
}

static void add_failed_call(struct paragraph *paragraph, const struct process *process,
	const struct failed_allocation *failed)
{
	const struct trace_text api = reader_name(process->reader, failed->api);

	paragraph_name(paragraph, api.bytes, api.length);
	paragraph_add(paragraph, "(");
	paragraph_value(paragraph, UNIT_BYTES, failed->requested_bytes);
	paragraph_add(paragraph, ") ");
	add_failed_path(paragraph, process, failed);
}

/* Appends how much there was. If the driver was not queried, what was free is known as an upper
 * limit only, because records do not include what other processes and CUDA itself use. */
static void add_failed_capacity(struct paragraph *paragraph, const struct process *process,
	const struct failed_allocation *failed)
{
	const struct trace_device *device = process_device(process, failed->device);

	paragraph_add(
		paragraph, "%s memory allocated by this process: ", memory_kind_name(failed->kind));
	paragraph_value(paragraph, UNIT_BYTES, failed->held);
	if (!memory_is_device(failed->kind) || !device || !device->memory_bytes)
		return;
	paragraph_add(paragraph, " of the GPU's ");
	paragraph_value(paragraph, UNIT_BYTES, device->memory_bytes);
	if (failed->total_bytes) {
		paragraph_add(paragraph, "; the driver reported ");
		paragraph_value(paragraph, UNIT_BYTES, failed->free_bytes);
		paragraph_add(paragraph, " free");
		return;
	}
	if (failed->held >= device->memory_bytes)
		return;
	paragraph_add(paragraph, ", so at most ");
	paragraph_value(paragraph, UNIT_BYTES, device->memory_bytes - failed->held);
	paragraph_add(paragraph, " were free");
	if (device->memory_bytes - failed->held >= failed->requested_bytes)
		paragraph_add(paragraph,
			": enough, so fragmentation, other processes or the CUDA context used it");
}

/* Returns whether the level changed since one of the open ranges began. */
static bool has_grown(const struct process *process, const struct failed_allocation *failed)
{
	const struct oom_open_range *ranges = process->profile->oom_ranges + failed->first_open;

	for (uint32_t i = 0; i < failed->open; i++)
		if (ranges[i].grown)
			return true;
	return false;
}

static void put_failed_sentence(const struct process *process,
	const struct failed_allocation *failed, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	paragraph_add(&paragraph, "out of memory");
	if (failed->device != UINT32_MAX && memory_is_device(failed->kind))
		paragraph_add(&paragraph, " on GPU %u", failed->device);
	paragraph_add(&paragraph, " after ");
	paragraph_value(&paragraph, UNIT_TIME, failed->time_ns);
	paragraph_add(&paragraph, ": ");
	add_failed_call(&paragraph, process, failed);
	add_caller(&paragraph, (struct process *)(uintptr_t)process, failed->node, failed->stack);
	if (failed->succeeded_later)
		paragraph_add(&paragraph, "; as much was allocated later");
	paragraph_print(&paragraph, "OOM");
	add_failed_capacity(&paragraph, process, failed);
	paragraph_print(&paragraph, "");
	if (memory_is_device(failed->kind) && has_grown(process, failed))
		put_growth(process, failed->first_open, failed->open, "device", style);
}

/* Prints the last CUDA allocation that failed for good, else the last one that an allocator
 * repeated. PyTorch's own report of the failure says more. */
static void put_failed(const struct process *process, const struct style *style, bool with_sites)
{
	const struct memory_owners *memory = process->profile->memory;
	const struct failed_allocation *failed = memory_owners_last_failed(memory);
	struct paragraph paragraph = { .style = style };

	if (!memory->failed_count || memory->counts.ooms)
		return;
	if (!failed)
		failed = &memory->failed[memory->failed_count - 1];
	put_failed_sentence(process, failed, style);
	if (with_sites)
		put_sites_at_oom((struct process *)(uintptr_t)process, failed->kind, failed->device,
			failed->held, style);
	memory_oom_put_call((struct process *)(uintptr_t)process, failed, style);
	if (memory->counts.failed_allocations < 2)
		return;
	paragraph_add(&paragraph, "%llu allocations failed for want of memory; this is the last%s",
		(unsigned long long)memory->counts.failed_allocations,
		failed->succeeded_later ? "" : " that was not repeated with success");
	paragraph_print(&paragraph, "");
}

void memory_summary_put_oom(const struct process *process, const struct style *style)
{
	const struct memory_owners *memory = process->profile->memory;
	struct process *shown = (struct process *)(uintptr_t)process;
	struct paragraph paragraph = { .style = style };
	const struct memory_oom *oom;

	put_failed(process, style, true);
	if (!memory->oom_count)
		return;
	oom = &memory->ooms[memory->oom_count - 1];
	put_oom_sentence(process, oom, style);
	put_sites_at_oom(shown, MEMORY_TENSOR, oom->device, oom->allocated, style);
	memory_oom_put_torch(shown, oom, style);
	if (memory->counts.ooms > 1) {
		paragraph_add(&paragraph,
			"PyTorch ran out of memory %llu times; this is the last time%s",
			(unsigned long long)memory->counts.ooms,
			memory->counts.ooms > memory->oom_count ? " that was recorded" : "");
		paragraph_print(&paragraph, "");
	}
}

/* ---- levels ---- */

static void put_level(
	const struct process *process, const struct memory_level *level, const struct style *style)
{
	const struct memory_pool *pool = &level->pool;
	const bool least = process_tensor_levels_are_least(process);
	struct paragraph paragraph = { .style = style };

	paragraph_add(&paragraph, "GPU %u: peak of tensor memory %s", level->device,
		least ? "at least " : "");
	paragraph_value(&paragraph, UNIT_BYTES, pool->peak);
	if (least)
		paragraph_add(&paragraph, " (what was allocated before the trace is unknown)");
	paragraph_add(&paragraph, ", reached ");
	paragraph_add_path(&paragraph, process, pool->peak_node);
	if (pool->allocated_at_end || !least) {
		paragraph_add(&paragraph, "; %s", least ? "at least " : "");
		paragraph_value(&paragraph, UNIT_BYTES, pool->allocated_at_end);
		paragraph_add(&paragraph, " still allocated at the end");
	}
	if (pool->reserved_peak_bytes) {
		paragraph_add(&paragraph, "; at the peak PyTorch reserved ");
		paragraph_value(&paragraph, UNIT_BYTES, pool->reserved_at_peak);
		add_not_in_tensors(
			&paragraph, pool->peak, pool->reserved_at_peak, pool->outside_at_peak);
	}
	paragraph_print(&paragraph, "tensors");
}

struct tensor_owner {
	uint32_t node;
	uint64_t bytes;
	bool omits_steps; /* it allocated in steps and outside of them */
};

COMPARE_BY_LARGEST(by_owner_bytes, struct tensor_owner, bytes, node)

static size_t count_owners(const struct tensor_owner *owners, size_t room)
{
	size_t count = 0;

	while (count < room && owners[count].bytes)
		count++;
	return count;
}

/* Returns the nodes whose tensors were live on `device` at the peak, the largest first. `count` is
 * their number. The array is to be freed. */
static struct tensor_owner *tensor_owners(
	const struct process *process, uint32_t device, size_t *count)
{
	const struct memory_owners *memory = process->profile->memory;
	const struct tree *tree = process->profile->tree;
	struct tensor_owner *owners = xcalloc(tree->count * sizeof *owners);
	uint32_t *same = nodes_in_any_step(tree), *paths = nodes_by_call_path(tree);

	for (uint32_t i = 0; i < memory->site_count; i++) {
		const struct memory_site *site = &memory->sites[i];
		const uint32_t node = same[site->node],
			       path = paths[site->node] ? paths[site->node] : node;

		if (&memory->levels[site->level] != memory_owners_tensors(memory, device))
			continue;
		if (!site->flow.at_peak)
			continue;
		owners[path].omits_steps |= owners[path].node && owners[path].node != node;
		owners[path].node = node;
		owners[path].bytes += site->flow.at_peak;
	}
	free(same);
	free(paths);
	qsort(owners, tree->count, sizeof *owners, by_owner_bytes);
	*count = count_owners(owners, tree->count);
	return owners;
}

/* Adds the nodes that tensor_owners returned, with their shares of `allocated`: at most
 * OWNERS_SHOWN, none with less than `least` bytes. */
static void add_owners(struct paragraph *paragraph, const struct process *process,
	const struct tensor_owner *owners, size_t count, uint64_t allocated, uint64_t least)
{
	size_t shown = 0;

	for (; shown < count && shown < OWNERS_SHOWN; shown++) {
		const struct tensor_owner *owner = &owners[shown];

		if (owner->bytes < least)
			break;
		paragraph_add(paragraph, shown ? ", " : "");
		paragraph_value(paragraph, UNIT_BYTES, owner->bytes);
		paragraph_add(paragraph, " (");
		paragraph_percent(paragraph, owner->bytes, allocated);
		paragraph_add(paragraph, ") allocated ");
		paragraph_add_call_path(paragraph, process, owner->node, owner->omits_steps);
	}
	if (count > shown)
		paragraph_add(paragraph, "%sthe rest at %zu other node%s", shown ? ", " : "",
			count - shown, count - shown == 1 ? "" : "s");
}

/* Prints which nodes allocated what was live at the peak: seldom the one where it was reached. */
static void put_owners_at_peak(
	const struct process *process, const struct memory_level *level, const struct style *style)
{
	const uint64_t peak = level->pool.peak, before = level->pool.before_at_peak;
	struct paragraph paragraph = { .style = style };
	size_t count;
	struct tensor_owner *owners = tensor_owners(process, level->device, &count);

	if (before || count)
		paragraph_add(&paragraph, "live at the peak: ");
	if (before) {
		paragraph_value(&paragraph, UNIT_BYTES, before);
		paragraph_add(&paragraph, " (");
		paragraph_percent(&paragraph, before, peak);
		paragraph_add(&paragraph, ") allocated %s%s",
			process->windows ? "while nothing was recorded" : "before the trace began",
			count ? ", " : "");
	}
	add_owners(&paragraph, process, owners, count, peak, peak / OWNER_SHARE);
	if (before || count)
		paragraph_print(&paragraph, "");
	free(owners);
}

static void put_all_owners_at_peak(const struct process *process, const struct style *style)
{
	const struct memory_owners *memory = process->profile->memory;

	for (uint32_t i = 0; i < memory->level_count; i++)
		if (memory->levels[i].kind == MEMORY_TENSOR && memory->levels[i].pool.peak)
			put_owners_at_peak(process, &memory->levels[i], style);
}

#define PARTIAL "partial: "

/* Prints why there are no tensors: what the trace says, or that the allocator's reports were
 * enabled, but none came although device memory was allocated. */
static void put_no_reports(const struct process *process, const struct style *style)
{
	const struct trace_text state = process_meta(process, "source.torch_memory");
	struct paragraph paragraph = { .style = style };
	const size_t begin = sizeof PARTIAL - 1;

	if (state.length > begin && !memcmp(state.bytes, PARTIAL, begin) &&
		!process_meta(process, "import.format").known) {
		paragraph_text(&paragraph, state.bytes + begin, state.length - begin);
		paragraph_print(&paragraph, "tensors");
		return;
	}
	if (state.length != 2 || memcmp(state.bytes, "on", 2) != 0 ||
		!process->profile->totals.reserved_peak)
		return;
	paragraph_add(&paragraph,
		"PyTorch's allocator reported no tensors, but device memory was "
		"allocated: by another allocator set in PyTorch, or outside PyTorch");
	paragraph_print(&paragraph, "tensors");
}

void memory_summary_put_levels(const struct process *process, const struct style *style)
{
	const struct memory_owners *memory = process->profile->memory;

	for (uint32_t i = 0; i < memory->level_count; i++)
		if (memory->levels[i].kind == MEMORY_TENSOR && memory->levels[i].pool.peak)
			put_level(process, &memory->levels[i], style);
	if (!memory->counts.tensors && !memory->counts.ooms)
		put_no_reports(process, style);
}

void memory_summary_header(const struct report *report, const struct style *style)
{
	for (size_t i = 0; i < report->processes->shown; i++) {
		const struct process *process = &report->processes->all[i];
		const struct memory_owners *memory = process->profile->memory;
		const uint32_t first = memory->oom_count > OOMS_SHOWN
					       ? memory->oom_count - OOMS_SHOWN
					       : 0;
		bool grows;

		if (first)
			print_line(style, "PyTorch ran out of memory %llu times; the last %u:\n",
				(unsigned long long)memory->counts.ooms, OOMS_SHOWN);
		for (uint32_t oom = first; oom < memory->oom_count; oom++)
			put_oom_sentence(process, &memory->ooms[oom], style);
		if (memory->oom_count)
			memory_oom_put_torch((struct process *)(uintptr_t)process,
				&memory->ooms[memory->oom_count - 1], style);
		put_failed(process, style, false);
		memory_summary_put_levels(process, style);
		put_all_owners_at_peak(process, style);
		grows = memory_growth_put(&report->processes->all[i], style);
		if (memory->counts.tensors || memory->counts.ooms || memory->failed_count || grows)
			output_char(style->out, '\n');
	}
}

void memory_explain_empty(const struct report *report, const struct style *style)
{
	struct process *process = &report->processes->all[0];
	struct paragraph paragraph = { .style = style };
	const char *unchecked;

	if (!report->options->growth || !process->profile->memory->level_count) {
		missing_data_explain(report, style);
		return;
	}
	unchecked = memory_leaks_unchecked(process);
	paragraph_add(&paragraph, "no memory grows from step to step");
	if (unchecked)
		paragraph_add(&paragraph, ", as far as it is known: %s", unchecked);
	paragraph_print(&paragraph, "no rows");
}
