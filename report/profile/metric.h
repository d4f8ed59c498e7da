/* SPDX-License-Identifier: MIT
 * Lists the metrics: what a tree can be ordered by, and what "worst" means.
 */
#ifndef PPERF_REPORT_PROFILE_METRIC_H
#define PPERF_REPORT_PROFILE_METRIC_H

#include "report/text/format_number.h"

/* The value of a flow includes that of the children. A level has a value before and after; its
 * value is the difference. */
enum metric_nature { METRIC_FLOW, METRIC_LEVEL };

/* metric, key (-m), nature, unit, help */
#define METRICS(X)                                                                                \
	X(GPU, "gpu", FLOW, TIME, "time of the kernels, copies and sets launched in it")          \
	X(CPU, "cpu", FLOW, TIME,                                                                 \
		"time inside, on its thread; of the whole run: of all threads together")          \
	X(WALL, "wall", FLOW, TIME, "time from begin to end; of the whole run: how long it took") \
	X(IDLE, "idle", FLOW, TIME, "time in which it was open and the GPU had nothing to do")    \
	X(CALLS, "calls", FLOW, COUNT, "ranges entered and CUDA calls made, itself included")     \
	X(RESERVED, "reserved", LEVEL, BYTES, "device memory held")                               \
	X(ALLOCATED, "allocated", LEVEL, BYTES, "memory that tensors hold")                       \
	X(ALLOC, "alloc", FLOW, BYTES, "device memory taken")                                     \
	X(TENSORS, "tensors", FLOW, BYTES, "memory that tensors took, from PyTorch's allocator")  \
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

/* METRIC_USER if `key` is not in the list. */
enum metric metric_find(const char *key);

#endif
