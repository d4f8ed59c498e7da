/* SPDX-License-Identifier: MIT
 * Computes the median of numbers without sorting all of them, in time linear in their number.
 */
#ifndef PPERF_REPORT_STATS_MEDIAN_H
#define PPERF_REPORT_STATS_MEDIAN_H

#include <stddef.h>

/* Returns the median of `count` values, at least one and none of them NaN: of an even number, the
 * mean of the two in the middle. Reorders the values. */
double median_unsorted(double *values, size_t count);

#endif
