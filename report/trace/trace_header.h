/* SPDX-License-Identifier: MIT
 * trace_header.h: is a file a trace, and one that this program reads?
 */
#ifndef PPERF_REPORT_TRACE_TRACE_HEADER_H
#define PPERF_REPORT_TRACE_TRACE_HEADER_H

#include "report/trace/trace_reader.h"

/* What can be given, as the end of a sentence about what cannot. */
#define ACCEPTED_FILES                                                                            \
	"give a trace of pperf (trace.bin), a JSON trace of torch.profiler (.json, .json.gz) or " \
	"an SQLite export "                                                                       \
	"of Nsight Systems (.sqlite)"

/* Opens a regular file for reading, never waiting for anything. -1: `error` is one sentence. */
int trace_file_open(const char *path, uint64_t *bytes, char error[READER_ERROR_BYTES]);

/* Reads and checks the header. false: `error` says in one sentence what was expected where, and what to do. */
bool header_read(
	int fd, const char *path, struct trace_header *header, char error[READER_ERROR_BYTES]);

/* pread of all that is there; fewer bytes: the file ends. -1: errno. */
int64_t pread_all(int fd, void *into, size_t bytes, uint64_t offset);

#endif
