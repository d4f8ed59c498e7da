/* SPDX-License-Identifier: MIT
 * Collects what the parts of the reader find wrong: counters, and the first findings as sentences.
 */
#ifndef PPERF_REPORT_TRACE_READ_WARNINGS_H
#define PPERF_REPORT_TRACE_READ_WARNINGS_H

#include "report/trace/trace_reader.h"

#define READ_WARNINGS_MAX 16u
#define READ_WARNING_BYTES 512u

struct read_warnings {
	const char *path; /* owned by the caller */
	struct trace_integrity integrity;
	uint32_t count; /* of all findings; the first READ_WARNINGS_MAX are kept */
	char warnings[READ_WARNINGS_MAX][READ_WARNING_BYTES];
};

/* Adds the warning "PATH: offset N: sentence". With offset UINT64_MAX, the warning has no
 * offset. */
__attribute__((format(printf, 3, 4))) void read_warnings_add(
	struct read_warnings *warnings, uint64_t offset, const char *format, ...);

#endif
