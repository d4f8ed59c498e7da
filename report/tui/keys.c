/* SPDX-License-Identifier: MIT
 *
 * Defines what each key does.
 */
#include "report/base/alloc.h"
#include "report/tui/state.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <string.h>

static const char *const help_lines[] = {
	"moving",
	"  up, down, k, j        move one row",
	"  page up, page down    one screen; space too",
	"  home, end             first, last row",
	"  right, +, l           open; if open: go to the first row inside",
	"  left, -, h            close; if closed: go to the parent row",
	"  enter                 open or close; on a kernel: show its details",
	"  *                     open it with everything below; again: close",
	"  f                     show only this row and everything below (focus)",
	"  u, backspace          go back to the previous display",
	"  w                     follow the critical path, one level per press;",
	"                        with two traces: to the largest change inside",
	"  W                     go to the end of that path: the worst node",
	"",
	"finding",
	"  /                     search for part of a name; enter accepts, escape cancels",
	"  n, N                  next match, previous match",
	"",
	"figures",
	"  s                     choose the column that rows are sorted by",
	"  <, >                  sort by the previous, next column",
	"  [, ]                  scroll columns left, right",
	"  c                     choose the columns",
	"  m                     choose the metric; the trace is read again",
	"  %                     percentages of the total (of the focus), or figures",
	"",
	"more",
	"  d                     details of a node: all figures, launches, call stacks",
	"  !                     warnings about the trace",
	"  ?                     this help",
	"  q                     quit; in a list: back",
	"",
	"Every figure is that of the view `tree`, with two traces of the view `diff`;",
	"pperf-report --legend explains them.",
};

static void set_message(struct tui_state *state, const char *text)
{
	snprintf(state->message, sizeof state->message, "%s", text);
}

static void show_lines(struct tui_state *state, enum tui_mode mode)
{
	state->mode = mode;
	state->line_top = 0;
	tui_lines_free(&state->lines);
}

static void show_help(struct tui_state *state)
{
	show_lines(state, TUI_HELP);
	for (size_t i = 0; i < sizeof help_lines / sizeof *help_lines; i++)
		tui_line(&state->lines, state->model->style, help_lines[i], strlen(help_lines[i]));
}

static void show_warnings(struct tui_state *state)
{
	show_lines(state, TUI_WARNINGS);
	for (size_t i = 0; i < state->model->warnings.count; i++)
		tui_linef(&state->lines, "%s", state->model->warnings.lines[i]);
	if (state->model->simulated)
		tui_linef(&state->lines, "simulated device: GPU figures are not measurements");
	if (!state->lines.count)
		tui_linef(&state->lines, "no warnings");
}

static void show_details(struct tui_state *state)
{
	const uint32_t item = tui_cursor_item(state);

	if (item == TUI_NONE)
		return;
	show_lines(state, TUI_DETAILS);
	state->model->kind->details(state->model, item, &state->lines);
}

static void show_menu(struct tui_state *state, enum tui_mode mode, uint32_t count, uint32_t at)
{
	if (!count) {
		set_message(state, "nothing to choose from");
		return;
	}
	state->mode = mode;
	state->menu_count = count;
	state->menu = at < count ? at : 0;
	state->menu_top = 0;
}

static void show_metrics(struct tui_state *state)
{
	const char *keys[METRIC_COUNT];
	const uint32_t count = tui_list_metrics(state, keys, METRIC_COUNT);
	uint32_t at = 0;

	for (uint32_t i = 0; i < count; i++)
		if (strcmp(keys[i], state->model->metric) == 0)
			at = i;
	show_menu(state, TUI_METRICS, count, at);
}

static void show_sort_columns(struct tui_state *state)
{
	uint32_t columns[256], at = 0;
	const uint32_t count = tui_list_sort_columns(state, columns, 256);

	for (uint32_t i = 0; i < count; i++)
		if (columns[i] == state->model->sort)
			at = i;
	show_menu(state, TUI_SORTS, count, at);
}

static void move_to(struct tui_state *state, int64_t row)
{
	if (row >= state->shown_count)
		row = (int64_t)state->shown_count - 1;
	state->cursor = row < 0 ? 0 : (uint32_t)row;
	tui_scroll(state);
}

static void go_in(struct tui_state *state, uint32_t item)
{
	if (!tui_has_children(state, item))
		return;
	if (tui_is_open(state, item)) {
		move_to(state, (int64_t)state->cursor + 1);
		return;
	}
	tui_set_open(state, item, true);
	tui_update_rows(state, item);
}

static void go_out(struct tui_state *state, uint32_t item)
{
	const uint32_t around = state->model->items[item].parent, focus = tui_focus_item(state);

	if (tui_is_open(state, item)) {
		tui_set_open(state, item, false);
		tui_update_rows(state, item);
	} else if (around != TUI_NONE && item != focus) {
		tui_update_rows(state, around);
	}
}

static void open_or_show_details(struct tui_state *state, uint32_t item)
{
	if (state->model->kind->enter_shows_details(state->model, item) ||
		!tui_has_children(state, item)) {
		show_details(state);
		return;
	}
	tui_set_open(state, item, !tui_is_open(state, item));
	tui_update_rows(state, item);
}

static void focus_on(struct tui_state *state, uint32_t item)
{
	if (item == tui_focus_item(state))
		return;
	*ARRAY_ADD(state->focus, state->focus_room,
		state->focus_count) = state->model->items[item].key;
	tui_set_open(state, item, true);
	tui_update_rows(state, item);
}

static void focus_back(struct tui_state *state)
{
	const uint32_t item = tui_focus_item(state);

	if (!state->focus_count) {
		set_message(state, "the whole tree is shown");
		return;
	}
	state->focus_count--;
	tui_reveal(state, item);
}

/* Sorts by the next column in direction `by` that is shown and sortable. */
static void sort_by_next_column(struct tui_state *state, int by)
{
	const struct tui_model *model = state->model;

	for (int64_t i = (int64_t)model->sort + by; i >= 0 && i < model->column_count; i += by)
		if (model->columns[i].shown && model->columns[i].filled &&
			model->columns[i].sortable) {
			tui_sort(state, (uint32_t)i);
			return;
		}
	set_message(state, by > 0 ? "no more columns to the right" : "no more columns to the left");
}

static void find_again(struct tui_state *state, bool backward)
{
	const uint32_t from = tui_cursor_item(state),
		       item = *state->search && from != TUI_NONE
				      ? tui_search(state, from, backward ? -1 : 1)
				      : TUI_NONE;

	if (!*state->search)
		set_message(state, "no search text; press / first");
	else if (item == TUI_NONE)
		set_message(state, "no match");
	else
		tui_reveal(state, item);
}

static uint32_t filled_columns(const struct tui_state *state)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < state->model->column_count; i++)
		count += state->model->columns[i].shown && state->model->columns[i].filled;
	return count;
}

static void begin_search(struct tui_state *state)
{
	if (!state->shown_count)
		return;
	state->mode = TUI_SEARCH;
	state->search[0] = '\0';
	state->search_from = tui_cursor_item(state);
	memcpy(state->open_before, state->open, state->model->keys);
}

/* Handles keys about the row under the cursor. */
static void row_key(struct tui_state *state, int key, uint32_t item)
{
	switch (key) {
	case TUI_RIGHT:
	case '+':
	case 'l':
		go_in(state, item);
		break;
	case TUI_LEFT:
	case '-':
	case 'h':
		go_out(state, item);
		break;
	case TUI_ENTER:
		open_or_show_details(state, item);
		break;
	case '*':
		tui_set_open_all(state, item, !tui_is_open(state, item));
		tui_update_rows(state, item);
		break;
	case 'f':
		focus_on(state, item);
		break;
	case 'd':
		show_details(state);
		break;
	}
}

static void move_key(struct tui_state *state, int key)
{
	const int64_t page = tui_row_count(state) > 1 ? tui_row_count(state) - 1 : 1,
		      at = state->cursor;

	switch (key) {
	case TUI_UP:
	case 'k':
		move_to(state, at - 1);
		break;
	case TUI_DOWN:
	case 'j':
		move_to(state, at + 1);
		break;
	case TUI_PAGE_UP:
		move_to(state, at - page);
		break;
	case TUI_PAGE_DOWN:
	case ' ':
		move_to(state, at + page);
		break;
	case TUI_HOME:
		move_to(state, 0);
		break;
	case TUI_END:
		move_to(state, state->shown_count);
		break;
	}
}

static void column_key(struct tui_state *state, int key)
{
	switch (key) {
	case 's':
		show_sort_columns(state);
		break;
	case '<':
	case '>':
		sort_by_next_column(state, key == '>' ? 1 : -1);
		break;
	case '[':
		state->first_column -= state->first_column > 0;
		break;
	case ']':
		state->first_column += state->first_column + 1 < filled_columns(state);
		break;
	case 'c':
		show_menu(state, TUI_COLUMNS, state->model->column_count, 0);
		break;
	case 'm':
		show_metrics(state);
		break;
	case '%':
		state->percent = !state->percent;
		break;
	}
}

static void tree_key(struct tui_state *state, int key)
{
	const uint32_t item = tui_cursor_item(state);

	switch (key) {
	case 'q':
		state->quit = true;
		break;
	case '?':
		show_help(state);
		break;
	case '!':
		show_warnings(state);
		break;
	case '/':
		begin_search(state);
		break;
	case 'n':
	case 'N':
		find_again(state, key == 'N');
		break;
	case 'u':
	case TUI_BACKSPACE:
		focus_back(state);
		break;
	case 'w':
		state->pending_action = TUI_ACTION_WORST_NEXT;
		break;
	case 'W':
		state->pending_action = TUI_ACTION_WORST_LAST;
		break;
	default:
		move_key(state, key);
		column_key(state, key);
		if (item != TUI_NONE)
			row_key(state, key, item);
	}
}

/* Searches again after each key, from where the cursor was when the search began. */
static void search_as_typed(struct tui_state *state)
{
	const uint32_t item = *state->search ? tui_search(state, state->search_from, 0)
					     : state->search_from;

	if (item == TUI_NONE)
		set_message(state, "no match");
	memcpy(state->open, state->open_before, state->model->keys);
	tui_reveal(state, item == TUI_NONE ? state->search_from : item);
}

static void search_key(struct tui_state *state, int key)
{
	size_t length = strlen(state->search);

	if (key == TUI_ENTER) {
		state->mode = TUI_TREE;
	} else if (key == TUI_ESCAPE) {
		state->mode = TUI_TREE;
		state->search[0] = '\0';
		search_as_typed(state);
	} else if (key == TUI_BACKSPACE) {
		while (length && (state->search[--length] & 0xc0) == 0x80)
			;
		state->search[length] = '\0';
		search_as_typed(state);
	} else if (key >= ' ' && key < 256 && key != 127 && length + 1 < sizeof state->search) {
		state->search[length] = (char)key;
		state->search[length + 1] = '\0';
		search_as_typed(state);
	}
}

static bool closes_lines(int key)
{
	return key == 'q' || key == 'd' || key == '?' || key == TUI_ESCAPE || key == TUI_LEFT ||
	       key == TUI_ENTER || key == TUI_BACKSPACE;
}

static void lines_key(struct tui_state *state, int key)
{
	const size_t room = tui_row_count(state) + 1,
		     last = state->lines.count > room ? state->lines.count - room : 0;

	if (key == TUI_UP || key == 'k')
		state->line_top -= state->line_top > 0;
	else if (key == TUI_DOWN || key == 'j')
		state->line_top++;
	else if (key == TUI_PAGE_UP)
		state->line_top -= state->line_top > room ? room : state->line_top;
	else if (key == TUI_PAGE_DOWN || key == ' ')
		state->line_top += room;
	else if (key == TUI_HOME)
		state->line_top = 0;
	else if (key == TUI_END)
		state->line_top = last;
	else if (closes_lines(key))
		state->mode = TUI_TREE;
	if (state->line_top > last)
		state->line_top = last;
}

static void request_metric(struct tui_state *state, const char *metric)
{
	const bool same = strcmp(metric, state->model->metric) == 0;

	state->pending_metric = metric;
	state->pending_action = same ? TUI_ACTION_NONE : TUI_ACTION_CHANGE_METRIC;
}

static void choose_menu_row(struct tui_state *state)
{
	struct tui_column *all = state->model->columns;
	const char *keys[METRIC_COUNT];
	uint32_t columns[256];

	if (state->mode == TUI_COLUMNS) {
		all[state->menu].shown = !all[state->menu].shown;
		return;
	}
	if (state->mode == TUI_SORTS && state->menu < tui_list_sort_columns(state, columns, 256)) {
		all[columns[state->menu]].shown = true;
		tui_sort(state, columns[state->menu]);
	}
	if (state->mode == TUI_METRICS && state->menu < tui_list_metrics(state, keys, METRIC_COUNT))
		request_metric(state, keys[state->menu]);
	state->mode = TUI_TREE;
}

static void scroll_menu_to_row(struct tui_state *state, uint32_t page)
{
	if (state->menu < state->menu_top)
		state->menu_top = state->menu;
	if (state->menu >= state->menu_top + page)
		state->menu_top = state->menu - page + 1;
}

static bool closes_menu(int key)
{
	return key == 'q' || key == TUI_ESCAPE || key == TUI_LEFT || key == TUI_BACKSPACE ||
	       key == 'c';
}

static void menu_key(struct tui_state *state, int key)
{
	const uint32_t page = tui_row_count(state), last = state->menu_count - 1;

	if (key == TUI_UP || key == 'k')
		state->menu -= state->menu > 0;
	else if (key == TUI_DOWN || key == 'j')
		state->menu += state->menu < last;
	else if (key == TUI_PAGE_UP)
		state->menu -= state->menu > page ? page : state->menu;
	else if (key == TUI_PAGE_DOWN)
		state->menu += last - state->menu > page ? page : last - state->menu;
	else if (key == TUI_HOME)
		state->menu = 0;
	else if (key == TUI_END)
		state->menu = last;
	else if (key == TUI_ENTER || key == ' ')
		choose_menu_row(state);
	else if (closes_menu(key))
		state->mode = TUI_TREE;
	scroll_menu_to_row(state, page);
}

void tui_handle_key(struct tui_state *state, int key)
{
	state->message[0] = '\0';
	switch (state->mode) {
	case TUI_TREE:
		tree_key(state, key);
		break;
	case TUI_SEARCH:
		search_key(state, key);
		break;
	case TUI_DETAILS:
	case TUI_HELP:
	case TUI_WARNINGS:
		lines_key(state, key);
		break;
	default:
		menu_key(state, key);
	}
}
