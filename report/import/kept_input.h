/* SPDX-License-Identifier: MIT
 * Keeps input that can be read only once (standard input, pipes, process substitution) in an
 * unnamed temporary file, because a trace is read several times.
 */
#ifndef PPERF_REPORT_IMPORT_KEPT_INPUT_H
#define PPERF_REPORT_IMPORT_KEPT_INPUT_H

#include "report/trace/trace_reader.h"
#include <sys/stat.h>

/* Returns whether `path` is `-` or a pipe. */
bool kept_input_needed(const char *path);

/* Opens the kept copy of `path`, and makes it first if this is the first call. Reads no further
 * than the first bytes if they are not those of a trace. Returns a descriptor, which the caller
 * closes, or -1 with one sentence in `error`. */
int kept_input_open(const char *path, uint64_t *bytes, char error[READER_ERROR_BYTES]);

/* As stat, for the copy of `path` if there is one, else for the file. */
int kept_input_stat(const char *path, struct stat *status);

#endif
