/* SPDX-License-Identifier: MIT
 * distribution.h: how the durations of places are spread: on the CPU those of ranges and calls, on the GPU those of kernels,
 * copies and sets, and of ranges what was launched in an instance and below.
 *
 * From three passes over the instances: one for the percentiles, one for what needs them, one for the numbers of outliers.
 * The first is one over the trace, the others too if there are more instances than DISTRIBUTION_HELD. Memory does not grow
 * with instances beyond those.
 *
 * Bins: DISTRIBUTION_BINS of equal width; of equal ratio where the longest took more than ten times the shortest. Outliers:
 * more than three interquartile ranges above the upper or below the lower quartile (a range of less than 1 % of the median
 * counts as that). Modes: see distribution_modes.c.
 */
#ifndef PPERF_REPORT_ANALYSIS_DURATION_DISTRIBUTION_H
#define PPERF_REPORT_ANALYSIS_DURATION_DISTRIBUTION_H

#include "report/run/node_lookup.h"

#define DISTRIBUTION_BINS 20u
#define DISTRIBUTION_MODES_MAX 8u
#define DISTRIBUTION_OUTLIERS_MAX 100u   /* kept, those that are furthest off */
#define DISTRIBUTION_HELD_MAX (1u << 20) /* instances, 24 bytes each */
#define DISTRIBUTION_COUNT_MIN \
	10u /* of fewer instances nobody says whether there are several modes, or outliers */

enum distribution_kind {
	DISTRIBUTION_WHOLE,
	DISTRIBUTION_BIN,
	DISTRIBUTION_MODE,
	DISTRIBUTION_OUTLIER
};

/* One row of it. All times in ns. */
struct distribution_row {
	enum distribution_kind kind;
	const struct distribution *of;
	uint64_t from,
		to; /* BIN: from <= duration < to, the last one's `to` too; MODE: where it ends on both sides */
	uint64_t count;  /* instances; of an OUTLIER: 1 */
	uint64_t value;  /* MODE: its middle; OUTLIER: its duration */
	uint64_t at_ns;  /* OUTLIER: when it, or the call that launched it, began */
	uint64_t number; /* OUTLIER: by when they began, from 1 */
	uint32_t node;
};

struct distribution {
	bool of_gpu;
	uint64_t count, total_ns, min_ns, max_ns;
	uint64_t p25, p50, p75, p95,
		p99;        /* as everywhere: exact up to 4096, then at most 1 % off */
	uint64_t low, high; /* durations below, above are outliers */
	uint64_t outliers;  /* all of them */
	struct distribution_row whole, bins[DISTRIBUTION_BINS], modes[DISTRIBUTION_MODES_MAX],
		worst_outliers[DISTRIBUTION_OUTLIERS_MAX];
	uint32_t bin_count, mode_count, worst_outlier_count; /* far: the furthest first */
	bool by_ratio;
};

struct distributions {
	struct distribution cpu, gpu; /* count 0: there is nothing of it */
	struct node_list places;
};

/* Of these places, which it takes over. */
struct distributions *distributions_read(struct process *process, struct node_list places);
void distributions_free(struct distributions *distributions);

const char *distribution_kind_name(enum distribution_kind kind);

/* The number of the step that was going on at that moment; false: none was. */
bool distribution_step(const struct process *process, uint64_t at_ns, uint64_t *number);

/* A histogram of logarithms, in which modes are looked for. */
struct modes;
struct modes *modes_new(const struct distribution *distribution, uint64_t granularity);
void modes_add(struct modes *modes, uint64_t value);
/* Fills in the modes of the distribution, by value; frees. */
void modes_find(struct modes *modes, struct distribution *distribution);

#endif
