/* SPDX-License-Identifier: MIT */
#include "report/page/flame_values.h"
#include "report/analysis/tree_amounts.h"
#include "report/base/alloc.h"
#include "report/run/call_stack.h"
#include <stdlib.h>
#include <string.h>

static void add_value(struct flame *flame, struct flame_tree *tree, uint32_t frame, size_t metric,
	uint32_t side, long double value)
{
	flame_values(tree, frame)[flame_value_index(flame, metric, side)] += value;
}

static void add_named(struct flame *flame, struct flame_tree *tree, uint32_t root, const char *name,
	size_t metric, uint32_t side, long double value)
{
	uint32_t frame;

	if (value <= 0)
		return;
	frame = flame_child(
		tree, root, string_table_intern(flame->texts, name, strlen(name)), FLAME_UNKNOWN);
	add_value(flame, tree, frame, metric, side, value);
}

/* ---- values of nodes ---- */

void flame_add_nodes(struct flame *flame, struct flame_tree *tree, const struct profile *profile,
	const uint32_t *frame_of_node, uint32_t root, uint32_t side)
{
	static const enum tree_amount amounts[FLAME_BASE_METRICS] = { [FLAME_GPU] = AMOUNT_GPU,
		[FLAME_CPU] = AMOUNT_CPU,
		[FLAME_IDLE] = AMOUNT_IDLE,
		[FLAME_SAMPLED] = AMOUNT_SAMPLED,
		[FLAME_SAMPLED_WALL] = AMOUNT_SAMPLED_WALL,
		[FLAME_ALLOCATED] = AMOUNT_HELD,
		[FLAME_RESERVED] = AMOUNT_RESERVED,
		[FLAME_TENSORS] = AMOUNT_TENSORS,
		[FLAME_ALLOC] = AMOUNT_ALLOC };

	for (size_t metric = 0; metric < FLAME_BASE_METRICS; metric++) {
		uint64_t sum, *values = tree_amounts_of(profile, amounts[metric], &sum);

		for (uint32_t id = 1; id < profile->tree->count; id++)
			if (values[id])
				add_value(flame, tree, frame_of_node[id], metric, side, values[id]);
		add_named(flame, tree, root, tree_amount_unrecorded(profile), metric, side,
			values[0]);
		free(values);
	}
}

/* ---- memory at the peak ---- */

/* Returns the metric of a level of memory: tensors, or device memory, of the device whose levels
 * the profile has. FLAME_BASE_METRICS: none. */
static size_t metric_of_level(const struct profile *profile, const struct memory_level *level)
{
	if (level->device != profile->totals.level_device)
		return FLAME_BASE_METRICS;
	if (level->kind == MEMORY_TENSOR)
		return FLAME_ALLOCATED;
	return memory_is_device(level->kind) ? FLAME_RESERVED : FLAME_BASE_METRICS;
}

/* Adds what no allocation of the trace explains: `peaks`, by metric, is what frames have. */
static void add_unrecorded(struct flame *flame, struct flame_tree *tree,
	const struct profile *profile, const uint64_t *peaks, uint32_t root, uint32_t side)
{
	const struct profile_totals *totals = &profile->totals;
	const int64_t highest[] = {
		[FLAME_ALLOCATED] = totals->allocated_peak, [FLAME_RESERVED] = totals->reserved_peak
	};
	const char *name = tree_amount_unrecorded(profile);

	for (size_t metric = FLAME_ALLOCATED; metric <= FLAME_RESERVED; metric++)
		if (peaks[metric] && highest[metric] > 0)
			add_named(flame, tree, root, name, metric, side,
				(long double)highest[metric] - (long double)peaks[metric]);
}

/* ---- call stacks ---- */

/* Returns the frame of the innermost function of a stack, and adds the path to it. */
static uint32_t frame_of_stack(struct flame *flame, struct flame_tree *tree,
	struct process *process, uint32_t stack, uint32_t root)
{
	static char text[CALL_STACK_TEXT];
	uint32_t frame = root;

	for (uint32_t i = call_stack_frames(process, stack); i-- > 0;) {
		const size_t length = call_stack_frame(process, stack, i, false, text, sizeof text);

		frame = flame_child(
			tree, frame, string_table_intern(flame->texts, text, length), FLAME_STACK);
	}
	return frame;
}

/* As frame_of_stack. What has no call stack has a frame of its own. */
static uint32_t frame_of_known_stack(struct flame *flame, struct flame_tree *tree,
	struct process *process, uint32_t stack, uint32_t root)
{
	const uint32_t frame = frame_of_stack(flame, tree, process, stack, root);

	if (frame != root)
		return frame;
	return flame_child(tree, root, string_table_intern(flame->texts, "(no call stack)", 15),
		FLAME_UNKNOWN);
}

static bool has_call_stacks(const struct process *process)
{
	return reader_dictionary_count(process->reader, TRACE_STACK) ||
	       reader_dictionary_count(process->reader, TRACE_PYTHON_STACK);
}

/* GPU time by call stack. */
struct launch_stacks {
	uint64_t *ns; /* by stack; 0: work without a call stack */
	size_t room;
};

static void restart_launch_stacks(void *context)
{
	struct launch_stacks *stacks = context;

	memset(stacks->ns, 0, stacks->room * sizeof *stacks->ns);
}

static void add_launched_work(void *context, const struct observed_gpu_work *work)
{
	struct launch_stacks *stacks = context;
	const struct trace_gpu *gpu = work->gpu;
	const size_t stack = work->launch ? work->launch->stack : 0;

	if (!work->counts || !work->timed || gpu->end_ns <= gpu->start_ns)
		return;
	ARRAY_GROW(stacks->ns, stacks->room, stack + 1);
	stacks->ns[stack] += gpu->end_ns - gpu->start_ns;
}

bool flame_add_launch_stacks(struct flame *flame, struct flame_tree *tree, struct process *process,
	uint32_t root, uint32_t side)
{
	struct launch_stacks stacks = { .ns = xcalloc(sizeof *stacks.ns), .room = 1 };
	const struct profile_observer observer = {
		.context = &stacks, .restart = restart_launch_stacks, .work = add_launched_work
	};
	const struct profile_options options = profile_options_for_observer(
		process->profile, &observer);
	bool has_stacks = false;

	if (process_has_records(process) && has_call_stacks(process))
		profile_free(profile_build(process->reader, process->texts, &options));
	for (uint32_t stack = 1; stack < stacks.room; stack++)
		has_stacks |= stacks.ns[stack] && call_stack_frames(process, stack);
	for (uint32_t stack = 0; has_stacks && stack < stacks.room; stack++)
		if (stacks.ns[stack])
			add_value(flame, tree,
				frame_of_known_stack(flame, tree, process, stack, root), FLAME_GPU,
				side, stacks.ns[stack]);
	free(stacks.ns);
	return has_stacks;
}

/* Adds what a site has of the metrics, to a frame. */
static void add_site(struct flame *flame, struct flame_tree *tree, const struct profile *profile,
	const struct memory_site *site, uint32_t frame, uint32_t side, uint64_t *sums)
{
	const struct memory_level *level = &profile->memory->levels[site->level];
	const size_t peak = metric_of_level(profile, level);
	const size_t all = level->kind == MEMORY_TENSOR    ? FLAME_TENSORS
			   : memory_is_device(level->kind) ? FLAME_ALLOC
							   : FLAME_BASE_METRICS;

	sums[peak] += site->flow.at_peak;
	sums[all] += site->flow.alloc_bytes;
	if (peak != FLAME_BASE_METRICS)
		add_value(flame, tree, frame, peak, side, site->flow.at_peak);
	if (all != FLAME_BASE_METRICS)
		add_value(flame, tree, frame, all, side, site->flow.alloc_bytes);
}

bool flame_add_stacks(struct flame *flame, struct flame_tree *tree, struct process *process,
	uint32_t root, uint32_t side)
{
	static const char *const later = "(after the last step)";
	const struct profile *profile = process->profile;
	const struct memory_owners *memory = profile->memory;
	uint64_t sums[FLAME_BASE_METRICS + 1] = { 0 };
	bool has_stacks = false;

	for (uint32_t i = 0; i < memory->site_count; i++)
		has_stacks |= call_stack_frames(process, memory->sites[i].stack) > 0;
	for (uint32_t i = 0; has_stacks && i < memory->site_count; i++) {
		const struct memory_site *site = &memory->sites[i];

		add_site(flame, tree, profile, site,
			frame_of_known_stack(flame, tree, process, site->stack, root), side, sums);
	}
	if (!has_stacks)
		return false;
	add_unrecorded(flame, tree, profile, sums, root, side);
	add_named(flame, tree, root, later, FLAME_TENSORS, side,
		(long double)profile->totals.tensor_alloc_bytes - (long double)sums[FLAME_TENSORS]);
	add_named(flame, tree, root, later, FLAME_ALLOC, side,
		(long double)profile->totals.alloc_bytes - (long double)sums[FLAME_ALLOC]);
	return true;
}
