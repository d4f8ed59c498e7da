/* SPDX-License-Identifier: MIT
 * tui_state.h: where the user of `tui` is: the cursor, what is open, what is searched for, which list is shown. Keys
 * change it (tui_keys.c); what it looks like is tui_paint.h's. No terminal is needed: a state has a width and a
 * height, and tests press keys.
 *
 * Cost: a key that opens or closes is O(rows shown); ordering and searching are O(places).
 */
#ifndef PPERF_REPORT_TUI_STATE_H
#define PPERF_REPORT_TUI_STATE_H

#include "report/tui/model.h"

#define TUI_MIN_WIDTH 40u
#define TUI_MIN_HEIGHT 8u
#define TUI_SEARCH_BYTES 128u

/* Keys beyond those that are characters. */
enum tui_key {
	TUI_UP = 0x110000,
	TUI_DOWN,
	TUI_LEFT,
	TUI_RIGHT,
	TUI_PAGE_UP,
	TUI_PAGE_DOWN,
	TUI_HOME,
	TUI_END,
	TUI_ENTER,
	TUI_ESCAPE,
	TUI_BACKSPACE,
};

enum tui_mode {
	TUI_TREE,
	TUI_SEARCH, /* the tree, while something to be found is typed */
	TUI_COLUMNS,
	TUI_METRICS,
	TUI_SORTS,
	TUI_DETAILS, /* lines */
	TUI_HELP,
	TUI_WARNINGS,
};

/* What takes long, and is done after a word about it is on the screen. */
enum tui_action {
	TUI_ACTION_NONE,
	TUI_ACTION_CHANGE_METRIC,
	TUI_ACTION_WORST_NEXT,
	TUI_ACTION_WORST_LAST
};

struct tui_state {
	struct tui_model *model;
	unsigned width, height;
	enum tui_mode mode;
	uint8_t *open;   /* by key */
	uint32_t *shown; /* items, as rows of the screen */
	size_t shown_room;
	uint32_t shown_count, cursor, top; /* cursor, top: rows */
	uint32_t *focus;                   /* keys of what was focused on, the last one counts */
	size_t focus_count, focus_room;
	char search[TUI_SEARCH_BYTES]; /* terminated; "" nothing */
	uint32_t search_from;          /* item where the cursor was as it began */
	uint8_t *
		open_before; /* what was open then, by key: what a shorter text has found closes again */
	bool percent;
	uint32_t first_column; /* so many of those shown are out of sight, to the left */
	uint32_t menu, menu_top,
		menu_count;     /* of a list: the row under the cursor, the first in sight, all */
	struct tui_lines lines; /* of details, help, remarks */
	size_t line_top;
	enum tui_action pending_action;
	const char *pending_metric;
	char message[256]; /* visible; until the next key */
	bool quit;
};

/* The first rows that fit are open. The model stays the caller's. */
struct tui_state *tui_state_new(struct tui_model *model, unsigned width, unsigned height);
void tui_state_free(struct tui_state *state);

void tui_resize(struct tui_state *state, unsigned width, unsigned height);
/* A character (bytes of UTF-8 one by one) or an enum tui_key; others are ignored. */
void tui_handle_key(struct tui_state *state, int key);
/* Does what is wished for, if anything. */
void tui_run_pending(struct tui_state *state);

/* tui_rows.c: the rows. */
uint32_t tui_cursor_item(const struct tui_state *state); /* TUI_NONE: there are no rows */
uint32_t tui_focus_item(const struct tui_state *state);  /* TUI_NONE: everything is shown */
bool tui_is_open(const struct tui_state *state, uint32_t item);
bool tui_has_children(const struct tui_state *state, uint32_t item);
/* Finds the rows anew after something opened, closed or moved; the cursor goes to `item`, or where it was. */
void tui_update_rows(struct tui_state *state, uint32_t item);
void tui_open(struct tui_state *state, uint32_t item, bool open);
/* It, and all that lies in it. */
void tui_open_all(struct tui_state *state, uint32_t item, bool open);
/* Opens what lies around it, and goes there; out of the focus if it must. */
void tui_reveal(struct tui_state *state, uint32_t item);
/* Orders by the column; cursor, focus and what is open stay with their places. */
void tui_sort(struct tui_state *state, uint32_t column);
/* The next place after `from` (by: 1), from it on (0) or before it (-1), in the focus and round its end, whose name has
 * what is searched for; TUI_NONE: there is none. */
uint32_t tui_search(struct tui_state *state, uint32_t from, int by);
unsigned tui_row_count(const struct tui_state *state); /* that there is room for */
void tui_scroll(struct tui_state *state);              /* so that the cursor is in sight */

/* The metrics that can be chosen, as they stand in the list; returns how many. */
uint32_t tui_list_metrics(const struct tui_state *state, const char **keys, uint32_t room);
/* The columns to order by, likewise. */
uint32_t tui_list_sort_columns(const struct tui_state *state, uint32_t *columns, uint32_t room);

#endif
