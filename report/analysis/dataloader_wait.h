/* SPDX-License-Identifier: MIT
 *
 * Computes how much time of the steady-state steps is spent waiting for the next batch of a PyTorch
 * DataLoader.
 */
#ifndef PPERF_REPORT_ANALYSIS_DATALOADER_WAIT_H
#define PPERF_REPORT_ANALYSIS_DATALOADER_WAIT_H

#include "report/profile/profile.h"

struct dataloader_wait {
	uint64_t ns, steps_ns; /* time in DataLoaders; time of all steady-state steps */
	uint64_t count, longest_ns;
	uint32_t node; /* the node with the largest part of it; 0: there is none */
};

struct dataloader_wait dataloader_wait_of(const struct profile *profile);

#endif
