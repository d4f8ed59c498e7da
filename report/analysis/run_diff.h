/* SPDX-License-Identifier: MIT
 * diff.h: two runs, place by place: what each had of a metric, and whether the change is more than noise.
 *
 * A place is matched by its path: names, kinds, classes and domains. Where both runs have steps, figures are means of
 * a usual step, and what is tested are the steps' values (a place that only one run has is 0 in the other's steps).
 * Else figures are of the whole run, and the values of instances are tested. A change is found where p, corrected for
 * all places that were tested, is below DIFF_ALPHA and the shift at least DIFF_LEAST of what it was. Two runs of one
 * program differ by more than their steps show (where memory lies, what else the machine does). So of times, where at
 * least DIFF_PLACES places were tested, a relative shift must also be DIFF_SPREADS robust deviations away from the
 * median of all places' shifts; and always DIFF_SHARE of the whole.
 */
#ifndef PPERF_REPORT_ANALYSIS_RUN_DIFF_H
#define PPERF_REPORT_ANALYSIS_RUN_DIFF_H

#include "report/analysis/metric_samples.h"
#include "report/base/hash_index.h"
#include "report/stats/mann_whitney.h"

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
	uint32_t of[2]; /* the first node of either tree that is here; 0: none */
	double before, after;
	uint32_t n[2];                         /* values on either side */
	struct mann_whitney_result comparison; /* p: corrected */
	bool found;
	bool shown; /* in text: it, or something below it, was found, or was not tested and is much */
	double largest_change; /* the largest change shown in it or below */
};

struct diff_side {
	struct processes processes;
	struct process *process;
	struct metric_samples *metric_samples;
	size_t steps; /* usual ones */
};

struct diff {
	struct string_table *texts;
	struct diff_node *nodes; /* parents first; 0: the root */
	uint32_t count;
	size_t room;
	struct hash_index index; /* of nodes, by what same_place compares */
	struct diff_side sides[2];
	enum metric metric;
	const char *counter;
	bool by_steps;
	uint32_t tested, found, added, removed, common;
	double before, after; /* of the whole */
	double common_change,
		spread; /* of relative shifts of all places: median, robust deviation; 0: not known */
};

/* Reads and compares two files; ends the program with STATUS_UNREADABLE where they cannot be read or compared.
 * metric_name NULL: gpu, if both have anything timed on a GPU, else cpu. */
struct diff *diff_read(const struct options *options, const char *metric_name, const char *before,
	const char *after);
/* The same where they may have no place in common. */
struct diff *diff_read_unmatched(const struct options *options, const char *metric_name,
	const char *before, const char *after);
void diff_free(struct diff *diff);

/* What a metric of levels or flows is measured in. */
enum unit diff_unit(const struct diff *diff);
const char *diff_metric_name(const struct diff *diff);
/* A figure of it as people read it, with its sign if that is asked for; room for NUMBER_BYTES + 1. Returns the length. */
size_t diff_figure(
	const struct diff *diff, char *out, double value, bool sign, bool iec, bool ascii);

#endif
