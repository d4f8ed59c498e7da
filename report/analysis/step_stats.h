/* SPDX-License-Identifier: MIT
 * step_figures.h: what each step of a process came to, from one more fold. What threads did and what was launched
 * belongs to the step in which it began; busy and idle are those of the GPUs between a step's begin and end, and levels
 * of memory those at these times.
 *
 * Memory: some 140 bytes a step.
 */
#ifndef PPERF_REPORT_ANALYSIS_STEP_STATS_H
#define PPERF_REPORT_ANALYSIS_STEP_STATS_H

#include "report/run/process.h"

struct step_stats {
	const struct step *step;
	uint64_t cpu_ns; /* of all threads, each moment once */
	uint64_t gpu_ns, gpu_calls, kernels;
	uint64_t busy_ns, idle_ns;
	uint64_t gaps,
		gap_max_ns; /* of idle: stretches, each GPU's; one that reaches beyond the step with its part inside */
	int64_t allocated_peak, allocated_end, reserved_peak, reserved_end;
	bool trains;    /* gradients were computed, or an optimizer ran */
	bool computes;  /* a module or operator was called */
	int8_t outlier; /* 1: much slower than usual steps, -1: much faster */
};

struct step_table {
	struct step_stats *steps; /* by time; of --steps only those asked for */
	size_t count, usual;
	bool has_gpu, has_allocated, has_reserved;
};

/* Of a process with steps. */
struct step_table *step_table_read(struct process *process);
void step_table_free(struct step_table *table);

/* What GPUs did in the usual steps together, as the table has it; without a fold. false: nothing is known. */
bool step_busy_read(const struct process *process, uint64_t *busy_ns, uint64_t *idle_ns);

/* A figure of each usual step, in time's order: `offset` is of a 64-bit member of struct step_figures; SIZE_MAX: how long
 * it took. Room for table->usual. */
void step_table_values(const struct step_table *table, size_t offset, int64_t *values);

/* Of values in any order, which are sorted by it: the one at rank ceil(n / 2). */
int64_t step_median(int64_t *values, size_t count);
/* The median distance from the median. */
int64_t step_spread(const int64_t *values, size_t count);
/* By how much it grows from one step to the next: the median slope of all pairs (Theil and Sen), of every k-th step where
 * there are more than 1024. At least two values. */
double step_trend(const int64_t *values, size_t count);

#endif
