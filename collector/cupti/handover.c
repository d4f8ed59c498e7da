/* SPDX-License-Identifier: MIT */
#include "collector/cupti/handover.h"

#include "collector/cupti/subscription.h"
#include "collector/process/clock.h"
#include "collector/cupti/client.h"
#include "collector/cupti/client_clock.h"
#include "collector/file/dictionary.h"
#include "collector/process/signal_guard.h"
#include "collector/stream/held_records.h"
#include "collector/stream/stream.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

/* The time that an idle client has to fetch its last records. */
#define CLIENT_FETCH_NS UINT64_C(1000000000)
#define WAIT_NS 1000000L /* between two attempts to lock */
#define WAITS_MAX 2000

_Atomic uint32_t cupti_handovers;

bool cupti_lock_bounded(struct signal_guard *guard)
{
	const struct timespec wait = { 0, WAIT_NS };
	const int saved = errno;

	for (int i = 0; i < WAITS_MAX; i++) {
		signal_guard_begin(guard);
		if (pthread_mutex_trylock(&cupti_session->lock) == 0)
			return true;
		signal_guard_end(guard);
		nanosleep(&wait, NULL);
		errno = saved;
	}
	return false;
}

void cupti_unlock_bounded(const struct signal_guard *guard)
{
	pthread_mutex_unlock(&cupti_session->lock);
	signal_guard_end(guard);
}

static void write_handover_edge(enum trace_away_edge edge)
{
	struct trace_away *record;
	struct signal_guard guard;

	if (!stream_enter())
		return;
	held_records_lock(&guard);
	record = stream_record(TRACE_AWAY, sizeof *record);
	if (record) {
		record->realtime_ns = client_clock_cupti_ns();
		record->edge = edge;
		held_records_set(0, record); /* the restated begin, or the last end */
		stream_commit();
	}
	held_records_unlock(&guard);
	stream_leave();
}

/* Stores how often CUPTI was handed over. The report looks for AWAY records if this is set. */
static void write_handover_count(void)
{
	char times[16];

	snprintf(times, sizeof times, "%u", (atomic_load(&cupti_handovers) + 1) / 2);
	meta_set("cupti.yielded", times);
}

static void hand_over_locked(struct cupti_session *s, bool all_syncs)
{
	write_handover_edge(TRACE_AWAY_BEGINS);
	cupti_disable_all(cupti_client_has_callback);
	s->library.flush_all(CUPTI_FLUSH_FORCED);
	cupti_set_all_syncs(s, all_syncs);
	atomic_store(&s->handed_over, true);
	/* What the client has disabled meanwhile, without having had CUPTI. */
	cupti_release_kinds(s);
	atomic_fetch_add(&cupti_handovers, 1);
	write_handover_count();
}

void cupti_hand_over(bool all_syncs)
{
	struct cupti_session *s = cupti_session;
	struct signal_guard guard;

	if (!cupti_lock_bounded(&guard))
		return;
	s->client_idle_since_ns = 0;
	if (cupti_runs() && !atomic_load(&s->handed_over) && !s->process_ending)
		hand_over_locked(s, all_syncs);
	cupti_unlock_bounded(&guard);
}

/* Our kinds are enabled for the second time now. Before 13.1 Update 1, a graph launch and its
 * kernels may then disagree about the correlation id (release notes of CUDA 13.1 Update 1). */
static void warn_graph_ids(const struct cupti_session *s)
{
	if (s->library.version < CUPTI_VERSION_13_1_1)
		cupti_set_state("warning.cupti_handover",
			"CUPTI %u may confuse the launches of CUDA graphs after it was handed over "
			"to another profiler; use CUPTI 13.1 Update 1 or later, or share CUPTI "
			"(PPERF_CUPTI=share, the default).",
			s->library.version);
}

/* Ends the handover. Called under the session's lock. The client first gets its last records, in
 * its own buffers. */
static void end_handover_locked(struct cupti_session *s)
{
	if (!s->client_idle_since_ns || !cupti_runs() || !atomic_load(&s->handed_over) ||
		s->process_ending)
		return;
	s->client_idle_since_ns = 0;
	s->library.flush_all(CUPTI_FLUSH_FORCED);
	cupti_client_handover_ends();
	atomic_store_explicit(&s->handed_over, false, memory_order_release);
	atomic_fetch_add(&cupti_handovers, 1);
	cupti_enable_all();
	warn_graph_ids(s);
	write_handover_edge(TRACE_AWAY_ENDS);
}

void cupti_handover_client_idle(void)
{
	struct signal_guard guard;

	if (!cupti_lock_bounded(&guard))
		return;
	cupti_session->client_idle_since_ns = clock_monotonic_ns();
	cupti_unlock_bounded(&guard);
}

void cupti_handover_finish(void)
{
	struct signal_guard guard;

	if (!cupti_lock_bounded(&guard))
		return;
	end_handover_locked(cupti_session);
	cupti_unlock_bounded(&guard);
}

void cupti_handover_poll(void)
{
	struct cupti_session *s = cupti_session;

	if (!cupti_is_handed_over())
		return;
	pthread_mutex_lock(&s->lock);
	if (s->client_idle_since_ns &&
		clock_monotonic_ns() - s->client_idle_since_ns > CLIENT_FETCH_NS)
		end_handover_locked(s);
	pthread_mutex_unlock(&s->lock);
}
