/* SPDX-License-Identifier: MIT
 *
 * Rules about what the GPU did.
 */
#include "report/diagnose/diagnosis_internal.h"
#include "report/analysis/host_ranges.h"
#include "report/analysis/tree_categories.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/gpu/occupancy.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sums over the launch configurations of one kernel. */
struct kernel_sum {
	uint64_t total_ns, calls, longest_ns;
	const struct launch_config *shape; /* the one with the longest launch */
};

static struct kernel_sum *sums_by_name(const struct launch_configs *kernels, uint32_t *names)
{
	struct kernel_sum *sums;

	*names = 0;
	for (uint32_t i = 0; i < kernels->count; i++)
		if (kernels->kernels[i].name >= *names)
			*names = kernels->kernels[i].name + 1;
	sums = xcalloc((*names + 1) * sizeof *sums);
	for (uint32_t i = 0; i < kernels->count; i++) {
		const struct launch_config *kernel = &kernels->kernels[i];
		struct kernel_sum *sum = &sums[kernel->name];

		sum->total_ns += kernel->total_ns;
		sum->calls += kernel->calls;
		if (!sum->shape || kernel->max_ns > sum->longest_ns) {
			sum->longest_ns = kernel->max_ns;
			sum->shape = kernel;
		}
	}
	return sums;
}

bool diagnose_is_communication(const struct diagnosis *diagnosis, uint32_t name)
{
	return node_names_is_communication(diagnosis->profile->names, name);
}

static bool has_name(const struct path_node *work, void *context)
{
	return work->name == *(const uint32_t *)context;
}

static void report_dominant_kernel(struct diagnosis *diagnosis, struct finding *finding,
	const struct kernel_sum *sum, uint32_t name)
{
	const uint64_t whole = diagnosis->profile->totals.gpu_sum_ns;

	finding_set_found(finding, CONFIDENCE_HIGH);
	SET_TEXT(finding->reason, "sums of measured times");
	SET_TEXT(finding->sentence, "One kernel takes %s of all GPU time: %s.",
		diagnose_share(diagnosis, sum->total_ns, whole), diagnose_name(diagnosis, name));
	SET_TEXT(finding->evidence, "%s, %s of %s in total; %s on average, the longest %s",
		diagnose_plural(diagnosis, sum->calls, "launch"),
		diagnose_time(diagnosis, sum->total_ns), diagnose_time(diagnosis, whole),
		diagnose_time(diagnosis, sum->total_ns / max_u64(sum->calls, 1)),
		diagnose_time(diagnosis, sum->longest_ns));
	SET_TEXT(finding->next, "Start with this kernel: another algorithm or library for it, a "
				"lower precision, fewer or larger calls.");
	SET_TEXT(finding->view, "kernels --top 10");
	finding_set_impact(finding, sum->shape->node, sum->calls, sum->total_ns);
	finding_set_gain(diagnosis, finding, 0, has_name, &name);
	finding->has_example = true;
	finding->example_ns = sum->shape->longest_start_ns;
}

static void dominant_on_gpu(struct diagnosis *diagnosis, struct finding *finding)
{
	uint32_t names, most = 0, some = 0;
	struct kernel_sum *sums = sums_by_name(diagnosis->profile->kernels, &names);

	for (uint32_t name = 1; name < names; name++) {
		some += sums[name].calls > 0;
		if (sums[name].calls && diagnose_is_communication(diagnosis, name))
			continue; /* see exposed-communication */
		if (sums[name].total_ns > sums[most].total_ns || !most)
			most = name;
	}
	if (some >= LIMIT_DOMINANT_NAMES &&
		diagnose_is_share(sums[most].total_ns, diagnosis->profile->totals.gpu_sum_ns,
			LIMIT_DOMINANT) &&
		diagnose_is_share(sums[most].total_ns, diagnosis->facts.span_ns, LIMIT_WORTH))
		report_dominant_kernel(diagnosis, finding, &sums[most], most);
	free(sums);
}

/* Sums over the nodes of one name, of CPU time. */
struct name_sum {
	uint64_t self_ns, calls, longest_ns;
	uint32_t node; /* the node with the most self time */
};

static uint32_t names_room(const struct tree *tree)
{
	uint32_t room = 0;

	for (uint32_t id = 1; id < tree->count; id++)
		room = tree->nodes[id].name >= room ? tree->nodes[id].name + 1 : room;
	return room;
}

/* Sections such as `(before first step)` are left out: what a program does before its steps, or
 * between them, is no operator. */
static bool is_summed_range(const struct node *node)
{
	return node_kind_class(node->kind) == NODE_RANGES && node->kind != NODE_SECTION &&
	       !node->is_group && !node->ran_elsewhere;
}

static void add_range_to_sum(struct name_sum *sum, const struct tree *tree, uint32_t id)
{
	const struct node *node = &tree->nodes[id];

	sum->self_ns += node->self_ns;
	sum->calls += node->calls;
	sum->longest_ns = max_u64(sum->longest_ns, node->max_ns);
	if (!sum->node || node->self_ns > tree->nodes[sum->node].self_ns)
		sum->node = id;
}

static struct name_sum *sums_of_ranges(
	const struct diagnosis *diagnosis, uint32_t *names, uint64_t *whole)
{
	const struct tree *tree = diagnosis->profile->tree;
	struct name_sum *sums = xcalloc((names_room(tree) + 1) * sizeof *sums);

	*names = names_room(tree);
	*whole = 0;
	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];

		if (!is_summed_range(node))
			continue;
		*whole += node->self_ns;
		add_range_to_sum(&sums[node->name], tree, id);
	}
	return sums;
}

/* Returns true for ranges whose time other rules report: of the compiler, and in steps of the
 * DataLoader. */
static bool has_own_rule(const struct diagnosis *diagnosis, uint32_t node)
{
	const struct tree *tree = diagnosis->profile->tree;
	const struct steps *steps = diagnosis->process->steps;

	for (; node; node = tree->nodes[node].parent) {
		const enum host_range_kind kind = host_range_kind(
			string_table_get(diagnosis->process->texts, tree->nodes[node].name));

		if (kind == HOST_RANGE_COMPILATION ||
			(kind == HOST_RANGE_DATA && steps && steps->count))
			return true;
	}
	return false;
}

/* Without a GPU, the self time of operators and ranges is compared. */
static void dominant_on_cpu(struct diagnosis *diagnosis, struct finding *finding)
{
	uint32_t names, most = 0, some = 0;
	uint64_t whole;
	struct name_sum *sums = sums_of_ranges(diagnosis, &names, &whole);

	for (uint32_t name = 1; name < names; name++) {
		some += sums[name].self_ns > 0;
		most = sums[name].self_ns > sums[most].self_ns || !most ? name : most;
	}
	if (some >= LIMIT_DOMINANT_NAMES &&
		diagnose_is_share(sums[most].self_ns, whole, LIMIT_DOMINANT) &&
		!has_own_rule(diagnosis, sums[most].node)) {
		finding_set_found(finding, CONFIDENCE_MEDIUM);
		SET_TEXT(finding->reason, "measured, but it may be waiting: the trace has no "
					  "record of a GPU or of what it waits for");
		SET_TEXT(finding->sentence,
			"On the CPU, %s takes %s of the time of all threads in ranges, nested "
			"ranges excluded.",
			diagnose_name(diagnosis, most),
			diagnose_share(diagnosis, sums[most].self_ns, whole));
		SET_TEXT(finding->evidence, "%s, %s of %s in total; the longest %s",
			diagnose_plural(diagnosis, sums[most].calls, "instance"),
			diagnose_time(diagnosis, sums[most].self_ns),
			diagnose_time(diagnosis, whole),
			diagnose_time(diagnosis, sums[most].longest_ns));
		SET_TEXT(finding->next,
			"Start with it: check whether it computes or waits (a lock, another rank, "
			"data), for which sizes, and whether it is needed.");
		SET_TEXT(finding->view, "table -s cpu_self_ns --top 10");
		finding_set_impact(finding, sums[most].node, sums[most].calls, sums[most].self_ns);
		finding->whole_ns = whole;
		finding->whole_name = "the self time of all threads";
		/* Threads work at the same time: no run gets shorter by more than it takes. */
		if (whole > diagnosis->facts.run_ns) {
			finding->impact_ns = min_u64(finding->impact_ns, diagnosis->facts.run_ns);
			finding->whole_ns = diagnosis->facts.run_ns;
			finding->whole_name = "the run";
		}
	}
	free(sums);
}

void diagnose_dominant_event(struct diagnosis *diagnosis, struct finding *finding)
{
	if (!diagnosis->facts.operations)
		dominant_on_cpu(diagnosis, finding);
	else
		dominant_on_gpu(diagnosis, finding);
}

/* Returns the host's time in launches of tiny kernels, at each node at most the time for which the
 * GPU was idle before launches of that node: more than that cannot be saved. Sets `*node` to the
 * node with most of it. */
static uint64_t time_to_save(const struct diagnose_facts *facts, uint32_t *node)
{
	const struct occurrences *calls = &facts->tiny_calls;
	uint64_t sum = 0, most = 0;

	for (uint32_t id = 0; id < calls->room && id < facts->launch_idle_room; id++) {
		const uint64_t saved = min_u64(
			calls->of_node[id].total_ns, facts->launch_idle_of_node[id]);

		sum += saved;
		if (saved > most) {
			most = saved;
			*node = id;
		}
	}
	return sum;
}

/* Returns of which kernels the tiny ones are a share: the rule knows those whose launch is in the
 * trace, and was of one kernel. */
static const char *counted_kernels(const struct diagnosis *diagnosis)
{
	const struct diagnose_facts *facts = &diagnosis->facts;

	return facts->own_launches == facts->kernels ? "all kernels"
						     : "the kernels that were launched one by one";
}

static bool is_tiny(const struct path_node *work, void *context)
{
	(void)context;
	return work->kind == ACTIVITY_KERNEL && work->end_ns - work->begin_ns < LIMIT_TINY_NS;
}

void diagnose_tiny_calls(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct diagnose_facts *facts = &diagnosis->facts;
	const struct occurrences *tiny = &facts->tiny, *calls = &facts->tiny_calls;
	uint32_t node = 0;
	const uint64_t saved = time_to_save(facts, &node),
		       impact = saved > tiny->total_ns ? saved : tiny->total_ns;

	if (tiny->count < LIMIT_TINY_COUNT ||
		!diagnose_is_share(tiny->count, facts->own_launches, LIMIT_TINY_SHARE) ||
		!diagnose_is_share(impact, facts->span_ns, LIMIT_WORTH)) {
		finding_set_small(finding, impact, LIMIT_WORTH, facts->span_ns, "the GPU span");
		return;
	}
	finding_set_found(finding, impact == saved ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM);
	SET_TEXT(finding->sentence,
		"%s of %s run for less than %s each, about the cost of a launch.",
		diagnose_share(diagnosis, tiny->count, facts->own_launches),
		counted_kernels(diagnosis), diagnose_time(diagnosis, LIMIT_TINY_NS));
	SET_TEXT(finding->evidence,
		"%s of %s kernels, %s on the GPU in total; the host spent %s in the calls that "
		"launched them",
		diagnose_count(diagnosis, tiny->count),
		diagnose_count(diagnosis, facts->own_launches),
		diagnose_time(diagnosis, tiny->total_ns),
		diagnose_time(diagnosis, calls->total_ns));
	SET_TEXT(finding->reason,
		impact == saved ? "measured: the host's time in these launches, as far as the GPU "
				  "is idle before them"
				: "an upper bound: the time of these kernels, whose work fused "
				  "kernels still have to do");
	SET_TEXT(finding->next,
		"Fuse them (%s%s, one batched call instead of many small ones), or %s.",
		diagnose_compile_advice(diagnosis),
		diagnose_traits(diagnosis).has_foreach_optimizer ? ""
								 : ", foreach or fused optimizers",
		diagnose_traits(diagnosis).launches_graphs
			? "capture them in the program's CUDA graphs, too"
			: "launch them together as a CUDA graph");
	SET_TEXT(finding->view, "kernels -s calls --top 20");
	finding_set_impact(finding, impact == saved && node ? node : occurrences_top_node(tiny),
		tiny->count, impact);
	/* Of a GPU that waits for launches, the path has the host's part, which fusing shortens. */
	if (impact != saved &&
		!diagnose_is_share(facts->cause_ns[GAP_LAUNCH] + facts->cause_ns[GAP_LATENCY],
			facts->span_ns, LIMIT_LAUNCH_IDLE))
		finding_set_gain(diagnosis, finding, 0, is_tiny, NULL);
	finding->idle_of = BOUND_LAUNCH;
	finding->idle_of_ns = impact == saved ? saved : 0;
	occurrences_set_example(tiny, finding);
}

struct starvation {
	uint64_t lost_ns, total_ns, calls, most_ns, known_ns;
	const struct launch_config *most;
	uint64_t blocks; /* of `most` */
	uint32_t multiprocessors;
	bool *names; /* of these kernels */
	size_t name_room;
};

static uint64_t grid_blocks(const struct trace_kernel *kernel)
{
	const uint64_t plane = (uint64_t)kernel->grid[0] * kernel->grid[1];

	return kernel->grid[2] && plane > UINT64_MAX / kernel->grid[2] ? UINT64_MAX
								       : plane * kernel->grid[2];
}

static void note_worst_starved(struct starvation *starved, const struct launch_config *kernel,
	uint64_t lost_ns, uint64_t blocks, uint32_t multiprocessors)
{
	if (lost_ns <= starved->most_ns)
		return;
	starved->most_ns = lost_ns;
	starved->most = kernel;
	starved->blocks = blocks;
	starved->multiprocessors = multiprocessors;
}

static void add_starved_shape(const struct diagnosis *diagnosis, const struct launch_config *kernel,
	struct starvation *starved)
{
	const struct trace_device *device = process_device(
		diagnosis->process, kernel->record.gpu.device);
	const uint64_t blocks = grid_blocks(&kernel->record);
	uint64_t lost;

	if (!kernel->name || !device || !device->multiprocessors || !blocks ||
		diagnose_is_communication(diagnosis, kernel->name))
		return;
	starved->known_ns += kernel->total_ns;
	/* Kernels shorter than their launch belong to the rule tiny-calls. */
	if (blocks >= device->multiprocessors || kernel->total_ns < kernel->calls * LIMIT_TINY_NS)
		return;
	lost = (uint64_t)((long double)kernel->total_ns *
			  (1 - (long double)blocks / device->multiprocessors));
	ARRAY_GROW(starved->names, starved->name_room, (size_t)kernel->name + 1);
	starved->names[kernel->name] = true;
	starved->lost_ns += lost;
	starved->total_ns += kernel->total_ns;
	starved->calls += kernel->calls;
	note_worst_starved(starved, kernel, lost, blocks, device->multiprocessors);
}

/* Returns the node that launched most of a kernel's time. */
static uint32_t main_launcher(const struct tree *tree, const struct launch_config *kernel)
{
	uint32_t launcher = kernel->node;
	uint64_t most_ns = 0;

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];

		if (node->kind != NODE_KERNEL || node->captured || node->name != kernel->name ||
			!node->gpu || node->gpu->self_ns <= most_ns)
			continue;
		most_ns = node->gpu->self_ns;
		launcher = node->parent ? node->parent : kernel->node;
	}
	return launcher;
}

/* Formats ` (0.12 waves per SM)`, or nothing if the limits of the device are not known. */
static const char *format_waves(
	struct diagnosis *diagnosis, const struct launch_config *kernel, char text[static 64])
{
	const struct trace_device *device = process_device(
		diagnosis->process, kernel->record.gpu.device);
	struct occupancy occupancy;

	text[0] = '\0';
	if (occupancy_of(device, &kernel->record, &occupancy))
		snprintf(text, 64, " (%.2f waves per SM)", occupancy.waves_per_sm);
	return text;
}

/* Returns true if the kernel's name or the ranges around it say that it is a matrix product,
 * convolution or attention, which have tiles. */
static bool has_tiles(const struct diagnosis *diagnosis, uint32_t name)
{
	static const char *const tiled[] = { "GEMM", "convolution", "attention" };
	const struct tree *tree = diagnosis->profile->tree;
	const struct categories *categories = diagnosis->process->categories;
	uint8_t *of_node = categories_of_tree(categories, tree, diagnosis->process->texts);
	bool found = false;

	for (uint32_t id = 1; id < tree->count && !found; id++)
		for (size_t i = 0; i < sizeof tiled / sizeof *tiled; i++)
			found |= tree->nodes[id].kind == NODE_KERNEL &&
				 tree->nodes[id].name == name &&
				 strcmp(categories_name(categories, of_node[id]), tiled[i]) == 0;
	free(of_node);
	return found;
}

static void advise_on_grids(
	struct diagnosis *diagnosis, const struct starvation *starved, struct finding *finding)
{
	if (has_tiles(diagnosis, starved->most->name))
		SET_TEXT(finding->next,
			"Increase parallelism: a larger batch, smaller tiles, split-K for narrow "
			"matrix products, or another stream running concurrently.");
	else if (diagnose_traits(diagnosis).uses_pytorch)
		SET_TEXT(finding->next,
			"Increase parallelism: a larger batch, several such operators in one "
			"(%s, foreach or batched variants), or another stream running "
			"concurrently.",
			diagnose_compile_advice(diagnosis));
	else
		SET_TEXT(finding->next,
			"Launch at least %u blocks, one for each multiprocessor: fewer elements "
			"for each thread (with a grid-stride loop any grid covers the data), or "
			"another stream running concurrently.",
			starved->multiprocessors);
}

static bool is_starved(const struct path_node *work, void *context)
{
	const struct starvation *starved = context;

	return work->kind == ACTIVITY_KERNEL && work->name < starved->name_room &&
	       starved->names[work->name];
}

static void report_small_grids(
	struct diagnosis *diagnosis, struct finding *finding, struct starvation *starved)
{
	const struct profile_totals *totals = &diagnosis->profile->totals;
	char waves[64];

	finding_set_found(
		finding, totals->gpu_sum_ns > totals->gpu_busy_ns + totals->gpu_busy_ns / 10
				 ? CONFIDENCE_MEDIUM
				 : CONFIDENCE_HIGH);
	SET_TEXT(finding->reason, finding->confidence == CONFIDENCE_HIGH
					  ? "grids and multiprocessors are known, and few other "
					    "kernels ran at the same time"
					  : "other kernels ran at the same time and may have used "
					    "the free multiprocessors");
	SET_TEXT(finding->sentence,
		"Kernels with fewer blocks than the GPU has multiprocessors leave part of it "
		"unused while they run.");
	SET_TEXT(finding->evidence,
		"%s, %s in total; the largest part is %s with %s for %u multiprocessors%s, %s",
		diagnose_plural(diagnosis, starved->calls, "launch"),
		diagnose_time(diagnosis, starved->total_ns),
		diagnose_name(diagnosis, starved->most->name),
		diagnose_plural(diagnosis, starved->blocks, "block"), starved->multiprocessors,
		format_waves(diagnosis, starved->most, waves),
		diagnose_plural(diagnosis, starved->most->calls, "launch"));
	advise_on_grids(diagnosis, starved, finding);
	SET_TEXT(finding->view, "kernels");
	finding_set_impact(finding, main_launcher(diagnosis->profile->tree, starved->most),
		starved->calls, starved->lost_ns);
	finding_set_gain(diagnosis, finding,
		1 - (double)starved->lost_ns / (double)starved->total_ns, is_starved, starved);
	finding->has_example = finding->node == starved->most->node;
	finding->example_ns = starved->most->longest_start_ns;
}

void diagnose_small_grids(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct launch_configs *kernels = diagnosis->profile->kernels;
	const struct profile_totals *totals = &diagnosis->profile->totals;
	struct starvation starved = { .most = NULL };

	for (uint32_t i = 0; i < kernels->count; i++)
		add_starved_shape(diagnosis, &kernels->kernels[i], &starved);
	if (!starved.known_ns) {
		finding_set_unchecked(finding, "the trace lacks the number of multiprocessors or "
					       "the grids of the launches");
	} else if (starved.most && starved.calls >= LIMIT_CALLS_FEW &&
		   diagnose_is_share(starved.lost_ns, totals->gpu_sum_ns, LIMIT_STARVED) &&
		   diagnose_is_share(starved.lost_ns, diagnosis->facts.span_ns, LIMIT_WORTH)) {
		report_small_grids(diagnosis, finding, &starved);
	} else {
		finding_set_small(finding, starved.lost_ns, LIMIT_WORTH, diagnosis->facts.span_ns,
			"the GPU span");
	}
	free(starved.names);
}
