/* SPDX-License-Identifier: MIT
 * Hands CUPTI over to another client while that client has record kinds enabled
 * (PPERF_CUPTI=yield). TRACE_AWAY records in the trace show from when to when.
 *
 * During a handover none of our kinds, timed calls and callbacks is enabled. Buffers are requested
 * from the client and completed to it. Three things stay ours:
 *  - the subscription, which CUPTI grants only once; a new one would count calls from 1 again,
 *  - the pair of buffer functions, which forward to the owner of a buffer,
 *  - the clock: pperf never registers a timestamp callback. A callback cannot be unregistered. With
 *    one, CUPTI 12.6 Update 2 to 13.0 may report kernels without times (release notes of CUDA
 *    13.1), and each registration shifts kernels to the former clock (pytorch issue 192021). The
 *    times in the client's buffers are converted instead (cupti_client_complete_buffer).
 *
 * Any thread may call, but not from a CUPTI callback.
 */
#ifndef PPERF_COLLECTOR_CUPTI_HANDOVER_H
#define PPERF_COLLECTOR_CUPTI_HANDOVER_H

#include "collector/cupti/session_state.h"

/* Returns whether CUPTI is handed over now. */
static inline bool cupti_is_handed_over(void)
{
	return cupti_session &&
	       atomic_load_explicit(&cupti_session->handed_over, memory_order_acquire);
}

/* Locks the session on a thread of the client. If a call to CUPTI that holds the lock does not
 * return, the client goes on after two seconds; the result is then false, and nothing is locked.
 * Signals stay open while it waits. */
struct signal_guard;
bool cupti_lock_bounded(struct signal_guard *guard);
void cupti_unlock_bounded(const struct signal_guard *guard);

/* Hands CUPTI over before the client enables something. `all_syncs`: the client wants records of
 * queries that find work unfinished. Records made so far are flushed first. GPU work still running
 * then has no times. */
void cupti_hand_over(bool all_syncs);

/* Called when the client has nothing enabled any more. The handover ends with
 * cupti_handover_finish() or cupti_handover_poll(). */
void cupti_handover_client_idle(void);
/* Called when the client has fetched its last records. Ends the handover if the client is idle. */
void cupti_handover_finish(void);
/* Called ten times a second. Ends the handover if the client has been idle for a second without
 * fetching its last records. */
void cupti_handover_poll(void);

#endif
