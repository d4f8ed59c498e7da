/* SPDX-License-Identifier: MIT
 * cupti_yield.h: PPERF_CUPTI=yield: CUPTI is left to another client (cupti_guest.h) for as long as that one has kinds of
 * record enabled, and taken back afterwards. The trace says from when to when: TRACE_AWAY.
 *
 * While it is away, no kind, no timed call and no callback of ours is enabled, the clock is the other's, and buffers are
 * asked of it and given to it. What stays is the subscription, which CUPTI gives to one only and which, ended and begun
 * anew, would count the calls from 1 again; and the pair of buffer functions, which pass on to whom a buffer belongs.
 *
 * Threads: any; not in a callback of CUPTI's.
 */
#ifndef PPERF_COLLECTOR_CUPTI_HANDOVER_H
#define PPERF_COLLECTOR_CUPTI_HANDOVER_H

#include "collector/cupti/session_state.h"

/* Whether it is the other's just now. */
static inline bool cupti_is_handed_over(void)
{
	return cupti_session &&
	       atomic_load_explicit(&cupti_session->handed_over, memory_order_acquire);
}

/* The other is about to enable something. clock: its own, NULL: CUPTI's. What had been recorded arrives first; what was
 * still running then has no times. */
void cupti_hand_over(cupti_clock clock);

/* The other has set its clock while CUPTI is its. */
int cupti_handover_set_clock(cupti_clock clock);

/* The other has nothing enabled any more. CUPTI is taken back when it has fetched what is left, */
void cupti_handover_client_idle(void);
/* which it has now, */
void cupti_handover_finish(void);
/* or never does: called now and then, takes it back once that has taken long. */
void cupti_handover_poll(void);

#endif
