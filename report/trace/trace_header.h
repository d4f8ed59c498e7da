/* SPDX-License-Identifier: MIT
 * Opens trace files and checks their headers: is the file a trace, and of a version that this
 * program reads?
 */
#ifndef PPERF_REPORT_TRACE_TRACE_HEADER_H
#define PPERF_REPORT_TRACE_TRACE_HEADER_H

#include "report/trace/trace_reader.h"

/* The end of an error message about a file that is not a trace: what to give instead. */
#define ACCEPTED_FILES                                                                          \
	"give a trace of pperf (trace.bin), a JSON trace of torch.profiler (.json, .json.gz), " \
	"its memory timeline, an SQLite export of Nsight Systems (.sqlite) or a snapshot of "   \
	"torch.cuda.memory (.pickle)"

/* Opens a regular file for reading without ever blocking. Sets `bytes` to its size. Returns the
 * descriptor, or -1 with one sentence in `error`. */
int trace_file_open(const char *path, uint64_t *bytes, char error[READER_ERROR_BYTES]);

/* Reads and checks the header. Returns false with one sentence in `error`: what was expected at
 * which offset, and what to do. */
bool header_read(
	int fd, const char *path, struct trace_header *header, char error[READER_ERROR_BYTES]);

/* Reads up to `bytes` bytes at `offset`. Returns the number of bytes read, which is smaller at
 * the end of the file, or -1 with errno. */
int64_t pread_all(int fd, void *into, size_t bytes, uint64_t offset);

#endif
