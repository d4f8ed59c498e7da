/* SPDX-License-Identifier: MIT
 * Computes launch delays: from the begin of the launching call to the begin of its work on the
 * GPU.
 */
#ifndef PPERF_REPORT_PROFILE_LAUNCH_DELAYS_H
#define PPERF_REPORT_PROFILE_LAUNCH_DELAYS_H

#include "report/profile/call_tree.h"

/* A percentile of the delays of all launches in `node` and below, in ns, at most 1 % off.
 * Returns false if no launch there was timed. Not thread-safe. */
bool launch_delays_percentile(
	const struct tree *tree, uint32_t node, unsigned per_mille, uint64_t *value);

#endif
