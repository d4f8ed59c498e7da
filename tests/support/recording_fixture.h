/* SPDX-License-Identifier: MIT
 * recording_fixture.h: the collector at work inside a test: it records into a folder of the test's own and the reader shows what came of it. One a process
 * (Check runs each test in one of its own).
 */
#ifndef PPERF_TESTS_SUPPORT_RECORDING_FIXTURE_H
#define PPERF_TESTS_SUPPORT_RECORDING_FIXTURE_H

#include "report/trace/trace_reader.h"
#include <stdint.h>

/* A folder under $TMPDIR, now the working directory, and the collector set to write trace.bin there. limit_bytes 0: 1 GiB. */
void recording_begin(uint64_t limit_bytes);

/* As at a clean end of the process, on this thread. */
void recording_end(void);

/* Opens the trace of this process as it stands. The test fails if it cannot. */
struct trace_reader *recording_read(void);

/* The events of `reader` as text, one a line: "push A", "pop A", "start", "end", "mark", "metric", "object", "lost N", "gap", "resumed A",
 * "unended A", "left open A"; a range's text as given, then " @DOMAIN" if it has one. CLOCK, SELF and STREAM_END are left out. Freed by the caller. */
char *recording_text(struct trace_reader *reader);

/* The system's monotonic clock, in nanoseconds: what a recorded time may at most be, on a machine that stops now and then. */
uint64_t recording_clock(void);

/* Removes the folder. */
void recording_remove(void);

#endif
