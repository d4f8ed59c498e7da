/* SPDX-License-Identifier: MIT
 * cupti.c: see cupti.h. The session: begun once, told about in META, ended at exit.
 */
#include "collector/cupti/session.h"

#include "collector/process/clock.h"
#include "collector/cupti/buffers.h"
#include "collector/cupti/client.h"
#include "collector/cupti/client_buffers.h"
#include "collector/cupti/session_state.h"
#include "collector/cupti/handover.h"
#include "collector/file/dictionary.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/cupti/activity_records.h"
#include "collector/cupti/devices.h"
#include "collector/process/large_stack.h"
#include "collector/stream/stream.h"
#include "collector/file/trace_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS_DEFAULT (UINT64_C(64) << 20)
#define CALL_IDS 1024u
#define REASON_BYTES 4600 /* a path and a sentence */

struct cupti_session *cupti_session;
static atomic_int begun; /* not forgotten by a forked child: it shall not begin */
static _Atomic uint32_t call_names[2][CALL_IDS];

/* The kinds of record that are asked for, and what they are called in messages. */
static const struct {
	int kind;
	const char *what;
} kinds[] = {
	{ CUPTI_CONCURRENT_KERNEL, "kernels" },
	{ CUPTI_MEMCPY, "copies" },
	{ CUPTI_MEMCPY_PEER, "copies between devices" },
	{ CUPTI_MEMSET, "memsets" },
	{ CUPTI_MEMORY, "memory" },
	{ CUPTI_SYNCHRONIZATION, "synchronisation" },
	{ CUPTI_CUDA_EVENT, "events" },
	{ CUPTI_OVERHEAD, "overhead" },
};

static const uint32_t resources[] = { CUPTI_CONTEXT_CREATED, CUPTI_CONTEXT_ENDS, CUPTI_STREAM_CREATED, CUPTI_MODULE_UNLOAD,
	CUPTI_NODE_CREATED, CUPTI_GRAPH_EXEC_CREATED, CUPTI_NODE_CLONED };

__attribute__((format(printf, 2, 3))) static void tell(const char *key, const char *format, ...)
{
	char text[REASON_BYTES + 64];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	meta_set(key, text);
}

/* What a result code means to whoever reads the report. */
static const char *meaning(const struct cupti_library *cupti, int result)
{
	const char *text = NULL;

	switch (result) {
	case CUPTI_OTHER_SUBSCRIBER:
	case CUPTI_END_OF_BUFFER: /* old releases, to a second subscriber */
		return "another tool holds CUPTI; run without it";
	case CUPTI_NO_PRIVILEGES:
		return "the driver does not let this user profile";
	case CUPTI_HARDWARE_BUSY:
		return "another tool has the GPU's counters";
	case CUPTI_UNKNOWN_ERROR:
		return "CUPTI found no driver that it can use";
	}
	if (cupti->result_text && cupti->result_text(result, &text) == CUPTI_OK && text)
		return text;
	return "CUPTI refused";
}

static void note_refusal(struct cupti_session *s, const char *what, int result)
{
	size_t length = strlen(s->partial);

	snprintf(s->partial + length, sizeof s->partial - length, "%s%s (%d)", length ? ", " : "CUPTI refused ", what,
		result);
}

/* Under the lock. */
static void tell_state(const struct cupti_session *s)
{
	if (*s->partial)
		tell("source.cupti", "partial: %s", s->partial);
	else
		tell("source.cupti", "on");
}

static void on_state(uint32_t id, const struct cupti_state *state)
{
	const char *message = state->message ? state->message : "no reason given";

	if (id == CUPTI_WARNING) { /* of which one is enough */
		if (!atomic_exchange(&cupti_session->warned, true))
			tell("warning.cupti_state", "CUPTI warns: %.400s (%d).", message, state->result);
		return;
	}
	if (id == CUPTI_FATAL_ERROR) /* CUPTI takes itself out of the process: it may not be called any more */
		atomic_store_explicit(&cupti_session->running, false, memory_order_release);
	tell("source.cupti", "partial: CUPTI failed on the way: %.400s (%d)", message, state->result);
}

/* What CUPTI calls may be called in a forked child, too, where there is no client. */
static void on_event(void *data, int domain, uint32_t id, const void *what)
{
	const struct cupti_client *client = cupti_session->client;
	int saved;

	(void)data;
	if (__builtin_expect(!client, 0))
		return;
	if (__builtin_expect(domain == CUPTI_DRIVER, 1)) {
		const struct cupti_call *call = what;

		if (call->site == CUPTI_ENTER)
			cupti_guest_call(call->correlation);
		if (__builtin_expect(!cupti_is_away(), 1)) {
			client->call(id, what);
			cupti_flush_need(what);
			if (__builtin_expect(!atomic_load_explicit(&cupti_session->owed, memory_order_relaxed), 0))
				atomic_store_explicit(&cupti_session->owed, true, memory_order_relaxed);
		}
		cupti_guest_hear(domain, id, what);
		return;
	}
	saved = errno;
	if (domain == CUPTI_RESOURCE && !cupti_is_away())
		cupti_on_resource(id, what);
	else if (domain == CUPTI_STATE)
		on_state(id, what);
	cupti_guest_hear(domain, id, what);
	errno = saved;
}

static void on_buffer_requested(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
	*most_records = 0; /* as many as fit */
	*bytes = 0;
	*buffer = NULL;
	if (cupti_session->client && cupti_is_away())
		guest_buffer_request(buffer, bytes, most_records);
	else if (cupti_session->client)
		*buffer = cupti_buffers_take(bytes);
	if (!*buffer && cupti_session->library.version < CUPTI_VERSION_12_9)
		*buffer = cupti_buffers_scratch(bytes); /* these crash when they are given none */
}

/* What was in it is lost: of the scratch nobody knows how much that was, and where CUPTI is another's, the times may be of
 * another clock. */
static void lose_buffer(const uint8_t *buffer, size_t valid)
{
	if (valid)
		trace_lose(TRACE_LOST_CUPTI_UNREAD, 1);
	cupti_buffers_give(buffer);
}

static void on_buffer_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	const struct cupti_library *cupti = &cupti_session->library;
	bool ours = cupti_buffers_is_ours(buffer);
	size_t dropped = 0;

	if (!cupti_session->client)
		return;
	if (!ours && buffer && !cupti_buffers_is_scratch(buffer)) {
		guest_buffer_complete(context, stream, buffer, bytes, valid);
		return;
	}
	if (cupti_is_away()) {
		lose_buffer(buffer, valid);
		return;
	}
	if (cupti->dropped(NULL, 0, &dropped) != CUPTI_OK)
		dropped = 0;
	if (!ours)
		lose_buffer(buffer, valid);
	gpu_activity_read(cupti, buffer, ours ? valid : 0, dropped);
	cupti_guest_deliver(cupti, buffer, ours ? valid : 0, dropped);
	cupti_buffers_give(buffer);
	atomic_store_explicit(&cupti_session->owed, false, memory_order_relaxed);
	atomic_fetch_add_explicit(&cupti_session->batches, 1, memory_order_relaxed);
}

bool cupti_owns_callback(int domain, uint32_t id)
{
	bool ours = domain == CUPTI_STATE && id >= CUPTI_FATAL_ERROR && id <= CUPTI_WARNING;

	for (const uint16_t *call = cupti_session->client->calls(); domain == CUPTI_DRIVER && *call; call++)
		ours |= *call == id;
	for (size_t i = 0; domain == CUPTI_RESOURCE && i < sizeof resources / sizeof *resources; i++)
		ours |= resources[i] == id;
	return ours;
}

/* Callback ids that this version does not have yet are no loss: there is nothing that could be
 * called. */
static void enable_callbacks(struct cupti_session *s)
{
	const struct cupti_library *cupti = &s->library;
	int refused = CUPTI_OK, result;

	for (const uint16_t *id = s->client->calls(); *id; id++)
		if ((result = cupti->enable_callback(1, s->subscriber, CUPTI_DRIVER, *id)) != CUPTI_OK &&
			result != CUPTI_INVALID_PARAMETER)
			refused = result;
	if (refused)
		note_refusal(s, "callbacks of calls", refused);
	refused = CUPTI_OK;
	for (size_t i = 0; i < sizeof resources / sizeof *resources; i++)
		if ((result = cupti->enable_callback(1, s->subscriber, CUPTI_RESOURCE, resources[i])) != CUPTI_OK)
			refused = result;
	if (refused)
		note_refusal(s, "callbacks of contexts and graphs", refused);
	for (uint32_t id = CUPTI_FATAL_ERROR; id <= CUPTI_WARNING; id++)
		cupti->enable_callback(1, s->subscriber, CUPTI_STATE, id); /* from 12.2 on */
}

bool cupti_owns_kind(uint32_t kind)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if ((uint32_t)kinds[i].kind == kind)
			return true;
	return kind == CUPTI_CONTEXT;
}

void cupti_time_calls(void)
{
	struct cupti_session *s = cupti_session;

	if (!s->library.enable_driver_api)
		return;
	for (const uint16_t *id = s->client->timed; *id; id++) {
		s->library.enable_driver_api(*id, 1);
		if (*id < 1024)
			s->timed[*id / 64] |= UINT64_C(1) << *id % 64;
	}
}

static void enable_kinds(struct cupti_session *s)
{
	const struct cupti_library *cupti = &s->library;
	int result;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if ((result = cupti->enable(kinds[i].kind)) != CUPTI_OK)
			note_refusal(s, kinds[i].what, result);
	/* Also those that exist already, where the program was faster than we. */
	if (!cupti->enable_and_dump || cupti->enable_and_dump(CUPTI_CONTEXT) != CUPTI_OK)
		cupti->enable(CUPTI_CONTEXT);
	cupti_time_calls();
}

void cupti_ask(void)
{
	const size_t refused = strlen(cupti_session->partial);

	enable_callbacks(cupti_session);
	enable_kinds(cupti_session);
	if (strlen(cupti_session->partial) > refused)
		tell_state(cupti_session);
}

static void disable_callback(struct cupti_session *s, int domain, uint32_t id)
{
	if (!cupti_guest_hears(domain, id))
		s->library.enable_callback(0, s->subscriber, domain, id);
}

static void disable_kinds(struct cupti_session *s)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds && cupti_runs(); i++)
		s->library.disable(kinds[i].kind);
}

/* What a failure of CUPTI's own says is still heard. */
void cupti_ask_no_more(void)
{
	struct cupti_session *s = cupti_session;

	for (const uint16_t *id = s->client->calls(); *id; id++)
		disable_callback(s, CUPTI_DRIVER, *id);
	for (size_t i = 0; i < sizeof resources / sizeof *resources; i++)
		disable_callback(s, CUPTI_RESOURCE, resources[i]);
	disable_kinds(s);
	s->library.disable(CUPTI_CONTEXT);
	s->library.disable(CUPTI_DRIVER_CALL); /* and what was said of single calls */
}

void cupti_doubt(void)
{
	struct cupti_session *s = cupti_session;
	const uint32_t batches = atomic_load(&s->batches);

	if (!s->library.enable_and_dump || s->library.enable_and_dump(CUPTI_CONTEXT) != CUPTI_OK)
		return;
	s->library.flush_all(0);
	if (atomic_load(&s->batches) != batches)
		return;
	s->doubted = true;
	s->doubted_at = batches;
	tell("source.cupti", "partial: another profiler in the program has taken CUPTI's buffers, by functions that it got from "
			     "dlsym; run it with PPERF_CUPTI=0, or without the other");
}

/* What CUPTI said of itself since, that it failed, is the last word. */
void cupti_doubt_no_more(void)
{
	struct cupti_session *s = cupti_session;

	if (!s->doubted || !cupti_runs() || atomic_load(&s->batches) == s->doubted_at)
		return;
	s->doubted = false;
	tell_state(s);
}

static void set_flag(const struct cupti_library *cupti, int attribute, uint8_t value)
{
	size_t bytes = sizeof value;

	cupti->set_attribute(attribute, &bytes, &value);
}

/* Of no consequence where a release does not know them. */
static void set_attributes(const struct cupti_library *cupti)
{
	if (cupti->set_thread_id_type)
		cupti->set_thread_id_type(CUPTI_THREAD_ID_SYSTEM);
	if (!cupti->set_attribute)
		return;
	/* Up to 13.0 long runs with graphs could crash with CUPTI's buffers on the device. */
	if (cupti->version < CUPTI_VERSION_13_0_1)
		set_flag(cupti, CUPTI_HOST_PINNED, 1);
	/* From 13.0 on each thread would hold a buffer for its few records: many threads, and none
	 * is left for the GPU's. */
	if (cupti->version >= CUPTI_VERSION_13_0)
		set_flag(cupti, CUPTI_BUFFER_EACH_THREAD, 0);
}

/* In the order that CUPTI wants: subscribing first, as it tells whether there is anything to be
 * had. */
static void open_session(struct cupti_session *s)
{
	const struct cupti_library *cupti = &s->library;
	int result;

	result = cupti->subscribe(&s->subscriber, on_event, NULL);
	if (result != CUPTI_OK) {
		tell("source.cupti", "off: %s (%d)", meaning(cupti, result), result);
		return;
	}
	atomic_store_explicit(&s->running, true, memory_order_release);
	set_attributes(cupti);
	result = CUPTI_NO_MEMORY;
	if (cupti_buffers_setup(s->client->buffer_bytes ? s->client->buffer_bytes : BUFFERS_DEFAULT))
		result = cupti->register_buffers(on_buffer_requested, on_buffer_completed);
	if (result != CUPTI_OK)
		note_refusal(s, "buffers", result);
	enable_callbacks(s);
	if (result == CUPTI_OK)
		enable_kinds(s);
	tell_state(s);
}

static void tell_versions(const struct cupti_library *cupti)
{
	tell("version.cupti", "%u", cupti->version);
	tell("cupti.library", "%s", cupti->path);
	if (cupti->driver_version)
		tell("version.cuda_driver", "%d", cupti->driver_version);
	if (cupti->version == CUPTI_VERSION_13_0)
		tell("warning.cupti",
			"CUPTI 13.0 (130000) is known to crash and to hang; 13.0 Update 1 or later is not.");
	if (cupti->version >= CUPTI_VERSION_13_2 && cupti->version < CUPTI_VERSION_13_3)
		tell("warning.cupti", "CUPTI 13.2 (%u) is known to become slow in long runs; 13.3 or later does not.",
			cupti->version);
}

/* At exit, before the driver's own end: what is complete comes, what is not is given up. Callbacks
 * stay as they are for ever. */
static void end_here(void *unused)
{
	struct cupti_session *s = cupti_session;

	(void)unused;
	if (!s || !s->client) /* a forked child */
		return;
	if (trace_header()) /* a program that only asked for devices leaves nothing */
		gpu_device_record();
	if (!cupti_runs())
		return;
	if (!cupti_flush_end()) {
		tell("source.cupti", "partial: CUPTI did not come back from a flush at the end (0)");
		return;
	}
	cupti_guest_end();
	pthread_mutex_lock(&s->lock);
	s->over = true;
	if (!cupti_is_away()) {
		if (atomic_load(&s->owed))
			s->library.flush_all(0);
		if (atomic_load(&s->owed))
			cupti_doubt();
		disable_kinds(s);
		if (cupti_runs())
			s->library.flush_all(CUPTI_FLUSH_FORCED);
		cupti_doubt_no_more();
	}
	pthread_mutex_unlock(&s->lock);
}

/* Any thread may end the program, and what CUPTI still has is read on that one. */
static void end_session(void)
{
	own_stack_run(end_here, NULL);
}

/* CUDA does not work in a child made by fork, so there CUPTI has nothing to tell either. */
static void in_forked_child(void)
{
	tell("source.cupti", "absent");
}

static void begin_session(void *wanted)
{
	const struct cupti_client *client = wanted;
	char reason[REASON_BYTES];
	bool loaded;

	cupti_session = fork_memory(sizeof *cupti_session);
	if (!cupti_session) {
		tell("source.cupti", "off: no memory (%d)", CUPTI_NO_MEMORY);
		return;
	}
	cupti_session->client = client;
	loaded = cupti_load(&cupti_session->library, client->library, client->toolkit, reason, sizeof reason);
	atexit(end_session); /* now that CUPTI's own handlers are registered: the last one runs first */
	pthread_atfork(NULL, NULL, in_forked_child);
	if (!loaded) {
		tell("source.cupti", "off: %s (0)", reason);
		return;
	}
	tell_versions(&cupti_session->library);
	pthread_mutex_lock(&cupti_session->lock);
	open_session(cupti_session);
	pthread_mutex_unlock(&cupti_session->lock);
}

void cupti_start(const struct cupti_client *client)
{
	int saved = errno;

	if (atomic_load_explicit(&begun, memory_order_relaxed) || atomic_exchange(&begun, 1))
		return;
	own_stack_run(begin_session, (void *)(uintptr_t)client);
	errno = saved;
}

uint32_t cupti_call_name(int domain, uint32_t cbid)
{
	const struct cupti_library *cupti = &cupti_session->library;
	_Atomic uint32_t *kept = cbid < CALL_IDS ? &call_names[domain - 1][cbid] : NULL;
	uint32_t id = kept ? atomic_load_explicit(kept, memory_order_relaxed) : 0;
	const char *name = NULL;

	if (id)
		return id;
	if (!cupti->callback_name || cupti->callback_name(domain, cbid, &name) != CUPTI_OK || !name)
		return 0;
	id = name_id_always(name, strlen(name));
	if (kept)
		atomic_store_explicit(kept, id, memory_order_relaxed);
	return id;
}
