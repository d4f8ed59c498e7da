/* SPDX-License-Identifier: MIT
 *
 * Lists when each thread was fetching a batch from a PyTorch DataLoader, and when it was compiling
 * (torch.compile). A GPU that is idle meanwhile waits for that, not for a launch as such.
 *
 * Memory: 32 bytes for each such range that is not inside another one of its kind.
 */
#ifndef PPERF_REPORT_DIAGNOSE_HOST_RANGES_H
#define PPERF_REPORT_DIAGNOSE_HOST_RANGES_H

#include "report/run/process.h"

enum host_range_kind { HOST_RANGE_NONE, HOST_RANGE_DATA, HOST_RANGE_COMPILATION };

struct host_range {
	uint64_t begin_ns, end_ns; /* since the start of the trace */
	uint32_t tid;
	uint8_t kind; /* enum host_range_kind */
};

struct host_ranges {
	struct host_range *ranges; /* sorted by thread, then begin */
	size_t count, room;
};

/* Reads the ranges in one more pass, or in none if the call tree has no such node. */
struct host_ranges host_ranges_read(const struct process *process);
void host_ranges_free(struct host_ranges *ranges);

/* Adds the part of the time from `from_ns` to `to_ns` that the thread spent in ranges of each kind
 * to `ns`, which is indexed by kind. Returns the sum of what was added. */
uint64_t host_ranges_within(const struct host_ranges *ranges, uint32_t tid, uint64_t from_ns,
	uint64_t to_ns, uint64_t ns[static 3]);

/* Returns what the name of a range says about it. */
enum host_range_kind host_range_kind(struct string_view name);

#endif
