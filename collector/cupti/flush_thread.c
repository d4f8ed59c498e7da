/* SPDX-License-Identifier: MIT
 * cupti_flush.c: the thread that asks CUPTI for what is complete. Left to itself CUPTI gives a
 * buffer back when it is full, which in an idle program is never; asking ten times a second costs
 * nothing to speak of, and a program that is killed loses no more than that.
 *
 * There is no thread before the first context: a program that merely asks whether there is a GPU,
 * and then forks, stays with one.
 */
#include "collector/cupti/subscription.h"
#include "collector/process/clock.h"
#include "collector/cupti/buffers.h"
#include "collector/cupti/client.h"
#include "collector/cupti/session_state.h"
#include "collector/cupti/handover.h"
#include "collector/file/dictionary.h"
#include "collector/cupti/devices.h"
#include "collector/stream/stream.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#define FLUSH_EVERY_NS 100000000L
#define END_PATIENCE_S 10
#define UNANSWERED_MOST 20u /* flushes: two seconds */
#define STACK_BYTES (512u << 10)
#define WORTH_TELLING_NS 1000000u

/* Sleeps. false: the thread is to end. */
static bool sleep_on(struct cupti_session *s)
{
	struct timespec until;
	bool ending;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += FLUSH_EVERY_NS;
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

static void tell(uint64_t began)
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

/* What CUPTI's clients hear of leaves records, and those a buffer, sooner or later. */
static void look_whether_they_come(struct cupti_session *s, uint32_t batches)
{
	const bool come = !atomic_load(&s->owed) || atomic_load(&s->batches) != batches || cupti_is_away();

	s->unanswered = come ? 0 : s->unanswered + 1;
	if (come ? !s->doubted : s->unanswered % UNANSWERED_MOST != 0)
		return;
	pthread_mutex_lock(&s->lock);
	if (come)
		cupti_doubt_no_more();
	else if (cupti_runs() && !cupti_is_away())
		cupti_doubt();
	pthread_mutex_unlock(&s->lock);
}

static void flush(struct cupti_session *s)
{
	uint32_t batches = atomic_load_explicit(&s->batches, memory_order_relaxed);
	uint64_t began = clock_now(), began_ns = clock_monotonic_ns();

	pthread_mutex_lock(&s->lock);
	if (cupti_runs() && !cupti_guest_flushes() && !cupti_is_away())
		s->library.flush_all(0);
	pthread_mutex_unlock(&s->lock);
	if (atomic_load_explicit(&s->batches, memory_order_relaxed) != batches ||
		clock_monotonic_ns() - began_ns > WORTH_TELLING_NS)
		tell(began);
	look_whether_they_come(s, batches);
}

static void *run(void *data)
{
	struct cupti_session *s = data;

	gpu_device_record();
	while (sleep_on(s) && cupti_runs()) {
		flush(s);
		cupti_yield_look();
		cupti_buffers_keep_ready();
	}
	return NULL;
}

/* Returns 0 or an errno. */
static int create(struct cupti_session *s)
{
	pthread_attr_t attributes;
	int failed = pthread_attr_init(&attributes);

	if (failed)
		return failed;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	failed = pthread_create(&s->thread, &attributes, run, s);
	pthread_attr_destroy(&attributes);
	if (failed) /* a program with much thread-local data needs more stack than that */
		failed = pthread_create(&s->thread, NULL, run, s);
	return failed;
}

static void tell_without(int failed)
{
	char text[256];

	snprintf(text, sizeof text, "No thread could be created that asks CUPTI for what is complete (error %d): what the GPU did comes when CUPTI has a "
				    "buffer full and at the end, and a kill loses more of it; allow the program more threads.", failed);
	meta_set("warning.cupti_thread", text);
}

void cupti_flush_begin(void)
{
	struct cupti_session *s = cupti_session;
	pthread_condattr_t clock;
	sigset_t all, before;
	int saved = errno, failed = 0;

	if (atomic_load_explicit(&s->thread_wanted, memory_order_relaxed) || atomic_exchange(&s->thread_wanted, true))
		return;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &clock);
	pthread_condattr_destroy(&clock);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited: the program's signals are never delivered there */
	pthread_mutex_lock(&s->sleep_lock);
	if (!s->ending)
		s->thread_runs = !(failed = create(s));
	pthread_mutex_unlock(&s->sleep_lock);
	if (failed)
		tell_without(failed);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
}

bool cupti_flush_end(void)
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
	until.tv_sec += END_PATIENCE_S;
	return pthread_timedjoin_np(s->thread, NULL, &until) == 0;
}
