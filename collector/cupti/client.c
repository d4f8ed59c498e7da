/* SPDX-License-Identifier: MIT
 * cupti_guest.c: see cupti_guest.h.
 */
#include "collector/cupti/client.h"

#include "collector/cupti/subscription.h"
#include "collector/cupti/client_buffers.h"
#include "collector/cupti/client_clock.h"
#include "collector/cupti/handover.h"
#include "collector/process/signal_guard.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define KINDS 128u
#define CALLS 1024u
#define WAIT_NS 1000000L /* between two looks at whether a delivery has ended */
#define WAITS_MOST 2000

struct bits {
	_Atomic uint64_t word[CALLS / 64];
};

static struct {
	_Atomic(cupti_clock) clock;
	struct bits on, asked;                 /* kinds: enabled now; at any time since it began */
	struct bits calls_on, calls_off;       /* of the driver's calls, one by one */
	atomic_int of_contexts;                /* kinds that are on for one context, each for each */
	_Atomic uint32_t first, last;          /* correlation ids of its calls; 0: none yet */
	_Atomic uint64_t began_ns, ended_ns;   /* by CUPTI's clock */
	_Atomic uint64_t dropped;
	atomic_bool open;                      /* there are, or may still come, records for it */
	atomic_int delivering, flushing;
	pthread_mutex_t lock;                  /* of what follows */
	struct clock_pair origin;
} guest = { .lock = PTHREAD_MUTEX_INITIALIZER };

atomic_bool cupti_guest_listens;

/* ---- small things ---- */

static bool has(struct bits *bits, uint32_t i)
{
	return i < CALLS && (atomic_load_explicit(&bits->word[i / 64], memory_order_relaxed) >> i % 64 & 1);
}

static void set(struct bits *bits, uint32_t i, bool on)
{
	if (i < CALLS && on)
		atomic_fetch_or(&bits->word[i / 64], UINT64_C(1) << i % 64);
	else if (i < CALLS)
		atomic_fetch_and(&bits->word[i / 64], ~(UINT64_C(1) << i % 64));
}

static bool any(struct bits *bits)
{
	uint64_t all = 0;

	for (size_t i = 0; i < CALLS / 64; i++)
		all |= atomic_load(&bits->word[i]);
	return all != 0;
}

static void clear(struct bits *bits)
{
	for (size_t i = 0; i < CALLS / 64; i++)
		atomic_store(&bits->word[i], 0);
}

static void lock(struct quiet *quiet)
{
	quiet_begin(quiet);
	pthread_mutex_lock(&guest.lock);
}

static void unlock(const struct quiet *quiet)
{
	pthread_mutex_unlock(&guest.lock);
	quiet_end(quiet);
}

#define FORWARD(member, arguments)                          \
	do {                                                \
		const struct cupti_library *real = cupti_guest_library(); \
		return real && real->member ? real->member arguments : CUPTI_NOT_INITIALIZED; \
	} while (0)

/* ---- its clock ---- */

/* Both clocks at the beginning of what is to be converted. */
static void set_origin(void)
{
	struct clock_pair origin = guest_clock_pair(atomic_load(&guest.clock));
	struct quiet quiet;

	lock(&quiet);
	guest.origin = origin;
	unlock(&quiet);
}

static struct clock_pair get_origin(void)
{
	struct clock_pair origin;
	struct quiet quiet;

	lock(&quiet);
	origin = guest.origin;
	unlock(&quiet);
	return origin;
}

/* ---- its records ---- */

/* Ids are given in order, and begin again after 2^32. */
static bool id_within(uint32_t id)
{
	uint32_t first = atomic_load(&guest.first), last = atomic_load(&guest.last);

	return first && (int32_t)(id - first) >= 0 && (int32_t)(id - last) <= 0;
}

static bool in_session(const uint8_t *record, uint32_t kind)
{
	size_t place = guest_record_id_place(kind);
	uint64_t start;
	uint32_t id;

	if (place) {
		memcpy(&id, record + place, sizeof id);
		return id_within(id);
	}
	place = guest_record_time_place(kind);
	if (!place)
		return true; /* contexts, names, external ids: no time */
	memcpy(&start, record + place, sizeof start);
	return start >= atomic_load(&guest.began_ns) && start <= atomic_load(&guest.ended_ns);
}

static bool wanted(const uint8_t *record)
{
	uint32_t kind, cbid;

	memcpy(&kind, record, sizeof kind);
	if (kind == CUPTI_DRIVER_CALL) {
		memcpy(&cbid, record + offsetof(struct cupti_api, cbid), sizeof cbid);
		if (!has(&guest.calls_on, cbid) && (!has(&guest.asked, kind) || has(&guest.calls_off, cbid)))
			return false;
	} else if (!has(&guest.asked, kind) && kind != CUPTI_RUNTIME_CALL) { /* these may be asked for one by one */
		return false;
	}
	return in_session(record, kind);
}

/* origin, now: both clocks at two moments. */
static void append(struct guest_buffer *to, const uint8_t *record, size_t bytes, const struct clock_pair *origin, const struct clock_pair *now)
{
	uint8_t *at = guest_buffer_room(to, bytes);

	if (!at) {
		atomic_fetch_add(&guest.dropped, 1);
		return;
	}
	memcpy(at, record, bytes);
	if (now->cupti)
		guest_clock_convert(at, bytes, origin, now);
}

static void copy_records(const struct cupti_library *cupti, uint8_t *buffer, size_t valid)
{
	struct clock_pair now = guest_clock_pair(atomic_load(&guest.clock)), origin = get_origin();
	struct guest_buffer to = guest_buffer_take();
	void *next = NULL;
	int result = cupti->next_record(buffer, valid, &next);

	while (result == CUPTI_OK) {
		uint8_t *record = next, *end;

		result = cupti->next_record(buffer, valid, &next);
		end = result == CUPTI_OK ? next : buffer + valid;
		if (!wanted(record))
			continue;
		if (result == CUPTI_OK || result == CUPTI_END_OF_BUFFER)
			append(&to, record, (size_t)(end - record), &origin, &now);
		else
			atomic_fetch_add(&guest.dropped, 1); /* what follows is not whole: nobody knows where this one ends */
	}
	guest_buffer_leave(&to);
}

void cupti_guest_deliver(const struct cupti_library *cupti, uint8_t *buffer, size_t valid, uint64_t dropped)
{
	int saved = errno;

	if (!atomic_load(&guest.open))
		return;
	atomic_fetch_add(&guest.delivering, 1);
	atomic_fetch_add(&guest.dropped, dropped);
	if (valid)
		copy_records(cupti, buffer, valid);
	atomic_fetch_sub(&guest.delivering, 1);
	errno = saved;
}

bool cupti_guest_only(const void *record)
{
	uint32_t head[2];

	memcpy(head, record, sizeof head);
	if (!atomic_load_explicit(&guest.began_ns, memory_order_relaxed) && !atomic_load_explicit(&cupti_handovers, memory_order_relaxed))
		return false; /* there has never been one */
	return !cupti_owns_kind(head[0]) && !(head[0] == CUPTI_DRIVER_CALL && cupti_times_call(head[1]));
}

void cupti_guest_note(uint32_t correlation)
{
	uint32_t none = 0, last = atomic_load_explicit(&guest.last, memory_order_relaxed);

	if (!atomic_load_explicit(&guest.first, memory_order_relaxed))
		atomic_compare_exchange_strong(&guest.first, &none, correlation);
	while ((last == 0 || (int32_t)(correlation - last) > 0) &&
		!atomic_compare_exchange_weak(&guest.last, &last, correlation))
		;
}

/* ---- its calls ---- */

int cupti_guest_register(cupti_buffer_requested requested, cupti_buffer_completed completed)
{
	if (!cupti_runs())
		FORWARD(register_buffers, (requested, completed));
	if (!requested || !completed)
		return CUPTI_INVALID_PARAMETER;
	guest_buffers_give(); /* to the callback that was */
	guest_buffers_of(requested, completed);
	return CUPTI_OK;
}

int cupti_guest_clock(cupti_clock clock)
{
	if (!cupti_runs())
		FORWARD(register_clock, (clock));
	if (!clock)
		return CUPTI_INVALID_PARAMETER;
	atomic_store(&guest.clock, clock);
	if (cupti_is_away())
		return cupti_yield_clock(clock);
	if (!cupti_session->client->yields)
		set_origin();
	return CUPTI_OK;
}

static void begin_session(void)
{
	clear(&guest.asked);
	atomic_store(&guest.first, 0);
	atomic_store(&guest.last, 0);
	set_origin();
	atomic_store(&guest.began_ns, guest_clock_cupti_ns());
	atomic_store(&guest.ended_ns, UINT64_MAX);
	atomic_store(&guest.open, true);
	atomic_store(&cupti_guest_listens, true);
}

/* It has asked for something. A buffer of its own is there from now on. */
static void note_enabled(struct bits *bits, uint32_t i)
{
	if (!atomic_load(&cupti_guest_listens))
		begin_session();
	set(bits, i, true);
	guest_buffers_hold();
}

static void note_disabled(struct bits *bits, uint32_t i)
{
	set(bits, i, false);
	if (any(&guest.on) || any(&guest.calls_on) || !atomic_load(&cupti_guest_listens))
		return;
	atomic_store(&cupti_guest_listens, false);
	atomic_store(&guest.ended_ns, guest_clock_cupti_ns());
}

/* Where it has CUPTI to itself its calls are CUPTI's affair; that there is something enabled is ours. */
static bool has_cupti(bool enables)
{
	if (enables && cupti_session->client->yields)
		cupti_yield(atomic_load(&guest.clock));
	return cupti_is_away();
}

static void end_alone(void)
{
	if (!any(&guest.on) && !any(&guest.calls_on) && atomic_load(&guest.of_contexts) <= 0)
		cupti_yield_ends();
}

static int note_alone(int result, struct bits *bits, uint32_t i, bool on)
{
	if (result != CUPTI_OK && on)
		on = false; /* it may have been the only one */
	set(bits, i, on);
	if (!on)
		end_alone();
	return result;
}

int cupti_guest_enable(int kind)
{
	int result = CUPTI_OK;

	if (!cupti_runs())
		FORWARD(enable, (kind));
	if (has_cupti(true))
		return note_alone(cupti_session->library.enable(kind), &guest.on, (uint32_t)kind, true);
	if (!cupti_owns_kind((uint32_t)kind))
		result = cupti_session->library.enable(kind);
	if (result != CUPTI_OK || kind < 0 || kind >= (int)KINDS)
		return result;
	note_enabled(&guest.on, (uint32_t)kind);
	set(&guest.asked, (uint32_t)kind, true);
	return CUPTI_OK;
}

int cupti_guest_enable_and_dump(int kind)
{
	int result;

	if (!cupti_runs())
		FORWARD(enable_and_dump, (kind));
	if (!cupti_session->library.enable_and_dump)
		return CUPTI_NOT_INITIALIZED;
	if (has_cupti(true))
		return note_alone(cupti_session->library.enable_and_dump(kind), &guest.on, (uint32_t)kind, true);
	if (kind < 0 || kind >= (int)KINDS)
		return cupti_session->library.enable_and_dump(kind);
	note_enabled(&guest.on, (uint32_t)kind); /* first: what is there comes at once */
	set(&guest.asked, (uint32_t)kind, true);
	result = cupti_session->library.enable_and_dump(kind);
	if (result != CUPTI_OK)
		note_disabled(&guest.on, (uint32_t)kind);
	return result;
}

int cupti_guest_enable_context(void *context, int kind)
{
	int result;

	if (!cupti_runs())
		FORWARD(enable_context, (context, kind));
	if (!cupti_session->library.enable_context)
		return CUPTI_NOT_INITIALIZED;
	cupti_yield(atomic_load(&guest.clock));
	result = cupti_session->library.enable_context(context, kind);
	if (result == CUPTI_OK)
		atomic_fetch_add(&guest.of_contexts, 1);
	else
		end_alone();
	return result;
}

int cupti_guest_disable_context(void *context, int kind)
{
	int result;

	if (!cupti_runs())
		FORWARD(disable_context, (context, kind));
	if (!cupti_session->library.disable_context)
		return CUPTI_NOT_INITIALIZED;
	if (!cupti_is_away())
		return CUPTI_OK; /* ours stay on */
	result = cupti_session->library.disable_context(context, kind);
	if (atomic_load(&guest.of_contexts) > 0 && atomic_fetch_sub(&guest.of_contexts, 1) == 1)
		end_alone();
	return result;
}

int cupti_guest_disable(int kind)
{
	int result = CUPTI_OK;

	if (!cupti_runs())
		FORWARD(disable, (kind));
	if (has_cupti(false))
		return note_alone(cupti_session->library.disable(kind), &guest.on, (uint32_t)kind, false);
	if (!cupti_owns_kind((uint32_t)kind))
		result = cupti_session->library.disable(kind);
	if (kind == CUPTI_DRIVER_CALL)
		cupti_time_calls(); /* with the kind, ours may have gone */
	if (kind >= 0 && kind < (int)KINDS)
		note_disabled(&guest.on, (uint32_t)kind);
	return result;
}

int cupti_guest_enable_driver_api(uint32_t cbid, uint8_t on)
{
	int result = CUPTI_OK;

	if (!cupti_runs())
		FORWARD(enable_driver_api, (cbid, on));
	if (!cupti_session->library.enable_driver_api)
		return CUPTI_NOT_INITIALIZED;
	if (has_cupti(on))
		return note_alone(cupti_session->library.enable_driver_api(cbid, on), &guest.calls_on, cbid, on);
	if (on || !cupti_times_call(cbid))
		result = cupti_session->library.enable_driver_api(cbid, on);
	if (result != CUPTI_OK)
		return result;
	set(&guest.calls_off, cbid, !on);
	if (on)
		note_enabled(&guest.calls_on, cbid);
	else
		note_disabled(&guest.calls_on, cbid);
	return CUPTI_OK;
}

/* Deliveries on other threads. Bounded, should the guest's callback wait for the thread that flushes. */
static void await_deliveries(void)
{
	const struct timespec wait = { 0, WAIT_NS };

	for (int i = 0; i < WAITS_MOST && atomic_load(&guest.delivering); i++)
		nanosleep(&wait, NULL);
}

bool cupti_guest_flushes(void)
{
	return atomic_load(&guest.flushing) != 0;
}

int cupti_guest_flush(uint32_t flags)
{
	struct cupti_session *s = cupti_session;
	struct quiet quiet;
	int result;

	if (!cupti_runs())
		FORWARD(flush_all, (flags));
	if (has_cupti(false)) {
		result = s->library.flush_all(flags);
		cupti_yield_over();
		return result;
	}
	atomic_fetch_add(&guest.flushing, 1);
	quiet_begin(&quiet);
	pthread_mutex_lock(&s->lock); /* a flush of ours that has begun has come back; another does not begin */
	pthread_mutex_unlock(&s->lock);
	quiet_end(&quiet);
	result = s->library.flush_all(flags);
	await_deliveries();
	atomic_fetch_sub(&guest.flushing, 1);
	guest_buffers_give();
	if (atomic_load(&cupti_guest_listens))
		guest_buffers_hold();
	else if (flags & CUPTI_FLUSH_FORCED)
		atomic_store(&guest.open, false);
	return result;
}

int cupti_guest_dropped(void *context, uint32_t stream, size_t *dropped)
{
	if (!cupti_runs())
		FORWARD(dropped, (context, stream, dropped));
	if (has_cupti(false))
		return cupti_session->library.dropped(context, stream, dropped);
	if (!dropped)
		return CUPTI_INVALID_PARAMETER;
	*dropped = (size_t)atomic_exchange(&guest.dropped, 0);
	return CUPTI_OK;
}

/* What sizes its buffers is the guest's affair. Buffers for each thread are not had while others are
 * in use, and ours always are. */
int cupti_guest_set_attribute(int attribute, size_t *bytes, void *value)
{
	if (cupti_runs() && attribute == CUPTI_BUFFER_EACH_THREAD)
		return CUPTI_OK;
	FORWARD(set_attribute, (attribute, bytes, value));
}

/* Ends the guest's session, not ours. */
int cupti_guest_finalize(void)
{
	if (!cupti_runs())
		FORWARD(finalize, ());
	for (uint32_t kind = 0; kind < KINDS; kind++)
		if (has(&guest.on, kind))
			cupti_guest_disable((int)kind);
	for (uint32_t cbid = 0; cbid < CALLS; cbid++)
		if (has(&guest.calls_on, cbid))
			cupti_guest_enable_driver_api(cbid, 0);
	clear(&guest.calls_off);
	atomic_store(&guest.of_contexts, 0);
	if (cupti_is_away())
		end_alone();
	cupti_yield_over();
	atomic_store(&guest.open, false);
	await_deliveries();
	guest_buffers_give();
	return CUPTI_OK;
}

void cupti_guest_end(void)
{
	atomic_store(&cupti_guest_listens, false);
	atomic_store(&guest.open, false);
}
