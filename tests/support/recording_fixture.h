/* SPDX-License-Identifier: MIT
 *
 * Runs the collector inside a test: it records into a folder of the test, and the reader reads the
 * trace. There is one recording per process; Check runs each test in a process of its own.
 */
#ifndef PPERF_TESTS_SUPPORT_RECORDING_FIXTURE_H
#define PPERF_TESTS_SUPPORT_RECORDING_FIXTURE_H

#include "report/trace/trace_reader.h"
#include <stdint.h>

/* Makes a folder under $TMPDIR the working directory, and lets the collector write trace.bin there.
 * `limit_bytes` 0: 1 GiB. */
void recording_begin(uint64_t limit_bytes);

/* Ends the recording on this thread, as at a clean end of the process. */
void recording_end(void);

/* Opens the trace of this process in its present state. Fails the test if that is impossible. */
struct trace_reader *recording_read(void);

/* Returns the events of `reader` as text, to be freed. Each line is "push A", "pop A", "start",
 * "end", "mark", "metric", "object", "lost N", "gap", "resumed A", "unended A" or "left open A". A
 * range has its text, then " @DOMAIN" if it has one. CLOCK, SELF and STREAM_END are left out. */
char *recording_text(struct trace_reader *reader);

/* Returns the monotonic clock in nanoseconds, an upper limit for recorded times. A fixed limit
 * would fail on a machine that stalls. */
uint64_t recording_clock(void);

/* Removes the folder. */
void recording_remove(void);

#endif
