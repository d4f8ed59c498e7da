/* SPDX-License-Identifier: MIT
 * view.h: a view is rows and columns; the rows are arranged here, the columns know their values (column.h), printers
 * know formats (print.h). No printer per view: a new view is an entry in a table and a function that arranges.
 */
#ifndef PPERF_REPORT_TABLE_VIEW_H
#define PPERF_REPORT_TABLE_VIEW_H

#include "report/run/process.h"

#define NO_ROW UINT32_MAX

enum row_kind {
	ROW_NODE, /* of the tree, or of a flat one */
	ROW_PROCESS,
	ROW_INSTANCE, /* of the critical tree */
	ROW_SHAPE,    /* of a kernel */
	ROW_LEVEL,    /* a kind of memory on a device */
	ROW_SITE,     /* where memory of it was taken */
	ROW_API,
	ROW_COMPUTED,     /* its figures are its view's own (tally.h) */
	ROW_DISTRIBUTION, /* of a distribution */
};

/* One line. What it shows belongs to its process. */
struct row {
	struct process *process;
	enum row_kind kind;
	uint32_t parent, depth; /* parent: index of a row before it, or NO_ROW */
	uint32_t node;          /* of `tree`: its own, or where it happened */
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

struct column;
struct output;
struct report;
struct style;

struct rows {
	struct row *rows;
	size_t count, room;
	uint64_t small, deep, more; /* left out: below --min-percent, below --depth, beyond --top */
	bool empty_explained;       /* why there are none is among the warnings */
};

/* How text is laid out. */
enum layout {
	LAYOUT_TABLE,    /* the name last */
	LAYOUT_TREE,     /* the name first, indented under its parent */
	LAYOUT_CRITICAL, /* the critical tree */
	LAYOUT_SUMMARY,  /* what there is to know first, then a tree */
};

struct view {
	const char *name;    /* NULL: ends the list */
	const char *summary; /* its line in --help */
	enum layout layout;
	const char *columns; /* keys of all that a row can have, for JSON and CSV */
	const char *
		text; /* keys of those in text, the most important first; empty ones are left out */
	const char *sort;   /* key; NULL: what the metric makes of it */
	double min_percent; /* of text */
	uint32_t top;       /* of text; 0 all */
	/* One of the two makes the rows: of all processes shown, or of each. */
	void (*arrange)(
		const struct options *options, struct processes *processes, struct rows *rows);
	void (*arrange_process)(
		const struct options *options, struct process *process, struct rows *rows);
	/* What text says before the rows, NULL: nothing. */
	void (*header)(const struct report *report, const struct style *style);
	void (*draw)(const struct report *report,
		const struct style *style); /* text, instead of a table; NULL: none */
	void (*brief)(const struct report *report,
		struct output *out); /* all of --brief, text or JSON; NULL: there is none */
	bool no_percentiles;         /* no percentiles of ranges are shown */
	const char *
		subject; /* what its first argument is: NAME; NULL: there is none before the traces */
	const char *traces; /* what it takes then, for its usage; NULL: TRACE... */
	bool focus;         /* it knows --focus */
	const char *next;   /* what one may ask next (next.h); NULL: nothing */
	int (*run)(const struct options
			*options); /* instead: does everything itself and returns the exit status */
};

const struct view *view_find(const char *name); /* NULL: none of that name */
const struct view *view_default(void);
/* Sets the list that view_find and view_default search: entries up to one without a name. */
void views_set(const struct view *list);

struct row *rows_add(struct rows *rows, const struct row *row);
/* What rows are ordered and pruned by: --sort, else the view's key, else the metric of the process. */
const struct column *view_sort(const struct options *options, const struct process *process);
/* Orders `count` rows: the largest first, rows without a value last, equal ones by their time on the CPU, then by
 * name. */
void rows_sort(struct row *rows, size_t count, const struct column *column);
/* From row `first` on, which are ordered: leaves out those below so many percent of their sum, and those beyond
 * `top`; counts them. */
void rows_prune(struct rows *rows, size_t first, const struct column *column, double min_percent,
	uint32_t top);
/* From row `first` on they are all that lies in one place, at that depth (0: they are roots): ordered and pruned as the view
 * is, and gone if that is deeper than asked for; what is left out is counted. */
void rows_finish_level(const struct options *options, struct process *process, struct rows *rows,
	size_t first, uint32_t depth, uint32_t top);
double view_min_percent(const struct options *options);
uint32_t view_top(const struct options *options);

#endif
