/* SPDX-License-Identifier: MIT
 * call.c: see call.h.
 */
#include "call.h"

#include "collector/dictionary.h"
#include "collector/stream_state.h"
#include "real.h"
#include "stack.h"

#include <errno.h>
#include <string.h>

#define MOST_BYTES (4 + sizeof(struct trace_launch)) /* of a call's record, padding before it included */

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
	if (site->flags & TRACE_CALL_CALLBACK || stream == CALL_NO_STREAM ||
		!atomic_load_explicit(&captures, memory_order_relaxed))
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

/* Room for a record, of which the words beyond struct trace_call are zero. As stream_record_at, without its generality. */
static inline struct trace_call *begin_record(struct stream *s, enum trace_kind kind, size_t size)
{
	struct trace_call *call;

	if (__builtin_expect(call_here.end > s->last + STREAM_GAP_MOST, 0))
		stream_clock(s);
	if (!stream_room(s, MOST_BYTES))
		return NULL;
	s->pending = s->slot->used & 4; /* up to the next multiple of 8; the word 0 is padding */
	*(uint32_t *)(void *)(stream_cursor(s) - s->pending) = 0;
	call = (struct trace_call *)(void *)stream_cursor(s);
	s->pending += size;
	memset(call + 1, 0, MOST_BYTES - 4 - sizeof *call);
	call->head = (struct trace_head){ .size = (uint16_t)size, .kind = (uint8_t)kind, .node = s->top->node };
	call->stamp = s->last = call_here.end > s->last ? call_here.end : s->last;
	return call;
}

/* What asks the driver or the dictionary comes before the record is begun, since nothing may come between. */
static struct trace_call *record_in_stream(
	struct stream *s, struct call_site *site, enum trace_kind kind, size_t size, int result, const void *stream)
{
	uint32_t device = site->flags & TRACE_CALL_CALLBACK ? UINT32_MAX : real_device();
	uint8_t flags = is_captured(site, stream) ? TRACE_CALL_CAPTURED : 0;
	uint32_t stack = take_stack(site), api = api_of(site);
	struct trace_call *call = begin_record(s, kind, size);

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

static inline void leave(void)
{
	stream_finish();
	*call_here.error_at = call_here.error;
}

void *call_record(struct call_site *site, enum trace_kind kind, size_t size, int result, const void *stream)
{
	struct trace_call *call;
	struct stream *s;

	if (!call_enabled)
		return NULL;
	call_here.error_at = &errno; /* a function call each time it is named */
	call_here.error = *call_here.error_at;
	s = stream_begin();
	if (!s) {
		*call_here.error_at = call_here.error;
		return NULL;
	}
	if (!call_here.end)
		call_here.end = clock_now();
	call_here.stack_ticks = 0;
	call = record_in_stream(s, site, kind, size, result, stream);
	if (!call)
		leave();
	return call;
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
	stream_publish(stream_here.mine);
	if (call_here.stack_ticks)
		record_own_time();
	leave();
}
