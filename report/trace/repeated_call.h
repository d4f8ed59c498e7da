/* SPDX-License-Identifier: MIT
 * trace_again.h: calls that the trace describes by an earlier one.
 */
#ifndef PPERF_REPORT_TRACE_REPEATED_CALL_H
#define PPERF_REPORT_TRACE_REPEATED_CALL_H

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

#endif
