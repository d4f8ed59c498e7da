/* SPDX-License-Identifier: MIT
 * short_records.h: expands records that the trace writes as a difference to an earlier one: calls that repeat a call,
 * and what PyTorch's allocator reports.
 */
#ifndef PPERF_REPORT_TRACE_SHORT_RECORDS_H
#define PPERF_REPORT_TRACE_SHORT_RECORDS_H

#include "collector/trace_format.h"

/* Room for the largest call record. */
union expanded_call {
	struct trace_call call;
	struct trace_launch launch;
	uint64_t words[sizeof(struct trace_launch) / 8];
};

/* Writes the call that `again`, a whole record of `payload`, stands for. NULL: done; else what is wrong with it, to follow "a record ...". */
const char *repeated_call_expand(
	const struct trace_again *again, const unsigned char *payload, union expanded_call *whole);

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
