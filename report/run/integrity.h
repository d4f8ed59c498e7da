/* SPDX-License-Identifier: MIT
 * Counts what is missing. One list makes the JSON object and the sentences of the first screen.
 */
#ifndef PPERF_REPORT_RUN_INTEGRITY_H
#define PPERF_REPORT_RUN_INTEGRITY_H

#include "report/profile/profile.h"

/* name, whether a value above 0 means that something is missing, help */
#define INTEGRITY(X)                                                                           \
	X(launches, 0, "kernel launches that worked")                                          \
	X(kernels, 0, "kernels that the GPU ran")                                              \
	X(copies_called, 0, "copies asked for")                                                \
	X(copies, 0, "copies that the GPU made")                                               \
	X(sets_called, 0, "memsets asked for")                                                 \
	X(sets, 0, "memsets that the GPU made")                                                \
	X(graph_launches, 0, "graph launches that worked")                                     \
	X(graph_kernels, 0, "kernels of these graphs")                                         \
	X(graph_copies, 0, "copies of these graphs")                                           \
	X(graph_sets, 0, "memsets of these graphs")                                            \
	X(captured, 0, "calls captured into a graph: nothing ran then")                        \
	X(failed_calls, 0, "CUDA calls that failed")                                           \
	X(missing_records, 1, "launches, copies and sets that the GPU never told of")          \
	X(yielded, 1,                                                                          \
		"times that CUPTI was left to another profiler: what the GPU did then is not " \
		"known")                                                                       \
	X(yielded_calls, 0, "launches, copies and memsets seen then")                          \
	X(attributed, 0, "GPU records with the range that asked for them")                     \
	X(unattributed, 0, "GPU records without a range")                                      \
	X(without_launch, 0, "of these: with no launch in the trace")                          \
	X(untimed, 0, "GPU records that CUPTI could not time")                                 \
	X(dropped, 1, "GPU records dropped by CUPTI")                                          \
	X(unread_buffers, 1, "CUPTI buffers that ended in something unreadable")               \
	X(lost_events, 1, "events that could not be recorded")                                 \
	X(unmatched_ends, 0, "ends of ranges that were not open")                              \
	X(unended, 1, "ranges whose end was lost; they are in no figure")                      \
	X(left_open, 0, "ranges still open at the end; they count up to there")                \
	X(clock_violations, 0,                                                                 \
		"times that cannot be: work before its launch, an end before its begin")       \
	X(clock_steps, 0, "times that somebody set the clock")                                 \
	X(truncated_streams, 1, "threads of which a part is missing")                          \
	X(damaged, 1, "damaged parts of the file, which were left out")                        \
	X(unknown_kinds, 1, "records of a newer pperf, which were left out")                   \
	X(unknown_frees, 0, "releases of memory that the trace did not see taken")             \
	X(tensors, 0, "times that tensors took or gave back memory")                           \
	X(tensor_differences, 1,                                                               \
		"times that the sum of tensors was not what PyTorch's allocator said")         \
	X(unknown_tensor_frees, 0, "releases of tensors that the trace did not see taken")     \
	X(late_work, 1, "GPU records too far out of order for the busy time")

struct integrity {
#define X(name, missing, text) uint64_t name;
	INTEGRITY(X)
#undef X
	bool complete, conserved;
	char problem[256]; /* why, if not conserved */
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
