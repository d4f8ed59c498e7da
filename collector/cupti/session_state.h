/* SPDX-License-Identifier: MIT
 * Holds the state that the files of this folder share.
 */
#ifndef PPERF_COLLECTOR_CUPTI_SESSION_STATE_H
#define PPERF_COLLECTOR_CUPTI_SESSION_STATE_H

#include "collector/cupti/session.h"
#include "collector/cupti/abi.h"

#include <pthread.h>
#include <stdatomic.h>

#define CUPTI_CONTEXTS 256u

/* A context that CUPTI has reported. id 0: none. */
struct cupti_known_context {
	_Atomic uint32_t id;
	uint32_t device;
	uint64_t handle;
};

/* Whether GPU records have correlation ids. CUPTI's guide (2.3.4) promises ids only for calls whose
 * API records are enabled. All releases up to 13.4 also give them for callbacks.
 *
 *   UNKNOWN    no GPU record has arrived, or only a few without an id
 *   GIVEN      a record had an id
 *   MISSING    the first records had none, so records of driver calls will be enabled
 *   REQUESTED  records of driver calls are enabled. They are not written to the trace. */
enum cupti_ids { CUPTI_IDS_UNKNOWN, CUPTI_IDS_GIVEN, CUPTI_IDS_MISSING, CUPTI_IDS_REQUESTED };

/* The session. It is in memory that a forked child finds zeroed, so there it is not running and
 * CUPTI is never called. */
struct cupti_session {
	struct cupti_library library;
	const struct cupti_config *config;
	void *subscriber;
	/* Held around our own CUPTI calls. Never taken in a callback. */
	pthread_mutex_t lock;
	atomic_bool running; /* CUPTI may be called */
	atomic_bool warned;  /* a STATE callback has warned */
	char partial[512];   /* what CUPTI refused, for META; under lock */

	/* Members of handover.c. */
	/* CUPTI is handed over to another client. Changed under lock. */
	atomic_bool handed_over;
	/* The process ends, and no handover begins or ends any more. Changed under lock. */
	atomic_bool process_ending;
	/* CLOCK_MONOTONIC time since which the client has no kind and no callback enabled. 0: it
	 * has one enabled. Under lock. */
	uint64_t client_idle_since_ns;

	/* Members of flush_thread.c. */
	pthread_mutex_t sleep_lock; /* never held during a CUPTI call */
	pthread_cond_t wake;
	pthread_t thread;
	atomic_bool thread_requested;
	bool thread_runs, ending;
	/* CLOCK_MONOTONIC time since which our thread is in a flush. 0: it is in none. */
	_Atomic uint64_t flush_began_ns;
	bool has_flushed;       /* a flush has succeeded; used by our thread */
	bool slow_flush_stated; /* META says that a flush does not return; under sleep_lock */
	/* Called on the thread when `ending` is set. Under sleep_lock. */
	void (*finish)(struct cupti_session *);
	/* Number of buffers that have arrived. */
	_Atomic uint32_t completed_buffers;
	/* A call that leaves a record has begun since the last buffer. */
	atomic_bool records_expected;
	/* CLOCK_MONOTONIC time of the first flush that returned no buffer although records are
	 * expected. 0: none, or a buffer has arrived since. */
	uint64_t overdue_since_ns;
	/* How overdue records must be before META says so (again). 0: META does not say so. */
	uint64_t overdue_stated_ns;
	uint32_t checked_buffers; /* completed_buffers at the last check */
	/* CUPTI has reported a failure of its own, which META states. */
	atomic_bool cupti_failed;
	/* A CUDA call has returned an error that every later call returns, too. */
	atomic_bool cuda_failed;

	struct cupti_known_context contexts[CUPTI_CONTEXTS]; /* by id modulo CUPTI_CONTEXTS */
	/* Ids of calls in GPU records (enum cupti_ids). */
	_Atomic uint32_t ids;
	_Atomic uint32_t records_without_id; /* while `ids` is CUPTI_IDS_UNKNOWN */
	/* The driver calls that CUPTI times for us, one bit each. */
	uint64_t timed[1024 / 64];
};
extern struct cupti_session *cupti_session; /* NULL: not started */

static inline bool cupti_runs(void)
{
	return cupti_session && atomic_load_explicit(&cupti_session->running, memory_order_acquire);
}

/* Whether CUPTI times this driver call for us. */
static inline bool cupti_times_call(uint32_t cbid)
{
	return cupti_session && cbid < 1024 && (cupti_session->timed[cbid / 64] >> cbid % 64 & 1);
}

#define CUPTI_REASON_BYTES 4600 /* a path and a sentence */

/* Sets the META fact `key` to a text that is formatted as by printf. */
void cupti_set_state(const char *key, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Handles CUPTI's callbacks about contexts, streams, graphs and modules (resources.c). */
void cupti_on_resource(uint32_t id, const struct cupti_resource *resource);

#endif
