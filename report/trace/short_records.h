/* SPDX-License-Identifier: MIT
 * Expands records that are stored as a difference to an earlier record: calls that repeat a call,
 * and reports of PyTorch's allocator.
 */
#ifndef PPERF_REPORT_TRACE_SHORT_RECORDS_H
#define PPERF_REPORT_TRACE_SHORT_RECORDS_H

#include "collector/trace_format.h"

/* The two lowest bits of a record's first word. */
enum trace_form { FORM_STRUCT, FORM_PUSH4, FORM_POP4, FORM_PUSH8 };

/* Room for the largest call record. */
union expanded_call {
	struct trace_call call;
	struct trace_launch launch;
	uint64_t words[sizeof(struct trace_launch) / 8];
};

/* Writes the call record that `again`, a record of `payload`, abbreviates. Returns NULL, or what is
 * wrong with the record, to follow "a record ...". */
const char *repeated_call_expand(
	const struct trace_again *again, const unsigned char *payload, union expanded_call *whole);

/* The levels in the last record of each device. All zeros at first. */
struct tensor_totals {
	struct {
		uint64_t allocated, reserved;
	} devices[TRACE_TENSOR_DEVICES];
};

/* Returns the full record: `whole`, filled in, for the short form, else `record` itself. Called for
 * every record, in the order of time. */
const struct trace_head *tensor_delta_expand(
	struct tensor_totals *totals, const struct trace_head *record, struct trace_tensor *whole);

#endif
