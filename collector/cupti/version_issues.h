/* SPDX-License-Identifier: MIT
 * Knows what is wrong in which version of CUPTI, as far as a user can notice it in a recorded
 * program. libpperf(7) has the same table for users, with what pperf does about each.
 */
#ifndef PPERF_COLLECTOR_CUPTI_VERSION_ISSUES_H
#define PPERF_COLLECTOR_CUPTI_VERSION_ISSUES_H

#include <stdint.h>

/* Writes a sentence to META for each known issue of this version (cuptiGetVersion):
 *   warning.cupti    the program may crash, hang or become slow
 *   cupti.known.*    anything else; the view `info` prints it */
void cupti_write_version_issues(uint32_t version);

#endif
