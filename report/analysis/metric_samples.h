/* SPDX-License-Identifier: MIT
 * amounts.h: what each place of a tree had of a metric, step by step or, where there are no steps, instance by instance:
 * the samples that diff compares. From a fold that is made for it.
 *
 * By steps: what began (GPU work: was launched) in a usual step counts for it; nothing else counts. Of more than
 * AMOUNTS_MOST steps every k-th is a value. By instances: every k-th, of a place with more than AMOUNTS_MOST.
 */
#ifndef PPERF_REPORT_ANALYSIS_METRIC_SAMPLES_H
#define PPERF_REPORT_ANALYSIS_METRIC_SAMPLES_H

#include "report/run/process.h"

#define METRIC_SAMPLES_MAX 1024u

struct node_samples {
	long double
		total; /* of all steps, or of the whole run; with what is below where that is so in the tree */
	double *values;       /* NULL: there are none */
	uint32_t count, room; /* by steps: all of them, 0 where the place had nothing */
	uint32_t stride, passed;
};

struct metric_samples {
	enum metric metric;
	struct profile *profile;
	struct node_samples *nodes; /* by node of fold->tree */
	size_t room;
	const struct step **steps; /* the usual ones, by time; NULL: by instances */
	size_t step_count, step_stride, cursor;
	uint32_t values; /* by steps: of each place */
};

/* Of the metric, which the process may have been folded without. by_steps: it has usual steps. */
struct metric_samples *metric_samples_read(
	struct process *process, enum metric metric, const char *counter, bool by_steps);
void metric_samples_free(struct metric_samples *metric_samples);

/* How many usual steps there are whose amounts can be told apart. */
size_t metric_samples_steps(const struct process *process);

/* From begin to end: of the steps together, or of the whole run. */
long double metric_samples_wall(const struct metric_samples *metric_samples);

/* What is compared of it: a step's mean, or the whole run's. */
double metric_samples_mean(const struct metric_samples *metric_samples, long double total);

#endif
