/* SPDX-License-Identifier: MIT */
#include "report/paragraph.h"
#include "report/fatal.h"
#include "report/visible.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void paragraph_add(struct paragraph *paragraph, const char *format, ...)
{
	char piece[2048];
	va_list list;
	int written;
	size_t length;

	va_start(list, format);
	written = vsnprintf(piece, sizeof piece, format, list);
	va_end(list);
	length = written < 0 ? 0 : (size_t)written < sizeof piece ? (size_t)written : sizeof piece - 1;
	grow(&paragraph->text, &paragraph->room, paragraph->used + length + 1, 1);
	memcpy(paragraph->text + paragraph->used, piece, length + 1);
	paragraph->used += length;
}

/* Somebody else's text. */
void paragraph_text(struct paragraph *paragraph, const char *bytes, size_t length)
{
	grow(&paragraph->text, &paragraph->room, paragraph->used + length * 10 + 1, 1);
	paragraph->used += visible(
		paragraph->text + paragraph->used, length * 10 + 1, bytes, length, paragraph->style->ascii);
}

/* The columns of a line behind its title. */
static size_t line_columns(const struct paragraph *paragraph)
{
	const size_t indent = paragraph->indent ? paragraph->indent : INDENT;

	return paragraph->style->width > indent + 20 ? paragraph->style->width - indent : 20;
}

void paragraph_name(struct paragraph *paragraph, const char *bytes, size_t length)
{
	const size_t marks = 4; /* quotes around it, and a comma or brackets */
	const size_t before = paragraph->used;

	paragraph_text(paragraph, bytes, length);
	if (paragraph->used > before)
		paragraph->used = before + visible_shorten(paragraph->text + before, paragraph->room - before,
						   line_columns(paragraph) - marks, paragraph->style->ascii);
}

void paragraph_figure(struct paragraph *paragraph, enum unit unit, uint64_t value)
{
	char text[NUMBER_BYTES];

	number_scaled(text, unit, value > INT64_MAX ? INT64_MAX : (int64_t)value, paragraph->style->iec,
		paragraph->style->ascii);
	paragraph_add(paragraph, "%s", text);
}

void paragraph_percent(struct paragraph *paragraph, uint64_t part, uint64_t whole)
{
	char text[NUMBER_BYTES];

	number_percent(text, (int64_t)part, (int64_t)whole);
	paragraph_add(paragraph, "%s", text);
}

/* The bytes of the next line: as many words as fit into `columns`, at least one. */
static size_t line_bytes(const char *text, size_t columns)
{
	size_t end = strcspn(text, " ");

	for (;;) {
		const size_t next = text[end] ? end + 1 + strcspn(text + end + 1, " ") : end;

		if (next == end || visible_width(text, next) > columns)
			return end;
		end = next;
	}
}

void paragraph_put(struct paragraph *paragraph, const char *title)
{
	const struct style *style = paragraph->style;
	const size_t indent = paragraph->indent ? paragraph->indent : INDENT;
	const char *text = paragraph->text ? paragraph->text : "";

	for (bool first = true; *text || first; first = false) {
		const size_t length = line_bytes(text, line_columns(paragraph));

		print_paint(style, PAINT_BOLD);
		print_line(style, "%-*s", (int)indent, first ? title : "");
		print_paint(style, PAINT_NONE);
		out_bytes(style->out, text, length);
		out_char(style->out, '\n');
		text += length + (text[length] == ' ');
	}
	free(paragraph->text);
	*paragraph = (struct paragraph){ .style = style, .indent = paragraph->indent };
}
