/* SPDX-License-Identifier: MIT
 *
 * The rule about a kernel that takes different times for the same work, that is, for the same
 * kernel, grid and node.
 *
 * The candidate is the kernel node with the most time above its median. Not one whose launches
 * are not in the trace, or not their grids: other sizes may be all that differs. The view
 * `distribution` gives the shape of its durations. The clock rate is the cause if other kernels
 * were slower or faster in the same parts of the trace.
 */
#include "report/diagnose/diagnosis_internal.h"
#include "report/analysis/duration_distribution.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/text/format_number.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Returns true for a kernel node with enough instances, all of one launch configuration, that does
 * not wait for other ranks. */
static bool is_comparable(const struct diagnosis *diagnosis, const struct node *node)
{
	return node->kind == NODE_KERNEL && node->gpu && !node->gpu->several_shapes &&
	       !node->gpu->untimed && !node->captured &&
	       node->gpu->self_calls >= LIMIT_VARIABLE_CALLS &&
	       !diagnose_is_communication(diagnosis, node->name);
}

/* Returns true if the trace shows that all launches of a kernel node were alike: each is known,
 * with its grid, and was made at one place. */
static bool has_known_launch(const struct tree *tree, const struct node *node)
{
	return tree->nodes[node->parent].kind != NODE_UNATTRIBUTED && node->gpu->shape &&
	       node->gpu->shape->grid[0];
}

/* Returns a percentile of the durations. It sorts the samples in place, which has no effect on
 * other readers, hence the cast. */
static uint64_t duration_percentile(const struct node *node, unsigned per_mille)
{
	return percentiles_get((struct percentiles *)(uintptr_t)&node->samples, per_mille);
}

/* Whether the durations of a kernel differ much from their median. */
static bool is_variable(const struct node *node, uint64_t median)
{
	return diagnose_is_share(
		       duration_percentile(node, 950) - median, median, LIMIT_VARIABLE_SPREAD) ||
	       node->max_ns >= 3 * median;
}

/* Returns the time of a kernel's launches above that of as many of the median. */
static uint64_t excess_over(const struct node *node, uint64_t median)
{
	const uint64_t usual = median * node->gpu->self_calls;

	return node->gpu->self_ns > usual ? node->gpu->self_ns - usual : 0;
}

void variability_pick_kernel(struct diagnosis *diagnosis)
{
	const struct tree *tree = diagnosis->profile->tree;
	struct variable_kernel *variable = &diagnosis->facts.variable;

	variable->medians = xcalloc(tree->count * sizeof *variable->medians);
	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];
		uint64_t median, excess;

		if (!is_comparable(diagnosis, node))
			continue;
		median = duration_percentile(node, 500);
		excess = is_variable(node, median) ? excess_over(node, median) : 0;
		if (!has_known_launch(tree, node)) {
			variable->unknown_excess_ns = max_u64(variable->unknown_excess_ns, excess);
			continue;
		}
		variable->medians[id] = median;
		if (excess > variable->excess_ns) {
			variable->excess_ns = excess;
			variable->node = id;
		}
	}
	if (!diagnose_is_share(variable->excess_ns, diagnosis->facts.span_ns, LIMIT_LITTLE))
		variable->node = 0;
}

void variability_add(struct diagnosis *diagnosis, const struct activity *work)
{
	struct variable_kernel *variable = &diagnosis->facts.variable;
	const uint64_t wall = diagnosis->profile->totals.wall_ns,
		       median = variable->medians[work->node];
	uint64_t window;

	if (!variable->node || !wall || !median)
		return;
	window = clamp_to_u64((long double)work->begin_ns * CLOCK_PARTS_MAX / wall);
	if (window >= CLOCK_PARTS_MAX)
		window = CLOCK_PARTS_MAX - 1;
	if (work->node == variable->node) {
		variable->own[window] += (double)work->duration_ns / (double)median;
		variable->own_count[window]++;
	} else {
		variable->others[window] += (double)work->duration_ns / (double)median;
		variable->others_count[window]++;
	}
}

/* Returns the correlation of the kernel's and the other kernels' slowness, over the parts of the
 * trace in which both ran. Returns 0 if there are too few such parts. */
static double clock_correlation(const struct variable_kernel *variable)
{
	double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0, spread;

	for (unsigned i = 0; i < CLOCK_PARTS_MAX; i++) {
		double own, others;

		if (!variable->own_count[i] || !variable->others_count[i])
			continue;
		own = variable->own[i] / variable->own_count[i];
		others = variable->others[i] / variable->others_count[i];
		n++;
		x += own;
		y += others;
		xx += own * own;
		yy += others * others;
		xy += own * others;
	}
	spread = (n * xx - x * x) * (n * yy - y * y);
	return n < LIMIT_CLOCK_PARTS || spread <= 0 ? 0 : (n * xy - x * y) / sqrt(spread);
}

/* Names the typical values, from the shortest on, as far as the sentence has room for them. */
static void describe_modes(
	struct diagnosis *diagnosis, struct finding *finding, const struct distribution *of)
{
	const uint32_t shown = of->mode_count < 4 ? of->mode_count : 4;
	char values[160];
	size_t used = 0;

	for (uint32_t i = 0; i < shown && used < sizeof values; i++)
		used += (size_t)snprintf(values + used, sizeof values - used, "%s%s (%s)",
			i == 0                    ? ""
			: i + 1 == of->mode_count ? " and "
						  : ", ",
			diagnose_time(diagnosis, of->modes[i].value),
			diagnose_share(diagnosis, of->modes[i].count, of->count));
	SET_TEXT(finding->reason, "%s: %u typical values, around %s%s",
		of->mode_count == 2 ? "bimodal" : "multimodal", of->mode_count, values,
		shown < of->mode_count ? " and others" : "");
}

static void explain_spread(
	struct diagnosis *diagnosis, struct finding *finding, const struct distribution *of)
{
	const double alike = clock_correlation(&diagnosis->facts.variable);

	finding->confidence = CONFIDENCE_MEDIUM;
	if (alike * 1000 >= LIMIT_CLOCK_CORRELATION) {
		SET_TEXT(finding->reason,
			"correlated with clock rate: other kernels are slower at the same times "
			"(correlation %.2f over windows of the trace)",
			alike);
		SET_TEXT(finding->next,
			"Lock the clocks (nvidia-smi -lgc) to compare runs; check for throttling "
			"(nvidia-smi -q -d PERFORMANCE) and at the cooling.");
		return;
	}
	if (of->outliers && of->mode_count < 2 &&
		!diagnose_is_share(of->outliers, of->count, LIMIT_RARE)) {
		SET_TEXT(finding->reason,
			"rare slow instances: %s of %s are outliers, the others are similar",
			diagnose_count(diagnosis, of->outliers),
			diagnose_count(diagnosis, of->count));
		SET_TEXT(finding->next,
			"Look at what ran concurrently with the slow ones (pperf-report streams), "
			"at page faults of managed memory and at other processes.");
		return;
	}
	if (of->mode_count > 1) {
		describe_modes(diagnosis, finding, of);
		SET_TEXT(finding->next,
			"Find what differs: cached or uncached data, sizes that the grid does not "
			"show (K of a matrix product), a concurrent copy or stream.");
		return;
	}
	finding->confidence = CONFIDENCE_LOW;
	SET_TEXT(finding->reason, "broad spread: not explained by the clock rate, by two typical "
				  "values or by a few outliers");
	SET_TEXT(finding->next,
		"Compare with the sizes it runs on, and with what runs concurrently.");
}

static bool is_variable_work(const struct path_node *work, void *context)
{
	const struct node *node = context;

	return work->kind == ACTIVITY_KERNEL && work->owner == node->parent &&
	       work->name == node->name;
}

void diagnose_kernel_variability(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct variable_kernel *variable = &diagnosis->facts.variable;
	struct node *node = &diagnosis->profile->tree->nodes[variable->node];
	struct distributions *distributions;
	struct node_list selected = { .count = 1 };

	if (!variable->node) {
		if (diagnose_is_share(
			    variable->unknown_excess_ns, diagnosis->facts.span_ns, LIMIT_LITTLE))
			finding_set_unchecked(finding,
				"the grids or the launches of the kernels whose times differ most "
				"are not in the trace");
		return;
	}
	selected.nodes = xcalloc(sizeof *selected.nodes);
	selected.nodes[0] = variable->node;
	distributions = distributions_read(diagnosis->process, selected);
	finding->state = FINDING_FOUND;
	explain_spread(diagnosis, finding, &distributions->gpu);
	if (distributions->gpu.worst_outlier_count) {
		finding->has_example = true;
		finding->example_ns = distributions->gpu.worst_outliers[0].at_ns;
	}
	SET_TEXT(finding->sentence,
		"%s takes different times for the same launch at the same call path: median %s, "
		"95th percentile %s, maximum %s.",
		diagnose_name(diagnosis, node->name),
		diagnose_time(diagnosis, duration_percentile(node, 500)),
		diagnose_time(diagnosis, duration_percentile(node, 950)),
		diagnose_time(diagnosis, node->max_ns));
	SET_TEXT(finding->evidence,
		"%s instances, %s in total, %s more than if each took the median",
		diagnose_count(diagnosis, node->gpu->self_calls),
		diagnose_time(diagnosis, node->gpu->self_ns),
		diagnose_time(diagnosis, variable->excess_ns));
	SET_TEXT(finding->view, "distribution");
	finding->at_path = true;
	finding_set_impact(finding, variable->node, node->gpu->self_calls, variable->excess_ns);
	finding_set_gain(diagnosis, finding,
		1 - (double)variable->excess_ns / (double)node->gpu->self_ns, is_variable_work,
		node);
	distributions_free(distributions);
}
