/* SPDX-License-Identifier: MIT */
#include "collector/cupti/flush_watch.h"
#include "collector/process/own_threads.h"

#include "collector/process/clock.h"

#define WATCH_INTERVAL_S 5
#define SLOW_FLUSH_NS UINT64_C(10000000000)

/* The flush may return at any time. The lock keeps this statement from following that of
 * cupti_watch_note_return(). */
static void state_slow_flush(struct cupti_session *s)
{
	const uint64_t began_ns = atomic_load(&s->flush_began_ns);

	if (!began_ns || clock_monotonic_ns() - began_ns < SLOW_FLUSH_NS || s->slow_flush_stated)
		return;
	s->slow_flush_stated = true;
	cupti_set_state("warning.cupti_flush",
		"A flush of CUPTI's buffers had not returned after %u s; if the program hangs, "
		"run it with CUDA_MODULE_LOADING=EAGER, or without GPU times (PPERF_CUPTI=0).",
		(unsigned)(SLOW_FLUSH_NS / 1000000000));
}

void cupti_watch_note_return(struct cupti_session *s, uint64_t took_ns)
{
	pthread_mutex_lock(&s->sleep_lock);
	atomic_store(&s->flush_began_ns, 0);
	if (s->slow_flush_stated)
		cupti_set_state("warning.cupti_flush",
			"A flush of CUPTI's buffers took %u s, and no GPU records arrived "
			"meanwhile; if the program was slow then, run it without GPU times "
			"(PPERF_CUPTI=0).",
			(unsigned)(took_ns / 1000000000));
	s->slow_flush_stated = false;
	pthread_mutex_unlock(&s->sleep_lock);
}

void *cupti_watch_flushes(void *session)
{
	struct cupti_session *s = session;
	struct timespec until;

	own_thread_begin();
	pthread_mutex_lock(&s->sleep_lock);
	while (!s->ending) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += WATCH_INTERVAL_S;
		while (!s->ending && pthread_cond_timedwait(&s->wake, &s->sleep_lock, &until) == 0)
			;
		state_slow_flush(s);
	}
	pthread_mutex_unlock(&s->sleep_lock);
	own_thread_end();
	return NULL;
}
