/* SPDX-License-Identifier: MIT */
#include "report/text/builtin_table.h"

#include "report/base/alloc.h"
#include "report/base/error.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FILE_BYTES_MAX (1u << 20)

static _Noreturn void fail_to_read(const char *path, const char *what)
{
	fatal(STATUS_USAGE, "%s: the table of %s cannot be read: %s", path, what, strerror(errno));
}

static char *read_table_file(const char *path, const char *what)
{
	FILE *file = fopen(path, "r");
	size_t used = 0, room = 0, got;
	char *text = NULL;

	if (!file)
		fail_to_read(path, what);
	do {
		array_grow_zeroed(&text, &room, used + 4096, 1);
		got = fread(text + used, 1, 4095, file);
		used += got;
		text[used] = '\0';
	} while (got && used < FILE_BYTES_MAX);
	if (ferror(file))
		fail_to_read(path, what);
	if (got)
		fatal(STATUS_USAGE, "%s: too large for a table of %s: more than 1 MB", path, what);
	fclose(file);
	if (strlen(text) != used)
		fatal(STATUS_USAGE, "%s: a table of %s is text, but the file contains a zero byte",
			path, what);
	return text;
}

char *builtin_table_read(const char *path, const char *built_in, const char *what)
{
	char *text = path ? read_table_file(path, what) : strdup(built_in);

	if (!text)
		fatal(STATUS_UNREADABLE, "out of memory for the table of %s", what);
	return text;
}

void builtin_table_for_lines(
	char *text, void (*on_line)(void *context, char *line, unsigned number), void *context)
{
	unsigned number = 0;

	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		on_line(context, line, ++number);
	}
}
