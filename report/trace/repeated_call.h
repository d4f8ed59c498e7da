/* SPDX-License-Identifier: MIT
 * Expands AGAIN records, which describe a call by an earlier one of the same payload.
 */
#ifndef PPERF_REPORT_TRACE_REPEATED_CALL_H
#define PPERF_REPORT_TRACE_REPEATED_CALL_H

#include "collector/trace_format.h"

/* Large enough for every call record. */
union expanded_call {
	struct trace_call call;
	struct trace_launch launch;
	uint64_t words[sizeof(struct trace_launch) / 8];
};

/* Writes the call that `again` describes to `whole`. `again` must be a checked record inside
 * `payload`. Returns NULL on success, else the end of a sentence that begins with "a record". */
const char *repeated_call_expand(
	const struct trace_again *again, const unsigned char *payload, union expanded_call *whole);

#endif
