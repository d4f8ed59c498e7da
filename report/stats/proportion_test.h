/* SPDX-License-Identifier: MIT
 * Tests whether a proportion differs between two samples, such as the share of CPU samples that
 * were in a function: the two-proportion z test with the pooled proportion, of two sides.
 */
#ifndef PPERF_REPORT_STATS_PROPORTION_TEST_H
#define PPERF_REPORT_STATS_PROPORTION_TEST_H

#include "report/stats/change_test.h"

/* A proportion is tested if so many are expected on each side, and as many others: the normal
 * distribution fits then. */
#define PROPORTION_EXPECTED_MIN 5

/* `share`: before and after, each from 0 to 1; `count`: of how many. Sets `tested`, `p` and
 * `shift`, which is share[1] - share[0]. The other members are 0. */
struct change_test proportion_test(const double share[2], const double count[2]);

#endif
