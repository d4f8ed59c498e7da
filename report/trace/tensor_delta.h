/* SPDX-License-Identifier: MIT
 * Expands the short form of PyTorch allocator records (TENSOR_NEXT) with the totals of the record
 * before it.
 */
#ifndef PPERF_REPORT_TRACE_TENSOR_DELTA_H
#define PPERF_REPORT_TRACE_TENSOR_DELTA_H

#include "collector/trace_format.h"

/* The totals in the last record of each device. Zeros at first. */
struct tensor_totals {
	struct {
		uint64_t allocated, reserved;
	} devices[TRACE_TENSOR_DEVICES];
};

/* Call it for every record of the trace, in time order. Returns `whole`, filled from the short
 * form, if `record` is a TENSOR_NEXT. Returns `record` itself for all other kinds. */
const struct trace_head *tensor_delta_expand(
	struct tensor_totals *totals, const struct trace_head *record, struct trace_tensor *whole);

#endif
