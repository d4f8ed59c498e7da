/* SPDX-License-Identifier: MIT
 * Computes the p-value of the one-sided sign test.
 */
#ifndef PPERF_REPORT_STATS_SIGN_TEST_H
#define PPERF_REPORT_STATS_SIGN_TEST_H

#include <stddef.h>

/* Returns how likely at least `positive` of `count` values are positive by chance, if each is with
 * probability 1/2. Returns 1 if `positive` is 0. */
double sign_test(size_t positive, size_t count);

#endif
