/* SPDX-License-Identifier: MIT
 * Reads a file from the beginning to the end, and decompresses it if it is a gzip file; writes a
 * gzip file. This is the only module that uses zlib.
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

/* A gzip file that is written. */
struct gzip_writer;

/* Begins a gzip file at the end of `fd`, which the caller closes after gzip_writer_close. Equal
 * bytes give an equal file: the time in the header is 0. */
struct gzip_writer *gzip_writer_open(int fd);
/* Both return 0, or the errno of the first failed write. */
int gzip_writer_write(struct gzip_writer *writer, const char *bytes, size_t count);
int gzip_writer_close(struct gzip_writer *writer);

#endif
