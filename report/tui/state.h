/* SPDX-License-Identifier: MIT
 *
 * Holds where the user of `tui` is: the cursor, the open nodes, the search and the list that is
 * shown. Keys change it (keys.c), and draw.h draws it. A state has a width and a height but needs
 * no terminal, so tests can send keys.
 *
 * Cost: a key that opens or closes a node is O(rows shown); sorting and searching are O(nodes).
 */
#ifndef PPERF_REPORT_TUI_STATE_H
#define PPERF_REPORT_TUI_STATE_H

#include "report/tui/model.h"

#define TUI_MIN_WIDTH 40u
#define TUI_MIN_HEIGHT 8u
#define TUI_SEARCH_BYTES 128u

/* Keys that are not characters. */
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
	TUI_SEARCH, /* the tree, while a search text is typed */
	TUI_COLUMNS,
	TUI_METRICS,
	TUI_SORTS,
	TUI_DETAILS, /* state.lines */
	TUI_HELP,
	TUI_WARNINGS,
};

/* Actions that take long. They run after the screen has announced them. */
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
	uint32_t *shown; /* indexes of the items that are rows of the screen */
	size_t shown_room;
	uint32_t shown_count, cursor, top; /* cursor, top: rows */
	uint32_t *focus;                   /* keys of the focused nodes; the last one is in force */
	size_t focus_count, focus_room;
	char search[TUI_SEARCH_BYTES]; /* terminated; "": none */
	uint32_t search_from;          /* item under the cursor when the search began */
	/* `open` when the search began: another search text starts from it */
	uint8_t *open_before;
	bool percent;
	uint32_t first_column; /* number of shown columns that are scrolled out on the left */
	/* of a menu: the row under the cursor, the first visible row, the number of rows */
	uint32_t menu, menu_top, menu_count;
	struct tui_lines lines; /* of details, help or warnings */
	size_t line_top;
	enum tui_action pending_action;
	const char *pending_metric;
	char message[256]; /* escaped; cleared by the next key */
	bool quit;
};

/* Makes a state in which as many levels are open as fit the screen, and then the heaviest path as
 * far as it fits. The caller keeps ownership of the model. */
struct tui_state *tui_state_new(struct tui_model *model, unsigned width, unsigned height);
void tui_state_free(struct tui_state *state);

void tui_resize(struct tui_state *state, unsigned width, unsigned height);
/* Handles a byte of a character (UTF-8 comes byte by byte) or an enum tui_key. Other keys are
 * ignored. */
void tui_handle_key(struct tui_state *state, int key);
/* Runs the pending action, if there is one. */
void tui_run_pending(struct tui_state *state);

/* Functions of visible_rows.c, about the rows. */
uint32_t tui_cursor_item(const struct tui_state *state); /* TUI_NONE: there are no rows */
uint32_t tui_focus_item(const struct tui_state *state);  /* TUI_NONE: everything is shown */
bool tui_is_open(const struct tui_state *state, uint32_t item);
bool tui_has_children(const struct tui_state *state, uint32_t item);
/* Computes the rows again after nodes were opened, closed or moved. The cursor goes to `item`, or
 * with TUI_NONE stays on its item. */
void tui_update_rows(struct tui_state *state, uint32_t item);
void tui_set_open(struct tui_state *state, uint32_t item, bool open);
/* Opens or closes the item and all its descendants. */
void tui_set_open_all(struct tui_state *state, uint32_t item, bool open);
/* Opens the ancestors of the item and moves the cursor to it. Leaves the focus if the item is
 * outside. */
void tui_reveal(struct tui_state *state, uint32_t item);
/* Sorts by a column. Cursor, focus and open nodes stay with their nodes. */
void tui_sort(struct tui_state *state, uint32_t column);
/* Returns the next item whose name contains the search text, or TUI_NONE. `by` is 1: after
 * `from`, 0: from `from` on, -1: before `from`. The search stays in the focus and wraps around at
 * its end. */
uint32_t tui_search(struct tui_state *state, uint32_t from, int by);
unsigned tui_row_count(const struct tui_state *state); /* rows that fit the screen */
void tui_scroll(struct tui_state *state);              /* makes the cursor visible */

/* Stores the keys of the metrics that can be chosen, in the order of the menu. Returns their
 * number. */
uint32_t tui_list_metrics(const struct tui_state *state, const char **keys, uint32_t room);
/* Stores the columns that rows can be sorted by, in the order of the menu. Returns their number. */
uint32_t tui_list_sort_columns(const struct tui_state *state, uint32_t *columns, uint32_t room);

#endif
