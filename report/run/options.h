/* SPDX-License-Identifier: MIT
 * Holds what the user requests: the parsed command line. Plain data, filled by
 * command_line_parse.
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

/* What the rows of the views table and memory are grouped by. */
#define ROWS_BY(X)            \
	X(NAME, name)         \
	X(SHAPE, shape)       \
	X(MODULE, module)     \
	X(STACK, stack)       \
	X(CATEGORY, category) \
	X(STREAM, stream)     \
	X(THREAD, thread)     \
	X(RANK, rank)         \
	X(STEP, step)         \
	X(PATH, path)         \
	X(LINE, line)         \
	X(SIZE, size)         \
	X(LIBRARY, library)   \
	X(FUNCTION, function) \
	X(PYTHON, python)     \
	X(NATIVE, native)     \
	X(ALL, all)           \
	X(CLASS, class)

enum rows_by {
#define X(by, name) BY_##by,
	ROWS_BY(X)
#undef X
		BY_COUNT
};

/* Returns whether rows of `table` are by what CPU samples found. */
static inline bool rows_by_samples(enum rows_by by)
{
	return by == BY_FUNCTION || by == BY_LINE || by == BY_LIBRARY;
}

/* HTML: of the views flame and html. SVG: of the view flame. */
enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV, FORMAT_HTML, FORMAT_SVG };
/* Which instances of a node are shown. SUM: all of them together. */
enum instances_of {
	INSTANCES_SUM,
	INSTANCES_WORST,
	INSTANCES_FIRST,
	INSTANCES_LAST,
	INSTANCES_ALL
};

struct options {
	const struct view *view; /* never NULL */
	const char *subject;     /* the name that the view takes, if any; else NULL */
	const char **files;
	size_t file_count;
	enum format format;
	const char *output;      /* NULL: stdout */
	const char *metric_name; /* NULL: not given */
	enum metric metric;
	const char *sort; /* key of a column; NULL: the view's */
	/* Keys, separated by commas. NULL: the view's own columns. */
	const char *columns;
	/* Keys of the columns of JSON and CSV: those of --columns, else of the view. Set by
	 * columns_select. */
	const char *output_columns;
	enum instances_of instances; /* of a node: their sum, or single ones */
	uint32_t depth;              /* levels shown; UINT32_MAX: all */
	uint32_t top;                /* rows shown per level; UINT32_MAX: all; 0: not given */
	uint32_t rows_max;           /* steps: no later rows are needed; 0: all are */
	double min_percent;          /* negative: not given */
	double max_regression;       /* percent; negative: not given */
	const char *baseline;        /* file that a gate writes; NULL: the gate compares */
	enum rows_by by;
	const char *kinds;      /* of the rows of table, comma-separated; NULL: all */
	const char *categories; /* file of rules; NULL: the built-in ones */
	const char *peaks;      /* file of GPU peaks; NULL: the built-in one */
	/* Type of tensors whose type is not in the trace. UNKNOWN: none is assumed. */
	enum element_type assumed;
	const char *focus; /* NULL: everything */
	bool steps;
	uint64_t first_step, last_step;
	bool no_steps;           /* the tree without steps that were found without marks */
	const char *graphs;      /* file with the captures of CUDA graphs; NULL: none */
	const char *step_marker; /* NULL: the setting of the program's environment */
	int64_t device, rank;    /* -1: not given */
	uint32_t quorum;         /* ranks: percent; 0: not given */
	const char *run;         /* ranks: id of a run; NULL: not given */
	const char *stretches;   /* part: file with stretches of one trace; NULL: not given */
	bool no_findings;        /* part: without the findings of diagnose */
	bool share;              /* part: one of several processes shares the traces */
	uint32_t jobs;           /* cores that may be used; 0: all */
	uint32_t tasks;          /* part: number of these processes; 0: not given */
	/* memory: moments, words separated by commas (memory_moments_add_list). NULL: not given. */
	const char *at;
	const char *snapshot; /* memory: file to write for memory_viz. NULL: not given */
	bool map, over_time;  /* memory: the map of segments; their history */
	bool growth;          /* memory: what grows from step to step */
	bool ledger;          /* memory: who uses the capacity of each GPU */
	bool functions;       /* tree: the functions that samples found below each node */
	bool callers;         /* table --by function: the callers of each */
	unsigned native_all;  /* 1: with the interpreter's own functions */
	bool only_telling;    /* table --by function: fewer rows, for the first screen */
	bool brief;           /* the view's short form */
	bool no_percentiles;  /* the view shows no percentiles of ranges: compute none */
	bool charges_idle;    /* the view needs the idle time before the work of each node */
	bool shows_samples;   /* the view needs the functions of CPU samples (sample_cells.h) */
	bool trends;          /* html: the file has the data of a page of nights */
	bool whole;           /* flame -f svg: also what is outside of the steps */
	bool all, no_fold, sources, strict, redact, no_pager, no_progress, no_cache, legend,
		version, help;
	struct style_settings style;
	enum demangle_form demangle;
};

/* Splits a path at `/`. In a name `\/` is a slash, `\\` a backslash, and `\xff` a byte by its two
 * hexadecimal digits. Writes the next component to `out`, which has room for the rest of *path, and
 * moves *path to the byte after it. Returns false at the end of the path. */
bool focus_next_component(const char **path, char *out, size_t *length);

#endif
