/* SPDX-License-Identifier: MIT
 *
 * Lists when each thread was fetching a batch from a PyTorch DataLoader, and when it was compiling
 * (torch.compile). A GPU that is idle meanwhile waits for that, not for a launch as such.
 *
 * Memory: 32 bytes for each such range that is not inside another one.
 */
#ifndef PPERF_REPORT_ANALYSIS_HOST_RANGES_H
#define PPERF_REPORT_ANALYSIS_HOST_RANGES_H

#include "report/run/process.h"

enum host_range_kind { HOST_RANGE_NONE, HOST_RANGE_DATA, HOST_RANGE_COMPILATION };

struct host_range {
	uint64_t begin_ns, end_ns; /* since the start of the trace */
	uint32_t tid, node;
	uint8_t kind; /* enum host_range_kind */
};

struct host_ranges {
	/* Sorted by thread, then begin. Those of one thread do not overlap. */
	struct host_range *ranges;
	size_t count, room;
};

/* Returns the ranges. The first call for a process reads them in one more pass, unless
 * activities_read has read them, or the call tree has no such node. They belong to the process. */
const struct host_ranges *host_ranges_of(struct process *process);

/* For a pass that serves another analysis, too, which may be the one that makes the profile: sets
 * the observer for it. host_ranges_end is called after the pass. NULL: nothing is to be read. */
struct host_ranges_pass;

struct host_ranges_pass *host_ranges_begin(
	struct process *process, struct profile_observer *observer);
void host_ranges_end(struct host_ranges_pass *pass); /* `pass` may be NULL */

/* Returns the first range of the thread that ends after `from_ns` and begins before `to_ns`; NULL:
 * there is none. */
const struct host_range *host_ranges_first(
	const struct host_ranges *ranges, uint32_t tid, uint64_t from_ns, uint64_t to_ns);

/* Returns what the name of a range says about it. */
enum host_range_kind host_range_kind(struct string_view name);

#endif
