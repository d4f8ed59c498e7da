/* SPDX-License-Identifier: MIT
 *
 * Computes how the durations of nodes are distributed. On the CPU these are durations of ranges and
 * calls. On the GPU they are durations of kernels, copies and memsets; of a range, the sum of what
 * was launched in one instance and below.
 *
 * Three passes over the instances: quartiles, then bins and modes, then the numbers of outliers.
 * The first pass reads the trace. The others do so only if there are more than
 * DISTRIBUTION_HELD_MAX instances; memory is bounded by these.
 *
 * - Bins: DISTRIBUTION_BINS of equal width, or of equal ratio where the longest duration is more
 *   than ten times the shortest.
 * - Outliers: more than three interquartile ranges above the upper quartile or below the lower one.
 *   An interquartile range of less than 1 % of the median counts as 1 %.
 * - Modes: peaks of the smoothed histogram; duration_modes.c has the rule.
 */
#ifndef PPERF_REPORT_ANALYSIS_DURATION_DISTRIBUTION_H
#define PPERF_REPORT_ANALYSIS_DURATION_DISTRIBUTION_H

#include "report/run/node_lookup.h"

#define DISTRIBUTION_BINS 20u
#define DISTRIBUTION_MODES_MAX 8u
#define DISTRIBUTION_OUTLIERS_MAX 100u   /* kept: those farthest from the quartiles */
#define DISTRIBUTION_HELD_MAX (1u << 20) /* instances, 24 bytes each */
#define DISTRIBUTION_COUNT_MIN 10u /* with fewer instances no modes and outliers are reported */

enum distribution_kind {
	DISTRIBUTION_WHOLE,
	DISTRIBUTION_BIN,
	DISTRIBUTION_MODE,
	DISTRIBUTION_OUTLIER
};

/* A row of the output. All times are in nanoseconds. */
struct distribution_row {
	enum distribution_kind kind;
	const struct distribution *of;
	uint64_t from,
		to; /* BIN: from <= duration < to, in the last bin also = to; MODE: its two edges */
	uint64_t count;  /* instances; OUTLIER: 1 */
	uint64_t value;  /* MODE: its peak; OUTLIER: its duration */
	uint64_t at_ns;  /* OUTLIER: when it, or the call that launched it, began */
	uint64_t number; /* OUTLIER: number of the instance by begin, from 1 */
	uint32_t node;
};

struct distribution {
	bool of_gpu;
	uint64_t count, total_ns, min_ns, max_ns;
	uint64_t p25, p50, p75, p95, p99; /* exact for up to 4096 instances, else at most 1 % off */
	uint64_t low, high;               /* durations below `low` and above `high` are outliers */
	uint64_t outliers;                /* all, not only those kept */
	struct distribution_row whole, bins[DISTRIBUTION_BINS], modes[DISTRIBUTION_MODES_MAX],
		worst_outliers[DISTRIBUTION_OUTLIERS_MAX];
	/* worst_outliers: the farthest first */
	uint32_t bin_count, mode_count, worst_outlier_count;
	bool by_ratio;
};

struct distributions {
	struct distribution cpu, gpu; /* count 0: no such instances */
	struct node_list selected;
};

/* Reads the distributions of the nodes `selected`, and takes ownership of the list. */
struct distributions *distributions_read(struct process *process, struct node_list selected);
void distributions_free(struct distributions *distributions);

const char *distribution_kind_name(enum distribution_kind kind);

/* Stores the number of the step at `at_ns`. Returns false if there was no step at that time. */
bool distribution_step(const struct process *process, uint64_t at_ns, uint64_t *number);

/* A histogram of the logarithms of durations, in which modes are found. */
struct modes;
struct modes *modes_new(const struct distribution *distribution, uint64_t granularity);
void modes_add(struct modes *modes, uint64_t value);
/* Stores the modes in `distribution`, sorted by value, and frees `modes`. */
void modes_find(struct modes *modes, struct distribution *distribution);

#endif
