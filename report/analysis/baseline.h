/* SPDX-License-Identifier: MIT
 * sheet.h: the figures of one run that a gate compares, of a trace or of a baseline file, and who has them.
 *
 * A baseline is JSON: {"schema":"pperf.baseline/1","basis":"step","steps":100,"rank":null,"figures":[{"name":"gpu","unit":"ns",
 * "value":1.5,"values":[1.4,1.6],"rows":[["turn/op",1.2], ...]}]}. Paths are written as --focus takes them.
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
	double *values; /* of usual steps by time, of many every k-th: what noise is told by; NULL: there are none */
	size_t value_count;
	struct baseline_row *rows; /* by path; of equal paths the sum */
	size_t row_count, row_room;
};

struct baseline {
	const char *path; /* of the file */
	struct processes processes;
	struct process *process; /* NULL: a baseline */
	bool by_steps;           /* figures are of a usual step */
	size_t steps;            /* usual ones */
	int64_t rank;            /* -1: none, or not known */
	struct baseline_metric *figures;
	size_t count, room;
};

/* Opens the trace or baseline; a trace has no figures yet. One that cannot be read ends the program. */
struct baseline *baseline_open(const struct options *options, const char *path);
void baseline_free(struct baseline *baseline);

/* Whether there is a figure of that name at all: in any trace. */
bool baseline_has_metric(const char *name);
/* The n-th name; NULL: no more. */
const char *baseline_metric_name(size_t number);

/* The figure; made at the first call of a trace. NULL: the run has nothing of it. */
const struct baseline_metric *baseline_find_metric(struct baseline *baseline, const char *name);
/* What the figure has at that path; 0: nothing. */
double baseline_value_at(const struct baseline_metric *figure, const char *path);

/* All figures that were made, as a baseline. */
void baseline_write(const struct baseline *baseline, struct output *out);

#endif
