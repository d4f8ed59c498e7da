/* SPDX-License-Identifier: MIT */
#include "report/text/shorten_path.h"
#include "report/base/alloc.h"
#include "report/base/escape.h"
#include "report/base/text_builder.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A name of the path, and the sign before it. */
struct path_name {
	const char *separator, *text;
	size_t bytes;
	bool shown;
};

struct path_lines {
	struct path_name *names;
	size_t count, columns;
	unsigned lines; /* at most */
	const char *dots;
	size_t first; /* the name that is shown as the first one */
};

static const char *const separators[] = { " / ", " \xe2\x86\x92 ", " -> " };

/* Returns the first separator in `text`, or NULL. Sets `at` to where it is, or to the end. */
static const char *next_separator(const char *text, const char **at)
{
	const char *first = NULL;

	*at = text + strlen(text);
	for (size_t i = 0; i < sizeof separators / sizeof *separators; i++) {
		const char *found = strstr(text, separators[i]);

		if (found && found < *at) {
			*at = found;
			first = separators[i];
		}
	}
	return first;
}

static void split_path(struct path_lines *path, const char *whole)
{
	size_t room = 0;
	const char *separator = "", *end;

	do {
		const char *next = next_separator(whole, &end);

		*ARRAY_ADD(path->names, room, path->count) = (struct path_name){
			.separator = separator, .text = whole, .bytes = (size_t)(end - whole)
		};
		separator = next;
		whole = end + (next ? strlen(next) : 0);
	} while (separator);
}

/* Appends a name and what is before it, on a new line if this one has no room. Returns false if
 * there is no line left. */
static bool add_name(struct text_builder *out, const struct path_lines *path,
	const struct path_name *name, bool after_gap, size_t *used, unsigned *line)
{
	const size_t indent = *line > 1 ? 2 : 0, width = escaped_width(name->text, name->bytes),
		     /* ` /`, if the next name is on the second line */
		end = *line < path->lines && name != &path->names[path->count - 1] ? 2 : 0;
	const char *separator = name->separator;
	const size_t sign = escaped_width(separator, strlen(separator));

	if (after_gap) {
		*used += escaped_width(path->dots, strlen(path->dots)) +
			 (out->used ? strlen(" / ") : 0);
		text_add(out, "%s%s", out->used ? " / " : "", path->dots);
	}
	if (*used + end > path->columns - indent)
		return false;
	if (*used + sign + width + end > path->columns - indent) {
		/* Nothing is before the first name: the next line has no more room for it. */
		if (!*separator || ++*line > path->lines)
			return false;
		/* ` /` ends the line, an arrow begins the next one. */
		text_add(out, "%s\n", separator[1] == '/' ? " /" : "");
		separator += separator[1] == '/' ? strlen(" / ") : 1;
		*used = escaped_width(separator, strlen(separator)) + width;
		if (*used > path->columns - 2)
			return false;
	} else {
		*used += sign + width;
	}
	text_add(out, "%s", separator);
	text_add_bytes(out, name->text, name->bytes);
	return true;
}

/* Writes the names that are shown. Returns false, and nothing, if they do not fit. */
static bool write_lines(struct text_builder *out, const struct path_lines *path, unsigned lines)
{
	struct path_lines limited = *path;
	bool fits = true, after_gap = false;
	unsigned line = 1;
	size_t used = 0;

	limited.lines = lines;
	out->used = 0;
	for (size_t i = 0; i < path->count && fits; i++) {
		if (path->names[i].shown)
			fits = add_name(out, &limited, &path->names[i], after_gap, &used, &line);
		after_gap = !path->names[i].shown;
	}
	return fits;
}

static bool try_name(
	struct text_builder *out, const struct path_lines *path, size_t index, unsigned lines)
{
	const bool was_shown = path->names[index].shown;

	path->names[index].shown = true;
	if (write_lines(out, path, lines))
		return true;
	path->names[index].shown = was_shown;
	return false;
}

/* Returns the name with a byte of the path. */
static size_t name_at(const struct path_lines *path, const char *at)
{
	size_t index = 0;

	while (index + 1 < path->count && path->names[index].text + path->names[index].bytes < at)
		index++;
	return index;
}

/* Shows the first name, the last two and `differs` (SIZE_MAX: none), as far as they fit. Returns
 * whether all do. */
static bool show_ends(
	struct text_builder *out, const struct path_lines *path, size_t differs, unsigned lines)
{
	bool all = true;

	for (size_t i = 0; i < path->count; i++)
		path->names[i].shown = false;
	try_name(out, path, path->count - 1, lines);
	if (differs != SIZE_MAX)
		all &= try_name(out, path, differs, lines);
	all &= try_name(out, path, path->first, lines);
	if (path->count > 1)
		all &= try_name(out, path, path->count - 2, lines);
	return all;
}

/* Cuts the last name if it is too long for a line. Returns its text, which the caller frees. */
static char *cut_last_name(struct path_lines *path, bool ascii)
{
	struct path_name *last = &path->names[path->count - 1];
	const size_t room = last->bytes + sizeof "...",
		     beside = escaped_width(last->separator, strlen(last->separator)) +
			      (path->count > 1 ? strlen("...") : 0) + 2;
	char *text = xcalloc(room);

	memcpy(text, last->text, last->bytes);
	last->bytes = escaped_shorten(
		text, room, path->columns > beside + 1 ? path->columns - beside : 1, ascii);
	last->text = text;
	return text;
}

char *shorten_path(const char *whole, size_t columns, const struct path_shortening *how, bool ascii)
{
	struct path_lines path = { .columns = columns > 8 ? columns : 8,
		.dots = ascii ? "..." : "\xe2\x80\xa6" };
	struct text_builder out = { .text = NULL };
	size_t differs = SIZE_MAX;
	unsigned lines = 1;
	char *cut = NULL;

	split_path(&path, whole);
	if (how->differs_at != SIZE_MAX)
		differs = name_at(&path, whole + how->differs_at);
	path.first = name_at(&path, whole + how->shared);
	if (escaped_width(path.names[path.count - 1].text, path.names[path.count - 1].bytes) + 9 >
		columns)
		cut = cut_last_name(&path, ascii);
	if (!show_ends(&out, &path, differs, lines) && how->two_lines) {
		lines = 2;
		show_ends(&out, &path, differs, lines);
	}
	for (size_t i = path.count; i-- > 0;)
		try_name(&out, &path, i, lines);
	write_lines(&out, &path, lines);
	if (differs != SIZE_MAX && !path.names[differs].shown) {
		free(out.text);
		out.text = NULL;
	}
	free(cut);
	free(path.names);
	return out.text;
}
