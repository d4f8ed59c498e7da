/* SPDX-License-Identifier: MIT */
#include "report/base/progress.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static bool allowed, drawn;
static uint64_t began_ms, drawn_ms, read_bytes;
static char file[81];  /* the end of the path, which says more than its beginning */
static unsigned shown; /* percent; never decreases, since two readers may read one file */

static uint64_t progress_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void progress_allow(bool allow)
{
	const char *term = getenv("TERM");

	allowed = allow && isatty(STDERR_FILENO) == 1 && term && *term && strcmp(term, "dumb") != 0;
	began_ms = progress_now_ms();
	if (allowed)
		atexit(progress_clear);
}

void progress_file(const char *path)
{
	const size_t length = strlen(path),
		     kept = length < sizeof file - 1 ? length : sizeof file - 1;

	memcpy(file, path + length - kept, kept);
	file[kept] = '\0';
	shown = 0;
}

static bool in_foreground(void)
{
	return tcgetpgrp(STDERR_FILENO) == getpgrp();
}

static unsigned progress_columns(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20 ? size.ws_col : 80;
}

/* Keeps the text within one line of the terminal, because wrapped lines cannot be cleared. */
static void draw_progress(uint64_t passed_ms)
{
	char name[6 * sizeof file + 1], line[640];
	const size_t length = strlen(file),
		     most = progress_columns() > 40 ? progress_columns() - 40 : 0,
		     kept = length < most ? length : most;
	int used;

	escape_text(name, sizeof name, file + length - kept, kept, true);
	used = snprintf(line, sizeof line, "\r\033[Kreading %.*s: %u %%, %llu MB/s", (int)most,
		name, shown, (unsigned long long)(passed_ms ? read_bytes / 1000 / passed_ms : 0));
	drawn = write(STDERR_FILENO, line, (size_t)used) == used;
}

void progress_read(uint64_t bytes, uint64_t at, uint64_t of)
{
	const unsigned percent = of ? (unsigned)((at < of ? at : of) / (of / 100 + 1)) : 0;
	uint64_t now;

	if (!allowed)
		return;
	read_bytes += bytes;
	shown = percent > shown ? percent : shown;
	now = progress_now_ms();
	if (now - began_ms < PROGRESS_AFTER_MS || now - drawn_ms < PROGRESS_INTERVAL_MS ||
		!in_foreground())
		return;
	drawn_ms = now;
	draw_progress(now - began_ms);
}

void progress_restart(void)
{
	shown = 0;
}

void progress_clear(void)
{
	static const char clear_line[] = "\r\033[K";

	if (drawn && write(STDERR_FILENO, clear_line, sizeof clear_line - 1) > 0)
		drawn = false;
}
