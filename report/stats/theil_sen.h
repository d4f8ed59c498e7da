/* SPDX-License-Identifier: MIT
 * Fits one clock to another, from pairs of readings of both: the offset and, with enough pairs,
 * the drift. The estimate is robust: up to a quarter of the pairs may be completely wrong. The
 * drift is the median slope between any two pairs, the offset the median of what remains.
 */
#ifndef PPERF_REPORT_STATS_THEIL_SEN_H
#define PPERF_REPORT_STATS_THEIL_SEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define THEIL_SEN_PAIRS_MIN 3u        /* pairs needed for a fit */
#define THEIL_SEN_DRIFT_PAIRS_MIN 16u /* pairs needed to estimate a drift */
#define THEIL_SEN_PAIRS_MAX 384u      /* pairs that are used, evenly spaced */
#define THEIL_SEN_DRIFT_PPM_MAX 500.0 /* no computer's clock drifts by more */

struct clock_readings {
	int64_t other_ns, own_ns; /* readings of the reference clock and of the fitted clock */
};

struct theil_sen_fit {
	int64_t origin_ns; /* a reading of the fitted clock */
	int64_t offset_ns; /* other - own at origin_ns */
	double drift;      /* change of the offset per nanosecond; 0: none found */
	uint64_t residual_ns, residual_max_ns; /* median and maximum of the absolute residuals */
	size_t pairs;                          /* number of pairs passed in; 0: no fit */
};

/* Fits the clock. Fewer than THEIL_SEN_PAIRS_MIN pairs give no fit. */
struct theil_sen_fit theil_sen_fit(const struct clock_readings *pairs, size_t count);
/* Converts a reading of the fitted clock to the other clock. */
int64_t theil_sen_map(const struct theil_sen_fit *fit, int64_t own_ns);

#endif
