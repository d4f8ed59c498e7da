/* SPDX-License-Identifier: MIT
 * Holds the part of an unpacked file that is being scanned.
 */
#ifndef PPERF_REPORT_IMPORT_KINETO_READ_WINDOW_H
#define PPERF_REPORT_IMPORT_KINETO_READ_WINDOW_H

#include "report/text/json_scanner.h"

#define READ_WINDOW_BYTES (1u << 20)
#define READ_WINDOW_MAX (256u << 20) /* no value that is read whole may be longer */

struct gzip_file;

struct read_window {
	struct gzip_file *file;
	char *bytes;
	size_t room, used;
	uint64_t before; /* bytes of the file before the window */
	struct json_scanner scan;
};

void read_window_open(struct read_window *window, struct gzip_file *file);
void read_window_close(struct read_window *window);

/* Loads more bytes, because the value that begins at `from` reached the end of the window. Bytes
 * before `from` are dropped, and the scan restarts at `from`, which may move. Returns false if
 * there are no more bytes or the value is too long. scan.problem then stays set. */
bool read_window_extend(struct read_window *window, const char *from);
/* Returns the file offset of the scan position. */
uint64_t read_window_offset(const struct read_window *window);

#endif
