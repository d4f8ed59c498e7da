/* SPDX-License-Identifier: MIT */
#include "report/tui/draw.h"
#include "report/base/alloc.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_COLUMNS 40u
#define NAME_SHARE 45u /* percent of the width that names get, if they need it */
#define NAME_LEAST 16u
#define NAME_DEEP 12u /* so much of a name is seen beside its indent, if it is as long; else the depth is a number */

struct shown {
	uint32_t column;
	size_t width;
};

/* A screen of rows: columns at its right, each as wide as what is in sight needs. */
struct sheet {
	struct tui_state *state;
	const struct tui_canvas *canvas;
	struct shown shown[MOST_COLUMNS];
	uint32_t count, rows, focus, base; /* base: depth of the outermost rows */
	size_t name_width;
	char *name;
	size_t name_room;
};

/* Shortened to the room there is, and with blanks to fill it. text has `room` bytes. */
static void put_filled(const struct sheet *sheet, unsigned y, unsigned x, size_t width, enum tui_paint paint, char *text, size_t room)
{
	const size_t length = visible_shorten(text, room, width, sheet->state->model->style->ascii),
		     taken = visible_width(text, length);

	sheet->canvas->put(sheet->canvas->context, y, x, paint, text, length);
	for (size_t at = taken; at < width; at++)
		sheet->canvas->put(sheet->canvas->context, y, x + (unsigned)at, paint, " ", 1);
}

/* Sentences: cut at their end. */
static void put_line(const struct sheet *sheet, unsigned y, enum tui_paint paint, const char *text)
{
	const bool ascii = sheet->state->model->style->ascii;
	const size_t room = strlen(text) + 16, width = sheet->state->width, dots = ascii ? 3 : 1;
	size_t used = 0, taken = 0, length;
	char *line = strcpy(need(room), text);

	if (visible_width(text, strlen(text)) > width && width > dots) {
		for (; text[used]; used += length) {
			utf8_decode(text + used, strlen(text + used), &length);
			taken += visible_width(text + used, length);
			if (taken > width - dots)
				break;
		}
		strcpy(line + used, ascii ? "..." : "\xe2\x80\xa6");
	}
	put_filled(sheet, y, 0, width, paint, line, room);
	free(line);
}

static void put_bar(const struct sheet *sheet)
{
	const struct tui_state *state = sheet->state;
	const struct tui_model *model = state->model;
	const char *title = model->columns[model->sort].title;
	char left[512], right[96];
	size_t length = (size_t)snprintf(right, sizeof right, " %s%u/%u ", model->simulated ? "simulated device  " : "",
		       state->shown_count ? state->cursor + 1 : 0, state->shown_count),
	       width = state->width > length + 1 ? state->width - length : 1;

	snprintf(left, sizeof left, " %s  metric %s, by %s%s%s", model->title, model->metric, *title ? title : model->columns[model->sort].key,
		state->percent ? " in %" : "", state->focus_count ? "  focus (u: back)" : "");
	put_filled(sheet, 0, 0, width, TUI_BAR, left, sizeof left);
	sheet->canvas->put(sheet->canvas->context, 0, (unsigned)width, TUI_BAR, right,
		length < state->width - width ? length : state->width - width);
}

static void put_foot(const struct sheet *sheet)
{
	const struct tui_state *state = sheet->state;
	char search[TUI_SEARCH_BYTES * 6 + 8] = "/";
	const char *text = state->width < 50   ? "enter open  / find  ? keys  q quit"
			   : state->width < 80 ? "enter open  d details  / find  ? keys  q quit"
					       : "enter open  d details  f focus  / find  s sort  m metric  w worst  ? keys  q";

	if (state->mode == TUI_SEARCH)
		visible(search + 1, sizeof search - 1, state->search, strlen(state->search), state->model->style->ascii);
	else if (state->mode == TUI_COLUMNS)
		text = "space: show it or not   q: back";
	else if (state->mode == TUI_METRICS || state->mode == TUI_SORTS)
		text = "enter: choose   q: back";
	else if (state->mode != TUI_TREE)
		text = "up, down, page up, page down   q: back";
	if (state->wish != TUI_NOTHING)
		text = "reading the trace once more ...";
	else if (state->message[0])
		text = state->message;
	if (state->mode == TUI_SEARCH && state->message[0]) {
		const size_t used = strlen(search);

		snprintf(search + used, sizeof search - used, "  %s", state->message);
	}
	put_line(sheet, state->height - 1, TUI_DIM, state->mode == TUI_SEARCH ? search : text);
}

static struct tui_cell cell_of(const struct sheet *sheet, uint32_t row, uint32_t column)
{
	struct tui_model *model = sheet->state->model;

	return model->kind->cell(model, sheet->state->shown[row], column, sheet->state->percent, sheet->focus);
}

/* Titles' and cells' widths; times never less than they mostly need, so that columns stay where they are. */
static size_t column_width(const struct sheet *sheet, uint32_t column)
{
	const struct tui_column *about = &sheet->state->model->columns[column];
	size_t width = about->left ? 4 : 9;

	if (strlen(about->title) > width)
		width = strlen(about->title);
	for (uint32_t i = 0; i < sheet->rows; i++) {
		const struct tui_cell cell = cell_of(sheet, sheet->state->top + i, column);
		const size_t taken = visible_width(cell.text, strlen(cell.text));

		if (taken > width)
			width = taken;
	}
	return width;
}

static size_t widest_name(struct sheet *sheet)
{
	struct tui_model *model = sheet->state->model;
	size_t widest = NAME_LEAST;

	for (uint32_t i = 0; i < sheet->rows; i++) {
		const uint32_t item = sheet->state->shown[sheet->state->top + i];
		const size_t bytes = model->kind->name(model, item, false, &sheet->name, &sheet->name_room);
		const size_t width = visible_width(sheet->name, bytes) + 2 * (size_t)(model->items[item].depth - sheet->base) + 2;

		if (width > widest)
			widest = width;
	}
	return widest;
}

/* What it is ordered by always, and as many others as fit, in their order, without those that were moved out of sight. */
static void choose_columns(struct sheet *sheet)
{
	const struct tui_state *state = sheet->state;
	const struct tui_model *model = state->model;
	const size_t widest = widest_name(sheet), share = state->width * NAME_SHARE / 100, names = widest < share ? widest : share;
	const size_t sort_width = column_width(sheet, model->sort);
	size_t used = names + 2 + sort_width;
	uint32_t seen = 0;

	for (uint32_t i = 0; i < model->column_count && sheet->count < MOST_COLUMNS; i++) {
		const bool wanted = model->columns[i].shown && model->columns[i].filled && seen++ >= state->first_column;
		const size_t width = i == model->sort ? sort_width : wanted ? column_width(sheet, i) : 0;

		if (i != model->sort && (!wanted || used + width + 2 > state->width))
			continue;
		used += i == model->sort ? 0 : width + 2;
		sheet->shown[sheet->count++] = (struct shown){ .column = i, .width = width };
	}
	used -= names;
	sheet->name_width = state->width > used ? state->width - used : 1;
}

static void put_cell(const struct sheet *sheet, unsigned y, unsigned x, const struct shown *shown, const char *text, enum tui_paint paint)
{
	const size_t bytes = strlen(text), width = visible_width(text, bytes), fill = shown->width > width ? shown->width - width : 0;
	const bool left = sheet->state->model->columns[shown->column].left;

	if (bytes)
		sheet->canvas->put(sheet->canvas->context, y, x + (left ? 0 : (unsigned)fill), paint, text, bytes);
}

static void put_titles(const struct sheet *sheet)
{
	const struct tui_model *model = sheet->state->model;
	unsigned x = (unsigned)sheet->name_width;

	sheet->canvas->put(sheet->canvas->context, 1, 0, TUI_BOLD, "name", 4);
	for (uint32_t i = 0; i < sheet->count; i++) {
		const uint32_t column = sheet->shown[i].column;

		x += 2;
		put_cell(sheet, 1, x, &sheet->shown[i], model->columns[column].title, column == model->sort ? TUI_BAR : TUI_BOLD);
		x += (unsigned)sheet->shown[i].width;
	}
}

/* Blanks for what it lies in, whether there is more inside, and the name. */
static void put_name(struct sheet *sheet, unsigned y, uint32_t item, enum tui_paint paint)
{
	static const char *const marks[2][3] = { { "  ", "\xe2\x96\xb8 ", "\xe2\x96\xbe " }, { "  ", "+ ", "- " } };
	struct tui_model *model = sheet->state->model;
	const bool ascii = model->style->ascii;
	const char *mark = marks[ascii][tui_has_inside(sheet->state, item) ? 1 + tui_is_open(sheet->state, item) : 0];
	const uint32_t depth = model->items[item].depth - sheet->base;
	size_t indent = 2 * (size_t)depth, bytes = model->kind->name(model, item, true, &sheet->name, &sheet->name_room), left;
	const size_t least = visible_width(sheet->name, bytes);
	const bool deep = indent + 2 + (least < NAME_DEEP ? least : NAME_DEEP) > sheet->name_width; /* to be drawn */
	char before[48];

	if (deep)
		snprintf(before, sizeof before, "(%u) %s", depth, mark);
	else
		snprintf(before, sizeof before, "%s", mark);
	indent = deep ? 0 : indent;
	if (paint == TUI_CURSOR)
		for (unsigned x = 0; x < sheet->state->width; x++)
			sheet->canvas->put(sheet->canvas->context, y, x, paint, " ", 1);
	sheet->canvas->put(sheet->canvas->context, y, (unsigned)indent, paint == TUI_CURSOR ? paint : TUI_DIM, before, strlen(before));
	indent += visible_width(before, strlen(before));
	left = sheet->name_width > indent ? sheet->name_width - indent : 1;
	bytes = model->kind->name(model, item, false, &sheet->name, &sheet->name_room);
	if (visible_width(sheet->name, bytes) > left)
		model->kind->name(model, item, true, &sheet->name, &sheet->name_room);
	bytes = visible_shorten(sheet->name, sheet->name_room, left, ascii);
	sheet->canvas->put(sheet->canvas->context, y, (unsigned)indent, paint, sheet->name, bytes);
}

static void put_row(struct sheet *sheet, uint32_t row)
{
	struct tui_model *model = sheet->state->model;
	const uint32_t item = sheet->state->shown[row];
	const unsigned y = 2 + row - sheet->state->top;
	const bool cursor = row == sheet->state->cursor;
	unsigned x = (unsigned)sheet->name_width;

	put_name(sheet, y, item, cursor ? TUI_CURSOR : model->kind->paint(model, item));
	for (uint32_t i = 0; i < sheet->count; i++) {
		const struct tui_cell cell = cell_of(sheet, row, sheet->shown[i].column);

		put_cell(sheet, y, x + 2, &sheet->shown[i], cell.text, cursor ? TUI_CURSOR : cell.paint);
		x += 2 + (unsigned)sheet->shown[i].width;
	}
}

static void put_tree(struct sheet *sheet)
{
	struct tui_state *state = sheet->state;
	const uint32_t room = tui_row_count(state);

	put_bar(sheet);
	sheet->focus = tui_focus_item(state);
	sheet->base = sheet->focus == TUI_NONE ? 0 : state->model->items[sheet->focus].depth;
	sheet->rows = state->shown_count - state->top < room ? state->shown_count - state->top : room;
	if (!sheet->rows) {
		put_line(sheet, 2, TUI_PLAIN, "nothing of this kind is in the trace");
		return;
	}
	choose_columns(sheet);
	put_titles(sheet);
	for (uint32_t i = 0; i < sheet->rows; i++)
		put_row(sheet, state->top + i);
}

static void put_menu_line(const struct sheet *sheet, unsigned y, uint32_t index, enum tui_paint paint)
{
	const struct tui_state *state = sheet->state;
	const struct tui_model *model = state->model;
	const char *keys[METRIC_COUNT];
	uint32_t columns[256];
	char line[512];

	if (state->mode == TUI_METRICS && index < tui_metrics(state, keys, METRIC_COUNT)) {
		snprintf(line, sizeof line, " %c %-12s %s", strcmp(keys[index], model->metric) == 0 ? '*' : ' ', keys[index],
			metrics[metric_find(keys[index])].help);
	} else if (state->mode == TUI_SORTS && index < tui_sorts(state, columns, 256)) {
		const struct tui_column *column = &model->columns[columns[index]];

		snprintf(line, sizeof line, " %c %-22s %s", columns[index] == model->sort ? '*' : ' ', column->key, column->help);
	} else {
		const struct tui_column *column = &model->columns[index < model->column_count ? index : 0];

		snprintf(line, sizeof line, " [%c] %-22s %s%s", column->shown ? 'x' : ' ', column->key, column->filled ? "" : "(nothing) ",
			column->help);
	}
	put_line(sheet, y, paint, line);
}

static void put_menu(const struct sheet *sheet)
{
	const struct tui_state *state = sheet->state;

	put_line(sheet, 0, TUI_BAR,
		state->mode == TUI_COLUMNS   ? " columns"
		: state->mode == TUI_METRICS ? " metric: what rows are ordered by, and what worst means"
					     : " order by");
	for (uint32_t i = 0; i < tui_row_count(state) && state->menu_top + i < state->menu_count; i++)
		put_menu_line(sheet, 1 + i, state->menu_top + i, state->menu_top + i == state->menu ? TUI_CURSOR : TUI_PLAIN);
}

static void put_lines(const struct sheet *sheet)
{
	const struct tui_state *state = sheet->state;

	put_line(sheet, 0, TUI_BAR,
		state->mode == TUI_HELP      ? " keys"
		: state->mode == TUI_REMARKS ? " what must be said"
					     : " details");
	for (unsigned i = 0; i + 2 < state->height && state->line_top + i < state->lines.count; i++)
		put_line(sheet, 1 + i, TUI_PLAIN, state->lines.lines[state->line_top + i]);
}

void tui_paint(struct tui_state *state, const struct tui_canvas *canvas)
{
	struct sheet sheet = { .state = state, .canvas = canvas };

	if (state->width < TUI_LEAST_WIDTH || state->height < TUI_LEAST_HEIGHT) {
		char text[64];

		snprintf(text, sizeof text, "%ux%u needed; q quits", TUI_LEAST_WIDTH, TUI_LEAST_HEIGHT);
		if (state->width && state->height)
			put_line(&sheet, 0, TUI_PLAIN, text);
		return;
	}
	if (state->mode == TUI_TREE || state->mode == TUI_SEARCH)
		put_tree(&sheet);
	else if (state->mode == TUI_COLUMNS || state->mode == TUI_METRICS || state->mode == TUI_SORTS)
		put_menu(&sheet);
	else
		put_lines(&sheet);
	put_foot(&sheet);
	free(sheet.name);
}
