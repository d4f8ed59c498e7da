/* SPDX-License-Identifier: MIT
 * cupti_session.h: what the cupti*.c files share. For them only.
 */
#ifndef PPERF_COLLECTOR_CUPTI_SESSION_STATE_H
#define PPERF_COLLECTOR_CUPTI_SESSION_STATE_H

#include "collector/cupti/session.h"
#include "collector/cupti/abi.h"

#include <pthread.h>
#include <stdatomic.h>

#define CUPTI_CONTEXTS 256u

struct cupti_known_context { /* of a context that CUPTI told us of; id 0: none */
	_Atomic uint32_t id;
	uint32_t device;
	uint64_t handle;
};

/* Lies in memory that a forked child finds zeroed: there it is not running, and nothing is ever
 * called. */
struct cupti_session {
	struct cupti_library library;
	const struct cupti_config *config;
	void *subscriber;
	pthread_mutex_t lock; /* around our own CUPTI calls. Never taken in a callback */
	atomic_bool running;  /* CUPTI may be called */
	atomic_bool warned;   /* by a STATE callback */
	char partial[512];    /* what it refused, for META; under lock */

	/* cupti_yield.c */
	atomic_bool handed_over;    /* CUPTI is another client's; changed under lock */
	bool client_clock_set;      /* CUPTI's clock is another client's; under lock */
	atomic_bool process_ending; /* the process ends: as it is it stays; changed under lock */
	uint64_t
		client_idle_since_ns; /* when that client had nothing enabled any more, 0: it has; under lock */

	/* cupti_flush.c */
	pthread_mutex_t sleep_lock; /* never held while CUPTI is called */
	pthread_cond_t wake;
	pthread_t thread;
	atomic_bool thread_requested;
	bool thread_runs, ending;
	_Atomic uint32_t completed_buffers; /* buffers that have arrived */
	atomic_bool records_expected; /* a call was heard of since: there will be records of it */
	unsigned empty_flushes;       /* flushes in a row without a buffer, though one is owed */
	bool stalled;                 /* it was said that none come; under lock */
	uint32_t stalled_at;          /* batches, when it was */

	struct cupti_known_context contexts[CUPTI_CONTEXTS]; /* by id modulo */
	uint64_t timed[1024 / 64]; /* the driver's calls that CUPTI times for us, a bit each */
};
extern struct cupti_session *cupti_session; /* NULL: not begun */

static inline bool cupti_runs(void)
{
	return cupti_session && atomic_load_explicit(&cupti_session->running, memory_order_acquire);
}

/* Whether CUPTI times this function of the driver for us. */
static inline bool cupti_times_call(uint32_t cbid)
{
	return cupti_session && cbid < 1024 && (cupti_session->timed[cbid / 64] >> cbid % 64 & 1);
}

#define CUPTI_REASON_BYTES 4600 /* a path and a sentence */

/* printf into the trace's facts (META), under `key`. */
void cupti_set_state(const char *key, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* cupti_flush.c. Starts the thread that fetches what is complete ten times a second; once, from
 * anywhere, also from a callback. */
void cupti_flush_start(void);
/* The same, if `call` is made in a context: where the session began after the first context, nobody
 * tells that it was made. */
static inline void cupti_flush_start_if_needed(const struct cupti_call *call)
{
	if (__builtin_expect(
		    !atomic_load_explicit(&cupti_session->thread_requested, memory_order_relaxed),
		    0) &&
		call->context)
		cupti_flush_start();
}
/* Ends it. false: it does not end, because CUPTI does not come back. */
bool cupti_flush_stop(void);

/* cupti_resource.c: contexts, streams, graphs and modules, as they come and go. */
void cupti_on_resource(uint32_t id, const struct cupti_resource *resource);

#endif
