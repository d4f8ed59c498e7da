/* SPDX-License-Identifier: MIT
 * Starts threads, as many as the user allows (-j), and runs jobs in a second thread.
 *
 *	struct helper *helper = helper_new(run, context);
 *
 *	helper_start(helper);   runs run(context) in the second thread
 *	...                     meanwhile, the caller does not touch what `run` uses
 *	helper_wait(helper);    the job is done
 *	helper_free(helper);
 *
 * Signals are handled by the first thread of the program.
 */
#ifndef PPERF_REPORT_BASE_THREADS_H
#define PPERF_REPORT_BASE_THREADS_H

#include <pthread.h>
#include <stdbool.h>

/* Sets how many cores the program uses. 0, as at first: all on which the process may run. 1: the
 * program has one thread. */
void threads_set_limit(unsigned limit);
unsigned threads_limit(void); /* never 0 */
/* Starts a thread in which no signal is handled. Returns false if there is none. */
bool thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument);

struct helper;

/* Returns NULL if no further thread may run or be started. The caller then runs the jobs itself. */
struct helper *helper_new(void (*run)(void *context), void *context);
/* Runs one job. No other may be running. */
void helper_start(struct helper *helper);
/* Waits until the job that was started is done. Returns at once if none was. */
void helper_wait(struct helper *helper);
/* Waits for the job, and ends the thread. `helper` may be NULL. */
void helper_free(struct helper *helper);

#endif
