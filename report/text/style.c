/* SPDX-License-Identifier: MIT
 * style.c: what the terminal can show, and pieces of text.
 */
#include "report/base/error.h"
#include "report/print/print.h"
#include "report/base/escape.h"
#include <langinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

static bool wants_color(const struct options *options, bool terminal)
{
	const char *term = getenv("TERM");

	if (options->color != COLOR_AUTO)
		return options->color == COLOR_ALWAYS;
	if (is_set("NO_COLOR"))
		return false;
	if (is_set("FORCE_COLOR") || is_set("CLICOLOR_FORCE"))
		return true;
	return terminal && (!term || strcmp(term, "dumb") != 0);
}

static unsigned width_of(const struct options *options, const struct out *out, bool terminal)
{
	const char *columns = getenv("COLUMNS");
	const long given = columns ? strtol(columns, NULL, 10) : 0;
	struct winsize size;

	if (options->width)
		return options->width;
	if (given >= 20 && given <= 10000)
		return (unsigned)given;
	if (terminal && ioctl(out->fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
		return size.ws_col;
	return 80;
}

struct style style_of(const struct options *options, struct out *out)
{
	const bool terminal = isatty(out->fd) == 1;

	return (struct style){ .out = out,
		.terminal = terminal,
		.color = wants_color(options, terminal),
		.ascii = options->ascii || strcmp(nl_langinfo(CODESET), "UTF-8") != 0,
		.iec = options->iec,
		.width_given = options->width > 0,
		.width = width_of(options, out, terminal) };
}

void print_visible(const struct style *style, const char *text, size_t bytes, size_t columns)
{
	const size_t room = bytes * 10 + 8;
	char *shown = need(room);
	size_t length = visible(shown, room, text, bytes, style->ascii);

	if (columns)
		length = visible_shorten(shown, room, columns, style->ascii);
	out_bytes(style->out, shown, length);
	free(shown);
}

void print_line(const struct style *style, const char *format, ...)
{
	char line[1024];
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(line, sizeof line, format, list);
	va_end(list);
	out_bytes(style->out, line, length < 0 ? 0 : (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

void print_paint(const struct style *style, enum paint paint)
{
	static const char *const codes[] = { [PAINT_NONE] = "\033[0m",
		[PAINT_BOLD] = "\033[1m",
		[PAINT_DIM] = "\033[2m",
		[PAINT_HOT] = "\033[31m",
		[PAINT_WARM] = "\033[33m" };

	if (style->color)
		out_string(style->out, codes[paint]);
}

bool *print_last_children(const struct rows *rows)
{
	bool *last = need(rows->count + 1), *seen = need(rows->count + 1);

	for (size_t i = rows->count; i-- > 0;) {
		const uint32_t parent = rows->rows[i].parent;

		last[i] = parent == NO_ROW || !seen[parent];
		if (parent != NO_ROW)
			seen[parent] = true;
	}
	free(seen);
	return last;
}

size_t print_branch_width(uint32_t depth, bool narrow)
{
	return depth == 0 ? 0 : narrow ? 2 * (size_t)depth : 2 + 4 * (size_t)depth;
}

size_t print_branch(char *out, size_t room, const struct rows *rows, size_t row, const struct branches *branches)
{
	static const char *const wide[2][4] = { { "    ", "\xe2\x94\x82   ", "\xe2\x94\x94\xe2\x94\x80\xe2\x94\x80 ",
							"\xe2\x94\x9c\xe2\x94\x80\xe2\x94\x80 " },
		{ "    ", "|   ", "+-- ", "|-- " } };
	static const char *const narrow[2][4] = { { "  ", "\xe2\x94\x82 ", "\xe2\x94\x94 ", "\xe2\x94\x9c " },
		{ "  ", "| ", "+ ", "| " } };
	const char *const *piece = branches->narrow ? narrow[branches->ascii] : wide[branches->ascii];
	const bool *last = branches->last;
	const uint32_t depth = rows->rows[row].depth;
	size_t used = branches->narrow ? 0 : 2, at = row;
	const char **parts;

	out[0] = '\0';
	if (depth == 0 || (size_t)depth * 6 + 4 > room)
		return 0;
	parts = need(depth * sizeof *parts);
	for (uint32_t level = depth; level > 0 && rows->rows[at].parent != NO_ROW; level--) {
		parts[level - 1] = level == depth ? piece[last[at] ? 2 : 3] : piece[last[at] ? 0 : 1];
		at = rows->rows[at].parent;
	}
	memcpy(out, branches->narrow ? "" : "  ", used + 1);
	for (uint32_t level = 0; level < depth; level++)
		if (parts[level])
			used += (size_t)snprintf(out + used, room - used, "%s", parts[level]);
	free(parts);
	return used;
}

bool report_is_simulated(const struct report *report)
{
	for (size_t i = 0; i < report->processes->shown; i++)
		if (report->processes->all[i].simulated)
			return true;
	return false;
}
