/* SPDX-License-Identifier: MIT
 *
 * Compares two runs: first the metric of the step (or of the whole run), then node by node.
 *
 * | both runs have steps | values                        | samples                              |
 * |----------------------|-------------------------------|--------------------------------------|
 * | yes                  | means of a steady-state step  | values of the steps; 0 for the steps |
 * |                      |                               | of a run that does not have the node |
 * | no                   | of the whole run              | values of the instances              |
 *
 * The step is one test, the same as that of `gate`: is p below CHANGE_TEST_ALPHA? A change of many
 * call paths at once is found there, with 3 steps of each run.
 *
 * The nodes are tested together, with moderated variances (report/stats/change_test.h). A change
 * of a node is significant under these conditions:
 *
 * - p, adjusted for all nodes tested, is below CHANGE_TEST_FDR.
 * - The shift is at least DIFF_MIN_SHIFT of the node's value.
 * - For times: it is at least DIFF_MIN_SHARE of the whole. A node that is smaller than this in
 *   both runs is not tested, so that it does not count in the adjustment either.
 * - For times, if DIFF_MIN_NODES or more were tested: the relative shift is at least
 *   DIFF_MIN_DEVIATIONS times the deviation between the runs, but DIFF_MAX_FLOOR is enough.
 *
 * Two runs of one program differ by more than their steps show, because memory layout and other
 * load on the machine change. The deviation between the runs is the part of the robust deviation
 * (MAD) of all relative shifts that noise within the runs does not explain. Where most nodes really
 * changed it is large, which must not hide them: hence the upper limit.
 *
 * A node whose samples are those of its parent, as an operator with a single kernel has, is not
 * tested again.
 */
#ifndef PPERF_REPORT_ANALYSIS_RUN_DIFF_H
#define PPERF_REPORT_ANALYSIS_RUN_DIFF_H

#include "report/analysis/compared_run.h"
#include "report/analysis/diff_nodes.h"

#define DIFF_MIN_SHIFT 0.01
#define DIFF_MAX_FLOOR 0.10
#define DIFF_MIN_SHARE 0.0005
#define DIFF_MIN_NODES 10u
#define DIFF_MIN_DEVIATIONS 5
#define DIFF_MOVERS 5u /* largest changes that are shown although they are not significant */

/* The comparison of the step, or of the whole run. */
struct diff_whole {
	double mean[2];    /* before and after; of a whole run: its value */
	double typical[2]; /* as gate compares it */
	uint32_t n[2];     /* number of steps tested */
	struct change_test test;
	bool significant; /* whatever its size is, as for `gate` */
};

struct diff {
	struct string_table *texts;
	struct diff_nodes nodes;
	struct compared_run sides[2];
	enum metric metric;
	const char *counter;
	bool by_steps;
	uint32_t tested, significant, common;
	uint32_t untested; /* nodes that are new or gone, not tested, and large */
	struct diff_whole whole;
	/* Of the relative shifts of all nodes: median, robust deviation, and the part of it between
	 * the runs; 0: unknown. */
	double common_change, spread, between_runs;
	uint32_t movers[DIFF_MOVERS]; /* nodes, the largest change first */
	uint32_t mover_count;
};

/* Reads and compares two files. Ends the program with STATUS_UNREADABLE if they cannot be read or
 * compared. `metric_name` NULL: gpu if both runs have GPU time, else cpu. */
struct diff *diff_read(const struct options *options, const char *metric_name, const char *before,
	const char *after);
/* diff_read that allows runs without a common node. */
struct diff *diff_read_unmatched(const struct options *options, const char *metric_name,
	const char *before, const char *after);
void diff_free(struct diff *diff);

/* Returns the shift relative to the mean of both medians, or 0 if both are 0. */
double relative_shift(const struct change_test *test);
/* Whether the step, by DIFF_MIN_SHIFT or more, or a node changed significantly: the exit status of
 * `diff`. */
bool diff_is_different(const struct diff *diff);
/* Whether a change of the whole is significant: `gate` decides by it, too. */
bool is_significant_whole(const struct change_test *test);

/* The unit of the compared metric. */
enum unit diff_unit(const struct diff *diff);
const char *diff_metric_name(const struct diff *diff);
/* Formats `value` in the unit of the metric for text output. `sign`: positive values begin with a
 * plus sign. `out` has FORMAT_NUMBER_BYTES + 1 bytes. Returns the length. */
size_t diff_format_value(
	const struct diff *diff, char *out, double value, bool sign, bool iec, bool ascii);

#endif
