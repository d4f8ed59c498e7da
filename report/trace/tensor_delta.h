/* SPDX-License-Identifier: MIT
 * trace_tensors.h: the short form of what PyTorch's allocator reports, made whole by what it reported before.
 */
#ifndef PPERF_REPORT_TRACE_TENSOR_DELTA_H
#define PPERF_REPORT_TRACE_TENSOR_DELTA_H

#include "collector/trace_format.h"

/* What the last record of each device said. Zeros at first. */
struct tensor_totals {
	struct {
		uint64_t allocated, reserved;
	} devices[TRACE_TENSOR_DEVICES];
};

/* Any record, in the order of time. Of the short form: what it stands for, in `whole`; else the record itself. */
const struct trace_head *tensor_delta_expand(
	struct tensor_totals *totals, const struct trace_head *record, struct trace_tensor *whole);

#endif
