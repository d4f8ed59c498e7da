/* SPDX-License-Identifier: MIT
 * cupti_yield.c: see cupti_yield.h.
 */
#include "collector/cupti/handover.h"

#include "collector/cupti/subscription.h"
#include "collector/process/clock.h"
#include "collector/cupti/client.h"
#include "collector/cupti/client_clock.h"
#include "collector/file/dictionary.h"
#include "collector/process/signal_guard.h"
#include "collector/stream/stream.h"

#include <stdio.h>

#define FETCHES_NS UINT64_C(1000000000) /* so long may the other take until it fetches what is left */

_Atomic uint32_t cupti_handovers;

static void lock(struct quiet *quiet)
{
	quiet_begin(quiet);
	pthread_mutex_lock(&cupti_session->lock);
}

static void unlock(const struct quiet *quiet)
{
	pthread_mutex_unlock(&cupti_session->lock);
	quiet_end(quiet);
}

static void put_edge(enum trace_away_edge edge)
{
	struct trace_away *away;

	if (!stream_enter())
		return;
	away = stream_record(TRACE_AWAY, sizeof *away);
	if (away) {
		away->realtime_ns = guest_clock_cupti_ns();
		away->edge = edge;
		stream_commit();
	}
	stream_leave();
}

/* The report looks for the edges where this is set. */
static void count_times(void)
{
	char times[16];

	snprintf(times, sizeof times, "%u", (atomic_load(&cupti_handovers) + 1) / 2);
	meta_set("cupti.yielded", times);
}

static void step_aside(struct cupti_session *s, cupti_clock clock)
{
	put_edge(TRACE_AWAY_BEGINS);
	cupti_ask_no_more(cupti_guest_hears);
	s->library.flush_all(CUPTI_FLUSH_FORCED);
	atomic_store_explicit(&s->away, true, memory_order_release);
	atomic_fetch_add(&cupti_handovers, 1);
	if (clock && s->library.register_clock && s->library.register_clock(clock) == CUPTI_OK)
		s->other_clock = true;
	count_times();
}

void cupti_yield(cupti_clock clock)
{
	struct cupti_session *s = cupti_session;
	struct quiet quiet;

	lock(&quiet);
	s->left_ns = 0;
	if (cupti_runs() && !atomic_load(&s->away) && !s->over)
		step_aside(s, clock);
	unlock(&quiet);
}

int cupti_yield_clock(cupti_clock clock)
{
	struct cupti_session *s = cupti_session;
	struct quiet quiet;
	int result = CUPTI_NOT_INITIALIZED;

	lock(&quiet);
	if (s->library.register_clock)
		result = s->library.register_clock(clock);
	if (result == CUPTI_OK)
		s->other_clock = true;
	unlock(&quiet);
	return result;
}

/* A clock that was set cannot be unset; this one is CUPTI's own. */
static void set_own_clock(struct cupti_session *s)
{
	if (s->other_clock && s->library.register_clock(guest_clock_cupti_ns) == CUPTI_OK)
		s->other_clock = false;
}

/* Under the lock. What the other has not fetched it gets first: in its own buffers. */
static void take_back(struct cupti_session *s)
{
	if (!s->left_ns || !cupti_runs() || !atomic_load(&s->away) || s->over)
		return;
	s->left_ns = 0;
	s->library.flush_all(CUPTI_FLUSH_FORCED);
	set_own_clock(s);
	atomic_store_explicit(&s->away, false, memory_order_release);
	atomic_fetch_add(&cupti_handovers, 1);
	cupti_ask();
	put_edge(TRACE_AWAY_ENDS);
}

void cupti_yield_ends(void)
{
	struct quiet quiet;

	lock(&quiet);
	cupti_session->left_ns = clock_monotonic_ns();
	unlock(&quiet);
}

void cupti_yield_over(void)
{
	struct quiet quiet;

	lock(&quiet);
	take_back(cupti_session);
	unlock(&quiet);
}

void cupti_yield_look(void)
{
	struct cupti_session *s = cupti_session;

	if (!cupti_is_away())
		return;
	pthread_mutex_lock(&s->lock);
	if (s->left_ns && clock_monotonic_ns() - s->left_ns > FETCHES_NS)
		take_back(s);
	pthread_mutex_unlock(&s->lock);
}
