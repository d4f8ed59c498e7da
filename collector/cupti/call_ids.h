/* SPDX-License-Identifier: MIT
 * Relates the two correlation ids of GPU work that a runtime call starts through a driver call.
 *
 * pperf has callbacks for driver calls, which give these ids. While the client (client.h) has
 * records of runtime calls enabled, runtime calls have ids, too. No source says which of the two
 * ids a GPU record then carries, and each side needs its own:
 *
 *   side        needs the id of   because
 *   client      the runtime call  alone, it gets no record of a driver call inside a runtime call
 *                                 (pytorch#99615), and the GPU record carries the runtime call's id
 *   pperf       the driver call   the call's record in the trace was written with it
 *
 * Both ids of each call are stored here, until the first GPU record that carries one of them shows
 * CUPTI's rule. From then on only what the rule requires is stored. If GPU records carry neither
 * id, call_ids_fail() returns true, and the client gets CUPTI to itself (handover.h).
 *
 * Also marks the driver calls that pperf makes itself, so that the client does not get their
 * records.
 *
 * Any thread may call. Nothing here takes a lock or allocates.
 */
#ifndef PPERF_COLLECTOR_CUPTI_CALL_IDS_H
#define PPERF_COLLECTOR_CUPTI_CALL_IDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct cupti_call;

/* A runtime callback has arrived, or a callback for pperf's own calls is enabled. As long as this
 * is false, all ids stay as they are. It is never reset. */
extern atomic_bool call_ids_used;

static inline bool call_ids_in_use(void)
{
	return __builtin_expect(atomic_load_explicit(&call_ids_used, memory_order_relaxed), 0);
}

/* Enables or disables the callbacks of runtime calls that make driver calls of pperf's list.
 * Callbacks that the client enabled itself are not disabled. */
void call_ids_follow_runtime(bool on);
/* Enables or disables the callbacks of the driver calls that pperf makes itself. */
void call_ids_follow_own(bool on);
/* Notes that runtime callbacks were disabled, so that ends of runtime calls are missing. */
void call_ids_runtime_unfollowed(void);
/* Whether pperf has enabled this callback here. */
bool call_ids_owns_callback(int domain, uint32_t id);

/* Stores the id of a runtime call of this thread, from its begin to its end. */
void call_ids_on_runtime_call(const struct cupti_call *call);
/* Stores the ids of a driver call that begins. Returns the id for the call's record in the trace.
 */
uint32_t call_ids_on_driver_call(uint32_t id);

/* Learns the rule from the id of a record of GPU work. Called outside of stream_enter. */
void call_ids_on_gpu_record(uint32_t id);
/* Returns the id that pperf's record of the call has, given that of a record of its GPU work. */
uint32_t call_ids_for_trace(uint32_t id);
/* Returns the id that the client expects, given that of a record from CUPTI. */
uint32_t call_ids_for_client(uint32_t id);
/* Notes that CUPTI has made a record of the driver call `id` for the client. If a runtime call made
 * that call, the client gets all ids unchanged from now on, as it would alone. */
void call_ids_on_driver_record(uint32_t id);

/* Whether GPU records carry neither id. The trace says so once. */
bool call_ids_fail(void);

/* Marks the calls of this thread as pperf's own while true. */
extern _Thread_local bool call_ids_own_call __attribute__((tls_model("initial-exec")));
/* Whether this driver call was pperf's own. */
bool call_ids_is_own(uint32_t id);

#endif
