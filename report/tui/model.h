/* SPDX-License-Identifier: MIT
 *
 * Defines what `tui` browses: nodes in the order of a tree, and the figures of each. There are two
 * kinds of models: one trace (model_trace.c) and two compared traces (model_diff.c). Rows, figures
 * and their order are those of the views `tree` and `diff`; nothing is computed again. A model does
 * not know the terminal.
 *
 * Sorting keeps a node's key, and so does a new metric unless measure() returns false. Its index
 * among the items changes.
 */
#ifndef PPERF_REPORT_TUI_MODEL_H
#define PPERF_REPORT_TUI_MODEL_H

#include "report/table/cell_text.h"

#define TUI_NONE UINT32_MAX

struct tui_item {
	uint32_t key;
	uint32_t parent; /* index of an item; TUI_NONE: a root */
	uint32_t depth;
	uint32_t end; /* index of the first item after its descendants */
};

/* How a piece of the screen is painted. Without colours, BAD and GOOD are bold. */
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
	char text[CELL_TEXT_BYTES]; /* escaped, terminated; "": nothing */
	enum tui_paint paint;
};

struct tui_column {
	const char *key, *title, *help;
	bool left; /* words: aligned to the left */
	bool sortable;
	bool filled; /* any item has a value other than zero */
	bool shown;
};

/* Lines of text that can be scrolled. Each is escaped, terminated and owned. */
struct tui_lines {
	char **lines;
	size_t count, room;
};

struct tui_model;

struct tui_kind {
	struct tui_cell (*cell)(struct tui_model *model, uint32_t item, uint32_t column,
		bool percent, uint32_t focus);
	/* Writes the escaped name into `out`, which is grown as needed, and returns its bytes.
	 * `is_short` leaves out the least important part. */
	size_t (*name)(
		struct tui_model *model, uint32_t item, bool is_short, char **out, size_t *room);
	enum tui_paint (*paint)(struct tui_model *model, uint32_t item);
	void (*sort)(struct tui_model *model, uint32_t column);
	/* Returns true if `metric`, a key of metric.h, can be shown. */
	bool (*has_metric)(struct tui_model *model, const char *metric);
	/* Changes to `metric` and chooses the columns again. Returns false if it is
	 * another tree now, whose keys are others. */
	bool (*change_metric)(struct tui_model *model, const char *metric);
	/* Returns the next item of the critical path below `from`, or its first one if `from` is
	 * not on it. `last`: returns the end of the path. Returns TUI_NONE if there is no path.
	 * `message` gets a sentence about the result. */
	uint32_t (*next_critical)(
		struct tui_model *model, uint32_t from, bool last, char *message, size_t room);
	void (*details)(struct tui_model *model, uint32_t item, struct tui_lines *lines);
	/* Returns true if Enter shows the details of the item although it may have children
	 * (kernels). On other items with children Enter opens or closes them. */
	bool (*enter_shows_details)(struct tui_model *model, uint32_t item);
	void (*free)(struct tui_model *model);
};

struct tui_model {
	const struct tui_kind *kind;
	const struct options *options;
	const struct style *style;
	struct tui_item *items;
	uint32_t count;
	uint32_t keys; /* number of keys; every key is below it */
	struct tui_column *columns;
	uint32_t column_count, sort; /* sort: index of the column that rows are sorted by */
	const char *metric;
	char title[256]; /* escaped: what is shown */
	bool simulated;
	struct tui_lines warnings;
	void *context; /* data of the kind */
};

/* Reads the trace. Ends the program with a message if it cannot be read. The options and the style
 * must outlive the model. */
struct tui_model *tui_model_of_trace(const struct options *options, const struct style *style);
/* Reads and compares two traces, like tui_model_of_trace(). */
struct tui_model *tui_model_of_diff(const struct options *options, const struct style *style);
void tui_model_free(struct tui_model *model);

/* Returns the index of the item with that key, or TUI_NONE. */
uint32_t tui_model_find(const struct tui_model *model, uint32_t key);

/* Fills `end` of all items from their parents. Called by the kinds. */
void tui_model_set_ends(struct tui_model *model);
/* Sets the title: the name of the file, or of two files with the folders that distinguish them.
 * `after`: the second file, or NULL. */
void tui_set_title(struct tui_model *model, const char *path, const char *after);
/* Appends `text`, escaped, as one line or as several lines of the style's width. */
void tui_line(struct tui_lines *lines, const struct style *style, const char *text, size_t bytes);
/* Appends one formatted line, which must be escaped already. */
void tui_linef(struct tui_lines *lines, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void tui_lines_free(struct tui_lines *lines);

/* Appends all that is known of a node in one trace (details.c). */
void tui_details(struct tui_lines *lines, const struct style *style, const struct row *row);
/* Appends all that is known of a node in two traces; either row may be NULL. */
void tui_details_diff(struct tui_lines *lines, const struct style *style, const struct row *before,
	const struct row *after);

#endif
