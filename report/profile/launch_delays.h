/* SPDX-License-Identifier: MIT
 * delays.h: how long what was launched in a place waited for its turn: from the launching call's begin to the work's
 * begin on the GPU.
 */
#ifndef PPERF_REPORT_PROFILE_LAUNCH_DELAYS_H
#define PPERF_REPORT_PROFILE_LAUNCH_DELAYS_H

#include "report/profile/call_tree.h"

/* Of all launches in the node and below, in ns, at most 1 % off. False: nothing that was launched there was timed. Not
 * for several threads at once. */
bool launch_delays_percentile(
	const struct tree *tree, uint32_t node, unsigned per_mille, uint64_t *value);

#endif
