/* SPDX-License-Identifier: MIT
 * Lists the metrics: what a tree can be ordered by, and what "worst" means.
 */
#ifndef PPERF_REPORT_PROFILE_METRIC_H
#define PPERF_REPORT_PROFILE_METRIC_H

#include "report/text/format_number.h"
#include <stdbool.h>

/* The value of a flow includes that of the children. A level has a value before and after; its
 * value is the difference. Of a peak the value after is the highest one; the instance with the
 * highest is the worst, and the instances in it are ordered by the difference. */
enum metric_nature { METRIC_FLOW, METRIC_LEVEL };

/* metric, key (-m), nature, unit, help. */
#define METRICS(X)                                                                                 \
	X(GPU, "gpu", FLOW, TIME, "GPU time of the kernels, copies and memsets launched in it")    \
	X(CPU, "cpu", FLOW, TIME,                                                                  \
		"time inside it, on its thread; for the whole run: the sum over threads")          \
	X(WALL, "wall", FLOW, TIME, "time from start to end; for the whole run: its duration")     \
	X(IDLE, "idle", FLOW, TIME, "time in which it was open and the GPU was idle")              \
	X(CALLS, "calls", FLOW, COUNT,                                                             \
		"number of ranges entered and CUDA calls made, itself included")                   \
	X(RESERVED, "reserved", LEVEL, BYTES, "device memory reserved")                            \
	X(ALLOCATED, "allocated", LEVEL, BYTES, "memory allocated by tensors")                     \
	X(RESERVED_PEAK, "reserved_peak", LEVEL, BYTES,                                            \
		"highest level of device memory reserved, from the level at the start")            \
	X(ALLOCATED_PEAK, "allocated_peak", LEVEL, BYTES,                                          \
		"highest level of memory allocated by tensors, from the level at the start")       \
	X(ALLOC, "alloc", FLOW, BYTES, "device memory allocated")                                  \
	X(TENSORS, "tensors", FLOW, BYTES, "memory allocated by tensors from PyTorch's allocator") \
	X(USER, "", LEVEL, USER, "the program's own counter of that name")

enum metric {
#define X(metric, key, nature, unit, help) METRIC_##metric,
	METRICS(X)
#undef X
		METRIC_COUNT
};

struct metric_facts {
	const char *key, *help;
	enum metric_nature nature;
	enum unit unit;
};

/* By enum metric. */
extern const struct metric_facts metrics[METRIC_COUNT];

/* Returns whether the value of an instance is the highest level in it, and not the change. */
static inline bool metric_is_peak(enum metric metric)
{
	return metric == METRIC_RESERVED_PEAK || metric == METRIC_ALLOCATED_PEAK;
}

/* METRIC_USER if `key` is not in the list. */
enum metric metric_find(const char *key);

struct suggestion;
/* Offers the keys of all metrics. */
void metric_suggest(struct suggestion *near);

#endif
