/* SPDX-License-Identifier: MIT
 * States in META that a flush of CUPTI's buffers does not return.
 *
 * CUPTI together with lazy module loading is known to deadlock inside the driver (issue 1108 of
 * NVIDIA's nccl). The trace of a program that was killed in such a hang then says what to try.
 */
#ifndef PPERF_COLLECTOR_CUPTI_FLUSH_WATCH_H
#define PPERF_COLLECTOR_CUPTI_FLUSH_WATCH_H

#include "collector/cupti/session_state.h"

/* Runs on a thread of its own, until the session ends: the thread that flushes cannot state that it
 * hangs. `session`: struct cupti_session. Returns NULL. */
void *cupti_watch_flushes(void *session);

/* Replaces that statement after the flush has returned. `took_ns`: what it took. */
void cupti_watch_note_return(struct cupti_session *s, uint64_t took_ns);

#endif
