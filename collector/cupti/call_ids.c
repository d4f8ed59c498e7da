/* SPDX-License-Identifier: MIT
 * The ids are in a table that is indexed by their low bits. An entry is one word, with the id in
 * its upper half, so an older id with the same low bits is recognised and replaced. CUPTI's buffers
 * hold at most some ten thousand records that have not arrived.
 *
 *   entry of            other half                 meaning
 *   a runtime call      the same id                no driver call of it is known
 *   a runtime call      a later id                 its first driver call
 *   a driver call       an earlier id              the runtime call around it
 *   a driver call       the same id                there is no runtime call around it
 *   a driver call       0                          pperf's own call
 *
 * A runtime call has the earlier id because it begins first.
 */
#include "collector/cupti/call_ids.h"

#include "collector/cupti/client.h"
#include "collector/cupti/session_state.h"
#include "collector/file/dictionary.h"

#include <string.h>

#define SLOTS (1u << 17) /* 1 MiB, touched only while a client is active */
#define IDS 1024u
#define UNMATCHED_MAX 16u

enum rule { RULE_UNKNOWN, RULE_DRIVER, RULE_RUNTIME };

static _Atomic uint64_t slots[SLOTS];
static _Atomic uint64_t followed[CUPTI_RUNTIME + 1][IDS / 64];
static _Atomic uint32_t rule, unmatched, first_id;
static _Atomic uint32_t generation; /* counts the times that runtime callbacks were disabled */
static atomic_bool failed, nested_records, follows_runtime;
atomic_bool call_ids_used;

_Thread_local bool call_ids_own_call __attribute__((tls_model("initial-exec")));

/* The runtime call that this thread is in. Valid if `generation` is the current one, because an end
 * is not reported after callbacks were disabled. id 0: none. */
static _Thread_local struct {
	uint32_t id, generation;
} runtime_call __attribute__((tls_model("initial-exec")));

static void store(uint32_t id, uint32_t other)
{
	atomic_store_explicit(&slots[id % SLOTS], (uint64_t)id << 32 | other, memory_order_relaxed);
}

static bool find(uint32_t id, uint32_t *other)
{
	const uint64_t slot = atomic_load_explicit(&slots[id % SLOTS], memory_order_relaxed);

	*other = (uint32_t)slot;
	return id && slot >> 32 == id;
}

static bool is_before(uint32_t id, uint32_t other)
{
	return (int32_t)(id - other) < 0;
}

/* ---- callbacks ---- */

/* The beginnings of the names of runtime functions that start GPU work, allocate, wait or record
 * events. All others make no driver call for which pperf has a callback. */
static const char *const runtime_names[] = { "cudaLaunch", "__cudaLaunch", "cudaGraphLaunch",
	"cudaMemcpy", "cudaMemset", "cudaMalloc", "cudaFree", "cudaHost", "cudaDeviceSynchronize",
	"cudaDeviceReset", "cudaStreamSynchronize", "cudaStreamWaitEvent", "cudaEventRecord",
	"cudaEventSynchronize" };
/* The driver functions that pperf calls while a client may be active: those of
 * preload/cuda/driver_query.c, devices.c and memory_samples.c. */
static const char *const own_names[] = { "cuCtxGetDevice", "cuStreamIsCapturing",
	"cuStreamIsCapturing_ptsz", "cuKernelGetName", "cuMemGetInfo_v2", "cuDeviceGetCount",
	"cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute", "cuDeviceTotalMem_v2",
	"cuDeviceGetUuid", "cuDeviceGetUuid_v2" };

static bool is_followed(int domain, const char *name)
{
	if (domain == CUPTI_DRIVER) {
		for (size_t i = 0; i < sizeof own_names / sizeof *own_names; i++)
			if (!strcmp(name, own_names[i]))
				return true;
		return false;
	}
	for (size_t i = 0; i < sizeof runtime_names / sizeof *runtime_names; i++)
		if (!strncmp(name, runtime_names[i], strlen(runtime_names[i])))
			return true;
	return false;
}

bool call_ids_owns_callback(int domain, uint32_t id)
{
	return (domain == CUPTI_DRIVER || domain == CUPTI_RUNTIME) && id < IDS &&
	       (atomic_load_explicit(&followed[domain][id / 64], memory_order_relaxed) >> id % 64 &
		       1);
}

static void follow(int domain, uint32_t id, bool on)
{
	const struct cupti_session *s = cupti_session;
	const uint64_t bit = UINT64_C(1) << id % 64;
	const char *name = NULL;

	if (!on && call_ids_owns_callback(domain, id)) {
		atomic_fetch_and(&followed[domain][id / 64], ~bit);
		if (!cupti_client_has_callback(domain, id))
			s->library.enable_callback(0, s->subscriber, domain, id);
	} else if (on && s->library.callback_name(domain, id, &name) == CUPTI_OK && name &&
		   is_followed(domain, name) &&
		   s->library.enable_callback(1, s->subscriber, domain, id) == CUPTI_OK) {
		atomic_fetch_or(&followed[domain][id / 64], bit);
	}
}

static void follow_all(int domain, bool on)
{
	if (!cupti_session->library.callback_name)
		return;
	for (uint32_t id = 1; id < IDS && cupti_runs(); id++)
		follow(domain, id, on);
}

void call_ids_follow_runtime(bool on)
{
	if (atomic_exchange(&follows_runtime, on) == on)
		return;
	if (on) {
		atomic_store(&first_id, 0);
		atomic_store(&unmatched, 0);
	}
	follow_all(CUPTI_RUNTIME, on);
	if (!on)
		call_ids_runtime_unfollowed();
}

void call_ids_runtime_unfollowed(void)
{
	atomic_fetch_add(&generation, 1);
}

void call_ids_follow_own(bool on)
{
	if (on)
		atomic_store(&call_ids_used, true);
	follow_all(CUPTI_DRIVER, on);
}

/* ---- calls ---- */

void call_ids_on_runtime_call(const struct cupti_call *call)
{
	if (call->site != CUPTI_ENTER) {
		runtime_call.id = 0;
		return;
	}
	atomic_store_explicit(&call_ids_used, true, memory_order_relaxed);
	runtime_call.id = call->correlation;
	runtime_call.generation = atomic_load_explicit(&generation, memory_order_relaxed);
	if (atomic_load_explicit(&rule, memory_order_relaxed) == RULE_UNKNOWN)
		store(call->correlation, call->correlation);
}

/* Returns the id of the runtime call around the driver call `id` of this thread. Returns `id` if
 * there is none. */
static uint32_t enclosing_call(uint32_t id)
{
	const uint32_t outer = runtime_call.id;

	if (!outer ||
		runtime_call.generation != atomic_load_explicit(&generation, memory_order_relaxed))
		return id;
	return id == 0 || is_before(outer, id) ? outer : id;
}

/* Stores both ids of a driver call, for either rule. Of several driver calls in a runtime call, the
 * first is meant by the runtime call's id. */
static void store_for_any_rule(uint32_t id, uint32_t outer)
{
	uint32_t none = 0, other;

	if (outer != id && find(outer, &other) && other == outer)
		store(outer, id);
	atomic_compare_exchange_strong(&first_id, &none, outer);
}

uint32_t call_ids_on_driver_call(uint32_t id)
{
	const uint32_t outer = enclosing_call(id),
		       known_rule = atomic_load_explicit(&rule, memory_order_relaxed);

	if (call_ids_own_call) {
		store(id, 0);
		return id;
	}
	if (known_rule == RULE_RUNTIME || id == 0)
		return outer;
	store(id, outer);
	if (known_rule == RULE_UNKNOWN)
		store_for_any_rule(id, outer);
	return id;
}

bool call_ids_is_own(uint32_t id)
{
	uint32_t other;

	return call_ids_in_use() && find(id, &other) && other == 0;
}

/* ---- records ---- */

static void learn(enum rule learnt)
{
	uint32_t unknown = RULE_UNKNOWN;

	if (atomic_compare_exchange_strong(&rule, &unknown, learnt))
		meta_set("cupti.gpu_ids", learnt == RULE_DRIVER ? "driver" : "runtime");
}

/* Counts a GPU record that has none of the ids stored since the client enabled runtime records. */
static void count_unmatched(uint32_t id)
{
	const uint32_t first = atomic_load(&first_id);

	if (!first || (id && is_before(id, first)) ||
		atomic_fetch_add(&unmatched, 1) + 1 != UNMATCHED_MAX ||
		atomic_exchange(&failed, true))
		return;
	meta_set("warning.cupti_ids",
		"Beside another profiler that records CUDA runtime calls, CUPTI's GPU records "
		"carry "
		"neither the id of the runtime call nor that of the driver call. CUPTI was "
		"released to that profiler; run without it to see the GPU work of these times.");
}

void call_ids_on_gpu_record(uint32_t id)
{
	uint32_t other;

	if (!call_ids_in_use() || atomic_load_explicit(&rule, memory_order_relaxed) != RULE_UNKNOWN)
		return;
	if (!find(id, &other))
		count_unmatched(id);
	else if (other != id && other != 0)
		learn(is_before(other, id) ? RULE_DRIVER : RULE_RUNTIME);
}

uint32_t call_ids_for_trace(uint32_t id)
{
	uint32_t other;

	return call_ids_in_use() && find(id, &other) && is_before(id, other) && other ? other : id;
}

uint32_t call_ids_for_client(uint32_t id)
{
	uint32_t other;

	return call_ids_in_use() && !atomic_load_explicit(&nested_records, memory_order_relaxed) &&
			       find(id, &other) && other && is_before(other, id)
		       ? other
		       : id;
}

void call_ids_on_driver_record(uint32_t id)
{
	if (call_ids_for_client(id) != id)
		atomic_store(&nested_records, true);
}

bool call_ids_fail(void)
{
	return atomic_load_explicit(&failed, memory_order_relaxed);
}
