/* SPDX-License-Identifier: MIT
 * diagnose_spread.c: a kernel that takes different times for the same work: the same kernel, grid and place.
 *
 * The candidate is the leaf of the tree with most time above its median. Its shape is that of the view `distribution`;
 * whether the clock did it is told by windows of the trace in which other kernels were slower or faster, too.
 */
#include "report/diagnose/diagnosis_internal.h"
#include "report/analysis/duration_distribution.h"
#include "report/base/alloc.h"
#include "report/text/format_number.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kernel with enough instances, all launched alike, that does not wait for other ranks. */
static bool is_comparable(const struct diagnosis *diagnosis, const struct node *node)
{
	const struct text name = text_of(diagnosis->process->texts, node->name);

	return node->kind == NODE_KERNEL && node->gpu && !node->gpu->several_shapes && !node->gpu->untimed && !node->captured &&
	       node->gpu->self_calls >= LIMIT_VARIABLE_CALLS &&
	       !timeline_is_communication((struct trace_text){ name.bytes, name.length, true });
}

/* Medians sort the samples in place, which changes nothing that anybody sees. */
static uint64_t at(const struct node *node, unsigned per_mille)
{
	return samples_percentile((struct samples *)(uintptr_t)&node->samples, per_mille);
}

void diagnose_variable_choose(struct diagnosis *diagnosis)
{
	const struct tree *tree = diagnosis->fold->tree;
	struct variable_kernel *variable = &diagnosis->facts.variable;

	variable->medians = need(tree->count * sizeof *variable->medians);
	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];
		uint64_t median, usual, above;

		if (!is_comparable(diagnosis, node))
			continue;
		median = variable->medians[id] = at(node, 500);
		usual = median * node->gpu->self_calls;
		above = node->gpu->self_ns > usual ? node->gpu->self_ns - usual : 0;
		if (!diagnose_is_share(at(node, 950) - median, median, LIMIT_VARIABLE_SPREAD) && node->max_ns < 3 * median)
			continue;
		if (above > variable->excess_ns) {
			variable->excess_ns = above;
			variable->node = id;
		}
	}
	if (!diagnose_is_share(variable->excess_ns, diagnosis->facts.span_ns, LIMIT_LITTLE))
		variable->node = 0;
}

void diagnose_variable_add(struct diagnosis *diagnosis, const struct activity *work)
{
	struct variable_kernel *variable = &diagnosis->facts.variable;
	const uint64_t wall = diagnosis->fold->totals.wall_ns, median = variable->medians[work->node];
	uint64_t window;

	if (!variable->node || !wall || !median)
		return;
	window = number_whole((long double)work->begin_ns * CLOCK_WINDOWS_MOST / wall);
	if (window >= CLOCK_WINDOWS_MOST)
		window = CLOCK_WINDOWS_MOST - 1;
	if (work->node == variable->node) {
		variable->own[window] += (double)work->duration_ns / (double)median;
		variable->own_count[window]++;
	} else {
		variable->others[window] += (double)work->duration_ns / (double)median;
		variable->others_count[window]++;
	}
}

/* Of both in the windows in which both ran; 0 of too few. */
static double correlation(const struct variable_kernel *variable)
{
	double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0, spread;

	for (unsigned i = 0; i < CLOCK_WINDOWS_MOST; i++) {
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
	return n < LIMIT_CLOCK_WINDOWS || spread <= 0 ? 0 : (n * xy - x * y) / sqrt(spread);
}

static void say_shape(struct diagnosis *diagnosis, struct finding *finding, const struct distribution *of)
{
	const double alike = correlation(&diagnosis->facts.variable);

	finding->confidence = CONFIDENCE_MEDIUM;
	if (alike * 1000 >= LIMIT_CLOCK_CORRELATION) {
		SAY(finding->why, "clock-like: other kernels are slower at the same times (correlation %.2f over windows "
			"of the trace)", alike);
		SAY(finding->next, "Lock the clocks (nvidia-smi -lgc) to compare runs; look for throttling (nvidia-smi -q "
			"-d PERFORMANCE) and at cooling.");
		return;
	}
	if (of->outliers && of->mode_count < 2 && !diagnose_is_share(of->outliers, of->count, LIMIT_RARE)) {
		SAY(finding->why, "rare slow instances: %s of %s are far off, the others are alike",
			diagnose_count(diagnosis, of->outliers),
			diagnose_count(diagnosis, of->count));
		SAY(finding->next, "Look at what ran beside the slow ones (pperf-report streams), at page faults of "
			"managed memory and at other processes.");
		return;
	}
	if (of->mode_count > 1) {
		SAY(finding->why, "bimodal: %u usual values, around %s (%s) and %s (%s)", of->mode_count,
			diagnose_time(diagnosis, of->modes[0].value),
			diagnose_share(diagnosis, of->modes[0].count, of->count), diagnose_time(diagnosis, of->modes[1].value),
			diagnose_share(diagnosis, of->modes[1].count, of->count));
		SAY(finding->next, "See what differs: data that is cached or not, sizes that the grid does not show (K of "
			"a product), a copy or another "
				   "stream beside it.");
		return;
	}
	finding->confidence = CONFIDENCE_LOW;
	SAY(finding->why, "spread without a shape: neither the clock, nor two usual values, nor few outliers");
	SAY(finding->next, "Compare with the sizes that it works on, and with what runs beside it.");
}

void diagnose_variability(struct diagnosis *diagnosis, struct finding *finding)
{
	const struct variable_kernel *variable = &diagnosis->facts.variable;
	const struct node *node = &diagnosis->fold->tree->nodes[variable->node];
	struct distributions *distributions;
	struct places places = { .count = 1 };

	if (!variable->node)
		return;
	places.nodes = need(sizeof *places.nodes);
	places.nodes[0] = variable->node;
	distributions = distributions_read(diagnosis->process, places);
	finding->state = FINDING_FOUND;
	say_shape(diagnosis, finding, &distributions->gpu);
	if (distributions->gpu.far_count) {
		finding->has_example = true;
		finding->example_ns = distributions->gpu.far[0].at_ns;
	}
	SAY(finding->sentence, "%s takes different times for the same launch at the same place: %s in the median, %s at "
		"the 95th percentile, %s at most.",
		diagnose_name(diagnosis, node->name), diagnose_time(diagnosis, at(node, 500)), diagnose_time(diagnosis, at(node, 950)),
		diagnose_time(diagnosis, node->max_ns));
	SAY(finding->evidence, "%s instances, %s in all, %s more than if each had taken the median",
		diagnose_count(diagnosis, node->gpu->self_calls),
		diagnose_time(diagnosis, node->gpu->self_ns), diagnose_time(diagnosis, variable->excess_ns));
	SAY(finding->view, "distribution");
	finding->at_path = true;
	finding->node = variable->node;
	finding->count = node->gpu->self_calls;
	finding->impact_ns = variable->excess_ns;
	finding->upper_bound = true;
	distributions_free(distributions);
}
