/* SPDX-License-Identifier: MIT
 * batches.h: how much of the usual steps goes by in getting the next batch from a DataLoader of PyTorch.
 */
#ifndef PPERF_REPORT_ANALYSIS_DATALOADER_WAIT_H
#define PPERF_REPORT_ANALYSIS_DATALOADER_WAIT_H

#include "report/profile/profile.h"

struct dataloader_wait {
	uint64_t ns, steps_ns; /* in DataLoaders; of all usual steps */
	uint64_t count, longest_ns;
	uint32_t node; /* where most of it is; 0: there is none */
};

struct dataloader_wait dataloader_wait_of(const struct profile *profile);

#endif
