/* SPDX-License-Identifier: MIT
 * This thread requests completed buffers from CUPTI. CUPTI itself completes a buffer only when it
 * is full, which never happens in an idle program. Requesting ten times a second has no noticeable
 * cost, and a program that is killed loses no more than that.
 *
 * The thread starts with the first context. A program that only checks for a GPU and then forks
 * keeps one thread.
 */
#include "collector/cupti/flush_thread.h"
#include "collector/cupti/subscription.h"
#include "collector/process/clock.h"
#include "collector/cupti/buffers.h"
#include "collector/cupti/client.h"
#include "collector/cupti/session_state.h"
#include "collector/cupti/handover.h"
#include "collector/file/dictionary.h"
#include "collector/cupti/devices.h"
#include "collector/cupti/graph_trace.h"
#include "collector/stream/stream.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#define FLUSH_INTERVAL_NS 100000000L
#define JOIN_TIMEOUT_S 10
#define EMPTY_FLUSHES_MAX 20u /* two seconds */
#define STACK_BYTES (512u << 10)
#define FLUSH_COST_MIN_NS 1000000u

/* Sleeps for one interval. Returns false if the thread shall end. */
static bool sleep_until_next_flush(struct cupti_session *s)
{
	struct timespec until;
	bool ending;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += FLUSH_INTERVAL_NS;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	pthread_mutex_lock(&s->sleep_lock);
	while (!s->ending && pthread_cond_timedwait(&s->wake, &s->sleep_lock, &until) == 0)
		;
	ending = s->ending;
	pthread_mutex_unlock(&s->sleep_lock);
	return !ending;
}

static void record_flush_cost(uint64_t began)
{
	struct trace_self *self;

	if (!stream_enter())
		return;
	self = stream_record(TRACE_SELF, sizeof *self);
	if (self) {
		self->duration = self->stamp - began;
		self->what = TRACE_SELF_FLUSH;
		stream_commit();
	}
	stream_leave();
}

/* Checks that buffers arrive. Every driver call that CUPTI reports leads to records, and these to a
 * completed buffer, sooner or later. */
static void check_buffers_arrive(struct cupti_session *s, uint32_t completed_buffers)
{
	const bool arrived = !atomic_load(&s->records_expected) ||
			     atomic_load(&s->completed_buffers) != completed_buffers ||
			     cupti_is_handed_over();

	s->empty_flushes = arrived ? 0 : s->empty_flushes + 1;
	if (arrived ? !s->stalled : s->empty_flushes % EMPTY_FLUSHES_MAX != 0)
		return;
	pthread_mutex_lock(&s->lock);
	if (arrived)
		cupti_clear_stalled();
	else if (cupti_runs() && !cupti_is_handed_over())
		cupti_check_stalled();
	pthread_mutex_unlock(&s->lock);
}

static void flush_buffers(struct cupti_session *s)
{
	uint32_t completed_buffers = atomic_load_explicit(
		&s->completed_buffers, memory_order_relaxed);
	uint64_t began = clock_now(), began_ns = clock_monotonic_ns();

	pthread_mutex_lock(&s->lock);
	if (cupti_runs() && !cupti_client_is_flushing() && !cupti_is_handed_over())
		s->library.flush_all(0);
	pthread_mutex_unlock(&s->lock);
	if (atomic_load_explicit(&s->completed_buffers, memory_order_relaxed) !=
			completed_buffers ||
		clock_monotonic_ns() - began_ns > FLUSH_COST_MIN_NS)
		record_flush_cost(began);
	check_buffers_arrive(s, completed_buffers);
}

static void *run_flush_thread(void *data)
{
	struct cupti_session *s = data;

	gpu_device_record();
	while (sleep_until_next_flush(s) && cupti_runs()) {
		flush_buffers(s);
		cupti_handover_poll();
		cupti_graph_trace_poll();
		cupti_buffers_prefault();
	}
	return NULL;
}

/* Returns 0 or an errno. */
static int create_flush_thread(struct cupti_session *s)
{
	pthread_attr_t attributes;
	int failed = pthread_attr_init(&attributes);

	if (failed)
		return failed;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	failed = pthread_create(&s->thread, &attributes, run_flush_thread, s);
	pthread_attr_destroy(&attributes);
	/* A program with much thread-local data needs a larger stack than that. */
	if (failed)
		failed = pthread_create(&s->thread, NULL, run_flush_thread, s);
	return failed;
}

static void warn_no_thread(int failed)
{
	char text[256];

	snprintf(text, sizeof text,
		"The thread that flushes CUPTI's buffers could not be created (error %d): GPU "
		"records arrive only when a CUPTI buffer is full and at the end, and a killed "
		"program loses more of them; allow the program more threads.",
		failed);
	meta_set("warning.cupti_thread", text);
}

static void init_wake_condition(struct cupti_session *s)
{
	pthread_condattr_t clock;

	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &clock);
	pthread_condattr_destroy(&clock);
}

void cupti_flush_start(void)
{
	struct cupti_session *s = cupti_session;
	sigset_t all, before;
	int saved = errno, failed = 0;

	if (atomic_load_explicit(&s->thread_requested, memory_order_relaxed) ||
		atomic_exchange(&s->thread_requested, true))
		return;
	init_wake_condition(s);
	sigfillset(&all);
	/* The thread inherits the mask, so the program's signals are never delivered to it. */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&s->sleep_lock);
	if (!s->ending)
		s->thread_runs = !(failed = create_flush_thread(s));
	pthread_mutex_unlock(&s->sleep_lock);
	if (failed)
		warn_no_thread(failed);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
}

bool cupti_flush_stop(void)
{
	struct cupti_session *s = cupti_session;
	struct timespec until;
	bool runs;

	pthread_mutex_lock(&s->sleep_lock);
	s->ending = true;
	runs = s->thread_runs;
	if (runs)
		pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->sleep_lock);
	if (!runs)
		return true;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += JOIN_TIMEOUT_S;
	return pthread_timedjoin_np(s->thread, NULL, &until) == 0;
}
