/* SPDX-License-Identifier: MIT
 *
 * Computes which part of each collective is exposed: its device runs no kernel but communication,
 * and no memset. These are the rules of profile_totals.gpu_exposed_communication_ns.
 *
 * Memory: 16 bytes for each interval in which a device computes without a break.
 */
#ifndef PPERF_REPORT_ANALYSIS_RANKS_EXPOSED_TIME_H
#define PPERF_REPORT_ANALYSIS_RANKS_EXPOSED_TIME_H

#include "report/analysis/ranks/collectives.h"

struct exposed_time;

/* `reader` and `categories` must live until exposed_time_free. */
struct exposed_time *exposed_time_new(
	struct trace_reader *reader, const struct categories *categories);
/* Adds GPU work. Ignores work without times. */
void exposed_time_add(struct exposed_time *exposed, const struct trace_gpu *gpu);
/* Forgets all work. */
void exposed_time_clear(struct exposed_time *exposed);
/* Sets exposed_ns of all `collectives`, whose times are still those of the GPU. */
void exposed_time_set(struct exposed_time *exposed, struct collectives *collectives);
void exposed_time_free(struct exposed_time *exposed); /* NULL is allowed */

#endif
