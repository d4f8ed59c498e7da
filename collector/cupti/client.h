/* SPDX-License-Identifier: MIT
 * cupti_guest.h: another profiler in this process that uses CUPTI's activity records: torch.profiler.
 *
 * CUPTI has one pair of buffer callbacks, one set of kinds and one clock in a process, and whoever
 * sets them takes them from the other. As the guest's calls come to us first (preload/cuda/cupti_interpose.c),
 * neither loses anything: the buffers stay ours, and what the guest asked for is copied into buffers
 * of its own, with times of its own clock.
 *
 * A session of the guest lasts from its first enabled kind until it has disabled the last one. It
 * gets the records of the kinds that it enabled, of calls that begin in its session; what is left of
 * them comes with its next flush. None of its records are in our trace, unless they are ours, too.
 *
 * Threads: any. No lock of ours is held across a call to CUPTI or to the guest.
 */
#ifndef PPERF_COLLECTOR_CUPTI_CLIENT_H
#define PPERF_COLLECTOR_CUPTI_CLIENT_H

#include "collector/cupti/abi.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cupti_call;

/* ---- for the guest: its calls to CUPTI, with CUPTI's results. Where there is no session of ours
 * they go on to the libcupti that is loaded; without one the answer is CUPTI_NOT_INITIALIZED. ---- */

int cupti_client_register(cupti_buffer_requested requested, cupti_buffer_completed completed);
int cupti_client_set_clock(cupti_clock clock);
int cupti_client_enable(int kind);
int cupti_client_disable(int kind);
int cupti_client_enable_driver_api(uint32_t cbid, uint8_t on);
int cupti_client_enable_and_dump(int kind);
/* Of one context only: that is not shared, CUPTI is left to the guest (cupti_yield.h). */
int cupti_client_enable_context(void *context, int kind);
int cupti_client_disable_context(void *context, int kind);
int cupti_client_flush(uint32_t flags);
int cupti_client_get_dropped(void *context, uint32_t stream, size_t *dropped);
int cupti_client_set_attribute(int attribute, size_t *bytes, void *value);
int cupti_client_finalize(void);
int cupti_client_subscribe(void **handle, cupti_callback callback, void *data);
int cupti_client_subscribe_v2(void **handle, cupti_callback callback, void *data, void *more);
int cupti_client_unsubscribe(void *handle);
int cupti_client_enable_callback(uint32_t on, void *handle, int domain, uint32_t id);
int cupti_client_enable_domain(uint32_t on, void *handle, int domain);
int cupti_client_enable_all_domains(uint32_t on, void *handle);
int cupti_client_callback_state(uint32_t *on, void *handle, int domain, uint32_t id);

/* CUPTI itself: the session's, or that of a guest beside whom we are not (the session was refused, or
 * is of a process that has forked). NULL: there is none. */
const struct cupti_library *cupti_client_library(void);

/* ---- for the session ---- */

/* A callback has come: the guest's turn, after ours. */
void cupti_client_forward_callback(int domain, uint32_t id, const void *what);

/* Copies to the guest what it asked for of a buffer that CUPTI completed. dropped: records that were
 * lost. Keeps errno. */
void cupti_client_deliver(
	const struct cupti_library *cupti, uint8_t *buffer, size_t valid, uint64_t dropped);

/* The process ends: nothing is handed over any more. */
void cupti_client_end(void);

/* The guest's callback has been asked for on this id. */
bool cupti_client_has_callback(int domain, uint32_t id);

/* A record is the guest's alone. */
bool cupti_client_owns_record(const void *record);

/* The guest is flushing, or will be in a moment: others wait. */
bool cupti_client_is_flushing(void);

extern atomic_bool cupti_client_is_active; /* the guest has kinds enabled */
void cupti_client_note_call(uint32_t correlation);
/* A call of the driver begins. */
static inline void cupti_client_on_call(uint32_t correlation)
{
	if (__builtin_expect(
		    atomic_load_explicit(&cupti_client_is_active, memory_order_relaxed), 0))
		cupti_client_note_call(correlation);
}

#endif
