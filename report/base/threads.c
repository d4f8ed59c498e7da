/* SPDX-License-Identifier: MIT */
#include "report/base/threads.h"

#include "report/base/alloc.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#define HELPERS_PER_CORE 3u /* none of them works all the time */

struct helper {
	void (*run)(void *context);
	void *context;
	pthread_t thread;
	bool has_job, is_ended;
	pthread_mutex_t lock; /* of has_job and is_ended */
	pthread_cond_t changed;
};

static unsigned limit_set, helpers; /* of the first thread */

void threads_set_limit(unsigned limit)
{
	limit_set = limit;
}

unsigned threads_limit(void)
{
	cpu_set_t cores;

	if (limit_set)
		return limit_set;
	return sched_getaffinity(0, sizeof cores, &cores) ? 1 : (unsigned)CPU_COUNT(&cores);
}

bool thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
	sigset_t all, before;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = pthread_create(thread, NULL, run, argument) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

static void *run_helper(void *argument)
{
	struct helper *helper = argument;

	pthread_mutex_lock(&helper->lock);
	for (;;) {
		while (!helper->has_job && !helper->is_ended)
			pthread_cond_wait(&helper->changed, &helper->lock);
		if (!helper->has_job)
			break;
		pthread_mutex_unlock(&helper->lock);
		helper->run(helper->context);
		pthread_mutex_lock(&helper->lock);
		helper->has_job = false;
		pthread_cond_broadcast(&helper->changed);
	}
	pthread_mutex_unlock(&helper->lock);
	return NULL;
}

struct helper *helper_new(void (*run)(void *context), void *context)
{
	struct helper *helper;

	if (helpers >= HELPERS_PER_CORE * (threads_limit() - 1))
		return NULL;
	helper = xcalloc(sizeof *helper);
	helper->run = run;
	helper->context = context;
	pthread_mutex_init(&helper->lock, NULL);
	pthread_cond_init(&helper->changed, NULL);
	if (thread_start(&helper->thread, run_helper, helper)) {
		helpers++;
		return helper;
	}
	pthread_mutex_destroy(&helper->lock);
	pthread_cond_destroy(&helper->changed);
	free(helper);
	return NULL;
}

void helper_start(struct helper *helper)
{
	pthread_mutex_lock(&helper->lock);
	helper->has_job = true;
	pthread_cond_broadcast(&helper->changed);
	pthread_mutex_unlock(&helper->lock);
}

void helper_wait(struct helper *helper)
{
	pthread_mutex_lock(&helper->lock);
	while (helper->has_job)
		pthread_cond_wait(&helper->changed, &helper->lock);
	pthread_mutex_unlock(&helper->lock);
}

void helper_free(struct helper *helper)
{
	if (!helper)
		return;
	pthread_mutex_lock(&helper->lock);
	helper->is_ended = true;
	pthread_cond_broadcast(&helper->changed);
	pthread_mutex_unlock(&helper->lock);
	pthread_join(helper->thread, NULL);
	pthread_mutex_destroy(&helper->lock);
	pthread_cond_destroy(&helper->changed);
	free(helper);
	helpers--;
}
