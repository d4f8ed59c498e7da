/* SPDX-License-Identifier: MIT
 *
 * Opens the runs that `diff` and `gate` compare, and computes metrics of a run, each with its value
 * at every call path. A run is a trace or, for `gate`, a baseline file.
 *
 * A baseline file is JSON, and paths in it are written as --focus takes them:
 *
 *	{"schema":"pperf.baseline/1","basis":"step","steps":100,"rank":null,"figures":[
 *	 {"name":"gpu","unit":"ns","value":1.5,"values":[1.4,1.6],"rows":[["turn/op",1.2], ...]}]}
 */
#ifndef PPERF_REPORT_ANALYSIS_COMPARED_RUN_H
#define PPERF_REPORT_ANALYSIS_COMPARED_RUN_H

#include "report/analysis/metric_samples.h"
#include "report/stats/change_test.h"
#include "report/text/json_writer.h"

struct run_row {
	char *path;
	double value;
};

/* A metric that `gate` can compare. */
struct run_metric_kind {
	const char *name;
	enum metric metric; /* of the nodes */
	bool is_peak;       /* the value is the highest level of the run, not a flow */
	/* Returns the value of the whole run. Such a metric has no values of steps and no rows.
	 * NULL: another metric. */
	double (*of_memory)(const struct profile *profile);
	enum unit unit;     /* of of_memory */
	bool needs_tensors; /* of_memory: there must be records of PyTorch's allocator */
};

#define RUN_METRICS 13

/* In the order in which a baseline file has them. */
extern const struct run_metric_kind run_metric_kinds[RUN_METRICS];

struct run_metric {
	const struct run_metric_kind *kind;
	double value;
	/* of steady-state steps by time (of many steps every k-th): samples to separate a change
	 * from noise; NULL: none */
	double *values;
	size_t value_count;
	struct run_row *rows; /* sorted by path; rows with equal paths are added up */
	size_t row_count, row_room;
};

struct compared_run {
	const char *path; /* of the file */
	struct processes processes;
	struct process *process;               /* NULL: read from a baseline file */
	struct metric_samples *metric_samples; /* of the metric that `diff` compares; NULL: none */
	bool by_steps; /* values are those of a steady-state step, not of the whole run */
	size_t steps;  /* number of steady-state steps */
	int64_t rank;  /* -1: none, or unknown */
	struct run_metric metrics[RUN_METRICS]; /* in the order in which they were computed */
	size_t metric_count;
};

/* Opens a trace or, if `allows_baseline`, a baseline file. The metrics of a trace are computed
 * later, by compared_run_metric. Ends the program if the file cannot be read. */
void compared_run_open(struct compared_run *run, const struct options *options, const char *path,
	bool allows_baseline);
/* Opens the files `before` and `after`. Both get the same by_steps: false if one of them has too
 * few steps. Ends the program if the other one is then a baseline file of steps. */
void compared_runs_open(struct compared_run runs[2], const struct options *options,
	const char *before, const char *after, bool allows_baseline);
void compared_run_free(struct compared_run *run);

/* Returns the element of run_metric_kinds with this name, or NULL. */
const struct run_metric_kind *run_metric_find(const char *name);
enum unit run_metric_unit(const struct run_metric *metric);
/* Adds a row, whose path it keeps. run_metric_order_rows sorts and merges them. */
void run_metric_add_row(struct run_metric *metric, char *path, double value);
void run_metric_order_rows(struct run_metric *metric);
void run_metric_free(struct run_metric *metric);

/* Returns the metric; for a trace the first call computes it. NULL: the run has no data for it. */
const struct run_metric *compared_run_metric(
	struct compared_run *run, const struct run_metric_kind *kind);

/* Finds the row with the largest increase. If one below it has more than half of that, the row
 * becomes that one, and so on. Returns its path and *increase; NULL: no row increased. */
const char *run_metric_worst_path(
	const struct run_metric *before, const struct run_metric *after, double *increase);

/* Loads the baseline file `path`. Returns false if the file is none. Ends the program if it is
 * damaged. */
bool baseline_load(struct compared_run *run, const char *path);
/* Writes all metrics computed so far as a baseline file. */
void baseline_write(const struct compared_run *run, struct output *out);

/* Returns "ns", "bytes" or "count". */
const char *json_unit_name(enum unit unit);
/* Begins the JSON of a view that compares two files. */
void json_begin_comparison(
	struct json_writer *json, const char *view, const char *before, const char *after);
/* Writes the ranks of both runs, and how their samples were tested. */
void json_put_test_method(struct json_writer *json, const struct compared_run runs[2]);

#endif
