/* SPDX-License-Identifier: MIT
 * unpacked.h: a file's bytes in order, those of a gzip file unpacked on the way (zlib; the only file that knows it).
 */
#ifndef PPERF_REPORT_BASE_GZIP_FILE_H
#define PPERF_REPORT_BASE_GZIP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unpacked;

/* From the file's beginning. Takes the descriptor. */
struct unpacked *unpacked_open(int fd);
void unpacked_close(struct unpacked *file);

/* Up to `room` bytes; 0: there are no more, or unpacked_problem says why not. */
size_t unpacked_read(struct unpacked *file, char *into, size_t room);
/* NULL: none so far. */
const char *unpacked_problem(const struct unpacked *file);

#endif
