/* SPDX-License-Identifier: MIT
 * import.h: a trace's file, of our own format or made of one that another tool wrote: torch.profiler's JSON (plain or
 * gzip), Nsight Systems' export as an SQLite database. What a file is, its content says, never its name.
 *
 * The one that is made has no name: it lies in TMPDIR (or /tmp), in memory where that cannot be written, and goes with the
 * process. It is made once, however often the file is opened.
 */
#ifndef PPERF_REPORT_IMPORT_OPEN_TRACE_H
#define PPERF_REPORT_IMPORT_OPEN_TRACE_H

#include "report/trace/trace_reader.h"

/* A file that holds several processes is as many traces: its path is the one that used GPUs most, `PATH#PID` any.
 *
 * A descriptor of the trace, to be read with pread and closed; -1: `error` says why not. */
int open_any_trace(const char *path, uint64_t *bytes, char error[READER_ERROR_BYTES]);

/* Opens a file of any known format for reading. NULL: `error` is one sentence. The reader is freed by reader_close. */
struct trace_reader *trace_open(const char *path, char error[READER_ERROR_BYTES]);

/* Of a path that import_open has opened: how many processes it holds; 0: it is no file of another tool. */
size_t open_trace_process_count(const char *path);
/* The path of each from 0, the first one its own. The caller's. */
char *open_trace_process_path(const char *path, size_t number);

#endif
