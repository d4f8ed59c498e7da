/* SPDX-License-Identifier: MIT
 *
 * Computes the statistics of each step of a process, in a pass that other analyses may share.
 *
 * CPU time and launched GPU work belong to the step in which they began. Busy and idle time are
 * those of the GPUs in the step's window (find_steps.h). Memory levels are those between begin and
 * end of the step. If
 * threads have steps of their own, CPU time and GPU work belong to the step of the thread, and what
 * the GPUs and the memory did counts in each step that overlaps it.
 *
 * Memory: about 150 bytes a step, and 32 while it is read.
 */
#ifndef PPERF_REPORT_ANALYSIS_STEP_STATS_H
#define PPERF_REPORT_ANALYSIS_STEP_STATS_H

#include "report/analysis/shared_pass.h"
#include "report/run/process.h"

struct step_stats {
	const struct step *step;
	uint64_t cpu_ns; /* of all threads; nested ranges count once */
	uint64_t gpu_ns, gpu_calls, kernels;
	/* window_ns: length of the step's window. ahead_ns: from the step's begin to that of its
	 * window. */
	uint64_t window_ns, ahead_ns;
	uint64_t busy_ns, idle_ns; /* idle_ns includes outside_ns */
	uint64_t outside_ns;       /* before a GPU's first operation, and after its last */
	uint64_t gaps,
		/* gaps: idle intervals of each GPU; one that crosses a step's edge counts with its
		 * part inside */
		gap_max_ns;
	uint64_t latest_end_ns; /* of this step and all that began before */
	int64_t allocated_peak, allocated_end, reserved_peak, reserved_end;
	bool trains;    /* gradients were computed, or an optimizer ran */
	bool computes;  /* a module or operator was called */
	int8_t outlier; /* 1: much slower than steady-state steps, -1: much faster */
};

struct step_table {
	struct step_stats *steps; /* by time; with --steps only those selected */
	size_t count, usual;
	bool has_gpu, has_allocated, has_reserved, host_is_ahead;
};

/* Returns the table of a process that has steps. It is read at the first call and is freed with the
 * process, or by process_detach_all. */
const struct step_table *step_table_of(struct process *process);
/* Reads the table in a pass that other analyses share, for later calls of step_table_of. It may be
 * the pass that makes the profile. */
void step_table_read_in(struct shared_pass *pass);

/* Sums busy and idle time of the steady-state steps, as the table has them, without a pass over the
 * trace. Returns false, and 0 for both, if there are none, if steps overlap, or if the GPU's part
 * of the steps is shorter than half of them: its share says nothing of the steps then. */
bool step_busy_read(const struct process *process, uint64_t *busy_ns, uint64_t *idle_ns);

/* Stores one value for each steady-state step, by time. `offset` is that of a 64-bit member of
 * struct step_stats; SIZE_MAX: the duration. `values` has room for table->usual. */
void step_table_values(const struct step_table *table, size_t offset, int64_t *values);

/* The value at rank ceil(n / 2). Sorts `values`. */
int64_t step_median(int64_t *values, size_t count);
/* The median distance from the median. */
int64_t step_spread(const int64_t *values, size_t count);
/* The growth from one step to the next: the median slope of all pairs (Theil and Sen). Of more than
 * 1024 steps every k-th is used. Needs at least two values. */
double step_trend(const int64_t *values, size_t count);

#endif
