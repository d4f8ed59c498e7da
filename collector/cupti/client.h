/* SPDX-License-Identifier: MIT
 * Serves another profiler in this process that uses CUPTI's activity records, such as
 * torch.profiler. It is called the client.
 * CUPTI has one pair of buffer callbacks, one set of enabled activity kinds and one clock in a
 * process. A profiler that sets them replaces those of the profiler that set them before.
 * preload/cuda/cupti_interpose.c therefore intercepts the client's calls. CUPTI continues to fill
 * pperf's buffers. The records that the client enabled are copied from there into the client's own
 * buffers, with times converted to its clock.
 *
 * A client session lasts from the first kind that the client enables until it has disabled the last
 * one. The client gets the records of its kinds, for calls that begin in its session. The last of
 * them arrive with its next flush. Records of kinds that only the client enabled are not in the
 * trace. "Session" alone means pperf's use of CUPTI (session.h).
 *
 * Any thread may call. No lock of ours is held across a call to CUPTI or to the client.
 */
#ifndef PPERF_COLLECTOR_CUPTI_CLIENT_H
#define PPERF_COLLECTOR_CUPTI_CLIENT_H

#include "collector/cupti/abi.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cupti_call;

/* ---- for the client ----
 *
 * The client's calls to CUPTI, with CUPTI's results. Without a session of ours, they are forwarded
 * to the loaded libcupti. Without libcupti they return CUPTI_NOT_INITIALIZED. */

int cupti_client_register(cupti_buffer_requested requested, cupti_buffer_completed completed);
int cupti_client_set_clock(cupti_clock clock);
int cupti_client_enable(int kind);
int cupti_client_disable(int kind);
int cupti_client_enable_driver_api(uint32_t cbid, uint8_t on);
int cupti_client_enable_runtime_api(uint32_t cbid, uint8_t on);
int cupti_client_enable_all_syncs(uint8_t on);
int cupti_client_enable_and_dump(int kind);
/* Kinds of one context only are not shared: CUPTI is handed over to the client (handover.h). */
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

/* Returns the CUPTI to call. That is the session's, or if there is no session (refused, or in a
 * forked child), one loaded for the client. Returns NULL if there is none. */
const struct cupti_library *cupti_client_library(void);

/* ---- for the session ---- */

/* Whether the client has enabled this kind of records now. */
bool cupti_client_has_enabled(uint32_t kind);
/* Whether it has enabled records of driver calls, all or single ones, and whether of this call. */
bool cupti_client_has_enabled_calls(void);
bool cupti_client_has_enabled_call(uint32_t cbid);

/* Whether records in our buffers may be the client's, also after a handover has begun. */
bool cupti_client_accepts_records(void);
/* Called when a handover ends. From then on records are only ours. */
void cupti_client_handover_ends(void);

/* Forwards a callback to the client, after our own callback has run. */
void cupti_client_forward_callback(int domain, uint32_t id, const void *what);

/* Copies the client's records from a buffer that CUPTI completed. `dropped` is the number of lost
 * records. errno is preserved. */
void cupti_client_deliver(
	const struct cupti_library *cupti, uint8_t *buffer, size_t valid, uint64_t dropped);

/* Called ten times a second. Hands CUPTI over to the client if the ids of its records cannot be
 * related to calls (collector/cupti/call_ids.h). */
void cupti_client_poll(void);
/* Completes a buffer that CUPTI requested from the client during a handover. Its times are
 * converted to the client's clock in place. */
void cupti_client_complete_buffer(const struct cupti_library *cupti, void *context, uint32_t stream,
	uint8_t *buffer, size_t bytes, size_t valid);

/* Ends the client's session when the process ends. No record is copied afterwards. */
void cupti_client_end(void);

/* Ends the client's subscription, if it has one. It may subscribe again. */
void cupti_client_drop_subscriber(void);

/* Whether the client has enabled this callback. */
bool cupti_client_has_callback(int domain, uint32_t id);

/* Whether only the client enabled this record's kind. */
bool cupti_client_owns_record(const void *record);

/* Whether the client is flushing or about to flush. Our own flushes wait meanwhile. */
bool cupti_client_is_flushing(void);

extern atomic_bool cupti_client_is_active; /* the client has kinds enabled */
/* Extends the client's session to this call. */
void cupti_client_note_call(uint32_t correlation);
/* Called at the begin of each driver call. */
static inline void cupti_client_on_call(uint32_t correlation)
{
	if (__builtin_expect(
		    atomic_load_explicit(&cupti_client_is_active, memory_order_relaxed), 0))
		cupti_client_note_call(correlation);
}

#endif
