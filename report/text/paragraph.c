/* SPDX-License-Identifier: MIT */
#include "report/text/paragraph.h"
#include "report/base/alloc.h"
#include "report/base/escape.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void paragraph_add(struct paragraph *paragraph, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	text_add_list(&paragraph->built, format, list);
	va_end(list);
}

void paragraph_text(struct paragraph *paragraph, const char *bytes, size_t length)
{
	const size_t room = length * 10 + 1;
	char *shown = xcalloc(room);

	text_add_bytes(&paragraph->built, shown,
		escape_text(shown, room, bytes, length, paragraph->style->ascii));
	free(shown);
}

void paragraph_shorten(struct paragraph *paragraph, size_t from, size_t columns)
{
	struct text_builder *built = &paragraph->built;

	if (built->used <= from || paragraph->style->whole_names)
		return;
	array_grow_zeroed(&built->text, &built->room, built->used + sizeof "\xe2\x80\xa6", 1);
	built->used = from + escaped_shorten(built->text + from, built->room - from, columns,
				     paragraph->style->ascii);
}

#define NARROW_COLUMNS 50u /* with fewer, titles have their own line */
#define NARROW_INDENT 2u

static bool has_narrow_indent(const struct paragraph *paragraph)
{
	return paragraph->style->width < NARROW_COLUMNS;
}

static size_t indent_of(const struct paragraph *paragraph)
{
	const size_t indent = paragraph->indent ? paragraph->indent : PARAGRAPH_INDENT;

	return has_narrow_indent(paragraph) && indent > NARROW_INDENT ? NARROW_INDENT : indent;
}

/* Returns the columns of a line after its title. */
static size_t line_columns(const struct paragraph *paragraph)
{
	const size_t indent = indent_of(paragraph);

	return paragraph->style->width > indent + 20 ? paragraph->style->width - indent : 20;
}

void paragraph_name(struct paragraph *paragraph, const char *bytes, size_t length)
{
	const size_t marks = 4; /* quotes around it, and a comma or brackets */
	const size_t before = paragraph->built.used;

	paragraph_text(paragraph, bytes, length);
	paragraph_shorten(paragraph, before, line_columns(paragraph) - marks);
}

void paragraph_value(struct paragraph *paragraph, enum unit unit, uint64_t value)
{
	char text[FORMAT_NUMBER_BYTES];

	format_with_unit(
		text, unit, clamp_to_i64(value), paragraph->style->iec, paragraph->style->ascii);
	paragraph_add(paragraph, "%s", text);
}

void paragraph_percent(struct paragraph *paragraph, uint64_t part, uint64_t whole)
{
	char text[FORMAT_NUMBER_BYTES];

	format_percent(text, clamp_to_i64(part), clamp_to_i64(whole));
	paragraph_add(paragraph, "%s", text);
}

/* Returns whether the space is between a number and its unit, which are one word. */
static bool is_number_with_unit(const char *text, size_t space)
{
	static const char *const units[] = { "%", "ns", "us", "\xc2\xb5s", "ms", "s", "min", "h",
		"B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB" };
	const char *word = text + space + 1;
	const size_t length = strcspn(word, " ,;:.)");

	if (!space || text[space - 1] < '0' || text[space - 1] > '9')
		return false;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (strlen(units[i]) == length && memcmp(units[i], word, length) == 0)
			return true;
	return false;
}

static size_t word_end(const char *text, size_t from)
{
	size_t end = from + strcspn(text + from, " ");

	while (text[end] && is_number_with_unit(text, end))
		end += 1 + strcspn(text + end + 1, " ");
	return end;
}

/* Returns the bytes of the next line: as many words as fit in `columns`, at least one. */
static size_t line_bytes(const char *text, size_t columns)
{
	size_t end = word_end(text, 0);

	for (;;) {
		const size_t next = text[end] ? word_end(text, end + 1) : end;

		if (next == end || escaped_width(text, next) > columns)
			return end;
		end = next;
	}
}

static void print_title(
	const struct style *style, const char *title, size_t columns, const char *end)
{
	print_paint(style, PAINT_BOLD);
	print_line(style, "%-*s%s", (int)columns, title, end);
	print_paint(style, PAINT_NONE);
}

void paragraph_print(struct paragraph *paragraph, const char *title)
{
	const struct style *style = paragraph->style;
	const size_t indent = indent_of(paragraph);
	const char *text = paragraph->built.text ? paragraph->built.text : "";

	if (has_narrow_indent(paragraph) && *title) {
		print_title(style, title, 0, "\n");
		title = "";
	}

	for (bool first = true; *text || first; first = false) {
		const size_t length = line_bytes(text, line_columns(paragraph));

		print_title(style, first ? title : "", indent, "");
		output_bytes(style->out, text, length);
		output_char(style->out, '\n');
		text += length + (text[length] == ' ');
	}
	free(paragraph->built.text);
	*paragraph = (struct paragraph){ .style = style, .indent = paragraph->indent };
}
