/* SPDX-License-Identifier: MIT */
#include "report/run/output_file.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/escape.h"
#include "report/base/text_builder.h"
#include "report/text/pager.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file to remove if the program ends before it is complete. NULL: none. */
static const char *incomplete;

static void remove_incomplete(void)
{
	if (incomplete)
		unlink(incomplete);
}

static char *joined(const char *name, const char *suffix)
{
	struct text_builder built = { .text = NULL };

	text_add(&built, "%s%s", name, suffix);
	return built.text;
}

/* Whether `name` is something that cannot be replaced by a file, such as a pipe or /dev/null. */
static bool is_special(const char *name)
{
	struct stat status;

	return !stat(name, &status) && !S_ISREG(status.st_mode);
}

static void print_name(const char *name)
{
	const size_t length = strlen(name), room = 6 * length + 1;
	char *escaped = xcalloc(room);

	escape_text(escaped, room, name, length, false);
	fprintf(stderr, "pperf-report: wrote %s\n", escaped);
	free(escaped);
}

struct output_file output_file_open(const struct options *options, const char *suffix)
{
	struct output_file file = { .name = NULL };
	const bool is_stdin = options->files[0][0] == '-' && !options->files[0][1];

	if (options->output)
		file.name = joined(options->output, "");
	else if (isatty(STDOUT_FILENO))
		file.name = joined(is_stdin ? "trace" : options->files[0], suffix);
	file.named_by_us = file.name && !options->output;
	pager_allow(false);
	if (!file.name) {
		file.out = output_open(NULL);
		return file;
	}
	file.opened = joined(file.name, is_special(file.name) ? "" : ".tmp");
	if (strcmp(file.opened, file.name) != 0) {
		output_refuse_trace(file.name);
		incomplete = file.opened;
		atexit(remove_incomplete);
	}
	file.out = output_open(file.opened);
	return file;
}

bool output_file_close(struct output_file *file)
{
	const bool written = output_close(file->out, file->opened);

	if (file->opened && strcmp(file->opened, file->name) != 0 &&
		rename(file->opened, file->name))
		fatal(STATUS_UNREADABLE, "%s: cannot be written:", file->name);
	incomplete = NULL;
	if (file->named_by_us)
		print_name(file->name);
	free(file->name);
	free(file->opened);
	return written;
}
