/* SPDX-License-Identifier: MIT
 *
 * Defines views and their rows. A view picks rows, columns compute their values, and printers write
 * every view in every format. A new view is an entry in a table and a function that adds rows.
 */
#ifndef PPERF_REPORT_TABLE_VIEW_H
#define PPERF_REPORT_TABLE_VIEW_H

#include "report/analysis/shared_pass.h"

#define NO_ROW UINT32_MAX

enum row_kind {
	ROW_NODE, /* of the call tree, or of a grouped tree */
	ROW_PROCESS,
	ROW_INSTANCE, /* of the critical tree */
	ROW_SHAPE,    /* launch configuration of a kernel */
	ROW_LEVEL,    /* a kind of memory on a device */
	ROW_SITE,     /* where such memory was allocated */
	ROW_API,
	ROW_COMPUTED,     /* its view computed its values (computed_row.h) */
	ROW_DISTRIBUTION, /* a part of a distribution */
};

/* One line of output. What it points to belongs to its process. */
struct row {
	struct process *process;
	enum row_kind kind;
	uint32_t parent, depth; /* parent: index of an earlier row, or NO_ROW */
	uint32_t node;          /* of `tree`: the row's node, or where it happened */
	/* Rows between its parent's and its own are left out, because they have the same value. */
	bool skips_rows;
	const struct tree *tree;
	union {
		const struct instance *instance;
		const struct launch_config *shape;
		const struct memory_level *level;
		const struct memory_site *site;
		const struct api_time *api;
		const struct computed_row *computed;
		const struct distribution_row *part;
	} of;
};

/* Returns a row of a tree's node, without a parent. */
static inline struct row tree_row(struct process *process, const struct tree *tree, uint32_t node)
{
	return (struct row){
		.process = process, .kind = ROW_NODE, .parent = NO_ROW, .node = node, .tree = tree
	};
}

struct column;
struct output;
struct report;
struct style;

struct rows {
	struct row *rows;
	size_t count, room;
	uint64_t hidden_by_percent, hidden_by_depth,
		hidden_by_top; /* left out: below --min-percent, below --depth, beyond --top */
	uint64_t beyond_max;   /* left out: beyond options.rows_max */
	bool empty_explained;  /* a warning already says why there are no rows */
};

/* The layout of text output. */
enum layout {
	LAYOUT_TABLE,    /* the name is the last column */
	LAYOUT_TREE,     /* the name is first, indented below its parent */
	LAYOUT_CRITICAL, /* the critical tree */
	LAYOUT_SUMMARY,  /* facts about the run, then a tree */
};

struct view {
	const char *name;    /* NULL: end of the list */
	const char *summary; /* its line in --help */
	enum layout layout;
	const char *columns; /* keys of all that a row can have, for JSON and CSV */
	const char *
		text; /* keys of those in text, the most important first; empty ones are left out */
	const char *sort;    /* key; NULL: what the metric makes of it */
	bool sorts_silently; /* text shows the column `sort` in its place in `text`, not first */
	const char *share_title; /* of the column "share", in text; NULL: its own */
	double min_percent;      /* in text */
	uint32_t top;            /* in text: most rows of one level; 0: no limit */
	/* One of the two makes the rows: of all processes shown, or of each. */
	void (*arrange)(
		const struct options *options, struct processes *processes, struct rows *rows);
	void (*arrange_process)(
		const struct options *options, struct process *process, struct rows *rows);
	/* Adds what the view reads to the pass that makes the profile (shared_pass_join). NULL:
	 * nothing. */
	void (*read_in)(const struct options *options, struct shared_pass *pass);
	/* `arrange` makes computed rows and warnings only, which are kept (kept_rows.h). */
	bool keeps_rows;
	const char *reads; /* how to read the rows: a line of text before them; NULL: none */
	/* What text says before the rows, NULL: nothing. */
	void (*header)(const struct report *report, const struct style *style);
	/* What text says after the rows, NULL: nothing. */
	void (*footer)(const struct report *report, const struct style *style);
	/* Prints why there are no rows, and how to record them. NULL: a general sentence. */
	void (*explain_empty)(const struct report *report, const struct style *style);
	/* Prints text instead of a table. NULL: a table. */
	void (*draw)(const struct report *report, const struct style *style);
	/* Writes the whole --brief output, as text or JSON. NULL: no --brief. */
	void (*brief)(const struct report *report, struct output *out);
	bool no_percentiles; /* percentiles of ranges are never shown */
	bool shows_samples;  /* it shows the functions of CPU samples */
	/* What the argument before the traces is called, such as NAME; NULL: there is none. */
	const char *subject;
	const char *traces; /* the traces in its usage line; NULL: TRACE... */
	bool focus;         /* accepts --focus */
	bool takes_folders; /* finds the traces in directories itself */
	const char *next;   /* suggested next command (next_command.h); NULL: none */
	/* Writes more members of the JSON document, each with a comma before it. NULL: none. */
	void (*put_json)(const struct report *report, struct output *out);
	bool is_hidden; /* for tests: --help does not list it */
	/* Does the whole view and returns the exit status. Used instead of the other functions. */
	int (*run)(const struct options *options);
};

const struct view *view_find(const char *name); /* NULL: no such view */
const struct view *view_default(void);
/* Sets the list that view_find and view_default search. It ends with an entry without a name. */
void views_set(const struct view *list);

struct row *rows_add(struct rows *rows, const struct row *row);
/* Returns the column by which rows are sorted and pruned: --sort, else the view's key, else the
 * metric of the process. */
const struct column *view_sort(const struct options *options, const struct process *process);
/* Sorts `count` rows by descending value. Rows without a value come last; equal ones are sorted by
 * CPU time, then by name. */
void rows_sort(struct row *rows, size_t count, const struct column *column);
/* Drops sorted rows from `first` on: those below `min_percent` of their sum, and those beyond
 * `top`. Counts what it drops. */
void rows_prune(struct rows *rows, size_t first, const struct column *column, double min_percent,
	uint32_t top);
/* Finishes the rows from `first` on, which are all children of one row at `depth` (0: roots). Sorts
 * and prunes them as the view requires, and drops all if `depth` is beyond --depth. Counts what it
 * drops. */
void rows_finish_level(const struct options *options, struct process *process, struct rows *rows,
	size_t first, uint32_t depth, uint32_t top);
/* Returns the share of its level below which a row is hidden: --min-percent, else in text the
 * view's, else 0 (JSON, CSV). */
double view_min_percent(const struct options *options);
/* Returns how many rows of one level are shown at most: --top, else in text the view's limit.
 * UINT32_MAX: no limit. */
uint32_t view_top(const struct options *options);

#endif
