/* SPDX-License-Identifier: MIT
 *
 * Computes the metrics of one run that `gate` compares, each with its value at every call path. The
 * run is a trace or a baseline file.
 *
 * A baseline file is JSON, and paths in it are written as --focus takes them:
 *
 *	{"schema":"pperf.baseline/1","basis":"step","steps":100,"rank":null,"figures":[
 *	 {"name":"gpu","unit":"ns","value":1.5,"values":[1.4,1.6],"rows":[["turn/op",1.2], ...]}]}
 */
#ifndef PPERF_REPORT_ANALYSIS_BASELINE_H
#define PPERF_REPORT_ANALYSIS_BASELINE_H

#include "report/analysis/metric_samples.h"
#include "report/text/output.h"

struct baseline_row {
	char *path;
	double value;
};

struct baseline_metric {
	char name[32];
	enum unit unit;
	double value;
	/* of steady-state steps by time (of many steps every k-th): samples to separate a change
	 * from noise; NULL: none */
	double *values;
	size_t value_count;
	struct baseline_row *rows; /* sorted by path; rows with equal paths are added up */
	size_t row_count, row_room;
};

struct baseline {
	const char *path; /* of the file */
	struct processes processes;
	struct process *process; /* NULL: read from a baseline file */
	bool by_steps;           /* values are those of a steady-state step, not of the whole run */
	size_t steps;            /* number of steady-state steps */
	int64_t rank;            /* -1: none, or unknown */
	struct baseline_metric *figures;
	size_t count, room;
};

/* Opens a trace or a baseline file. The metrics of a trace are computed later, by
 * baseline_find_metric. Ends the program if the file cannot be read. */
struct baseline *baseline_open(const struct options *options, const char *path);
void baseline_free(struct baseline *baseline);

/* Whether `name` is a metric that a gate can compare, in any trace. */
bool baseline_has_metric(const char *name);
/* Returns the name at index `number`, or NULL behind the last one. */
const char *baseline_metric_name(size_t number);

/* Returns the metric; for a trace the first call computes it. NULL: the run has no data for it. */
const struct baseline_metric *baseline_find_metric(struct baseline *baseline, const char *name);
/* Returns the value of the metric at `path`, or 0 if there is none. */
double baseline_value_at(const struct baseline_metric *figure, const char *path);

/* Writes all metrics computed so far as a baseline file. */
void baseline_write(const struct baseline *baseline, struct output *out);

#endif
