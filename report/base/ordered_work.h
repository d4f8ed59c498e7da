/* SPDX-License-Identifier: MIT
 * Runs jobs on all cores, and hands them back in the order in which they were given. Memory is
 * limited: few jobs exist, and are used again.
 *
 *	struct ordered_work *work = ordered_work_new(&kind, context);
 *	while ((job = ordered_work_next(work)), fill(job))
 *		ordered_work_start(work);
 *	ordered_work_free(work);
 *
 * On one core, or where no thread can be started, the jobs run in the thread of the caller.
 */
#ifndef PPERF_REPORT_BASE_ORDERED_WORK_H
#define PPERF_REPORT_BASE_ORDERED_WORK_H

#include <stddef.h>

#define ORDERED_WORK_THREADS_MAX 4u

struct ordered_work_kind {
	size_t job_bytes; /* zeroed when it is first used */
	/* Called in any thread, for several jobs at a time. Must not end the program. */
	void (*run)(void *job);
	/* The following are called in the thread of the caller. */
	void (*done)(void *context, void *job); /* the job has run; in the order of the jobs */
	void (*release)(void *job);             /* the job is used no more */
};

struct ordered_work;

/* `kind` must outlive the work. */
struct ordered_work *ordered_work_new(const struct ordered_work_kind *kind, void *context);
/* Returns the job to be filled next, the same one until ordered_work_start. Waits until one is
 * free. */
void *ordered_work_next(struct ordered_work *work);
/* Starts the job that ordered_work_next has returned. */
void ordered_work_start(struct ordered_work *work);
/* Waits until all jobs that were started are done. */
void ordered_work_free(struct ordered_work *work);

#endif
