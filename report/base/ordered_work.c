/* SPDX-License-Identifier: MIT
 * The jobs are a ring. Jobs are numbered in the order in which they were started; job n is in the
 * place n % most. The first two are in the same places before and after threads are started.
 */
#include "report/base/ordered_work.h"

#include "report/base/alloc.h"
#include "report/base/threads.h"

#include <stdbool.h>
#include <stdlib.h>

/* Beside those that the threads run: one to run next, and one to be filled. */
enum { WAITING = 2, JOBS = ORDERED_WORK_THREADS_MAX + WAITING };

struct ordered_work {
	const struct ordered_work_kind *kind;
	void *context;
	void *jobs[JOBS];
	bool has_run[JOBS];
	size_t most;                   /* jobs at a time */
	size_t oldest, taken, started; /* numbers: not handed back; not taken; not started */
	pthread_t threads[ORDERED_WORK_THREADS_MAX];
	unsigned thread_count;
	bool is_ended;
	pthread_mutex_t lock; /* of has_run, taken, started and is_ended */
	pthread_cond_t has_job, has_result;
};

static void *run_jobs(void *argument)
{
	struct ordered_work *work = argument;

	pthread_mutex_lock(&work->lock);
	for (;;) {
		size_t job;

		while (work->taken == work->started && !work->is_ended)
			pthread_cond_wait(&work->has_job, &work->lock);
		if (work->taken == work->started)
			break;
		job = work->taken++ % work->most;
		pthread_mutex_unlock(&work->lock);
		work->kind->run(work->jobs[job]);
		pthread_mutex_lock(&work->lock);
		work->has_run[job] = true;
		pthread_cond_signal(&work->has_result);
	}
	pthread_mutex_unlock(&work->lock);
	return NULL;
}

static void start_threads(struct ordered_work *work)
{
	unsigned wanted = threads_limit();

	if (wanted == 1)
		return;
	if (wanted > ORDERED_WORK_THREADS_MAX)
		wanted = ORDERED_WORK_THREADS_MAX;
	while (work->thread_count < wanted &&
		thread_start(&work->threads[work->thread_count], run_jobs, work))
		work->thread_count++;
	if (work->thread_count)
		work->most = work->thread_count + WAITING;
}

struct ordered_work *ordered_work_new(const struct ordered_work_kind *kind, void *context)
{
	struct ordered_work *work = xcalloc(sizeof *work);

	work->kind = kind;
	work->context = context;
	work->most = 1 + WAITING;
	pthread_mutex_init(&work->lock, NULL);
	pthread_cond_init(&work->has_job, NULL);
	pthread_cond_init(&work->has_result, NULL);
	return work;
}

static void hand_back_oldest(struct ordered_work *work)
{
	const size_t job = work->oldest++ % work->most;

	pthread_mutex_lock(&work->lock);
	while (!work->has_run[job])
		pthread_cond_wait(&work->has_result, &work->lock);
	work->has_run[job] = false;
	pthread_mutex_unlock(&work->lock);
	work->kind->done(work->context, work->jobs[job]);
}

void *ordered_work_next(struct ordered_work *work)
{
	void **job = &work->jobs[work->started % work->most];

	if (work->started - work->oldest == work->most)
		hand_back_oldest(work);
	if (!*job)
		*job = xcalloc(work->kind->job_bytes);
	return *job;
}

/* Threads are started with the second job: a single one needs none. */
void ordered_work_start(struct ordered_work *work)
{
	if (work->started == 1)
		start_threads(work);
	if (!work->thread_count) {
		work->kind->run(work->jobs[work->started % work->most]);
		work->has_run[work->started % work->most] = true;
		work->taken++;
		work->started++;
		hand_back_oldest(work);
		return;
	}
	pthread_mutex_lock(&work->lock);
	work->started++;
	pthread_cond_signal(&work->has_job);
	pthread_mutex_unlock(&work->lock);
}

void ordered_work_free(struct ordered_work *work)
{
	while (work->oldest < work->started)
		hand_back_oldest(work);
	pthread_mutex_lock(&work->lock);
	work->is_ended = true;
	pthread_cond_broadcast(&work->has_job);
	pthread_mutex_unlock(&work->lock);
	for (unsigned i = 0; i < work->thread_count; i++)
		pthread_join(work->threads[i], NULL);
	for (size_t i = 0; i < JOBS; i++)
		if (work->jobs[i]) {
			work->kind->release(work->jobs[i]);
			free(work->jobs[i]);
		}
	pthread_mutex_destroy(&work->lock);
	pthread_cond_destroy(&work->has_job);
	pthread_cond_destroy(&work->has_result);
	free(work);
}
