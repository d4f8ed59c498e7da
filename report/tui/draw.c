/* SPDX-License-Identifier: MIT */
#include "report/tui/draw.h"
#include "report/base/alloc.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 40u
#define NAME_SHARE 45u /* percent of the width that names may have, if they need it */
#define NAME_MIN 16u
/* Columns that a name, if it is that long, must have beside its indent. With fewer the depth is
 * printed as a number. */
#define NAME_MIN_DEEP 12u

struct screen_column {
	uint32_t column;
	size_t width;
};

/* A screen of rows. Columns are on the right, each as wide as its visible cells need. */
struct tui_screen {
	struct tui_state *state;
	const struct tui_canvas *canvas;
	struct screen_column shown[COLUMNS_MAX];
	uint32_t count, rows, focus, base; /* base: depth of the outermost rows */
	size_t name_width;
	char *name;
	size_t name_room;
};

/* Draws `text`, shortened or filled with blanks to `width` columns. `text` has `room` bytes. */
static void draw_filled(const struct tui_screen *screen, unsigned y, unsigned x, size_t width,
	enum tui_paint paint, char *text, size_t room)
{
	const size_t length = escaped_shorten(
			     text, room, width, screen->state->model->style->ascii),
		     taken = escaped_width(text, length);

	screen->canvas->put(screen->canvas->context, y, x, paint, text, length);
	for (size_t at = taken; at < width; at++)
		screen->canvas->put(screen->canvas->context, y, x + (unsigned)at, paint, " ", 1);
}

/* Draws a sentence; one that is too long is cut at its end. */
static void draw_line(
	const struct tui_screen *screen, unsigned y, enum tui_paint paint, const char *text)
{
	const bool ascii = screen->state->model->style->ascii;
	const size_t room = strlen(text) + 16, width = screen->state->width, dots = ascii ? 3 : 1;
	size_t used = 0, taken = 0, length;
	char *line = strcpy(xcalloc(room), text);

	if (escaped_width(text, strlen(text)) > width && width > dots) {
		for (; text[used]; used += length) {
			utf8_decode(text + used, strlen(text + used), &length);
			taken += escaped_width(text + used, length);
			if (taken > width - dots)
				break;
		}
		strcpy(line + used, ascii ? "..." : "\xe2\x80\xa6");
	}
	draw_filled(screen, y, 0, width, paint, line, room);
	free(line);
}

static void draw_title_bar(const struct tui_screen *screen)
{
	const struct tui_state *state = screen->state;
	const struct tui_model *model = state->model;
	const char *title = model->columns[model->sort].title;
	char left[512], right[96];
	size_t length = (size_t)snprintf(right, sizeof right, " %s%u/%u ",
		       model->simulated ? "simulated device  " : "",
		       state->shown_count ? state->cursor + 1 : 0, state->shown_count),
	       width = state->width > length + 1 ? state->width - length : 1;

	snprintf(left, sizeof left, " %s  metric %s, by %s%s%s", model->title, model->metric,
		*title ? title : model->columns[model->sort].key, state->percent ? " in %" : "",
		state->focus_count ? "  focus (u: back)" : "");
	draw_filled(screen, 0, 0, width, TUI_BAR, left, sizeof left);
	screen->canvas->put(screen->canvas->context, 0, (unsigned)width, TUI_BAR, right,
		length < state->width - width ? length : state->width - width);
}

static void draw_status_line(const struct tui_screen *screen)
{
	const struct tui_state *state = screen->state;
	char search[TUI_SEARCH_BYTES * 6 + 8] = "/";
	const char *text = state->width < 50   ? "enter open  / find  ? keys  q quit"
			   : state->width < 80 ? "enter open  d details  / find  ? keys  q quit"
					       : "enter open  d details  f focus  / find  s sort  "
						 "m metric  w worst  ? keys  q";

	if (state->mode == TUI_SEARCH)
		escape_text(search + 1, sizeof search - 1, state->search, strlen(state->search),
			state->model->style->ascii);
	else if (state->mode == TUI_COLUMNS)
		text = "space: show or hide   q: back";
	else if (state->mode == TUI_METRICS || state->mode == TUI_SORTS)
		text = "enter: choose   q: back";
	else if (state->mode != TUI_TREE)
		text = "up, down, page up, page down   q: back";
	if (state->pending_action != TUI_ACTION_NONE)
		text = "reading the trace again ...";
	else if (state->message[0])
		text = state->message;
	if (state->mode == TUI_SEARCH && state->message[0]) {
		const size_t used = strlen(search);

		snprintf(search + used, sizeof search - used, "  %s", state->message);
	}
	draw_line(screen, state->height - 1, TUI_DIM, state->mode == TUI_SEARCH ? search : text);
}

static struct tui_cell screen_cell(const struct tui_screen *screen, uint32_t row, uint32_t column)
{
	struct tui_model *model = screen->state->model;

	return model->kind->cell(
		model, screen->state->shown[row], column, screen->state->percent, screen->focus);
}

/* Returns the width for the title and the visible cells. A minimum keeps the columns in place while
 * scrolling. */
static size_t screen_column_width(const struct tui_screen *screen, uint32_t column)
{
	const struct tui_column *about = &screen->state->model->columns[column];
	size_t width = about->left ? 4 : 9;

	if (strlen(about->title) > width)
		width = strlen(about->title);
	for (uint32_t i = 0; i < screen->rows; i++) {
		const struct tui_cell cell = screen_cell(screen, screen->state->top + i, column);
		const size_t taken = escaped_width(cell.text, strlen(cell.text));

		if (taken > width)
			width = taken;
	}
	return width;
}

static size_t widest_name(struct tui_screen *screen)
{
	struct tui_model *model = screen->state->model;
	size_t widest = NAME_MIN;

	for (uint32_t i = 0; i < screen->rows; i++) {
		const uint32_t item = screen->state->shown[screen->state->top + i];
		const size_t bytes = model->kind->name(
			model, item, false, &screen->name, &screen->name_room);
		const size_t width = escaped_width(screen->name, bytes) +
				     2 * (size_t)(model->items[item].depth - screen->base) + 2;

		if (width > widest)
			widest = width;
	}
	return widest;
}

static void show_column(struct tui_screen *screen, uint32_t column, size_t width)
{
	screen->shown[screen->count++] = (struct screen_column){ .column = column, .width = width };
}

static size_t visible_name_width(struct tui_screen *screen)
{
	const size_t widest = widest_name(screen), share = screen->state->width * NAME_SHARE / 100;

	return widest < share ? widest : share;
}

static bool has_values_to_show(const struct tui_column *column)
{
	return column->shown && column->filled;
}

/* Chooses the columns of the screen: always the sort column, and in their order as many others as
 * fit. Columns scrolled out on the left are skipped. */
static void choose_screen_columns(struct tui_screen *screen)
{
	const struct tui_state *state = screen->state;
	const struct tui_model *model = state->model;
	const size_t sort_width = screen_column_width(screen, model->sort);
	const size_t room = state->width - visible_name_width(screen);
	size_t used = 2 + sort_width;
	uint32_t seen = 0;

	for (uint32_t i = 0; i < model->column_count && screen->count < COLUMNS_MAX; i++) {
		const bool wanted = has_values_to_show(&model->columns[i]) &&
				    seen++ >= state->first_column;
		const size_t width = wanted ? screen_column_width(screen, i) : 0;

		if (i == model->sort) {
			show_column(screen, i, sort_width);
		} else if (wanted && used + width + 2 <= room) {
			used += width + 2;
			show_column(screen, i, width);
		}
	}
	screen->name_width = state->width > used ? state->width - used : 1;
}

static void draw_cell(const struct tui_screen *screen, unsigned y, unsigned x,
	const struct screen_column *shown, const char *text, enum tui_paint paint)
{
	const size_t bytes = strlen(text), width = escaped_width(text, bytes),
		     fill = shown->width > width ? shown->width - width : 0;
	const bool left = screen->state->model->columns[shown->column].left;

	if (bytes)
		screen->canvas->put(screen->canvas->context, y, x + (left ? 0 : (unsigned)fill),
			paint, text, bytes);
}

static void draw_column_titles(const struct tui_screen *screen)
{
	const struct tui_model *model = screen->state->model;
	unsigned x = (unsigned)screen->name_width;

	screen->canvas->put(screen->canvas->context, 1, 0, TUI_BOLD, "name", 4);
	for (uint32_t i = 0; i < screen->count; i++) {
		const uint32_t column = screen->shown[i].column;

		x += 2;
		draw_cell(screen, 1, x, &screen->shown[i], model->columns[column].title,
			column == model->sort ? TUI_BAR : TUI_BOLD);
		x += (unsigned)screen->shown[i].width;
	}
}

/* Draws the indent, the mark of a node with children, and the name. */
static void draw_name(struct tui_screen *screen, unsigned y, uint32_t item, enum tui_paint paint)
{
	static const char *const marks[2][3] = { { "  ", "\xe2\x96\xb8 ", "\xe2\x96\xbe " },
		{ "  ", "+ ", "- " } };
	struct tui_model *model = screen->state->model;
	const bool ascii = model->style->ascii;
	const char *mark = marks[ascii][tui_has_children(screen->state, item)
						? 1 + tui_is_open(screen->state, item)
						: 0];
	const uint32_t depth = model->items[item].depth - screen->base;
	size_t indent = 2 * (size_t)depth,
	       bytes = model->kind->name(model, item, true, &screen->name, &screen->name_room),
	       left;
	const size_t short_width = escaped_width(screen->name, bytes);
	/* The indent leaves too little room for the name. */
	const bool deep = indent + 2 + (short_width < NAME_MIN_DEEP ? short_width : NAME_MIN_DEEP) >
			  screen->name_width;
	char before[48];

	if (deep)
		snprintf(before, sizeof before, "(%u) %s", depth, mark);
	else
		snprintf(before, sizeof before, "%s", mark);
	indent = deep ? 0 : indent;
	if (paint == TUI_CURSOR)
		for (unsigned x = 0; x < screen->state->width; x++)
			screen->canvas->put(screen->canvas->context, y, x, paint, " ", 1);
	screen->canvas->put(screen->canvas->context, y, (unsigned)indent,
		paint == TUI_CURSOR ? paint : TUI_DIM, before, strlen(before));
	indent += escaped_width(before, strlen(before));
	left = screen->name_width > indent ? screen->name_width - indent : 1;
	bytes = model->kind->name(model, item, false, &screen->name, &screen->name_room);
	if (escaped_width(screen->name, bytes) > left)
		model->kind->name(model, item, true, &screen->name, &screen->name_room);
	bytes = escaped_shorten(screen->name, screen->name_room, left, ascii);
	screen->canvas->put(
		screen->canvas->context, y, (unsigned)indent, paint, screen->name, bytes);
}

static void draw_row(struct tui_screen *screen, uint32_t row)
{
	struct tui_model *model = screen->state->model;
	const uint32_t item = screen->state->shown[row];
	const unsigned y = 2 + row - screen->state->top;
	const bool cursor = row == screen->state->cursor;
	unsigned x = (unsigned)screen->name_width;

	draw_name(screen, y, item, cursor ? TUI_CURSOR : model->kind->paint(model, item));
	for (uint32_t i = 0; i < screen->count; i++) {
		const struct tui_cell cell = screen_cell(screen, row, screen->shown[i].column);

		draw_cell(screen, y, x + 2, &screen->shown[i], cell.text,
			cursor ? TUI_CURSOR : cell.paint);
		x += 2 + (unsigned)screen->shown[i].width;
	}
}

static void draw_tree(struct tui_screen *screen)
{
	struct tui_state *state = screen->state;
	const uint32_t room = tui_row_count(state);

	draw_title_bar(screen);
	screen->focus = tui_focus_item(state);
	screen->base = screen->focus == TUI_NONE ? 0 : state->model->items[screen->focus].depth;
	screen->rows = state->shown_count - state->top < room ? state->shown_count - state->top
							      : room;
	if (!screen->rows) {
		draw_line(screen, 2, TUI_PLAIN, "no rows: the trace has no data for this view");
		return;
	}
	choose_screen_columns(screen);
	draw_column_titles(screen);
	for (uint32_t i = 0; i < screen->rows; i++)
		draw_row(screen, state->top + i);
}

static void draw_menu_line(
	const struct tui_screen *screen, unsigned y, uint32_t index, enum tui_paint paint)
{
	const struct tui_state *state = screen->state;
	const struct tui_model *model = state->model;
	const char *keys[METRIC_COUNT];
	uint32_t columns[256];
	char line[512];

	if (state->mode == TUI_METRICS && index < tui_list_metrics(state, keys, METRIC_COUNT)) {
		snprintf(line, sizeof line, " %c %-12s %s",
			strcmp(keys[index], model->metric) == 0 ? '*' : ' ', keys[index],
			metrics[metric_find(keys[index])].help);
	} else if (state->mode == TUI_SORTS && index < tui_list_sort_columns(state, columns, 256)) {
		const struct tui_column *column = &model->columns[columns[index]];

		snprintf(line, sizeof line, " %c %-22s %s",
			columns[index] == model->sort ? '*' : ' ', column->key, column->help);
	} else {
		const struct tui_column *column =
			&model->columns[index < model->column_count ? index : 0];

		snprintf(line, sizeof line, " [%c] %-22s %s%s", column->shown ? 'x' : ' ',
			column->key, column->filled ? "" : "(nothing) ", column->help);
	}
	draw_line(screen, y, paint, line);
}

static void draw_menu(const struct tui_screen *screen)
{
	const struct tui_state *state = screen->state;

	draw_line(screen, 0, TUI_BAR,
		state->mode == TUI_COLUMNS   ? " columns"
		: state->mode == TUI_METRICS ? " metric: what rows are sorted by"
					     : " sort by");
	for (uint32_t i = 0; i < tui_row_count(state) && state->menu_top + i < state->menu_count;
		i++)
		draw_menu_line(screen, 1 + i, state->menu_top + i,
			state->menu_top + i == state->menu ? TUI_CURSOR : TUI_PLAIN);
}

static void draw_lines(const struct tui_screen *screen)
{
	const struct tui_state *state = screen->state;

	draw_line(screen, 0, TUI_BAR,
		state->mode == TUI_HELP       ? " keys"
		: state->mode == TUI_WARNINGS ? " warnings"
					      : " details");
	for (unsigned i = 0; i + 2 < state->height && state->line_top + i < state->lines.count; i++)
		draw_line(screen, 1 + i, TUI_PLAIN, state->lines.lines[state->line_top + i]);
}

void tui_draw(struct tui_state *state, const struct tui_canvas *canvas)
{
	struct tui_screen screen = { .state = state, .canvas = canvas };

	if (state->width < TUI_MIN_WIDTH || state->height < TUI_MIN_HEIGHT) {
		char text[64];

		snprintf(text, sizeof text, "%ux%u needed; q quits", TUI_MIN_WIDTH, TUI_MIN_HEIGHT);
		if (state->width && state->height)
			draw_line(&screen, 0, TUI_PLAIN, text);
		return;
	}
	if (state->mode == TUI_TREE || state->mode == TUI_SEARCH)
		draw_tree(&screen);
	else if (state->mode == TUI_COLUMNS || state->mode == TUI_METRICS ||
		 state->mode == TUI_SORTS)
		draw_menu(&screen);
	else
		draw_lines(&screen);
	draw_status_line(&screen);
	free(screen.name);
}
