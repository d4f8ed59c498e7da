/* SPDX-License-Identifier: MIT */
#include "report/tui/model.h"
#include "report/base/alloc.h"
#include "report/base/text_builder.h"
#include "report/base/escape.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tui_model_set_ends(struct tui_model *model)
{
	for (uint32_t i = 0; i < model->count; i++)
		model->items[i].end = i + 1;
	for (uint32_t i = model->count; i-- > 0;) {
		const struct tui_item *item = &model->items[i];

		if (item->parent != TUI_NONE && model->items[item->parent].end < item->end)
			model->items[item->parent].end = item->end;
	}
}

void tui_model_free(struct tui_model *model)
{
	model->kind->free(model);
	tui_lines_free(&model->warnings);
	free(model->items);
	free(model->columns);
	free(model);
}

uint32_t tui_model_find(const struct tui_model *model, uint32_t key)
{
	for (uint32_t i = 0; i < model->count; i++)
		if (model->items[i].key == key)
			return i;
	return TUI_NONE;
}

/* Returns the last component of a path. */
static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

void tui_set_title(struct tui_model *model, const char *path, const char *after)
{
	const bool same = after && strcmp(last_component(path), last_component(after)) == 0;
	const char *first = same ? path : last_component(path),
		   *second = !after ? ""
			     : same ? after
				    : last_component(after);
	char names[2][120];

	escape_text(names[0], sizeof names[0], first, strlen(first), model->style->ascii);
	escape_text(names[1], sizeof names[1], second, strlen(second), model->style->ascii);
	snprintf(model->title, sizeof model->title, "%s%s%s", names[0], after ? " -> " : "",
		names[1]);
}

static void append_line(struct tui_lines *lines, char *line)
{
	array_grow_zeroed(&lines->lines, &lines->room, lines->count + 1, sizeof(char *));
	lines->lines[lines->count++] = line;
}

/* Returns how many of the bytes fit into `columns` columns. Breaks after a blank, or between
 * characters if the last blank is too far back. */
static size_t fitting_bytes(const char *text, size_t bytes, size_t columns)
{
	size_t used = 0, width = 0, blank = 0, length;

	while (used < bytes) {
		utf8_decode(text + used, bytes - used, &length);
		width += escaped_width(text + used, length);
		if (width > columns && used)
			return 2 * blank > used ? blank : used;
		used += length;
		if (text[used - 1] == ' ')
			blank = used;
	}
	return used;
}

void tui_line(struct tui_lines *lines, const struct style *style, const char *text, size_t bytes)
{
	const size_t room = bytes * 6 + 1;
	char *shown = xcalloc(room);
	const size_t length = escape_text(shown, room, text, bytes, style->ascii);
	size_t used = 0;

	do {
		const size_t room_left = used ? 4 : 0,
			     width = style->width > 8 ? style->width - room_left : 4,
			     part = fitting_bytes(shown + used, length - used, width);
		char *line = xcalloc(part + 5);

		snprintf(line, part + 5, "%s%.*s", used ? "    " : "", (int)part, shown + used);
		append_line(lines, line);
		used += part;
	} while (used < length);
	free(shown);
}

void tui_linef(struct tui_lines *lines, const char *format, ...)
{
	struct text_builder line = { .text = NULL };
	va_list list;

	va_start(list, format);
	text_add_list(&line, format, list);
	va_end(list);
	append_line(lines, line.text);
}

void tui_lines_free(struct tui_lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free(lines->lines[i]);
	free(lines->lines);
	*lines = (struct tui_lines){ 0 };
}
