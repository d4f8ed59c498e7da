/* SPDX-License-Identifier: MIT
 * Runs the thread that flushes CUPTI's activity buffers, and on which the session ends.
 */
#ifndef PPERF_COLLECTOR_CUPTI_FLUSH_THREAD_H
#define PPERF_COLLECTOR_CUPTI_FLUSH_THREAD_H

#include "collector/cupti/session_state.h"

/* Starts the thread that requests completed buffers ten times a second. Only the
 * first call has an effect. Any thread may call it, also from a callback. */
void cupti_flush_start(void);

/* Starts the thread if `call` is made in a context. If the session began after the first context,
 * CUPTI does not report that context's creation. */
static inline void cupti_flush_start_if_needed(const struct cupti_call *call)
{
	if (__builtin_expect(
		    !atomic_load_explicit(&cupti_session->thread_requested, memory_order_relaxed),
		    0) &&
		call->context)
		cupti_flush_start();
}

/* Ends the thread, on which `finish` is called last. Without a thread, `finish` is called here.
 * Returns false if the thread has not ended after `seconds`, because a CUPTI call does not return.
 */
bool cupti_flush_stop(void (*finish)(struct cupti_session *), unsigned seconds);

#endif
