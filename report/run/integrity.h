/* SPDX-License-Identifier: MIT
 * Counts what is missing. One list makes the JSON object and the sentences of the first screen.
 */
#ifndef PPERF_REPORT_RUN_INTEGRITY_H
#define PPERF_REPORT_RUN_INTEGRITY_H

#include "report/profile/profile.h"

/* name, whether a value above 0 means that something is missing, what it counts. */
#define INTEGRITY(X)                                                                              \
	X(launches, 0, "successful kernel launches")                                              \
	X(kernels, 0, "kernels executed")                                                         \
	X(copies_called, 0, "copies requested")                                                   \
	X(copies, 0, "copies executed")                                                           \
	X(sets_called, 0, "memsets requested")                                                    \
	X(sets, 0, "memsets executed")                                                            \
	X(graph_launches, 0, "successful graph launches")                                         \
	X(graph_kernels, 0, "kernels in these graphs")                                            \
	X(graph_copies, 0, "copies in these graphs")                                              \
	X(graph_sets, 0, "memsets in these graphs")                                               \
	X(captured, 0, "calls captured into a graph (executed nothing)")                          \
	X(failed_calls, 0, "failed CUDA calls")                                                   \
	X(empty_calls, 0, "copies and memsets of 0 bytes (executed nothing)")                     \
	X(before_gpu, 0, "launches made before the GPU's activity was recorded")                  \
	X(after_gpu, 0, "launches whose GPU work had not finished when the recording ended")      \
	X(range_profiled, 0, "launches measured by CUPTI's range profiler (without GPU records)") \
	X(missing_records, 1, "launches, copies and memsets without a matching GPU record")       \
	X(yielded, 1,                                                                             \
		"intervals in which CUPTI was released to another profiler (GPU activity not "    \
		"recorded)")                                                                      \
	X(yielded_calls, 0, "launches, copies and memsets requested in these intervals")          \
	X(attributed, 0, "GPU records attributed to the range that launched them")                \
	X(unattributed, 0, "GPU records outside any range")                                       \
	X(without_launch, 0, "of these, without a launch in the trace")                           \
	X(launched_before, 0, "of these, launched before the trace began")                        \
	X(untimed, 0, "GPU records without timestamps from CUPTI")                                \
	X(dropped, 1, "GPU records dropped by CUPTI")                                             \
	X(unread_buffers, 1, "CUPTI buffers with an unreadable tail")                             \
	X(lost_events, 1, "events that could not be recorded")                                    \
	X(lost_samples, 0, "CPU samples that were lost")                                          \
	X(unmatched_ends, 0, "range ends without an open range")                                  \
	X(unended, 1, "ranges with a lost end (excluded from all figures)")                       \
	X(left_open, 0, "ranges still open at the end (counted up to there)")                     \
	X(clock_violations, 0,                                                                    \
		"impossible timestamps (GPU work before its launch, or an end before its start)") \
	X(clock_steps, 0, "changes of the system clock")                                          \
	X(truncated_streams, 1, "threads with missing records")                                   \
	X(damaged, 1, "damaged parts of the file (skipped)")                                      \
	X(unknown_kinds, 1, "records of a newer pperf (skipped)")                                 \
	X(unknown_frees, 0, "frees of memory whose allocation is not in the trace")               \
	X(tensors, 0, "tensor allocations and frees")                                             \
	X(tensor_differences, 1,                                                                  \
		"differences between the sum of tensors and the total reported by PyTorch's "     \
		"allocator")                                                                      \
	X(unknown_tensor_frees, 0, "tensor frees whose allocation is not in the trace")           \
	X(late_work, 1, "GPU records too far out of order to count in busy time")

struct integrity {
#define X(name, missing, text) uint64_t name;
	INTEGRITY(X)
#undef X
	bool complete, conserved;
	char problem[256]; /* which sums differ, if not conserved */
};

struct integrity integrity_of(const struct profile *profile);

struct integrity_item {
	const char *name, *text;
	size_t offset;
	bool missing;
};
extern const struct integrity_item integrity_items[];
extern const size_t integrity_item_count;
uint64_t integrity_value(const struct integrity *integrity, size_t item);

#endif
