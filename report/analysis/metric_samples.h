/* SPDX-License-Identifier: MIT
 *
 * Collects the samples of a metric at each node: by step or, in a run without steps, by instance.
 * `diff` and `gate` compare them. A pass over the trace of its own builds them.
 *
 * - By steps: what began (GPU work: was launched) in a steady-state step counts for that step.
 *   Nothing else counts. Of more than METRIC_SAMPLES_MAX steps every k-th is a sample.
 * - By instances: of a node with more than METRIC_SAMPLES_MAX instances every k-th is a sample.
 */
#ifndef PPERF_REPORT_ANALYSIS_METRIC_SAMPLES_H
#define PPERF_REPORT_ANALYSIS_METRIC_SAMPLES_H

#include "report/run/process.h"

#define METRIC_SAMPLES_MAX 1024u

struct node_samples {
	/* of all steps, or of the whole run; includes descendants where the call tree does */
	long double total;
	uint64_t calls; /* instances that `total` counts, of this node alone; 0: unknown */
	double *values; /* NULL: none */
	/* count by steps: all sampled steps, with 0 where the node had nothing */
	uint32_t count, room;
	uint32_t stride, passed;
};

struct metric_samples {
	enum metric metric;
	struct profile *profile;
	struct node_samples *nodes; /* by node of profile->tree */
	size_t room;
	const struct step **steps; /* steady-state steps by time; NULL: by instances */
	size_t step_count, step_stride, cursor;
	uint32_t values; /* by steps: samples of each node */
};

/* Collects `metric`, which may differ from that of the process's profile. `by_steps` requires
 * steady-state steps. */
struct metric_samples *metric_samples_read(
	struct process *process, enum metric metric, const char *counter, bool by_steps);
void metric_samples_free(struct metric_samples *samples);

/* Number of steady-state steps with samples of their own. 0 if the trace has counted ranges, whose
 * time is not known by step. */
size_t metric_samples_steps(const struct process *process);

/* Returns the value to compare: the mean of a step, or `total` of the whole run. */
double metric_samples_mean(const struct metric_samples *samples, long double total);
/* Returns the value of the whole: the sum of the roots of all threads. For wall time, and for CPU
 * time by steps: the duration. */
double metric_samples_whole(const struct metric_samples *samples);
/* Returns the value of the whole as `gate` compares it: for times the median of the sampled steps,
 * because one slow step must not fail a gate, else metric_samples_whole. */
double metric_samples_typical(const struct metric_samples *samples);
/* Returns the value of the whole in each of the `values` sampled steps. NULL: by instances. The
 * caller frees it. */
double *metric_samples_step_values(const struct metric_samples *samples);

#endif
