/* SPDX-License-Identifier: MIT
 * Reads a file from the beginning to the end, and decompresses it if it is a gzip file.
 */
#ifndef PPERF_REPORT_BASE_GZIP_FILE_H
#define PPERF_REPORT_BASE_GZIP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gzip_file;

/* Begins to read `fd` at the file's beginning, and sets the progress to 0 %. Takes ownership of
 * `fd`. Ends the program with a message on failure. */
struct gzip_file *gzip_file_open(int fd);
void gzip_file_close(struct gzip_file *file);

/* Reads up to `room` bytes. Returns 0 at the end or on an error, which gzip_file_problem
 * returns. */
size_t gzip_file_read(struct gzip_file *file, char *into, size_t room);
/* Returns the error as text, or NULL if there is none. */
const char *gzip_file_problem(const struct gzip_file *file);

#endif
