/* SPDX-License-Identifier: MIT */
#include "report/summary/headline.h"
#include "report/summary/sampled_line.h"
#include "report/analysis/dataloader_wait.h"
#include "report/print/node_words.h"
#include "report/table/column.h"
#include "report/text/format_number.h"
#include "report/analysis/step_stats.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

static uint64_t metric_amount(const struct node *node, enum metric metric)
{
	if (metric == METRIC_GPU)
		return node->gpu ? node->gpu->total_ns : 0;
	if (metric == METRIC_TENSORS)
		return node->tensors ? node->tensors->total.alloc_bytes : 0;
	if (metric == METRIC_ALLOC)
		return node->memory ? node->memory->alloc_bytes : 0;
	return node->total_ns;
}

/* Returns true for ranges, and for CUDA graphs by GPU time, since a graph holds the work of
 * ranges. */
static bool is_candidate(const struct node *node, enum metric metric)
{
	return node_kind_class(node->kind) == NODE_RANGES ||
	       (node->kind == NODE_GRAPH && metric == METRIC_GPU);
}

/* Returns the top-level range with the largest amount, or the deepest range on the way down from it
 * that still has half of `whole`. The way takes the child with the largest amount at each level,
 * and of equal ones the first by name. Returns 0 if there is no range. */
static uint32_t heaviest_node(const struct profile *profile, enum metric metric, uint64_t whole)
{
	uint32_t node_id = 0;

	for (;;) {
		uint32_t heaviest = 0;

		for (uint32_t id = profile->tree->nodes[node_id].first_child; id;
			id = profile->tree->nodes[id].next) {
			const struct node *node = &profile->tree->nodes[id];

			if (!is_candidate(node, metric) ||
				!profile_root_has_share(profile, id, metric == METRIC_CPU))
				continue;
			if (!heaviest ||
				metric_amount(node, metric) >
					metric_amount(&profile->tree->nodes[heaviest], metric) ||
				(metric_amount(node, metric) ==
						metric_amount(
							&profile->tree->nodes[heaviest], metric) &&
					string_table_compare(profile->texts, node->name,
						profile->tree->nodes[heaviest].name) < 0))
				heaviest = id;
		}
		if (!heaviest || (node_id && metric_amount(&profile->tree->nodes[heaviest],
						     metric) < whole / 2))
			return node_id;
		node_id = heaviest;
	}
}

#define CHILDREN_MAX 3u

/* Returns the child that follows `last` in the order of descending amounts, or the first one if
 * `last` is 0. Children of equal amounts keep their order. Returns 0 if there is none. */
static uint32_t next_largest_child(
	const struct tree *tree, uint32_t parent, enum metric metric, uint32_t last)
{
	const uint64_t limit = last ? metric_amount(&tree->nodes[last], metric) : UINT64_MAX;
	uint32_t best = 0;
	uint64_t most = 0;
	bool behind_last = !last;

	for (uint32_t id = tree->nodes[parent].first_child; id; id = tree->nodes[id].next) {
		const struct node *node = &tree->nodes[id];
		const uint64_t amount = metric_amount(node, metric);
		const bool follows = behind_last ? amount <= limit : amount < limit;

		behind_last |= id == last;
		if (is_candidate(node, metric) && follows && (!best || amount > most)) {
			best = id;
			most = amount;
		}
	}
	return best;
}

/* Returns true if a node's GPU time is that of forward and backward passes. */
static bool has_both_passes(const struct node *node)
{
	return node->gpu && node->gpu->part_ns[PART_FORWARD] &&
	       (node->gpu->part_ns[PART_BACKWARD] || node->gpu->part_ns[PART_RECOMPUTE]);
}

/* Appends the heaviest children of a node, as far as they have 5 % or more of its amount, with
 * their shares of `whole`. Example: "; largest parts: `forward` (40 %), `backward` (35 %)". */
static void add_largest_children(struct paragraph *paragraph, const struct process *process,
	uint32_t node_id, enum metric metric, uint64_t whole)
{
	const struct tree *tree = process->profile->tree;
	const uint64_t amount = metric_amount(&tree->nodes[node_id], metric);
	uint32_t child = 0;

	for (uint32_t part = 0; part < CHILDREN_MAX; part++) {
		child = next_largest_child(tree, node_id, metric, child);
		if (!child || metric_amount(&tree->nodes[child], metric) < amount / 20)
			return;
		paragraph_add(paragraph, part ? ", `" : "; largest parts: `");
		paragraph_add_node(paragraph, process, child);
		paragraph_add(paragraph, "` (");
		paragraph_percent(paragraph, metric_amount(&tree->nodes[child], metric), whole);
		paragraph_add(paragraph,
			has_both_passes(&tree->nodes[child]) ? ", with its backward pass)" : ")");
	}
}

/* Returns true if a node below `root` is a call of a module. */
static bool contains_module(const struct tree *tree, uint32_t root)
{
	uint32_t id = tree->nodes[root].first_child;

	while (id && id != root) {
		if (tree->nodes[id].kind == NODE_MODULE)
			return true;
		if (tree->nodes[id].first_child) {
			id = tree->nodes[id].first_child;
			continue;
		}
		while (id != root && !tree->nodes[id].next)
			id = tree->nodes[id].parent;
		if (id != root)
			id = tree->nodes[id].next;
	}
	return false;
}

/* Appends the place of a node. Of an optimizer that calls the model in a closure (LBFGS, Lightning)
 * most work may be the model's, so that is said, with the parts of its GPU time if `gpu`. */
static void add_path_with_closure(
	struct paragraph *paragraph, const struct process *process, uint32_t node_id, bool gpu)
{
	static const char *const names[NODE_PARTS] = { [PART_FORWARD] = "forward",
		[PART_BACKWARD] = "backward",
		[PART_RECOMPUTE] = "recompute",
		[PART_OPTIMIZER] = "optimizer" };
	const struct node *node = &process->profile->tree->nodes[node_id];
	const char *separator = ": ";

	paragraph_add_in_place(paragraph, process, node_id);
	if (node->kind != NODE_OPTIMIZER || !contains_module(process->profile->tree, node_id))
		return;
	paragraph_add(paragraph, ", which calls the model in a closure");
	for (unsigned part = 0; gpu && part < NODE_PARTS; part++) {
		if (!node->gpu->part_ns[part])
			continue;
		paragraph_add(paragraph, "%s%s ", separator, names[part]);
		paragraph_percent(paragraph, node->gpu->part_ns[part], node->gpu->total_ns);
		separator = ", ";
	}
}

/* Returns true if two shares differ by more than 5 percentage points, or one is more than 1.5 times
 * the other. */
static bool shares_differ(double a, double b)
{
	const double more = a > b ? a : b, less = a > b ? b : a;

	return more - less > 0.05 || more > less * 1.5;
}

/* Adds the share of the time between the first and the last operation. */
static void add_overall_busy_share(
	struct paragraph *paragraph, const struct profile_totals *totals, uint64_t whole)
{
	paragraph_percent(paragraph, totals->gpu_busy_ns, whole);
	paragraph_add(paragraph, " of the ");
	paragraph_value(paragraph, UNIT_TIME, whole);
	paragraph_add(paragraph, " from its first operation to its last");
}

/* Appends the busy share of steady-state steps, because imports and warm-up hide what can be gained
 * there. Adds the share of the whole run only if it differs. Returns true if steps were used. */
static bool add_busy_share(struct paragraph *paragraph, const struct process *process)
{
	const struct profile_totals *totals = &process->profile->totals;
	const uint64_t whole = totals->gpu_busy_ns + totals->gpu_idle_ns;
	uint64_t busy = 0, idle = 0;
	const bool has_steps = step_busy_read(process, &busy, &idle);

	if (has_steps) {
		paragraph_add(paragraph, "in steady-state steps the GPU was busy ");
		paragraph_percent(paragraph, busy, busy + idle);
		paragraph_add(paragraph, " of the time");
		if (whole && !shares_differ((double)busy / (double)(busy + idle),
				     (double)totals->gpu_busy_ns / (double)whole))
			return true;
		paragraph_add(paragraph, ", overall ");
	} else {
		paragraph_add(paragraph, "the GPU was busy ");
	}
	add_overall_busy_share(paragraph, totals, whole);
	return has_steps;
}

/* percent of the steps' time; below, the GPU waits for something else */
#define DATALOADER_MIN_PERCENT 20u

/* Appends the time spent waiting for batches, unless the GPU was busy more than half of the
 * time. */
static void add_dataloader_wait(struct paragraph *paragraph, const struct process *process)
{
	const struct dataloader_wait batches = dataloader_wait_of(process->profile);
	uint64_t busy = 0, idle = 0;

	if (!batches.ns || batches.ns < batches.steps_ns / 100 * DATALOADER_MIN_PERCENT ||
		!step_busy_read(process, &busy, &idle) || busy > idle)
		return;
	paragraph_add(paragraph, "; fetching the next batch from the DataLoader took ");
	paragraph_percent(paragraph, batches.ns, batches.steps_ns);
	paragraph_add(paragraph, " of the steps' time");
}

/* Appends the time in which it is unknown whether the GPU was busy, and why. */
static void add_unknown_time(struct paragraph *paragraph, const struct process *process)
{
	const uint64_t unknown_ns = process->profile->totals.gpu_unknown_ns;
	const struct timeline_device *devices;
	const size_t count = timeline_devices(process->profile->timeline, &devices);
	bool handed_over = false, in_graphs = false;

	for (size_t i = 0; i < count; i++) {
		handed_over |= devices[i].unknown_handover_ns > 0;
		in_graphs |= devices[i].unknown_ns > devices[i].unknown_handover_ns;
	}
	if (!unknown_ns)
		return;
	paragraph_add(paragraph, ", without the ");
	paragraph_value(paragraph, UNIT_TIME, unknown_ns);
	if (handed_over)
		paragraph_add(paragraph, " in which another profiler used CUPTI");
	if (in_graphs)
		paragraph_add(paragraph, handed_over ? " or that were inside CUDA graphs with "
						       "missing records"
						     : " inside CUDA graphs with missing records");
}

/* Appends how busy the GPU was, for a trace with too little work for a verdict. */
static void add_gpu_times(struct paragraph *paragraph, const struct process *process)
{
	const bool of_steps = add_busy_share(paragraph, process);

	add_unknown_time(paragraph, process);
	if (of_steps)
		add_dataloader_wait(paragraph, process);
}

/* Returns true if a node's GPU time includes a backward pass that need not be launched in it:
 * the tree has that of an operator beside the operator (node_placement.h). A step contains both
 * passes, and so does an optimizer that calls the model. */
static bool includes_later_backward(const struct node *node)
{
	return node->kind != NODE_STEP && node->kind != NODE_OPTIMIZER && has_both_passes(node);
}

/* Appends where most GPU work was launched. With a verdict, the findings say where, so a root and
 * the largest parts are left to the tree. */
static void add_gpu_owner(
	struct paragraph *paragraph, const struct process *process, bool has_verdict)
{
	const struct profile_totals *totals = &process->profile->totals;
	const uint32_t node_id = heaviest_node(process->profile, METRIC_GPU, totals->gpu_sum_ns);
	const bool with_backward = includes_later_backward(&process->profile->tree->nodes[node_id]);

	if (!node_id || (has_verdict && !process->profile->tree->nodes[node_id].parent))
		return;
	paragraph_add(paragraph, paragraph->built.used ? "; " : "");
	paragraph_percent(paragraph,
		metric_amount(&process->profile->tree->nodes[node_id], METRIC_GPU),
		totals->gpu_sum_ns);
	paragraph_add(paragraph, with_backward ? " is " : " was launched ");
	add_path_with_closure(paragraph, process, node_id, true);
	paragraph_add(paragraph, with_backward ? ", with its backward pass" : "");
	if (!has_verdict)
		add_largest_children(paragraph, process, node_id, METRIC_GPU, totals->gpu_sum_ns);
}

/* Returns the device memory that was held at the end on the device of the levels. */
static uint64_t device_memory_at_end(const struct process *process)
{
	const struct memory_owners *memory = process->profile->memory;
	uint64_t held = 0;

	for (uint32_t i = 0; i < memory->level_count; i++)
		if (memory_is_device(memory->levels[i].kind) &&
			memory->levels[i].device == process->profile->totals.level_device)
			held += memory->levels[i].flow.held;
	return held;
}

/* Device memory only, not the tensors in it: its peak, what was still reserved at the end, and
 * where it was allocated. */
static void add_memory_headline(struct paragraph *paragraph, const struct process *process)
{
	const struct profile_totals *totals = &process->profile->totals;
	const uint32_t node_id = heaviest_node(process->profile, METRIC_ALLOC, totals->alloc_bytes);

	paragraph_add(paragraph, "peak of device memory ");
	paragraph_value(paragraph, UNIT_BYTES, (uint64_t)totals->reserved_peak);
	paragraph_add(paragraph, ", ");
	paragraph_value(paragraph, UNIT_BYTES, device_memory_at_end(process));
	paragraph_add(paragraph, " still allocated at the end");
	if (!node_id || !totals->alloc_bytes)
		return;
	paragraph_add(paragraph, "; ");
	paragraph_percent(paragraph,
		metric_amount(&process->profile->tree->nodes[node_id], METRIC_ALLOC),
		totals->alloc_bytes);
	paragraph_add(paragraph, " of allocated bytes ");
	paragraph_add_path(paragraph, process, node_id);
}

/* Returns a node's self time on the CPU if it counts: in ranges of all threads, in steady-state
 * steps if there are any. `counts`: by node, of those before it. */
static uint64_t counted_self_ns(const struct profile *profile, uint32_t id, uint8_t *counts)
{
	const struct node *node = &profile->tree->nodes[id];

	counts[id] = node->parent ? counts[node->parent]
				  : profile_root_has_share(profile, id, true);
	return counts[id] && node_kind_class(node->kind) == NODE_RANGES && !node->is_group &&
			       !node->ran_elsewhere
		       ? node->self_ns
		       : 0;
}

/* Appends the paths with the most self time, largest first. Self times of all threads are added,
 * nested ranges excluded, so that shares add up to the whole. */
static void add_self_times(struct paragraph *paragraph, const struct process *process)
{
	const struct profile *profile = process->profile;
	const uint32_t count = profile->tree->count;
	uint8_t *counts = xcalloc(count);
	uint64_t *self_ns = xcalloc(count * sizeof *self_ns), whole = 0;

	for (uint32_t id = 1; id < count; id++)
		whole += self_ns[id] = counted_self_ns(profile, id, counts);
	paragraph_add(paragraph, "Of ");
	paragraph_value(paragraph, UNIT_TIME, whole);
	paragraph_add(paragraph, " of self time in ranges (all threads%s), ",
		process->steps && process->steps->count ? ", time outside steps excluded" : "");
	for (unsigned n = 0; n < CHILDREN_MAX; n++) {
		uint32_t most = 0;

		for (uint32_t id = 1; id < count; id++)
			most = self_ns[id] > self_ns[most] ? id : most;
		if (!most || self_ns[most] < whole / 20)
			break;
		paragraph_add(paragraph, n ? ", " : "");
		paragraph_percent(paragraph, self_ns[most], whole);
		paragraph_add(paragraph, n ? " " : " is ");
		paragraph_add_in_place(paragraph, process, most);
		self_ns[most] = 0;
	}
	free(counts);
	free(self_ns);
}

/* Appends where CPU time was spent, whatever the metric of the report is, or that no range was
 * recorded. That all of it is in one range, as a step is, says nothing, and ranges that overlap
 * have more than all of it: then self times are named. */
static void add_cpu_headline(struct paragraph *paragraph, const struct process *process)
{
	const uint64_t whole = clamp_to_u64(profile_cpu_of_roots(process->profile));
	const uint32_t node_id = heaviest_node(process->profile, METRIC_CPU, whole);

	/* Calls outside of ranges have a node, but no time; neither has the place of a tensor. */
	if (!node_id || !whole ||
		process->profile->tree->nodes[node_id].kind == NODE_UNATTRIBUTED) {
		/* the functions are kept with the process */
		if (sampled_add_hottest(paragraph, (struct process *)(uintptr_t)process))
			return;
		paragraph_add(paragraph, "no range was recorded, so time cannot be attributed");
		return;
	}
	if (process->profile->tree->nodes[node_id].total_ns >= whole - whole / 100) {
		add_self_times(paragraph, process);
		return;
	}
	paragraph_percent(paragraph, process->profile->tree->nodes[node_id].total_ns, whole);
	paragraph_add(paragraph, " of the time in ranges (");
	paragraph_value(paragraph, UNIT_TIME, process->profile->tree->nodes[node_id].total_ns);
	paragraph_add(paragraph, " of ");
	paragraph_value(paragraph, UNIT_TIME, whole);
	paragraph_add(paragraph, process->steps && process->steps->count
					 ? ", time outside steps excluded) is spent "
					 : ", all threads) is spent ");
	add_path_with_closure(paragraph, process, node_id, false);
	add_largest_children(paragraph, process, node_id, METRIC_CPU, whole);
}

void headline_add(struct paragraph *paragraph, const struct process *process,
	enum headline_topic topic, bool has_verdict)
{
	const struct profile_totals *totals = &process->profile->totals;

	if (topic == HEADLINE_CPU) {
		add_cpu_headline(paragraph, process);
	} else if (topic == HEADLINE_GPU && totals->gpu_sum_ns) {
		if (!has_verdict)
			add_gpu_times(paragraph, process);
		add_gpu_owner(paragraph, process, has_verdict);
	} else if (topic == HEADLINE_MEMORY && totals->reserved_peak) {
		add_memory_headline(paragraph, process);
	}
}

uint32_t headline_place(
	const struct process *process, enum headline_topic topic, uint64_t *amount, uint64_t *whole)
{
	const struct profile *profile = process->profile;
	const enum metric metric = topic == HEADLINE_CPU   ? METRIC_CPU
				   : topic == HEADLINE_GPU ? METRIC_GPU
							   : METRIC_ALLOC;
	uint32_t node;

	*whole = topic == HEADLINE_CPU   ? clamp_to_u64(profile_cpu_of_roots(profile))
		 : topic == HEADLINE_GPU ? profile->totals.gpu_sum_ns
					 : profile->totals.alloc_bytes;
	node = *whole ? heaviest_node(profile, metric, *whole) : 0;
	*amount = node ? metric_amount(&profile->tree->nodes[node], metric) : 0;
	return node;
}

void headline_put_time(const struct process *process, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	headline_add(&paragraph, process, HEADLINE_CPU, false);
	paragraph_print(&paragraph, "verdict");
}

void headline_put_where(const struct process *process, const struct style *style, bool has_verdict)
{
	struct paragraph paragraph = { .style = style };

	headline_add(&paragraph, process, HEADLINE_GPU, has_verdict);
	if (paragraph.built.used)
		paragraph_print(&paragraph, "gpu time");
	headline_add(&paragraph, process, HEADLINE_MEMORY, has_verdict);
	if (paragraph.built.used)
		paragraph_print(&paragraph, "memory");
}
