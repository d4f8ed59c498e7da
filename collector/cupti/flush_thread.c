/* SPDX-License-Identifier: MIT
 * This thread requests completed buffers from CUPTI. CUPTI itself completes a buffer only when it
 * is full, which never happens in an idle program. Requesting ten times a second has no noticeable
 * cost.
 *
 * CUPTI returns no buffer with an incomplete record before it is full, so on a busy GPU most
 * requests return nothing. buffers.c keeps the buffers small enough for that. Silence is therefore
 * no sign of a failure: after two seconds, META says that records are overdue, and nothing more.
 *
 * The thread starts with the first context. A program that only checks for a GPU and then forks
 * keeps one thread. The session ends on this thread too, so that an exiting program waits for CUPTI
 * only for a limited time.
 */
#include "collector/cupti/flush_thread.h"
#include "collector/cupti/flush_watch.h"
#include "collector/cupti/subscription.h"
#include "collector/process/clock.h"
#include "collector/process/own_threads.h"
#include "collector/cupti/buffers.h"
#include "collector/cupti/client.h"
#include "collector/cupti/session_state.h"
#include "collector/cupti/handover.h"
#include "collector/file/dictionary.h"
#include "collector/cupti/devices.h"
#include "collector/cupti/graph_trace.h"
#include "collector/cupti/memory_samples.h"
#include "collector/stream/control.h"
#include "collector/stream/stream.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#define FLUSH_INTERVAL_NS UINT64_C(100000000)
#define CONTROL_INTERVAL_NS UINT64_C(50000000) /* so that an answer takes less than 100 ms */
/* While records are overdue. Another client that took our buffers may be about to finalize CUPTI,
 * which races with a flush (pytorch/kineto#686 crashed in cuptiActivityFlushAll). */
#define OVERDUE_INTERVAL_NS UINT64_C(1000000000)
#define OVERDUE_NS UINT64_C(2000000000)
#define STACK_BYTES ((size_t)4 << 20) /* as large_stack.c; untouched pages take no memory */
#define WATCH_STACK_BYTES ((size_t)128 << 10)
#define FLUSH_COST_MIN_NS 1000000u

/* Sleeps until the time. Returns false if the thread shall end. */
static bool sleep_until(struct cupti_session *s, uint64_t until_ns)
{
	const struct timespec until = { (time_t)(until_ns / 1000000000),
		(long)(until_ns % 1000000000) };
	bool ending;

	pthread_mutex_lock(&s->sleep_lock);
	while (!s->ending && pthread_cond_timedwait(&s->wake, &s->sleep_lock, &until) == 0)
		;
	ending = s->ending;
	pthread_mutex_unlock(&s->sleep_lock);
	return !ending;
}

/* Sleeps for one interval, and answers requests of `pperf ctl` meanwhile. Returns false if the
 * thread shall end. */
static bool sleep_until_next_flush(struct cupti_session *s)
{
	const uint64_t begin_ns = clock_monotonic_ns(),
		       end_ns = begin_ns +
				(s->overdue_stated_ns ? OVERDUE_INTERVAL_NS : FLUSH_INTERVAL_NS);
	bool goes_on = true;

	for (uint64_t at = begin_ns + CONTROL_INTERVAL_NS; goes_on && at <= end_ns;
		at += CONTROL_INTERVAL_NS) {
		goes_on = sleep_until(s, at);
		control_poll();
	}
	return goes_on;
}

/* Returns 0 if it is unknown. Current values are in /proc only. A file descriptor for that could be
 * the one that another thread has just closed and expects to get again. */
static uint32_t peak_memory_kib(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) != 0 || usage.ru_maxrss <= 0)
		return 0;
	return usage.ru_maxrss < UINT32_MAX ? (uint32_t)usage.ru_maxrss : UINT32_MAX;
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
		self->peak_kib = peak_memory_kib();
		stream_commit();
	}
	stream_leave();
}

/* Writes that records are overdue, each time that the delay has doubled. */
static void state_overdue(struct cupti_session *s, uint64_t overdue_ns)
{
	if (overdue_ns < OVERDUE_NS || overdue_ns < s->overdue_stated_ns)
		return;
	pthread_mutex_lock(&s->lock);
	if (cupti_runs() && !cupti_is_handed_over()) {
		s->overdue_stated_ns = 2 * overdue_ns;
		cupti_set_state("source.cupti",
			"partial: GPU records of the last %u s or more have not arrived, because "
			"CUPTI keeps a buffer that is not full while its GPU work is running",
			(unsigned)(overdue_ns / 1000000000));
	}
	pthread_mutex_unlock(&s->lock);
}

static void clear_overdue(struct cupti_session *s)
{
	s->overdue_since_ns = 0;
	if (!s->overdue_stated_ns)
		return;
	pthread_mutex_lock(&s->lock);
	cupti_withdraw_overdue(s);
	pthread_mutex_unlock(&s->lock);
}

/* Checks that buffers arrive. A call that leaves a record leads to a completed buffer, sooner or
 * later. */
static void check_buffers_arrive(struct cupti_session *s)
{
	const uint32_t completed_buffers = atomic_load(&s->completed_buffers);
	const bool arrived = completed_buffers != s->checked_buffers;

	s->checked_buffers = completed_buffers;
	if (arrived || !atomic_load(&s->records_expected) || cupti_is_handed_over())
		clear_overdue(s);
	else if (!s->overdue_since_ns)
		s->overdue_since_ns = clock_monotonic_ns();
	else if (!atomic_load(&s->cupti_failed))
		state_overdue(s, clock_monotonic_ns() - s->overdue_since_ns);
}

/* Another client has finalized CUPTI, through a function that it obtained with dlsym. */
static void stop_using_cupti(struct cupti_session *s, int result)
{
	atomic_store_explicit(&s->running, false, memory_order_release);
	cupti_set_state("source.cupti",
		"partial: another profiler in the program has ended CUPTI's session, through "
		"functions obtained with dlsym; run with PPERF_CUPTI=0, or without the other "
		"profiler (%d)",
		result);
}

/* A release that has refused our buffers returns errors from the start. */
static void flush_locked(struct cupti_session *s)
{
	const uint64_t began_ns = clock_monotonic_ns();
	int result;

	atomic_store(&s->flush_began_ns, began_ns);
	result = s->library.flush_all(0);
	cupti_watch_note_return(s, clock_monotonic_ns() - began_ns);
	if (result == CUPTI_OK)
		s->has_flushed = true;
	else if (s->has_flushed && cupti_runs() &&
		 (result == CUPTI_NOT_INITIALIZED || result == CUPTI_INVALID_OPERATION))
		stop_using_cupti(s, result);
}

static void flush_buffers(struct cupti_session *s)
{
	uint32_t completed_buffers = atomic_load_explicit(
		&s->completed_buffers, memory_order_relaxed);
	uint64_t began = clock_now(), began_ns = clock_monotonic_ns();

	pthread_mutex_lock(&s->lock);
	if (cupti_runs() && !cupti_client_is_flushing() && !cupti_is_handed_over())
		flush_locked(s);
	pthread_mutex_unlock(&s->lock);
	if (atomic_load_explicit(&s->completed_buffers, memory_order_relaxed) !=
			completed_buffers ||
		clock_monotonic_ns() - began_ns > FLUSH_COST_MIN_NS)
		record_flush_cost(began);
	check_buffers_arrive(s);
}

static void *run_flush_thread(void *data)
{
	struct cupti_session *s = data;

	bool ending;

	own_thread_begin();
	gpu_device_record();
	while (!(ending = !sleep_until_next_flush(s)) && cupti_runs()) {
		flush_buffers(s);
		cupti_request_ids();
		cupti_client_poll();
		cupti_handover_poll();
		cupti_graph_trace_poll();
		cupti_buffers_prefault();
		memory_samples_poll();
	}
	if (ending)
		s->finish(s);
	own_thread_end();
	return NULL;
}

/* Returns 0 or an errno. */
static int create_thread(
	pthread_t *thread, size_t stack_bytes, void *(*run)(void *), struct cupti_session *s)
{
	pthread_attr_t attributes;
	int failed = pthread_attr_init(&attributes);

	if (failed)
		return failed;
	pthread_attr_setstacksize(&attributes, stack_bytes);
	failed = pthread_create(thread, &attributes, run, s);
	pthread_attr_destroy(&attributes);
	/* A program with much thread-local data needs a larger stack than that. */
	if (failed)
		failed = pthread_create(thread, NULL, run, s);
	return failed;
}

/* Without the thread that watches, only a statement in META is missing. Returns 0 or an errno. */
static int create_threads(struct cupti_session *s)
{
	const int failed = create_thread(&s->thread, STACK_BYTES, run_flush_thread, s);
	pthread_t watch;

	if (!failed && !create_thread(&watch, WATCH_STACK_BYTES, cupti_watch_flushes, s))
		pthread_detach(watch);
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
		s->thread_runs = !(failed = create_threads(s));
	pthread_mutex_unlock(&s->sleep_lock);
	if (failed)
		warn_no_thread(failed);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
}

bool cupti_flush_stop(void (*finish)(struct cupti_session *), unsigned seconds)
{
	struct cupti_session *s = cupti_session;
	struct timespec until;
	bool runs;

	pthread_mutex_lock(&s->sleep_lock);
	s->finish = finish;
	s->ending = true;
	runs = s->thread_runs;
	if (runs)
		pthread_cond_broadcast(&s->wake);
	pthread_mutex_unlock(&s->sleep_lock);
	if (!runs) {
		finish(s);
		return true;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	return pthread_timedjoin_np(s->thread, NULL, &until) == 0;
}
