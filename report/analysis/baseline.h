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

struct sheet_row {
	char *path;
	double value;
};

struct figure {
	char name[32];
	enum unit unit;
	double value;
	double *values; /* of usual steps by time, of many every k-th: what noise is told by; NULL: there are none */
	size_t value_count;
	struct sheet_row *rows; /* by path; of equal paths the sum */
	size_t row_count, row_room;
};

struct sheet {
	const char *path; /* of the file */
	struct processes processes;
	struct process *process; /* NULL: a baseline */
	bool by_steps;           /* figures are of a usual step */
	size_t steps;            /* usual ones */
	int64_t rank;            /* -1: none, or not known */
	struct figure *figures;
	size_t count, room;
};

/* Opens the trace or baseline; a trace has no figures yet. One that cannot be read ends the program. */
struct sheet *sheet_open(const struct options *options, const char *path);
void sheet_free(struct sheet *sheet);

/* Whether there is a figure of that name at all: in any trace. */
bool sheet_knows(const char *name);
/* The n-th name; NULL: no more. */
const char *sheet_name(size_t number);

/* The figure; made at the first call of a trace. NULL: the run has nothing of it. */
const struct figure *sheet_figure(struct sheet *sheet, const char *name);
/* What the figure has at that path; 0: nothing. */
double sheet_value_at(const struct figure *figure, const char *path);

/* All figures that were made, as a baseline. */
void sheet_write(const struct sheet *sheet, struct out *out);

#endif
