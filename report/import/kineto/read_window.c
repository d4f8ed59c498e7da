/* SPDX-License-Identifier: MIT */
#include "report/import/kineto/read_window.h"
#include "report/base/error.h"
#include "report/base/gzip_file.h"
#include <stdlib.h>

static bool fill(struct window *window)
{
	const size_t got = unpacked_read(window->file, window->bytes + window->used, window->room - window->used);

	window->used += got;
	memset(window->bytes + window->used, 0, JSON_SLACK);
	return got > 0;
}

void window_open(struct window *window, struct unpacked *file)
{
	*window = (struct window){ .file = file, .room = WINDOW_BYTES };
	window->bytes = malloc(window->room + JSON_SLACK);
	if (!window->bytes)
		fatal(STATUS_UNREADABLE, "no memory to read a file");
	fill(window);
	window->scan.at = window->bytes;
	window->scan.end = window->bytes + window->used;
}

void window_close(struct window *window)
{
	free(window->bytes);
}

static bool widen(struct window *window)
{
	char *wider;

	if (window->room >= WINDOW_MOST)
		return false;
	wider = realloc(window->bytes, window->room * 2 + JSON_SLACK);
	if (!wider)
		return false;
	window->bytes = wider;
	window->room *= 2;
	return true;
}

bool window_more(struct window *window, const char *from)
{
	const size_t gone = (size_t)(from - window->bytes), kept = window->used - gone;
	bool more;

	memmove(window->bytes, from, kept);
	window->before += gone;
	window->used = kept;
	if (kept == window->room && !widen(window)) {
		window->scan.problem = "a value is longer than 256 MiB";
		more = false;
	} else {
		more = fill(window);
	}
	window->scan.at = window->bytes;
	window->scan.end = window->bytes + window->used;
	if (more)
		window->scan.problem = NULL;
	return more;
}

uint64_t window_offset(const struct window *window)
{
	return window->before + (uint64_t)(window->scan.at - window->bytes);
}
