/* SPDX-License-Identifier: MIT */
#include "report/base/alloc.h"
#include "report/base/text_builder.h"
#include "report/text/style.h"
#include "report/base/escape.h"
#include <langinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool is_variable_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

static bool wants_color(const struct style_settings *settings, bool terminal)
{
	const char *term = getenv("TERM");

	if (settings->color != COLOR_AUTO)
		return settings->color == COLOR_ALWAYS;
	if (is_variable_set("NO_COLOR"))
		return false;
	if (is_variable_set("FORCE_COLOR") || is_variable_set("CLICOLOR_FORCE"))
		return true;
	return terminal && (!term || strcmp(term, "dumb") != 0);
}

/* Returns the width that the user requests; 0: none. */
static unsigned requested_columns(const struct style_settings *settings)
{
	const char *columns = getenv("COLUMNS");
	const long given = columns ? strtol(columns, NULL, 10) : 0;

	if (settings->width)
		return settings->width;
	return given >= 20 && given <= 10000 ? (unsigned)given : 0;
}

static unsigned style_columns(
	const struct style_settings *settings, const struct output *out, bool terminal)
{
	struct winsize size;

	if (requested_columns(settings))
		return requested_columns(settings);
	if (terminal && ioctl(out->fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
		return size.ws_col;
	return 80;
}

struct style style_of(const struct style_settings *settings, struct output *out)
{
	const bool terminal = isatty(out->fd) == 1;

	return (struct style){ .out = out,
		.terminal = terminal,
		.color = wants_color(settings, terminal),
		.ascii = settings->ascii || strcmp(nl_langinfo(CODESET), "UTF-8") != 0,
		.iec = settings->iec,
		.width_given = settings->width > 0,
		.whole_names = !terminal && !requested_columns(settings),
		.width = style_columns(settings, out, terminal) };
}

void print_escaped(const struct style *style, const char *text, size_t bytes, size_t columns)
{
	const size_t room = bytes * 10 + 8;
	char *shown = xcalloc(room);
	size_t length = escape_text(shown, room, text, bytes, style->ascii);

	if (columns && !style->whole_names)
		length = escaped_shorten(shown, room, columns, style->ascii);
	output_bytes(style->out, shown, length);
	free(shown);
}

void print_line(const struct style *style, const char *format, ...)
{
	struct text_builder line = { .text = NULL };
	va_list list;

	va_start(list, format);
	text_add_list(&line, format, list);
	va_end(list);
	output_bytes(style->out, line.text, line.used);
	free(line.text);
}

void print_paint(const struct style *style, enum paint paint)
{
	static const char *const codes[] = { [PAINT_NONE] = "\033[0m",
		[PAINT_BOLD] = "\033[1m",
		[PAINT_DIM] = "\033[2m",
		[PAINT_HOT] = "\033[31m",
		[PAINT_WARM] = "\033[33m" };

	if (style->color)
		output_string(style->out, codes[paint]);
}
