/* SPDX-License-Identifier: MIT
 *
 * A profile without folded labels gives each layer for itself and, merged by folded_tree.h, all of
 * them as one. Of a process that was profiled with folded labels, one more pass makes it.
 */
#include "report/page/flame_build.h"
#include "report/base/alloc.h"
#include "report/page/flame_counters.h"
#include "report/page/flame_values.h"
#include "report/profile/folded_tree.h"
#include "report/profile/step_sections.h"
#include "report/table/column.h"
#include <stdlib.h>
#include <string.h>

static const struct flame_metric base_metrics[FLAME_BASE_METRICS] = {
	[FLAME_GPU] = { .key = "gpu",
		.title = "GPU time",
		.note = "kernels, copies and memsets, by what launched them",
		.view = "tree",
		.unit = UNIT_TIME },
	[FLAME_CPU] = { .key = "cpu",
		.title = "CPU time",
		.note = "time of all threads, so it may exceed the duration of the run",
		.view = "tree",
		.unit = UNIT_TIME },
	[FLAME_IDLE] = { .key = "idle",
		.title = "GPU idle",
		.note = "idle time of the GPU, by what launched the operation that ended it",
		.view = "tree",
		.unit = UNIT_TIME },
	[FLAME_SAMPLED] = { .key = "sampled",
		.title = "CPU samples",
		.note = "CPU time of all threads by samples, in the functions that ran",
		.view = "tree --functions",
		.unit = UNIT_TIME },
	[FLAME_SAMPLED_WALL] = { .key = "sampled_wall",
		.title = "Time by samples",
		.note = "time of all threads by samples: on a core, waiting for one, or blocked",
		.view = "tree --functions",
		.unit = UNIT_TIME },
	[FLAME_ALLOCATED] = { .key = "allocated",
		.title = "Allocated",
		.note = "tensors that were live when tensors held most memory",
		.view = "memory",
		.unit = UNIT_BYTES,
		.is_memory = true },
	[FLAME_RESERVED] = { .key = "reserved",
		.title = "Reserved",
		.note = "device memory that was live when most was reserved",
		.view = "memory",
		.unit = UNIT_BYTES,
		.is_memory = true },
	[FLAME_TENSORS] = { .key = "tensors",
		.title = "Allocations",
		.note = "bytes of all tensors that were allocated, also of those freed again",
		.view = "tree",
		.unit = UNIT_BYTES,
		.is_memory = true },
	[FLAME_ALLOC] = { .key = "alloc",
		.title = "Device allocations",
		.note = "bytes of all device memory that was allocated, also of what was freed "
			"again",
		.view = "tree",
		.unit = UNIT_BYTES,
		.is_memory = true },
};

enum flame_kind flame_kind_of(const struct node *node)
{
	if (node->ran_elsewhere)
		return FLAME_BACKWARD;
	switch (node->kind) {
	case NODE_MODULE:
		return FLAME_MODULE;
	case NODE_OP:
		return FLAME_OP;
	case NODE_BACKWARD:
		return FLAME_BACKWARD;
	case NODE_OPTIMIZER:
		return FLAME_OPTIMIZER;
	case NODE_KERNEL:
	case NODE_GRAPH:
		return FLAME_KERNEL;
	case NODE_MEMCPY:
	case NODE_MEMSET:
		return FLAME_COPY;
	case NODE_API:
	case NODE_SYNC:
	case NODE_ALLOC:
	case NODE_MARK:
		return FLAME_CALL;
	case NODE_FUNCTION:
	case NODE_PYTHON:
	case NODE_STATE:
		return FLAME_STACK;
	case NODE_UNATTRIBUTED:
		return FLAME_UNKNOWN;
	default:
		return FLAME_RANGE;
	}
}

/* ---- trees ---- */

static uint32_t intern(struct flame *flame, struct string_view text)
{
	return string_table_intern(flame->texts, text.bytes, text.length);
}

/* Keeps a copy of the process that has `profile`, for the cells of its nodes. */
static uint32_t keep_process(
	struct flame *flame, const struct process *process, struct profile *profile)
{
	struct process *copy = ARRAY_ADD(
		flame->processes, flame->process_room, flame->process_count);

	*copy = *process;
	copy->profile = profile;
	return (uint32_t)flame->process_count - 1;
}

static bool is_outside_steps(const struct node *node, struct string_view name)
{
	const size_t length = strlen(STEP_SECTION_NO_STEPS);

	return node->kind == NODE_SECTION &&
	       !(name.length == length && !memcmp(name.bytes, STEP_SECTION_NO_STEPS, length));
}

/* Adds the nodes of a profile below the frame `root`, in differential graphs to those that are
 * there. Returns the frame of each node, which the caller frees. */
static uint32_t *add_nodes(
	struct flame *flame, struct flame_tree *tree, uint32_t process, uint32_t root)
{
	struct process *of = &flame->processes[process];
	const struct tree *nodes = of->profile->tree;
	uint32_t *frame_of_node = xcalloc((nodes->count + 1) * sizeof *frame_of_node);

	frame_of_node[0] = root;
	for (uint32_t id = 1; id < nodes->count; id++) {
		const struct row row = tree_row(of, nodes, id);
		const struct flame_frame frame = { .parent = frame_of_node[nodes->nodes[id].parent],
			.name = intern(flame, row_name(&row)),
			.label = intern(flame, row_label(&row, false)),
			.node = id,
			.process = process,
			.kind = (uint8_t)flame_kind_of(&nodes->nodes[id]),
			.is_outside = is_outside_steps(&nodes->nodes[id], row_name(&row)) };

		if (flame->sides == 1)
			frame_of_node[id] = flame_add(tree, &frame);
		else
			frame_of_node[id] = flame_child(
				tree, frame.parent, frame.name, (enum flame_kind)frame.kind);
		tree->frames[frame_of_node[id]].is_outside |= frame.is_outside;
	}
	return frame_of_node;
}

static void add_counter_values(struct flame *flame, struct flame_tree *tree,
	const struct counter_sums *sums, const uint32_t *frame_of_node, uint32_t node_count,
	uint32_t side)
{
	for (size_t i = 0; i < sums->count; i++) {
		const struct counter_sum *sum = &sums->sums[i];
		const uint32_t frame = sum->node < node_count ? frame_of_node[sum->node]
							      : frame_of_node[0];

		flame_values(tree, frame)[flame_value_index(flame, sum->counter, side)] += sum->sum;
	}
}

static bool has_counters(const struct flame *flame)
{
	return flame->metric_count > FLAME_BASE_METRICS;
}

/* Makes a profile pass like that of the process, without folded labels. The flame graph owns the
 * profile. */
static struct profile *profile_again(
	struct flame *flame, struct process *process, const struct counter_sums *sums)
{
	struct profile_options wanted = process->profile->options;
	struct profile *profile;

	wanted.no_fold = true;
	wanted.timeline = process->timeline;
	wanted.observer = sums ? &sums->observer : NULL;
	profile = profile_build(process->reader, process->texts, &wanted);
	*ARRAY_ADD(flame->profiles, flame->profile_room, flame->profile_count) = profile;
	return profile;
}

/* Returns the frame below which the nodes of a process are: the root, or with --all one of its
 * own. */
static uint32_t root_of_process(struct flame *flame, struct flame_tree *tree,
	const struct options *options, const struct process *process)
{
	const char *name = process_name(process);

	return options->all
		       ? flame_child(tree, 0, string_table_intern(flame->texts, name, strlen(name)),
				 FLAME_RANGE)
		       : 0;
}

/* What the trees of one process are made of. */
struct process_trees {
	const struct options *options;
	struct process *process;
	struct profile *profile;         /* without folded labels */
	const struct counter_sums *sums; /* NULL: the trace has no counters */
	uint32_t side;
};

/* Adds a tree of one process. `shown`: the profile with the nodes of the frames. `node_of`: by node
 * of of->profile, its node in `shown`; NULL: the same. */
static void add_tree(struct flame *flame, const struct process_trees *of, struct profile *shown,
	const uint32_t *node_of, enum flame_shape shape)
{
	struct flame_tree *tree = &flame->shapes[shape];
	const uint32_t root = root_of_process(flame, tree, of->options, of->process),
		       count = of->profile->tree->count;
	uint32_t *frame_of_node = xcalloc((count + 1) * sizeof *frame_of_node),
		 *frames = add_nodes(flame, tree, keep_process(flame, of->process, shown), root);

	for (uint32_t id = 0; id < count; id++)
		frame_of_node[id] = frames[node_of ? node_of[id] : id];
	flame_add_nodes(flame, tree, of->profile, frame_of_node, root, of->side);
	if (of->sums)
		add_counter_values(flame, tree, of->sums, frame_of_node, count, of->side);
	flame->has_shape[shape] = true;
	free(frames);
	free(frame_of_node);
}

static void add_trees(
	struct flame *flame, const struct options *options, struct process *process, uint32_t side)
{
	struct counter_sums sums = { .flame = NULL };
	struct process_trees of = { options, process, process->profile, NULL, side };
	const bool is_folded = !of.profile->options.no_fold && !has_counters(flame);
	struct folded_tree *folded;

	if (has_counters(flame)) {
		counter_sums_begin(&sums, flame);
		of.sums = &sums;
	}
	if (is_folded)
		add_tree(flame, &of, of.profile, NULL, FLAME_FOLDED);
	if (has_counters(flame) || is_folded)
		of.profile = profile_again(flame, process, of.sums);
	if (!options->no_fold && !is_folded) {
		folded = folded_tree_new(of.profile);
		*ARRAY_ADD(flame->folded, flame->folded_room, flame->folded_count) = folded;
		add_tree(flame, &of, &folded->profile, folded->node_of, FLAME_FOLDED);
	}
	add_tree(flame, &of, of.profile, NULL, FLAME_EACH);
	if (of.sums)
		counter_sums_free(&sums);
}

/* Whether the allocations have native call stacks. Their names are in the symbol tables of
 * libraries, and reading those of PyTorch takes seconds, so they are shown on request only. */
static bool has_native_stacks(const struct process *process)
{
	return reader_dictionary_count(process->reader, TRACE_STACK) > 0;
}

static void add_process(
	struct flame *flame, const struct options *options, struct process *process, uint32_t side)
{
	struct flame_tree *stacks = &flame->shapes[FLAME_STACKS];
	uint32_t root;

	add_trees(flame, options, process, side);
	if (options->by != BY_STACK && has_native_stacks(process)) {
		flame->has_more_stacks = true;
		return;
	}
	root = root_of_process(flame, stacks, options, process);
	flame->has_shape[FLAME_STACKS] |= flame_add_launch_stacks(
		flame, stacks, process, root, side);
	flame->has_shape[FLAME_STACKS] |= flame_add_stacks(flame, stacks, process, root, side);
}

/* ---- the whole ---- */

static struct flame *flame_new(uint32_t sides)
{
	struct flame *flame = xcalloc(sizeof *flame);

	flame->texts = string_table_new();
	flame->sides = sides;
	for (size_t i = 0; i < FLAME_BASE_METRICS; i++)
		*ARRAY_ADD(
			flame->metrics, flame->metric_room, flame->metric_count) = base_metrics[i];
	return flame;
}

static void add_roots(struct flame *flame)
{
	for (size_t i = 0; i < FLAME_SHAPES; i++) {
		flame->shapes[i].stride = flame->metric_count * flame->sides;
		flame_add(&flame->shapes[i], &(struct flame_frame){ .kind = FLAME_RANGE });
	}
}

struct flame *flame_build(const struct options *options, struct processes *processes)
{
	struct flame *flame = flame_new(1);

	for (size_t i = 0; i < processes->shown; i++)
		flame_add_counters(flame, &processes->all[i]);
	add_roots(flame);
	for (size_t i = 0; i < processes->shown; i++)
		add_process(flame, options, &processes->all[i], 0);
	return flame;
}

struct flame *flame_build_diff(
	const struct options *options, struct processes *before, struct processes *after)
{
	struct flame *flame = flame_new(2);

	add_roots(flame);
	add_process(flame, options, &before->all[0], 0);
	add_process(flame, options, &after->all[0], 1);
	return flame;
}

bool flame_has_metric(const struct flame *flame, const char *name, size_t *metric)
{
	for (*metric = 0; *metric < flame->metric_count; (*metric)++)
		if (strcmp(flame->metrics[*metric].key, name) == 0)
			return true;
	return false;
}

void flame_free(struct flame *flame)
{
	for (size_t i = 0; i < FLAME_SHAPES; i++)
		flame_tree_free(&flame->shapes[i]);
	for (size_t i = 0; i < flame->folded_count; i++)
		folded_tree_free(flame->folded[i]);
	for (size_t i = 0; i < flame->profile_count; i++)
		profile_free(flame->profiles[i]);
	free(flame->folded);
	string_table_free(flame->texts);
	free(flame->profiles);
	free(flame->metrics);
	free(flame->processes);
	free(flame);
}
