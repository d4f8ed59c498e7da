/* SPDX-License-Identifier: MIT */
#include "collector/cupti/client.h"

#include "collector/cupti/subscription.h"
#include "collector/cupti/client_buffers.h"
#include "collector/cupti/client_clock.h"
#include "collector/cupti/call_ids.h"
#include "collector/cupti/graph_trace.h"
#include "collector/cupti/handover.h"
#include "collector/process/signal_guard.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define KINDS 128u
#define CALLS 1024u
#define WAIT_NS 1000000L /* between two checks whether deliveries have ended */
#define WAITS_MAX 2000
#define REQUEST_WORDS 16u /* the largest layout has 7 */

struct client_bits {
	_Atomic uint64_t word[CALLS / 64];
};

static struct {
	_Atomic(cupti_clock) clock;
	/* Kinds that are enabled now, and those enabled at any time in the session. */
	struct client_bits on, ever_enabled;
	/* Single driver calls that the client enabled or disabled. */
	struct client_bits calls_on, calls_off;
	struct client_bits runtime_calls_on; /* single runtime calls that it enabled */
	/* The client has disabled records of queries that found work unfinished. */
	atomic_bool no_unfinished_queries;
	atomic_int enabled_for_contexts; /* kinds enabled for one context, counted per context */
	_Atomic uint32_t first, last;    /* correlation ids of its session's calls; 0: none yet */
	_Atomic uint64_t began_ns, ended_ns; /* by CUPTI's clock */
	_Atomic uint64_t dropped;
	/* Records for the client exist or may still arrive. */
	atomic_bool accepts_records;
	/* CUPTI is handed over during the session, so callbacks no longer extend `last`. */
	atomic_bool is_open_ended;
	atomic_int delivering, flushing;
	/* A buffer request that CUPTI reported, with its size: 0 while there is none. */
	uint64_t request[REQUEST_WORDS];
	atomic_bool keeps_request; /* one thread writes it */
	_Atomic uint32_t request_bytes;
	pthread_mutex_t lock; /* guards `origin` */
	struct clock_pair origin;
} client = { .lock = PTHREAD_MUTEX_INITIALIZER };

atomic_bool cupti_client_is_active;

/* ---- bit sets and the lock ---- */

static bool bits_has(struct client_bits *bits, uint32_t i)
{
	return i < CALLS &&
	       (atomic_load_explicit(&bits->word[i / 64], memory_order_relaxed) >> i % 64 & 1);
}

static void bits_set(struct client_bits *bits, uint32_t i, bool on)
{
	if (i < CALLS && on)
		atomic_fetch_or(&bits->word[i / 64], UINT64_C(1) << i % 64);
	else if (i < CALLS)
		atomic_fetch_and(&bits->word[i / 64], ~(UINT64_C(1) << i % 64));
}

static bool bits_any(struct client_bits *bits)
{
	uint64_t all = 0;

	for (size_t i = 0; i < CALLS / 64; i++)
		all |= atomic_load(&bits->word[i]);
	return all != 0;
}

static void bits_clear(struct client_bits *bits)
{
	for (size_t i = 0; i < CALLS / 64; i++)
		atomic_store(&bits->word[i], 0);
}

static void lock_client(struct signal_guard *guard)
{
	signal_guard_begin(guard);
	pthread_mutex_lock(&client.lock);
}

static void unlock_client(const struct signal_guard *guard)
{
	pthread_mutex_unlock(&client.lock);
	signal_guard_end(guard);
}

#define FORWARD(member, arguments)                                                            \
	do {                                                                                  \
		const struct cupti_library *real = cupti_client_library();                    \
		return real && real->member ? real->member arguments : CUPTI_NOT_INITIALIZED; \
	} while (0)

/* ---- the client's clock ---- */

/* Samples both clocks, as the first of the two samples that times are converted by. */
static void set_origin(void)
{
	struct clock_pair origin = client_clock_pair(atomic_load(&client.clock));
	struct signal_guard guard;

	lock_client(&guard);
	client.origin = origin;
	unlock_client(&guard);
}

static struct clock_pair get_origin(void)
{
	struct clock_pair origin;
	struct signal_guard guard;

	lock_client(&guard);
	origin = client.origin;
	unlock_client(&guard);
	return origin;
}

/* ---- the client's records ---- */

/* Whether the id is of a call in the session. Ids are given in order, and start again after
 * 2^32. */
static bool correlation_within(uint32_t id)
{
	uint32_t first = atomic_load(&client.first), last = atomic_load(&client.last);

	/* A later id than that of any call (collector/cupti/call_ids.h) is of the session as long
	 * as that lasts. */
	return first && (int32_t)(id - first) >= 0 &&
	       ((int32_t)(id - last) <= 0 || atomic_load(&cupti_client_is_active) ||
		       atomic_load(&client.is_open_ended));
}

static bool time_within(const uint8_t *record, size_t offset)
{
	uint64_t start;

	memcpy(&start, record + offset, sizeof start);
	return start >= atomic_load(&client.began_ns) && start <= atomic_load(&client.ended_ns);
}

static bool in_session(const uint8_t *record, uint32_t kind)
{
	size_t offset = client_record_correlation_offset(kind);
	uint32_t id;

	/* Open-ended before its first call: such calls are known by their times only. */
	if (offset && (atomic_load(&client.first) || !atomic_load(&client.is_open_ended))) {
		memcpy(&id, record + offset, sizeof id);
		return correlation_within(id);
	}
	offset = client_record_time_offset(kind);
	return !offset /* contexts, names, external ids: no time */ || time_within(record, offset);
}

static bool client_wants(const uint8_t *record)
{
	uint32_t kind, cbid;

	memcpy(&kind, record, sizeof kind);
	if (kind == CUPTI_DRIVER_CALL) {
		memcpy(&cbid, record + offsetof(struct cupti_api, cbid), sizeof cbid);
		if (!bits_has(&client.calls_on, cbid) && (!bits_has(&client.ever_enabled, kind) ||
								 bits_has(&client.calls_off, cbid)))
			return false;
		if (call_ids_is_own(((const struct cupti_api *)(const void *)record)->correlation))
			return false;
		/* Runtime calls may also be enabled one by one. */
	} else if (!bits_has(&client.ever_enabled, kind) && kind != CUPTI_RUNTIME_CALL) {
		return false;
	}
	return in_session(record, kind);
}

/* Replaces the id in a copy of a record by the one that the client expects. */
static void convert_id(uint8_t *record, size_t bytes)
{
	uint32_t kind, id;
	size_t offset;

	memcpy(&kind, record, sizeof kind);
	offset = client_record_id_offset(kind);
	if (!offset || offset + sizeof id > bytes)
		return;
	memcpy(&id, record + offset, sizeof id);
	id = call_ids_for_client(id);
	memcpy(record + offset, &id, sizeof id);
}

/* Appends a copy of the record, with the client's ids, and with times converted through the clock
 * samples `origin` and `now`. */
static void append_record(struct client_buffer *to, const uint8_t *record, size_t bytes,
	const struct clock_pair *origin, const struct clock_pair *now)
{
	uint8_t *at = client_buffer_reserve(to, bytes);

	if (!at) {
		atomic_fetch_add(&client.dropped, 1);
		return;
	}
	memcpy(at, record, bytes);
	if (call_ids_in_use())
		convert_id(at, bytes);
	if (now->cupti)
		client_clock_convert(at, bytes, origin, now);
}

/* True for a record of the time that CUPTI took to request one of pperf's buffers. */
static bool is_buffer_request(const uint8_t *record)
{
	uint32_t head[2];

	memcpy(head, record, sizeof head);
	return head[0] == CUPTI_OVERHEAD && head[1] == CUPTI_OVERHEAD_BUFFER_REQUEST;
}

/* Keeps the first buffer request that CUPTI reports, which is the first record of a buffer, for the
 * layout of such records. It depends on CUPTI's version. */
static void keep_buffer_request(const struct cupti_library *cupti, uint8_t *buffer, size_t valid)
{
	void *first = NULL, *next;
	size_t bytes;

	if (atomic_load_explicit(&client.request_bytes, memory_order_relaxed) ||
		cupti->next_record(buffer, valid, &first) != CUPTI_OK || !is_buffer_request(first))
		return;
	next = first;
	bytes = cupti->next_record(buffer, valid, &next) == CUPTI_OK
			? (size_t)((uint8_t *)next - (uint8_t *)first)
			: valid;
	if (bytes > sizeof client.request || atomic_exchange(&client.keeps_request, true))
		return;
	memcpy(client.request, first, bytes);
	atomic_store_explicit(&client.request_bytes, (uint32_t)bytes, memory_order_release);
}

/* Appends what CUPTI reports to a client that is alone: a record for each buffer requested from the
 * client. */
static void append_requests(
	struct client_buffer *to, const struct clock_pair *origin, const struct clock_pair *now)
{
	const uint32_t bytes = atomic_load_explicit(&client.request_bytes, memory_order_acquire);
	uint64_t copy[REQUEST_WORDS];
	struct cupti_overhead *overhead = (struct cupti_overhead *)copy;
	struct client_request request;

	if (!bytes || !bits_has(&client.ever_enabled, CUPTI_OVERHEAD))
		return;
	memcpy(copy, client.request, sizeof copy);
	while (client_buffers_take_request(&request)) {
		overhead->start = request.start;
		overhead->end = request.end;
		if (overhead->object_kind == CUPTI_OBJECT_THREAD)
			overhead->object[1] = request.thread;
		append_record(to, (const uint8_t *)copy, bytes, origin, now);
	}
}

/* Looks for records of driver calls that a runtime call made. */
static void find_nested_records(const struct cupti_library *cupti, uint8_t *buffer, size_t valid)
{
	void *record = NULL;

	if (!call_ids_in_use() || !bits_has(&client.ever_enabled, CUPTI_DRIVER_CALL))
		return;
	while (cupti->next_record(buffer, valid, &record) == CUPTI_OK)
		if (*(const uint32_t *)record == CUPTI_DRIVER_CALL && client_wants(record))
			call_ids_on_driver_record(((const struct cupti_api *)record)->correlation);
}

static void copy_records(const struct cupti_library *cupti, uint8_t *buffer, size_t valid)
{
	struct clock_pair now = client_clock_pair(atomic_load(&client.clock)),
			  origin = get_origin();
	struct client_buffer to = client_buffer_acquire();
	void *next = NULL;
	int result;

	find_nested_records(cupti, buffer, valid);
	result = cupti->next_record(buffer, valid, &next);
	while (result == CUPTI_OK) {
		uint8_t *record = next, *end;

		result = cupti->next_record(buffer, valid, &next);
		end = result == CUPTI_OK ? next : buffer + valid;
		if (is_buffer_request(record) || !client_wants(record))
			continue;
		if (result == CUPTI_OK || result == CUPTI_END_OF_BUFFER)
			append_record(&to, record, (size_t)(end - record), &origin, &now);
		/* The following record is incomplete, so the end of this one is unknown. */
		else
			atomic_fetch_add(&client.dropped, 1);
	}
	append_requests(&to, &origin, &now);
	client_buffer_release(&to);
}

/* Converts the times of all records in the client's own buffer. */
static void convert_buffer(const struct cupti_library *cupti, uint8_t *buffer, size_t valid)
{
	const struct clock_pair now = client_clock_pair(atomic_load(&client.clock)),
				origin = get_origin();
	void *next = NULL;
	int result = now.cupti ? cupti->next_record(buffer, valid, &next) : CUPTI_END_OF_BUFFER;

	while (result == CUPTI_OK) {
		uint8_t *record = next, *end;

		result = cupti->next_record(buffer, valid, &next);
		end = result == CUPTI_OK ? next : buffer + valid;
		client_clock_convert(record, (size_t)(end - record), &origin, &now);
	}
}

void cupti_client_complete_buffer(const struct cupti_library *cupti, void *context, uint32_t stream,
	uint8_t *buffer, size_t bytes, size_t valid)
{
	int saved = errno;

	if (valid)
		convert_buffer(cupti, buffer, valid);
	errno = saved;
	client_buffer_forward_complete(context, stream, buffer, bytes, valid);
}

void cupti_client_deliver(
	const struct cupti_library *cupti, uint8_t *buffer, size_t valid, uint64_t dropped)
{
	int saved = errno;

	if (valid)
		keep_buffer_request(cupti, buffer, valid);
	if (!atomic_load(&client.accepts_records))
		return;
	atomic_fetch_add(&client.delivering, 1);
	atomic_fetch_add(&client.dropped, dropped);
	if (valid)
		copy_records(cupti, buffer, valid);
	atomic_fetch_sub(&client.delivering, 1);
	errno = saved;
}

bool cupti_client_has_enabled(uint32_t kind)
{
	return bits_has(&client.on, kind);
}

bool cupti_client_has_enabled_calls(void)
{
	return bits_has(&client.on, CUPTI_DRIVER_CALL) || bits_any(&client.calls_on);
}

bool cupti_client_has_enabled_call(uint32_t cbid)
{
	return bits_has(&client.calls_on, cbid) ||
	       (bits_has(&client.on, CUPTI_DRIVER_CALL) && !bits_has(&client.calls_off, cbid));
}

bool cupti_client_accepts_records(void)
{
	return atomic_load(&client.accepts_records);
}

void cupti_client_handover_ends(void)
{
	atomic_store(&client.accepts_records, false);
}

/* A graph that the client has recorded as a whole has no nodes, so its record is in our trace,
 * too. */
bool cupti_client_owns_record(const void *record)
{
	uint32_t head[2];

	memcpy(head, record, sizeof head);
	/* there has never been a client, and all driver records are ours */
	if (atomic_load_explicit(&cupti_session->ids, memory_order_relaxed) !=
			CUPTI_IDS_REQUESTED &&
		!atomic_load_explicit(&client.began_ns, memory_order_relaxed) &&
		!atomic_load_explicit(&cupti_handovers, memory_order_relaxed))
		return false;
	return !cupti_owns_kind(head[0]) && head[0] != CUPTI_GRAPH_TRACE &&
	       !(head[0] == CUPTI_DRIVER_CALL && cupti_times_call(head[1]));
}

void cupti_client_note_call(uint32_t correlation)
{
	uint32_t first = atomic_load_explicit(&client.first, memory_order_relaxed),
		 last = atomic_load_explicit(&client.last, memory_order_relaxed);

	while ((first == 0 || (int32_t)(correlation - first) < 0) &&
		!atomic_compare_exchange_weak(&client.first, &first, correlation))
		;
	while ((last == 0 || (int32_t)(correlation - last) > 0) &&
		!atomic_compare_exchange_weak(&client.last, &last, correlation))
		;
}

/* ---- the client's calls ---- */

int cupti_client_register(cupti_buffer_requested requested, cupti_buffer_completed completed)
{
	if (!cupti_runs())
		FORWARD(register_buffers, (requested, completed));
	if (!requested || !completed)
		return CUPTI_INVALID_PARAMETER;
	client_buffers_complete(); /* to the former callback */
	client_buffers_set_callbacks(requested, completed);
	return CUPTI_OK;
}

int cupti_client_set_clock(cupti_clock clock)
{
	if (!cupti_runs())
		FORWARD(register_clock, (clock));
	if (!clock)
		return CUPTI_INVALID_PARAMETER;
	atomic_store(&client.clock, clock);
	set_origin();
	return CUPTI_OK;
}

static void begin_client_session(void)
{
	bits_clear(&client.ever_enabled);
	atomic_store(&client.is_open_ended, false);
	atomic_store(&client.first, 0);
	atomic_store(&client.last, 0);
	set_origin();
	atomic_store(&client.began_ns, client_clock_cupti_ns());
	atomic_store(&client.ended_ns, UINT64_MAX);
	atomic_store(&client.accepts_records, true);
	atomic_store(&cupti_client_is_active, true);
}

/* Notes that the client has enabled `i`, and makes sure that a buffer of its own is pending. */
static void note_enabled(struct client_bits *bits, uint32_t i)
{
	if (!atomic_load(&cupti_client_is_active))
		begin_client_session();
	bits_set(bits, i, true);
	client_buffers_prefetch();
}

static bool has_any_enabled(void)
{
	return bits_any(&client.on) || bits_any(&client.calls_on) ||
	       bits_any(&client.runtime_calls_on);
}

static void note_disabled(struct client_bits *bits, uint32_t i)
{
	bits_set(bits, i, false);
	if (has_any_enabled() || !atomic_load(&cupti_client_is_active))
		return;
	atomic_store(&cupti_client_is_active, false);
	atomic_store(&client.ended_ns, client_clock_cupti_ns());
}

/* Enables or disables the callbacks that relate our ids to those of the client's records. */
static void follow_calls(uint32_t kind, bool on)
{
	if (kind == CUPTI_RUNTIME_CALL)
		call_ids_follow_runtime(on || bits_any(&client.runtime_calls_on));
	else if (kind == CUPTI_DRIVER_CALL)
		call_ids_follow_own(on);
}

/* Waits for deliveries on other threads. The wait is bounded, because the client's callback may
 * wait for the thread that flushes. */
static void wait_for_deliveries(void)
{
	const struct timespec wait = { 0, WAIT_NS };

	for (int i = 0; i < WAITS_MAX && atomic_load(&client.delivering); i++)
		nanosleep(&wait, NULL);
}

/* What the client enabled while CUPTI was shared stays enabled in CUPTI all the time, so no kernel
 * is without a record. Records that are in our buffers yet are still copied for it. */
static void hand_over(void)
{
	const bool shared = atomic_load(&cupti_client_is_active);

	if (!cupti_is_handed_over())
		set_origin();
	if (shared)
		atomic_store(&client.is_open_ended, true);
	cupti_hand_over(!atomic_load(&client.no_unfinished_queries));
	if (!shared || !cupti_is_handed_over())
		return;
	atomic_store(&cupti_client_is_active, false);
	wait_for_deliveries();
	client_buffers_complete();
}

/* Whether CUPTI is handed over to the client, which starts with the first call that enables
 * something. During a handover its calls go to CUPTI, and pperf only keeps track of what is
 * enabled. */
static bool client_has_cupti(bool enables)
{
	if (enables && (cupti_session->config->hands_over || call_ids_fail()))
		hand_over();
	return cupti_is_handed_over();
}

static void end_handover_if_idle(void)
{
	if (!has_any_enabled() && atomic_load(&client.enabled_for_contexts) <= 0)
		cupti_handover_client_idle();
}

static int note_handed_over(int result, struct client_bits *bits, uint32_t i, bool on)
{
	if (result != CUPTI_OK && on)
		on = false; /* it may have been the only one */
	bits_set(bits, i, on);
	if (bits == &client.on)
		cupti_graph_trace_client_changed(i, on);
	if (!on)
		end_handover_if_idle();
	return result;
}

/* Noted before CUPTI is called, because a handover that begins now keeps what is noted. */
static int enable_handed_over(int (*enable)(int), int kind)
{
	bits_set(&client.on, (uint32_t)kind, true);
	return note_handed_over(enable(kind), &client.on, (uint32_t)kind, true);
}

static int set_call_handed_over(
	int (*set)(uint32_t, uint8_t), struct client_bits *calls, uint32_t cbid, uint8_t on)
{
	if (on)
		bits_set(calls, cbid, true);
	return note_handed_over(set(cbid, on), calls, cbid, on);
}

/* Lets CUPTI record the queries that the client wants, while it has the kind enabled. */
static void set_clients_all_syncs(void)
{
	cupti_set_all_syncs(cupti_session, !atomic_load(&client.no_unfinished_queries));
}

int cupti_client_enable_all_syncs(uint8_t on)
{
	if (!cupti_runs())
		FORWARD(enable_all_syncs, (on));
	if (!cupti_session->library.enable_all_syncs)
		return CUPTI_NOT_INITIALIZED;
	atomic_store(&client.no_unfinished_queries, !on);
	if (cupti_is_handed_over() || bits_has(&client.on, CUPTI_SYNCHRONIZATION))
		set_clients_all_syncs();
	return CUPTI_OK;
}

/* Another thread has handed CUPTI over while the client enabled the kind as a shared one. */
static int enable_again_handed_over(int kind)
{
	follow_calls((uint32_t)kind, false);
	atomic_store(&cupti_client_is_active, false);
	return enable_handed_over(cupti_session->library.enable, kind);
}

int cupti_client_enable(int kind)
{
	int result = CUPTI_OK;

	if (!cupti_runs())
		FORWARD(enable, (kind));
	if (client_has_cupti(true))
		return enable_handed_over(cupti_session->library.enable, kind);
	/* Callbacks first, so that each call with an id is seen. */
	follow_calls((uint32_t)kind, true);
	if (!cupti_owns_kind((uint32_t)kind))
		result = cupti_session->library.enable(kind);
	if (result != CUPTI_OK)
		follow_calls((uint32_t)kind, false);
	if (result != CUPTI_OK || kind < 0 || kind >= (int)KINDS)
		return result;
	if (kind == CUPTI_SYNCHRONIZATION)
		set_clients_all_syncs();
	note_enabled(&client.on, (uint32_t)kind);
	bits_set(&client.ever_enabled, (uint32_t)kind, true);
	cupti_graph_trace_client_changed((uint32_t)kind, true);
	return atomic_load(&cupti_session->handed_over) ? enable_again_handed_over(kind) : CUPTI_OK;
}

int cupti_client_enable_and_dump(int kind)
{
	int result;

	if (!cupti_runs())
		FORWARD(enable_and_dump, (kind));
	if (!cupti_session->library.enable_and_dump)
		return CUPTI_NOT_INITIALIZED;
	if (client_has_cupti(true))
		return enable_handed_over(cupti_session->library.enable_and_dump, kind);
	if (kind < 0 || kind >= (int)KINDS)
		return cupti_session->library.enable_and_dump(kind);
	/* Noted first, because the records of existing objects arrive during the call. */
	note_enabled(&client.on, (uint32_t)kind);
	bits_set(&client.ever_enabled, (uint32_t)kind, true);
	result = cupti_session->library.enable_and_dump(kind);
	if (result != CUPTI_OK)
		note_disabled(&client.on, (uint32_t)kind);
	cupti_graph_trace_client_changed((uint32_t)kind, result == CUPTI_OK);
	return result;
}

int cupti_client_enable_context(void *context, int kind)
{
	int result;

	if (!cupti_runs())
		FORWARD(enable_context, (context, kind));
	if (!cupti_session->library.enable_context)
		return CUPTI_NOT_INITIALIZED;
	hand_over();
	result = cupti_session->library.enable_context(context, kind);
	if (result == CUPTI_OK)
		atomic_fetch_add(&client.enabled_for_contexts, 1);
	else
		end_handover_if_idle();
	return result;
}

int cupti_client_disable_context(void *context, int kind)
{
	int result;

	if (!cupti_runs())
		FORWARD(disable_context, (context, kind));
	if (!cupti_session->library.disable_context)
		return CUPTI_NOT_INITIALIZED;
	if (!cupti_is_handed_over())
		return CUPTI_OK; /* our kinds stay enabled */
	result = cupti_session->library.disable_context(context, kind);
	if (atomic_load(&client.enabled_for_contexts) > 0 &&
		atomic_fetch_sub(&client.enabled_for_contexts, 1) == 1)
		end_handover_if_idle();
	return result;
}

int cupti_client_disable(int kind)
{
	int result = CUPTI_OK;

	if (!cupti_runs())
		FORWARD(disable, (kind));
	if (client_has_cupti(false))
		return note_handed_over(
			cupti_session->library.disable(kind), &client.on, (uint32_t)kind, false);
	if (!cupti_owns_kind((uint32_t)kind))
		result = cupti_session->library.disable(kind);
	follow_calls((uint32_t)kind, false);
	/* Disabling the kind may have disabled our timed calls too. */
	if (kind == CUPTI_DRIVER_CALL)
		cupti_time_calls();
	if (kind == CUPTI_SYNCHRONIZATION)
		cupti_set_all_syncs(cupti_session, false);
	if (kind >= 0 && kind < (int)KINDS) {
		note_disabled(&client.on, (uint32_t)kind);
		cupti_graph_trace_client_changed((uint32_t)kind, false);
	}
	/* Another thread may have handed CUPTI over meanwhile. */
	return atomic_load(&cupti_session->handed_over)
		       ? note_handed_over(cupti_session->library.disable(kind), &client.on,
				 (uint32_t)kind, false)
		       : result;
}

int cupti_client_enable_driver_api(uint32_t cbid, uint8_t on)
{
	int result = CUPTI_OK;

	if (!cupti_runs())
		FORWARD(enable_driver_api, (cbid, on));
	if (!cupti_session->library.enable_driver_api)
		return CUPTI_NOT_INITIALIZED;
	if (client_has_cupti(on))
		return set_call_handed_over(
			cupti_session->library.enable_driver_api, &client.calls_on, cbid, on);
	if (on || !cupti_times_call(cbid))
		result = cupti_session->library.enable_driver_api(cbid, on);
	if (result != CUPTI_OK)
		return result;
	bits_set(&client.calls_off, cbid, !on);
	if (on)
		note_enabled(&client.calls_on, cbid);
	else
		note_disabled(&client.calls_on, cbid);
	return CUPTI_OK;
}

int cupti_client_enable_runtime_api(uint32_t cbid, uint8_t on)
{
	const struct cupti_library *cupti = cupti_client_library();
	int result;

	if (!cupti_runs())
		FORWARD(enable_runtime_api, (cbid, on));
	if (!cupti->enable_runtime_api)
		return CUPTI_NOT_INITIALIZED;
	if (client_has_cupti(on))
		return set_call_handed_over(
			cupti->enable_runtime_api, &client.runtime_calls_on, cbid, on);
	if (on)
		call_ids_follow_runtime(true);
	result = cupti->enable_runtime_api(cbid, on);
	if (result == CUPTI_OK && on)
		note_enabled(&client.runtime_calls_on, cbid);
	else if (result == CUPTI_OK)
		note_disabled(&client.runtime_calls_on, cbid);
	follow_calls(CUPTI_RUNTIME_CALL, bits_has(&client.on, CUPTI_RUNTIME_CALL));
	return result;
}

void cupti_client_poll(void)
{
	if (!call_ids_fail() || !atomic_load(&cupti_client_is_active) || cupti_is_handed_over())
		return;
	hand_over();
	if (cupti_is_handed_over())
		end_handover_if_idle();
}

bool cupti_client_is_flushing(void)
{
	return atomic_load(&client.flushing) != 0;
}

/* Waits for the end of a flush of ours. No other one begins. If that one does not return, the
 * client's is tried nevertheless, as it would be without us. */
static void wait_for_own_flush(void)
{
	struct signal_guard guard;

	if (cupti_lock_bounded(&guard))
		cupti_unlock_bounded(&guard);
}

int cupti_client_flush(uint32_t flags)
{
	struct cupti_session *s = cupti_session;
	int result;

	if (!cupti_runs())
		FORWARD(flush_all, (flags));
	if (client_has_cupti(false)) {
		result = s->library.flush_all(flags);
		cupti_handover_finish();
		client_buffers_complete();
		return result;
	}
	atomic_fetch_add(&client.flushing, 1);
	wait_for_own_flush();
	result = s->library.flush_all(flags);
	wait_for_deliveries();
	atomic_fetch_sub(&client.flushing, 1);
	client_buffers_complete();
	if (atomic_load(&cupti_client_is_active))
		client_buffers_prefetch();
	else if (flags & CUPTI_FLUSH_FORCED)
		atomic_store(&client.accepts_records, false);
	return result;
}

int cupti_client_get_dropped(void *context, uint32_t stream, size_t *dropped)
{
	if (!cupti_runs())
		FORWARD(dropped, (context, stream, dropped));
	if (client_has_cupti(false))
		return cupti_session->library.dropped(context, stream, dropped);
	if (!dropped)
		return CUPTI_INVALID_PARAMETER;
	*dropped = (size_t)atomic_exchange(&client.dropped, 0);
	return CUPTI_OK;
}

/* The client may set attributes that size its buffers. A buffer for each thread is refused
 * silently, because CUPTI does not allow that while other buffers are in use, and ours always
 * are. */
int cupti_client_set_attribute(int attribute, size_t *bytes, void *value)
{
	if (cupti_runs() && attribute == CUPTI_BUFFER_EACH_THREAD)
		return CUPTI_OK;
	FORWARD(set_attribute, (attribute, bytes, value));
}

/* Ends the client's session, not ours. NVIDIA's samples recommend to call it in a
 * callback, so no lock of the session is taken while CUPTI is shared. */
int cupti_client_finalize(void)
{
	if (!cupti_runs())
		FORWARD(finalize, ());
	cupti_client_drop_subscriber();
	for (uint32_t kind = 0; kind < KINDS; kind++)
		if (bits_has(&client.on, kind))
			cupti_client_disable((int)kind);
	for (uint32_t cbid = 0; cbid < CALLS; cbid++)
		if (bits_has(&client.calls_on, cbid))
			cupti_client_enable_driver_api(cbid, 0);
	for (uint32_t cbid = 0; cbid < CALLS; cbid++)
		if (bits_has(&client.runtime_calls_on, cbid))
			cupti_client_enable_runtime_api(cbid, 0);
	bits_clear(&client.calls_off);
	atomic_store(&client.enabled_for_contexts, 0);
	if (cupti_is_handed_over()) {
		end_handover_if_idle();
		cupti_handover_finish();
	}
	atomic_store(&client.accepts_records, false);
	wait_for_deliveries();
	client_buffers_complete();
	return CUPTI_OK;
}

void cupti_client_end(void)
{
	atomic_store(&cupti_client_is_active, false);
	atomic_store(&client.accepts_records, false);
}
