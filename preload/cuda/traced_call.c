/* SPDX-License-Identifier: MIT
 * call.c: see call.h.
 */
#include "preload/cuda/traced_call.h"

#include "collector/file/dictionary.h"
#include "collector/stream/stream_state.h"
#include "preload/python/frames.h"
#include "preload/cuda/real.h"
#include "preload/cuda/native_stack.h"

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

static inline bool wants_python(const struct call_site *site)
{
	if (__builtin_expect(python_stacks == PYTHON_STACKS_OFF, 1))
		return false;
	return site->type == CALL_ALLOC || (site->type == CALL_LAUNCH && python_stacks == PYTHON_STACKS_LAUNCH);
}

/* The call's stack, Python's where that is asked for and there is one, and what it cost. The call ended at `end`. */
static uint32_t take_stack(const struct call_site *site, uint64_t end, uint64_t *ticks)
{
	const bool native = with_stack >> site->type & 1, of_python = wants_python(site);
	uint32_t stack;
	int saved;

	if (!native && !of_python)
		return 0;
	saved = errno;
	stack = of_python ? python_stack_here() : 0;
	if (!stack && native)
		stack = stack_here(call_here.caller);
	errno = saved;
	*ticks = clock_now() - end;
	return stack;
}

/* A callback may not ask the driver, and launches are not worth the question: CUPTI says where they work. */
static inline uint32_t device_of(const struct call_site *site)
{
	return site->flags & TRACE_CALL_CALLBACK || site->type == CALL_LAUNCH || site->type == CALL_RESET ? call_here.device : real_device();
}

/* A call's record that is yet to be written, in the words of the format: what was stored in halves a moment ago makes
 * the processor wait when it is read as a whole, to be compared. */
struct draft {
	uint64_t begin, stamp, correlation;
	uint64_t outcome; /* result, api */
	uint64_t place;   /* stack, device */
	const uint64_t *rest;
	size_t words;  /* of rest */
	uint32_t head; /* size, kind, flags */
};

/* Where the words of a call record lie. */
enum word { HEAD, STAMP, DURATION, CORRELATION, OUTCOME, PLACE, REST };
static_assert(offsetof(struct trace_call, duration) == 8 * DURATION &&
		      offsetof(struct trace_call, correlation) == 8 * CORRELATION &&
		      offsetof(struct trace_call, result) == 8 * OUTCOME &&
		      offsetof(struct trace_call, stack) == 8 * PLACE && sizeof(struct trace_call) == 8 * REST,
	"enum word is struct trace_call");
static_assert(offsetof(struct trace_again, duration) == 16 && offsetof(struct trace_again, of) == 20 &&
		      offsetof(struct trace_again, correlation) == 22 && sizeof(struct trace_again) == 24,
	"put_again writes it so");
static_assert(CALL_WORDS(trace_launch) == 6 && CALL_WORDS(trace_graph_launch) == 3 && CALL_WORDS(trace_copy) == 3 &&
		      CALL_WORDS(trace_sync) == 3 && CALL_WORDS(trace_memory) == 4,
	"is_like compares 3, 4 or 6 words");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "call_pair puts the first number into the low half");

/* Where the last call that was like this one would be noted. Words that AGAIN may change do not count, but what is
 * launched does. */
static inline uint16_t *note_of(struct stream *s, const struct draft *draft)
{
	uint64_t key = draft->outcome + draft->rest[2] +
		       (draft->words == CALL_WORDS(trace_launch) ? draft->rest[1] : 0);

	return &s->calls[key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - __builtin_ctz(STREAM_CALLS))];
}

/* Whether an AGAIN of `was` can stand for the call. A loop would take longer than all this. */
static inline bool is_like(const uint64_t *was, const struct draft *draft)
{
	uint64_t differ = (uint32_t)was[HEAD] ^ draft->head;

	differ |= was[OUTCOME] ^ draft->outcome;
	differ |= was[PLACE] ^ draft->place;
	differ |= (draft->correlation - was[CORRELATION]) >> 16;
	differ |= (draft->stamp - draft->begin) >> 32;
	differ |= was[REST + 2] ^ draft->rest[2];
	if (draft->words > 3)
		differ |= was[REST + 3] ^ draft->rest[3];
	if (draft->words > 4)
		differ |= (was[REST + 4] ^ draft->rest[4]) | (was[REST + 5] ^ draft->rest[5]);
	return !differ;
}

/* The record's size in words. */
static inline size_t put_again(uint64_t *at, const struct draft *draft, uint32_t node, uint16_t of, const uint64_t *was)
{
	size_t words = draft->rest[1] != was[REST + 1] ? 2 : draft->rest[0] != was[REST];
	uint32_t correlation = (uint32_t)(draft->correlation - was[CORRELATION]);

	at[0] = call_pair((uint32_t)(sizeof(struct trace_again) + 8 * words) | TRACE_AGAIN << 16, node);
	at[1] = draft->stamp;
	at[2] = call_pair((uint32_t)(draft->stamp - draft->begin), of | correlation << 16);
	at[3] = draft->rest[0];
	at[4] = draft->rest[1];
	return 3 + words;
}

static inline size_t put_whole(uint64_t *at, const struct draft *draft, uint32_t node)
{
	at[HEAD] = call_pair(draft->head, node);
	at[STAMP] = draft->stamp;
	at[DURATION] = draft->stamp - draft->begin;
	at[CORRELATION] = draft->correlation;
	at[OUTCOME] = draft->outcome;
	at[PLACE] = draft->place;
	for (size_t i = 0; i < draft->words; i++)
		at[REST + i] = draft->rest[i];
	return REST + draft->words;
}

/* Writes the record, or the AGAIN that says as much. There is room. */
static inline void put(struct stream *s, struct draft *draft)
{
	uint64_t *payload = (void *)(s->slot + 1);
	uint64_t used = s->slot->used, at = (used + 7) / 8;
	uint16_t *note = note_of(s, draft), of = *note;
	size_t words;

	if (used & 4)
		((uint32_t *)payload)[used / 4] = 0; /* padding */
	draft->stamp = s->last = draft->stamp > s->last ? draft->stamp : s->last;
	if (of && is_like(payload + of, draft)) {
		words = put_again(payload + at, draft, s->node, of, payload + of);
	} else {
		words = put_whole(payload + at, draft, s->node);
		*note = at <= UINT16_MAX ? (uint16_t)at : 0;
	}
	__atomic_store_n(&s->slot->used, 8 * (at + words), __ATOMIC_RELEASE);
}

void call_stack_took(uint64_t end, uint64_t ticks)
{
	struct trace_self *self = stream_record_at(TRACE_SELF, sizeof *self, end + ticks);

	if (!self)
		return;
	self->duration = ticks;
	self->what = TRACE_SELF_STACK;
	stream_commit();
}

/* Outside of the schedule's windows only what memory is taken and given back is recorded. */
static bool is_passed(struct stream *s, enum trace_kind kind)
{
	if (!window_is_shut() || window_skips(kind) < 0)
		return false;
	stream_skip_ends(s, TRACE_SKIPPED_CALLS, stream_skip_begins(s, TRACE_SKIPPED_CALLS));
	stream_finish();
	return true;
}

bool call_write(struct call_site *site, enum trace_kind kind, int result, const void *stream, const uint64_t *rest,
	size_t words)
{
	uint64_t end, stack_ticks = 0;
	uint32_t flags, stack;
	struct draft draft;
	struct stream *s;
	bool room;

	if (!call_enabled)
		return false;
	end = __builtin_expect(call_here.end == 0, 1) ? clock_now() : call_here.end;
	s = stream_begin();
	if (!s || is_passed(s, kind))
		return false;
	if (__builtin_expect(window_scheduled, 0) && !window_is_shut())
		window_call(call_here.correlation);
	if (__builtin_expect(s->vague, 0))
		stream_find_path(s);
	flags = site->flags | (is_captured(site, stream) ? TRACE_CALL_CAPTURED : 0u);
	stack = take_stack(site, end, &stack_ticks);
	draft = (struct draft){
		.begin = call_here.begin,
		.stamp = end,
		.correlation = call_here.correlation,
		.outcome = call_pair((uint32_t)result, api_of(site)),
		.place = call_pair(stack, device_of(site)),
		.rest = rest,
		.words = words,
		.head = (uint32_t)(8 * (REST + words)) | (uint32_t)kind << 16 | flags << 24,
	};
	if (__builtin_expect(end > s->last + STREAM_GAP_MOST, 0))
		stream_clock(s);
	room = stream_room(s, MOST_BYTES);
	if (room)
		put(s, &draft);
	if (room && stack_ticks)
		call_stack_took(end, stack_ticks);
	stream_finish();
	return room;
}

bool call_write_reset(struct call_site *site, int result)
{
	const uint64_t rest[CALL_WORDS(trace_memory)] = { [3] = call_pair(TRACE_MEMORY_UNKNOWN, TRACE_MEMORY_ALL | call_context()) };

	return call_write(site, TRACE_FREE, result, CALL_NO_STREAM, rest, CALL_WORDS(trace_memory));
}
