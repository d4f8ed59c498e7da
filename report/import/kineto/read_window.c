/* SPDX-License-Identifier: MIT */
#include "report/import/kineto/read_window.h"
#include "report/base/error.h"
#include "report/base/gzip_file.h"
#include <stdlib.h>

static bool fill_read_window(struct read_window *window)
{
	const size_t got = gzip_file_read(
		window->file, window->bytes + window->used, window->room - window->used);

	window->used += got;
	memset(window->bytes + window->used, 0, JSON_SLACK);
	return got > 0;
}

void read_window_open(struct read_window *window, struct gzip_file *file)
{
	*window = (struct read_window){ .file = file, .room = READ_WINDOW_BYTES };
	window->bytes = malloc(window->room + JSON_SLACK);
	if (!window->bytes)
		fatal(STATUS_UNREADABLE, "out of memory while reading a file");
	fill_read_window(window);
	window->scan.at = window->bytes;
	window->scan.end = window->bytes + window->used;
}

void read_window_close(struct read_window *window)
{
	free(window->bytes);
}

static bool grow_read_window(struct read_window *window)
{
	char *wider;

	if (window->room >= READ_WINDOW_MAX)
		return false;
	wider = realloc(window->bytes, window->room * 2 + JSON_SLACK);
	if (!wider)
		return false;
	window->bytes = wider;
	window->room *= 2;
	return true;
}

bool read_window_extend(struct read_window *window, const char *from)
{
	const size_t gone = (size_t)(from - window->bytes), kept = window->used - gone;
	bool more;

	memmove(window->bytes, from, kept);
	window->before += gone;
	window->used = kept;
	if (kept == window->room && !grow_read_window(window)) {
		window->scan.problem = "a value is longer than 256 MiB";
		more = false;
	} else {
		more = fill_read_window(window);
	}
	window->scan.at = window->bytes;
	window->scan.end = window->bytes + window->used;
	if (more)
		window->scan.problem = NULL;
	return more;
}

uint64_t read_window_offset(const struct read_window *window)
{
	return window->before + (uint64_t)(window->scan.at - window->bytes);
}
