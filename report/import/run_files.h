/* SPDX-License-Identifier: MIT
 * Finds the traces of a run.
 */
#ifndef PPERF_REPORT_IMPORT_RUN_FILES_H
#define PPERF_REPORT_IMPORT_RUN_FILES_H

#include "report/trace/trace_reader.h"

/* A trace, with members of its header. */
struct run_file {
	char *path;
	uint32_t pid, parent_pid;
	uint64_t start_unix_ns, bytes;
	uint64_t run_id; /* 0: none, as in traces of other tools */
};
/* Traces, sorted by start, pid and path. Freed by run_files_free. */
struct run_files {
	struct run_file *traces;
	uint32_t count;
};
/* Lists the traces of the run that `path` belongs to, including `path`: those in the same folder
 * with the same header.run_id, and all processes of a file of another tool. Returns false if `path`
 * itself cannot be read as a trace, with a sentence in `error`. */
bool run_files_find(const char *path, struct run_files *files, char error[READER_ERROR_BYTES]);
/* Lists the traces in a directory: those of the one run that has traces in it, or the one trace of
 * another tool. With `several_foreign`, several traces of other tools are listed as one job, sorted
 * by path. Returns false if there is no run or trace, or more than one, with a sentence in `error`
 * that says what to name. */
bool run_files_in_directory(const char *folder, bool several_foreign, struct run_files *files,
	char error[READER_ERROR_BYTES]);
/* Lists all traces in a directory, of any number of runs and tools, sorted by path. Includes files
 * that are empty or not readable, if their name has the extension of a trace in the directory;
 * their members but `path` and `bytes` are 0. Returns false if the directory cannot be read, with
 * a sentence in `error`. */
bool run_files_all_in_directory(
	const char *folder, struct run_files *files, char error[READER_ERROR_BYTES]);
void run_files_free(struct run_files *files);

#endif
