/* SPDX-License-Identifier: MIT
 * Holds what the user asks for: the parsed command line. Plain data, filled by command_line_parse.
 */
#ifndef PPERF_REPORT_RUN_OPTIONS_H
#define PPERF_REPORT_RUN_OPTIONS_H

#include "report/symbols/demangle.h"
#include "report/text/style.h"
#include "report/profile/metric.h"
#include "report/trace/op_inputs.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct view;

/* What the rows of a table are made by. */
#define ROWS_BY(X)            \
	X(NAME, name)         \
	X(SHAPE, shape)       \
	X(MODULE, module)     \
	X(STACK, stack)       \
	X(CATEGORY, category) \
	X(STREAM, stream)     \
	X(THREAD, thread)     \
	X(RANK, rank)         \
	X(STEP, step)

enum rows_by {
#define X(by, name) BY_##by,
	ROWS_BY(X)
#undef X
		BY_COUNT
};

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV };
enum instances_of {
	INSTANCES_SUM,
	INSTANCES_WORST,
	INSTANCES_FIRST,
	INSTANCES_LAST,
	INSTANCES_ALL
}; /* SUM: of all */

struct options {
	const struct view *view; /* never NULL */
	const char *subject;     /* what the view is of, if it takes a name; else NULL */
	const char **files;
	size_t file_count;
	enum format format;
	const char *output;      /* NULL: stdout */
	const char *metric_name; /* NULL: not given */
	enum metric metric;
	const char *sort; /* key of a column; NULL: the view's */
	const char *
		columns; /* keys, separated by commas, instead of the view's own columns; NULL: those */
	const char *row_columns; /* keys of all that JSON and CSV say of a row (columns_choose) */
	enum instances_of instances; /* of a place: what they come to, or single ones */
	uint32_t depth;              /* levels shown; UINT32_MAX all */
	uint32_t top;                /* rows of each level shown; UINT32_MAX all; 0: not given */
	double min_percent;          /* below 0: not given */
	double max_regression;       /* percent; below 0: not given */
	const char *baseline;        /* what a gate is to write; NULL: it compares */
	enum rows_by by;
	const char *categories; /* file of rules; NULL: the built-in ones */
	const char *peaks;      /* file of what GPUs can do; NULL: the built-in one */
	enum element_type
		assumed; /* the type of tensors of which the trace has none; UNKNOWN: none is assumed */
	const char *focus; /* NULL: everything */
	bool steps;
	uint64_t first_step, last_step;
	bool no_steps;           /* the tree without steps that nobody marked */
	const char *step_marker; /* NULL: as the program's environment said */
	int64_t device, rank;    /* -1: not given */
	bool brief;              /* what a view has to say in few bytes */
	bool no_percentiles;     /* the view shows no percentiles of ranges: none are computed */
	bool all, no_fold, sources, strict, redact, no_pager, no_progress, legend, version, help;
	struct style_settings style;
	enum demangle_form demangle;
};

/* Splits a path at `/`. In a name `\/` is a slash, `\\` a backslash, and `\xff` a byte by its two hexadecimal
 * digits. Writes the next component to `out`, which has room for the rest of *path, and moves *path behind it.
 * Returns false at the end of the path. */
bool focus_next_component(const char **path, char *out, size_t *length);

#endif
