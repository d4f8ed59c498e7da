/* SPDX-License-Identifier: MIT */
#include "report/page/flame_values.h"
#include "report/base/alloc.h"
#include "report/run/call_stack.h"
#include <stdlib.h>
#include <string.h>

static void add_value(struct flame *flame, struct flame_tree *tree, uint32_t frame, size_t metric,
	uint32_t side, long double value)
{
	flame_values(tree, frame)[flame_value_index(flame, metric, side)] += value;
}

/* ---- values of nodes ---- */

/* Values that include those of the nodes below. */
struct node_totals {
	uint64_t gpu, idle, alloc;
};

/* Idle time is not charged where recording windows interrupt the trace. */
static struct node_totals totals_of(const struct profile *profile, const struct node *node)
{
	return (struct node_totals){
		.gpu = node->gpu && node->gpu->total_calls ? node->gpu->total_ns : 0,
		.idle = node->gpu && !profile->options.windows ? node->gpu->idle_before_ns : 0,
		.alloc = node->memory ? node->memory->alloc_bytes : 0,
	};
}

static uint64_t without(uint64_t whole, uint64_t parts)
{
	return whole > parts ? whole - parts : 0;
}

/* The CPU time of a node without ranges and calls in it. `in_calls`: of the calls below it. */
static uint64_t own_cpu(const struct node *node, uint64_t in_calls)
{
	switch (node_kind_class(node->kind)) {
	case NODE_RANGES:
		return node->is_group || node->kind == NODE_ASYNC || node->captured
			       ? 0
			       : without(node->self_ns, in_calls);
	case NODE_CALLS:
		return node->kind == NODE_MARK ? 0 : node->total_ns;
	default:
		return 0;
	}
}

void flame_add_node_values(struct flame *flame, struct flame_tree *tree,
	const struct profile *profile, const uint32_t *frame_of_node, uint32_t side)
{
	const struct tree *nodes = profile->tree;
	struct node_totals *below = xcalloc((nodes->count + 1) * sizeof *below);
	uint64_t *calls_below = xcalloc((nodes->count + 1) * sizeof *calls_below);

	for (uint32_t id = nodes->count - 1; id > 0; id--) {
		const struct node *node = &nodes->nodes[id];
		const struct node_totals total = totals_of(profile, node);
		struct node_totals *parent = &below[node->parent];
		const uint32_t frame = frame_of_node[id];

		parent->gpu += total.gpu;
		parent->idle += total.idle;
		parent->alloc += total.alloc;
		if (node_kind_class(node->kind) == NODE_CALLS && node->kind != NODE_MARK)
			calls_below[node->parent] += node->total_ns;
		if (node->parent == profile->async_ranges && profile->async_ranges)
			continue;
		add_value(flame, tree, frame, FLAME_GPU, side, without(total.gpu, below[id].gpu));
		add_value(flame, tree, frame, FLAME_CPU, side, own_cpu(node, calls_below[id]));
		add_value(
			flame, tree, frame, FLAME_IDLE, side, without(total.idle, below[id].idle));
		add_value(flame, tree, frame, FLAME_ALLOC, side,
			without(total.alloc, below[id].alloc));
		if (node->tensors)
			add_value(flame, tree, frame, FLAME_TENSORS, side,
				node->tensors->self.alloc_bytes);
	}
	free(below);
	free(calls_below);
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

/* Adds what no allocation of the trace explains: `peaks`, by metric, is what frames have. */
static void add_unrecorded(struct flame *flame, struct flame_tree *tree,
	const struct profile *profile, const uint64_t *peaks, uint32_t root, uint32_t side)
{
	const struct profile_totals *totals = &profile->totals;
	const int64_t highest[] = {
		[FLAME_ALLOCATED] = totals->allocated_peak, [FLAME_RESERVED] = totals->reserved_peak
	};
	const char *name = profile->options.windows ? "(allocated while nothing was recorded)"
						    : "(allocated before the trace began)";

	for (size_t metric = FLAME_ALLOCATED; metric <= FLAME_RESERVED; metric++)
		if (peaks[metric] && highest[metric] > 0)
			add_named(flame, tree, root, name, metric, side,
				(long double)highest[metric] - (long double)peaks[metric]);
}

void flame_add_peaks(struct flame *flame, struct flame_tree *tree, const struct profile *profile,
	const uint32_t *frame_of_node, uint32_t root, uint32_t side)
{
	const struct memory_owners *memory = profile->memory;
	uint64_t peaks[FLAME_BASE_METRICS + 1] = { 0 };

	for (uint32_t i = 0; i < memory->site_count; i++) {
		const struct memory_site *site = &memory->sites[i];
		const size_t metric = metric_of_level(profile, &memory->levels[site->level]);

		peaks[metric] += site->flow.at_peak;
		if (metric != FLAME_BASE_METRICS)
			add_value(flame, tree, frame_of_node[site->node], metric, side,
				site->flow.at_peak);
	}
	if (!peaks[FLAME_ALLOCATED] && profile->totals.allocated_peak > 0)
		add_named(flame, tree, root, "(allocated before the trace began)", FLAME_ALLOCATED,
			side, profile->totals.allocated_peak);
	add_unrecorded(flame, tree, profile, peaks, root, side);
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
	const uint32_t none = string_table_intern(flame->texts, "(no call stack)", 15);
	uint64_t sums[FLAME_BASE_METRICS + 1] = { 0 };
	bool has_stacks = false;

	for (uint32_t i = 0; i < memory->site_count; i++)
		has_stacks |= call_stack_frames(process, memory->sites[i].stack) > 0;
	for (uint32_t i = 0; has_stacks && i < memory->site_count; i++) {
		const struct memory_site *site = &memory->sites[i];
		const uint32_t frame = frame_of_stack(flame, tree, process, site->stack, root);

		add_site(flame, tree, profile, site,
			frame == root ? flame_child(tree, root, none, FLAME_UNKNOWN) : frame, side,
			sums);
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
