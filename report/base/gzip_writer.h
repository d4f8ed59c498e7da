/* SPDX-License-Identifier: MIT
 * Writes a gzip file, which all cores compress. Equal bytes give an equal file, whatever the number
 * of cores is: the time in the header is 0.
 *
 * The file is one member of pieces of GZIP_PIECE_BYTES, which are compressed with the 32 KiB before
 * them as the dictionary, as pigz does.
 */
#ifndef PPERF_REPORT_BASE_GZIP_WRITER_H
#define PPERF_REPORT_BASE_GZIP_WRITER_H

#include <stddef.h>

#define GZIP_PIECE_BYTES (1u << 20)

struct gzip_writer;

/* Begins a gzip file at the end of `fd`, which the caller closes after gzip_writer_close. */
struct gzip_writer *gzip_writer_open(int fd);
/* Both return 0, or the errno of the first failed write. */
int gzip_writer_write(struct gzip_writer *writer, const char *bytes, size_t count);
int gzip_writer_close(struct gzip_writer *writer);

#endif
