/* SPDX-License-Identifier: MIT
 * Finds the trace that a running process writes, and maps its header to make requests.
 */
#ifndef PPERF_REPORT_LIVE_LIVE_TRACE_H
#define PPERF_REPORT_LIVE_LIVE_TRACE_H

#include "report/trace/trace_reader.h"

#define LIVE_PATH_BYTES 4200

/* Finds the trace of process `pid` among the files that it has open. Returns false with one
 * sentence in `error`. */
bool live_trace_find(unsigned pid, char path[LIVE_PATH_BYTES], char error[READER_ERROR_BYTES]);

/* Returns the number if `text` is that of a process that exists, else 0. */
unsigned live_trace_pid(const char *text);

/* Maps the header of the trace at `path`, shared and writable. Returns NULL with one sentence in
 * `error`, also if the file is no trace of a running process that sees requests. */
struct trace_header *live_trace_map(const char *path, char error[READER_ERROR_BYTES]);

/* Makes a request and waits for its answer, at most `wait_ms`. `text`: of a mark, else NULL.
 * Returns the enum trace_command_result, or -1 if the process did not answer. Sets `took_ns`. */
int live_trace_request(struct trace_header *header, enum trace_command command, const char *text,
	unsigned wait_ms, uint64_t *took_ns);

/* Copies the trace at `from`, which is being written, to the new file `to`. The process does
 * nothing for it. What was recorded before the begin of the copy is complete in it, except what a
 * ring overwrote meanwhile; the copy's header says so. Returns false with one sentence in
 * `error`. */
bool live_trace_copy(
	const char *from, const char *to, uint64_t *bytes, char error[READER_ERROR_BYTES]);

/* Views: `pperf-report ctl` and `pperf-report top`. The arguments follow these words. */
int live_ctl(int count, char **arguments);
int live_top(int count, char **arguments);

#endif
