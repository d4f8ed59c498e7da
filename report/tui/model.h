/* SPDX-License-Identifier: MIT
 * tui_model.h: what `tui` browses: places in the order of a tree, and the figures of each. Two kinds: a trace
 * (tui_trace.c) and two compared (tui_diff.c). Rows, figures and their order are those of the views `tree` and `diff`;
 * nothing is computed here a second time. Knows no terminal.
 *
 * A place keeps its key whatever it is ordered or measured by; its number among the items it does not.
 */
#ifndef PPERF_REPORT_TUI_MODEL_H
#define PPERF_REPORT_TUI_MODEL_H

#include "report/table/cell_text.h"

#define TUI_NONE UINT32_MAX

struct tui_item {
	uint32_t key;
	uint32_t parent; /* item, TUI_NONE: a root */
	uint32_t depth;
	uint32_t end; /* the first item behind all that lies in it */
};

/* How a piece of the screen looks, where there are colours; without, BAD and GOOD are bold. */
enum tui_paint {
	TUI_PLAIN,
	TUI_BOLD,
	TUI_DIM,
	TUI_BAR,
	TUI_CURSOR,
	TUI_HOT,
	TUI_WARM,
	TUI_BAD,
	TUI_GOOD,
	TUI_PAINTS
};

struct tui_cell {
	char text[CELL_TEXT_BYTES]; /* visible, terminated; "" nothing */
	enum tui_paint paint;
};

struct tui_column {
	const char *key, *title, *help;
	bool left; /* words stand at the left */
	bool sortable;
	bool filled; /* any item has something there */
	bool shown;
};

/* Lines of text to be scrolled through: all visible, terminated, owned. */
struct tui_lines {
	char **lines;
	size_t count, room;
};

struct tui_model;

struct tui_kind {
	struct tui_cell (*cell)(struct tui_model *model, uint32_t item, uint32_t column,
		bool percent, uint32_t focus);
	/* The name as it is shown, visible, to `out`, which has as much room as it asks for (grow()). Returns its bytes.
	 * is_short: without what tells least. */
	size_t (*name)(
		struct tui_model *model, uint32_t item, bool is_short, char **out, size_t *room);
	enum tui_paint (*paint)(struct tui_model *model, uint32_t item);
	void (*sort)(struct tui_model *model, uint32_t column);
	/* Whether `metric` (a key of metric.h) can be shown, and the change to it; the columns are then chosen anew. */
	bool (*has_metric)(struct tui_model *model, const char *metric);
	bool (*measure)(
		struct tui_model *model, const char *metric); /* false: the keys are others now */
	/* From an item (TUI_NONE: none) to the next level of the critical path, or with `last` to where it ends.
	 * TUI_NONE: there is none. `said`: a sentence about it. */
	uint32_t (*worst)(
		struct tui_model *model, uint32_t from, bool last, char *message, size_t room);
	void (*details)(struct tui_model *model, uint32_t item, struct tui_lines *lines);
	bool (*has_details_first)(
		struct tui_model *model, uint32_t item); /* enter shows them: kernels */
	void (*free)(struct tui_model *model);
};

struct tui_model {
	const struct tui_kind *kind;
	const struct options *options;
	const struct style *style;
	struct tui_item *items;
	uint32_t count;
	uint32_t keys; /* above every key */
	struct tui_column *columns;
	uint32_t column_count, sort; /* sort: what it is ordered by */
	const char *metric;
	char title[256]; /* visible: what is shown */
	bool simulated;
	struct tui_lines warnings;
	void *context; /* of the kind */
};

/* Reads the file, or compares two; ends the program with a sentence if it cannot. The options and the style outlive
 * it. */
struct tui_model *tui_trace(const struct options *options, const struct style *style);
struct tui_model *tui_diff(const struct options *options, const struct style *style);
void tui_model_free(struct tui_model *model);

/* The item with that key; TUI_NONE: there is none. */
uint32_t tui_model_find(const struct tui_model *model, uint32_t key);

/* For them: fills in `end` from the parents. */
void tui_model_set_ends(struct tui_model *model);
/* What stands in the first row: the file's name, of two (after: NULL, or the second) with what tells them apart. */
void tui_set_title(struct tui_model *model, const char *path, const char *after);
/* Makes `text`, any bytes, a line, or so many as its length asks for at that width. */
void tui_line(struct tui_lines *lines, const struct style *style, const char *text, size_t bytes);
void tui_linef(struct tui_lines *lines, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void tui_lines_free(struct tui_lines *lines);

/* tui_details.c: all that is known of a place in one trace; and of one in two. */
void tui_details(struct tui_lines *lines, const struct style *style, const struct row *row);
void tui_details_diff(struct tui_lines *lines, const struct style *style, const struct row *before,
	const struct row *after);

#endif
