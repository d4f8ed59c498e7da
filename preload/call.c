/* SPDX-License-Identifier: MIT
 * call.c: see call.h.
 */
#include "call.h"

#include "collector/dictionary.h"
#include "collector/stream.h"
#include "real.h"
#include "stack.h"

#include <errno.h>
#include <string.h>

_Thread_local struct call_here call_here;
bool call_enabled = true;

static unsigned with_stack; /* a bit for each enum call_type */
static _Atomic int captures;

bool call_configure(bool enabled, const char *stacks)
{
	const bool off = stacks && !strcmp(stacks, "off"), launch = stacks && !strcmp(stacks, "launch");

	call_enabled = enabled;
	with_stack = off ? 0 : launch ? 1u << CALL_ALLOC | 1u << CALL_LAUNCH : 1u << CALL_ALLOC;
	if (enabled && with_stack)
		stack_want();
	return !stacks || off || launch || !strcmp(stacks, "alloc");
}

void call_prepare(void)
{
	int saved = errno;

	if (call_enabled && stream_enter())
		stream_leave();
	stack_prepare();
	errno = saved;
}

void call_forked(void)
{
	atomic_store(&captures, 0);
	stack_forked();
}

void call_capture_began(void)
{
	atomic_fetch_add(&captures, 1);
}

/* A capture that began unseen may end, so the count stops at zero. */
void call_capture_ended(void)
{
	int open = atomic_load(&captures);

	while (open > 0 && !atomic_compare_exchange_weak(&captures, &open, open - 1))
		continue;
}

static bool is_captured(const struct call_site *site, const void *stream)
{
	if (call_here.captured)
		return true;
	if (site->flags & TRACE_CALL_CALLBACK || stream == CALL_NO_STREAM || !atomic_load_explicit(&captures, memory_order_relaxed))
		return false;
	return real_capturing(stream, site->per_thread);
}

static uint32_t api_of(struct call_site *site)
{
	uint32_t api = atomic_load_explicit(&site->api, memory_order_relaxed);

	if (!api) {
		api = name_id_always(site->name, strlen(site->name));
		atomic_store_explicit(&site->api, api, memory_order_relaxed);
	}
	return api;
}

/* The stack of the call that is being recorded, and what it cost. */
static uint32_t take_stack(const struct call_site *site)
{
	uint32_t stack;

	if (!(with_stack >> site->type & 1))
		return 0;
	stack = stack_here(call_here.caller);
	call_here.stack_ticks = clock_now() - call_here.end;
	return stack;
}

/* What follows asks the driver or the dictionary; all of it before the record is begun, since nothing may come between. */
static void *record_in_stream(struct call_site *site, enum trace_kind kind, size_t size, int result, const void *stream)
{
	uint32_t device = site->flags & TRACE_CALL_CALLBACK ? UINT32_MAX : real_device();
	uint8_t flags = is_captured(site, stream) ? TRACE_CALL_CAPTURED : 0;
	uint32_t stack = take_stack(site), api = api_of(site);
	struct trace_call *call = stream_record_at(kind, size, call_here.end);

	if (!call)
		return NULL;
	call->head.flags = site->flags | flags;
	call->duration = call->stamp - call_here.begin;
	call->correlation = call_here.correlation;
	call->result = (uint32_t)result;
	call->api = api;
	call->stack = stack;
	call->device = device;
	return call;
}

static void leave(void)
{
	stream_leave();
	errno = call_here.error;
}

void *call_record(struct call_site *site, enum trace_kind kind, size_t size, int result, const void *stream)
{
	void *record;

	if (!call_enabled)
		return NULL;
	call_here.error = errno;
	if (!stream_enter()) {
		errno = call_here.error;
		return NULL;
	}
	if (!call_here.end)
		call_here.end = clock_now();
	call_here.stack_ticks = 0;
	record = record_in_stream(site, kind, size, result, stream);
	if (!record)
		leave();
	return record;
}

static void record_own_time(void)
{
	struct trace_self *self = stream_record_at(TRACE_SELF, sizeof *self, call_here.end + call_here.stack_ticks);

	if (!self)
		return;
	self->duration = call_here.stack_ticks;
	self->what = TRACE_SELF_STACK;
	stream_commit();
}

void call_commit(void)
{
	stream_commit();
	if (call_here.stack_ticks)
		record_own_time();
	leave();
}
