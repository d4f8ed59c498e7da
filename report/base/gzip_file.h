/* SPDX-License-Identifier: MIT
 * unpacked.h: a file's bytes in order, those of a gzip file unpacked on the way (zlib; the only file that knows it).
 */
#ifndef PPERF_REPORT_BASE_GZIP_FILE_H
#define PPERF_REPORT_BASE_GZIP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gzip_file;

/* From the file's beginning. Takes the descriptor. */
struct gzip_file *gzip_file_open(int fd);
void gzip_file_close(struct gzip_file *file);

/* Up to `room` bytes; 0: there are no more, or unpacked_problem says why not. */
size_t gzip_file_read(struct gzip_file *file, char *into, size_t room);
/* NULL: none so far. */
const char *gzip_file_problem(const struct gzip_file *file);

#endif
