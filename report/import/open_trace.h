/* SPDX-License-Identifier: MIT
 * Opens trace files of any supported format: pperf's own, torch.profiler's JSON (plain or gzip),
 * and Nsight Systems' SQLite export. The contents decide the format, never the name.
 *
 * `-` is standard input. It and pipes are copied to a temporary file once (kept_input.h). A file of
 * another known format is refused with the command that converts it.
 *
 * A file of another tool is converted once, however often it is opened. The converted trace of a
 * whole file is kept for later commands (report/cache/cache.h). It is else an unnamed file in
 * TMPDIR (or /tmp), or in memory if that cannot be written. It disappears when the process ends.
 */
#ifndef PPERF_REPORT_IMPORT_OPEN_TRACE_H
#define PPERF_REPORT_IMPORT_OPEN_TRACE_H

#include "report/cache/cache.h"
#include "report/trace/trace_reader.h"

/* Opens the trace at `path` and sets `bytes` to its size. A file that holds several processes is
 * several traces: its path means the process that used GPUs most, and `PATH#PID` means process PID.
 * Returns a descriptor for pread, which the caller closes, or -1 with one sentence in `error`. */
int open_any_trace(const char *path, uint64_t *bytes, char error[READER_ERROR_BYTES]);

/* Reads the file `path` with the captures of CUDA graphs. Files of other tools that are opened from
 * now on get the call paths of the captures for their graph launches (graph_captures.h). Returns
 * false with one sentence in `error`. */
bool open_trace_use_captures(const char *path, char error[READER_ERROR_BYTES]);

/* Returns whether the file is another tool's trace, as far as its first bytes show. Never
 * blocks. */
bool is_foreign_trace(const char *path);

/* Opens a reader for a file of any supported format. Close it with reader_close. Returns NULL
 * with one sentence in `error`. */
struct trace_reader *import_open_trace(const char *path, char error[READER_ERROR_BYTES]);

/* Returns the key in the cache of what is computed from the trace at `path`, which `reader` reads.
 * All zero if nothing is kept of it: the cache is off, or a trace of pperf whose process has not
 * ended. */
struct cache_key open_trace_key(const char *path, const struct trace_reader *reader);
/* Returns whether the file of the trace still has this key. */
bool open_trace_key_is_current(const struct cache_key *key, const char *path);

/* Frees the traces of all processes that a file of another tool was converted to, and their
 * descriptors. The file is converted again when it is next opened. Does nothing for other files,
 * and for standard input. */
void open_trace_forget(const char *path);

/* Returns the number of processes in a file that was opened before. Returns 0 if it is not a
 * file of another tool. */
size_t open_trace_process_count(const char *path);
/* Returns the path of process `number`, counted from 0. The path of process 0 is `path` itself.
 * The caller frees it. */
char *open_trace_process_path(const char *path, size_t number);

#endif
