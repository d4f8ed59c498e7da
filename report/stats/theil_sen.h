/* SPDX-License-Identifier: MIT
 * clock_fit.h: how one clock goes beside another, from moments that both saw: offset and, with enough of them, drift. Robust: up to a quarter of
 * the moments may be wrong altogether (slopes of all pairs, their median; the median of what is left).
 */
#ifndef PPERF_REPORT_STATS_THEIL_SEN_H
#define PPERF_REPORT_STATS_THEIL_SEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define THEIL_SEN_PAIRS_MIN 3u        /* moments, or nothing is said */
#define THEIL_SEN_DRIFT_PAIRS_MIN 16u /* moments, or no drift is looked for */
#define THEIL_SEN_PAIRS_MAX 384u      /* moments that are used: evenly spread over all */
#define THEIL_SEN_DRIFT_PPM_MAX 500.0 /* no clock of a computer drifts by more */

struct clock_readings {
	int64_t other_ns, own_ns; /* the clock that is followed, the one that is fitted to it */
};

struct theil_sen_fit {
	int64_t origin_ns; /* of the fitted clock */
	int64_t offset_ns; /* there: other - own */
	double drift;      /* of the difference, by nanosecond; 0: none was found */
	uint64_t residual_ns, residual_max_ns; /* median and largest of what remains */
	size_t moments;                        /* given; 0: there is no fit */
};

/* moments: fewer than CLOCK_FIT_LEAST give no fit. */
struct theil_sen_fit theil_sen_fit(const struct clock_readings *moments, size_t count);
/* A time of the fitted clock on the other. */
int64_t theil_sen_map(const struct theil_sen_fit *fit, int64_t own_ns);

#endif
