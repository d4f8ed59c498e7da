/* SPDX-License-Identifier: MIT
 *
 * Compares two runs node by node: the value of a metric in each, and whether the change is more
 * than noise.
 *
 * Nodes match by call path: names, kinds, module classes and NVTX domains.
 *
 * | both runs have steps | values                        | samples                              |
 * |----------------------|-------------------------------|--------------------------------------|
 * | yes                  | means of a steady-state step  | values of the steps; 0 for the steps |
 * |                      |                               | of a run that does not have the node |
 * | no                   | of the whole run              | values of the instances              |
 *
 * A change is significant under these conditions:
 *
 * - p, corrected for all nodes tested, is below DIFF_ALPHA.
 * - The shift is at least DIFF_MIN_SHIFT of the value before.
 * - For times: it is at least DIFF_MIN_SHARE of the whole.
 * - For times, if DIFF_MIN_NODES or more were tested: the relative shift is DIFF_MIN_DEVIATIONS
 *   robust deviations or more from the median shift of all nodes.
 *
 * The last two exist because two runs of one program differ by more than their steps show. Memory
 * layout and other load on the machine change.
 */
#ifndef PPERF_REPORT_ANALYSIS_RUN_DIFF_H
#define PPERF_REPORT_ANALYSIS_RUN_DIFF_H

#include "report/analysis/compared_run.h"
#include "report/base/hash_index.h"

#define DIFF_ALPHA MANN_WHITNEY_ALPHA
#define DIFF_MIN_SHIFT 0.01
#define DIFF_MIN_SHARE 0.0005
#define DIFF_MIN_NODES 10u
#define DIFF_MIN_DEVIATIONS 5

enum diff_status { DIFF_BOTH, DIFF_NEW, DIFF_REMOVED };

struct diff_node {
	uint32_t parent, first_child, next, depth;
	uint32_t name, domain, class; /* texts of the diff */
	uint8_t kind;                 /* enum node_kind */
	enum diff_status status;
	uint32_t of[2]; /* the first matching node of each run's tree; 0: none */
	double before, after;
	uint32_t n[2];                         /* number of samples in each run */
	struct mann_whitney_result comparison; /* p is corrected */
	bool found;
	bool shown; /* in text: it or a descendant is significant, or changed much without a test */
	double largest_change; /* of the changes shown in it and below */
};

struct diff {
	struct string_table *texts;
	struct diff_node *nodes; /* parents before children; 0: the root */
	uint32_t count;
	size_t room;
	struct hash_index index; /* of nodes, by what same_place compares */
	struct compared_run sides[2];
	enum metric metric;
	const char *counter;
	bool by_steps;
	uint32_t tested, found, added, removed, common;
	double before, after; /* of the whole run or step */
	double common_change,
		/* of the relative shifts of all nodes: median and robust deviation; 0: unknown */
		spread;
};

/* Reads and compares two files. Ends the program with STATUS_UNREADABLE if they cannot be read or
 * compared. `metric_name` NULL: gpu if both runs have GPU time, else cpu. */
struct diff *diff_read(const struct options *options, const char *metric_name, const char *before,
	const char *after);
/* diff_read that allows runs without a common node. */
struct diff *diff_read_unmatched(const struct options *options, const char *metric_name,
	const char *before, const char *after);
void diff_free(struct diff *diff);

/* The unit of the compared metric. */
enum unit diff_unit(const struct diff *diff);
const char *diff_metric_name(const struct diff *diff);
/* Formats a value for text output, with a sign if `sign`. `out` has NUMBER_BYTES + 1 bytes. Returns
 * the length. */
size_t diff_figure(
	const struct diff *diff, char *out, double value, bool sign, bool iec, bool ascii);

#endif
