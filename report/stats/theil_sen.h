/* SPDX-License-Identifier: MIT
 * clock_fit.h: how one clock goes beside another, from moments that both saw: offset and, with enough of them, drift. Robust: up to a quarter of
 * the moments may be wrong altogether (slopes of all pairs, their median; the median of what is left).
 */
#ifndef PPERF_REPORT_STATS_THEIL_SEN_H
#define PPERF_REPORT_STATS_THEIL_SEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLOCK_FIT_LEAST 3u   /* moments, or nothing is said */
#define CLOCK_FIT_DRIFT 16u  /* moments, or no drift is looked for */
#define CLOCK_FIT_MOST 384u  /* moments that are used: evenly spread over all */
#define CLOCK_FIT_PPM 500.0  /* no clock of a computer drifts by more */

struct moment {
	int64_t other_ns, own_ns; /* the clock that is followed, the one that is fitted to it */
};

struct clock_fit {
	int64_t origin_ns;      /* of the fitted clock */
	int64_t offset_ns;      /* there: other - own */
	double drift;           /* of the difference, by nanosecond; 0: none was found */
	uint64_t residual_ns, residual_most_ns; /* median and largest of what remains */
	size_t moments;         /* given; 0: there is no fit */
};

/* moments: fewer than CLOCK_FIT_LEAST give no fit. */
struct clock_fit clock_fit(const struct moment *moments, size_t count);
/* A time of the fitted clock on the other. */
int64_t clock_fitted(const struct clock_fit *fit, int64_t own_ns);

#endif
