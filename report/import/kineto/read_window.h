/* SPDX-License-Identifier: MIT
 * kineto_window.h: the part of an unpacked file that is at hand, and a scan of it.
 */
#ifndef PPERF_REPORT_IMPORT_KINETO_READ_WINDOW_H
#define PPERF_REPORT_IMPORT_KINETO_READ_WINDOW_H

#include "report/text/json_scanner.h"

#define READ_WINDOW_BYTES (1u << 20)
#define READ_WINDOW_MAX (256u << 20) /* no value that is read whole is longer */

struct gzip_file;

struct read_window {
	struct gzip_file *file;
	char *bytes;
	size_t room, used;
	uint64_t before; /* bytes of the file that have gone by */
	struct json_scanner scan;
};

void read_window_open(struct read_window *window, struct gzip_file *file);
void read_window_close(struct read_window *window);

/* What was begun at `from` reached the window's end: more bytes come behind it, and the scan stands at it again (it may
 * have moved). False: there are no more, or it is too long; the scan's problem stays. */
bool read_window_extend(struct read_window *window, const char *from);
/* Where the scan stands in the file. */
uint64_t read_window_offset(const struct read_window *window);

#endif
