/* SPDX-License-Identifier: MIT
 * Recognises a file by its first bytes: what pperf-report reads, and what other tools write that
 * must be converted first.
 */
#ifndef PPERF_REPORT_IMPORT_FILE_KIND_H
#define PPERF_REPORT_IMPORT_FILE_KIND_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes at the start of a file that are enough for all formats. */
#define FILE_HEAD_BYTES 512

enum file_kind {
	FILE_PPERF, /* also one whose magic is damaged, or too short to tell */
	FILE_JSON,
	FILE_GZIP,
	FILE_SQLITE,
	FILE_PICKLE, /* of Python, protocol 2 to 5 */
	FILE_OTHER
};

enum file_kind file_kind_of(const unsigned char *head, size_t bytes);

/* Writes to `out` what a file that is not supported contains, and the command that converts it:
 * the end of a sentence that begins with the file's name. The first bytes decide, else the end of
 * the name. Returns false if the file is of no known format. */
bool file_kind_hint(
	const char *path, const unsigned char *head, size_t bytes, char *out, size_t room);

#endif
