/* SPDX-License-Identifier: MIT
 *
 * Makes one more pass over a trace for several analyses.
 *
 *	struct shared_pass pass = { .process = process };
 *
 *	activities_keep(&pass);
 *	step_table_read_in(&pass);
 *	shared_pass_run(&pass);
 *
 * Each analysis adds an observer. At the end of the pass it attaches its result to the process,
 * where later calls of its own functions find it. Threads: one.
 */
#ifndef PPERF_REPORT_ANALYSIS_SHARED_PASS_H
#define PPERF_REPORT_ANALYSIS_SHARED_PASS_H

#include "report/profile/joined_observers.h"
#include "report/run/process.h"

/* Called at the end of the pass. `profile`: of the pass, which is freed afterwards. */
typedef void shared_pass_end(void *context, const struct profile *profile);

struct shared_pass {
	struct process *process; /* its profile is built */
	struct profile_observer observers[JOINED_OBSERVERS_MAX];
	shared_pass_end *ends[JOINED_OBSERVERS_MAX]; /* NULL: none */
	unsigned count;
};

/* Adds an observer. `end` is called with the context of the observer. */
void shared_pass_add(
	struct shared_pass *pass, const struct profile_observer *observer, shared_pass_end *end);
/* Makes the pass, unless no observer was added, and calls the functions of the end in the order of
 * the observers. The pass is empty afterwards. */
void shared_pass_run(struct shared_pass *pass);

#endif
