/* SPDX-License-Identifier: MIT
 * collector_fixture.h: the collector at work inside a test: it records into a folder of the test's
 * own and the reader shows what came of it. One a process (Check runs each test in one of its own).
 */
#ifndef PPERF_TESTS_SUPPORT_COLLECTOR_FIXTURE_H
#define PPERF_TESTS_SUPPORT_COLLECTOR_FIXTURE_H

#include "report/trace/trace_reader.h"
#include <stdint.h>

/* A folder under $TMPDIR, now the working directory, and the collector set to write trace.bin
 * there. limit_bytes 0: 1 GiB. */
void collector_start(uint64_t limit_bytes);

/* Ends the recording as a clean end of the process does, on the calling thread. */
void collector_finish(void);

/* Opens the trace of this process in its present state. Fails the test on an error. */
struct trace_reader *collector_open_trace(void);

/* The events of `reader` as text, one a line: "push A", "pop A", "start", "end", "mark", "metric",
 * "object", "lost N", "gap", "resumed A", "unended A", "left open A"; a range's text as given, then
 * " @DOMAIN" if it has one. CLOCK, SELF and STREAM_END are left out. Freed by the caller. */
char *collector_trace_text(struct trace_reader *reader);

/* The system's monotonic clock, in nanoseconds: what a recorded time may at most be, on a machine
 * that stops now and then. */
uint64_t monotonic_now_ns(void);

/* Removes the folder that collector_start() made. */
void collector_remove_folder(void);

#endif
