/* SPDX-License-Identifier: MIT
 *
 * Makes a pass over a trace for several analyses. It is one more pass than that which makes the
 * profile, or the same.
 *
 *	struct shared_pass pass = { .process = process };
 *
 *	activities_keep_in(&pass);
 *	step_table_read_in(&pass);
 *	shared_pass_run(&pass);
 *
 * Each analysis adds an observer. At the end of the pass it attaches its result to the process,
 * where later calls of its own functions find it.
 *
 * In the pass that makes the profile, process->profile is empty when the analyses are added, and
 * grows while they observe. So only analyses that need nothing of the finished profile before the
 * end can be added:
 *
 *	struct shared_pass pass = { .add = activities_read_in };
 *	const struct process_join join = shared_pass_join(&pass);
 *	struct processes processes = processes_read_with(options, &join);
 *
 * Threads: one.
 */
#ifndef PPERF_REPORT_ANALYSIS_SHARED_PASS_H
#define PPERF_REPORT_ANALYSIS_SHARED_PASS_H

#include "report/profile/joined_observers.h"
#include "report/run/process.h"

struct shared_pass;

/* Called at the end of the pass. `profile`: of the pass, which is freed afterwards. */
typedef void shared_pass_end(void *context, const struct profile *profile);

/* Adds analyses to a pass that is about to begin. */
typedef void shared_pass_begin(const struct options *options, struct shared_pass *pass);

struct shared_pass {
	struct process *process;
	shared_pass_begin *add; /* of shared_pass_join: adds the analyses; NULL: none */
	struct profile_observer observers[JOINED_OBSERVERS_MAX];
	shared_pass_end *ends[JOINED_OBSERVERS_MAX]; /* NULL: none */
	unsigned count;
	struct joined_observers joined; /* the observers, as one */
	struct profile_observer all;
};

/* Adds an observer. `end` is called with the context of the observer. */
void shared_pass_add(
	struct shared_pass *pass, const struct profile_observer *observer, shared_pass_end *end);
/* Makes the pass, unless no observer was added, and calls the functions of the end in the order of
 * the observers. The pass is empty afterwards. */
void shared_pass_run(struct shared_pass *pass);

/* Returns what makes the pass that of the profile. `pass` has `add` only, and must live until the
 * process is read. */
struct process_join shared_pass_join(struct shared_pass *pass);

#endif
