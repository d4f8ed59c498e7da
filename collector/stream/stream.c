/* SPDX-License-Identifier: MIT
 * stream.c: see stream.h. A thread's stream is a slot of the trace file, mapped, and a cursor in it.
 */
#include "collector/stream/stream_state.h"

#include "collector/process/clock.h"
#include "collector/file/dictionary_blocks.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/process/signal_guard.h"
#include "collector/file/slots.h"
#include "collector/file/trace_file.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RETRY_EVERY 1024u /* refused events between two attempts at a full disk */
#define INTERRUPTION_LEAST 768 /* bytes of stack: the kernel puts down the registers, which are more than this */

/* What the threads share. Emptied in a forked child. */
static struct shared {
	pthread_mutex_t lock;
	struct stream *free_streams;
	struct stream *streams; /* all that were ever made, in use or not */
	uint32_t off;      /* there is no file and there will be none */
	uint32_t refusals; /* of streams that were to begin, since the last that could: backs off */
	uint32_t reason;   /* enum trace_loss of the last of them. All three atomic */
} *shared;

static bool is_off(void)
{
	return !shared || __atomic_load_n(&shared->off, __ATOMIC_RELAXED);
}

__thread struct stream_here stream_here __attribute__((tls_model("initial-exec")));
static pthread_key_t end_key;
static bool end_key_made;

static void thread_ended(void *unused)
{
	(void)unused;
	stream_end();
}

void stream_configure(const struct trace_settings *settings)
{
	trace_configure(settings);
	dictionary_setup();
	shared = slots_setup() ? fork_memory(sizeof *shared) : NULL;
	end_key_made = !pthread_key_create(&end_key, thread_ended);
}

/* A slot for `s`. */
static bool take_slot(struct stream *s, bool later, enum trace_loss *reason)
{
	uint64_t offset;
	struct trace_block *slot = slot_take(later, &offset, reason);

	if (!slot)
		return false;
	s->slot = slot;
	s->slot_offset = offset;
	return true;
}

void *stream_put_head(struct stream *s, enum trace_kind kind, size_t size)
{
	struct trace_head *head;

	if ((uintptr_t)stream_cursor(s) & 4) {
		memset(stream_cursor(s), 0, 4);
		s->pending += 4;
	}
	head = (struct trace_head *)(void *)stream_cursor(s);
	memset(head, 0, size);
	head->size = (uint16_t)size;
	head->kind = (uint8_t)kind;
	head->node = s->node;
	s->pending += size;
	return head;
}

static void put_clock(struct stream *s, const struct trace_clock *now)
{
	struct trace_clock_record *clock = stream_put_head(s, TRACE_CLOCK, sizeof *clock);

	clock->stamp = s->last = now->raw > s->last ? now->raw : s->last;
	clock->monotonic_ns = now->monotonic_ns;
	clock->realtime_ns = now->realtime_ns;
}

/* Told once more after it is done: whoever shuts the window shuts it first, and then the quick ways. */
void stream_settle(struct stream *s)
{
	__atomic_store_n(&s->quick_room, clock_is_quick() && !s->beyond ? s->room : 0, __ATOMIC_SEQ_CST);
	s->shut = __atomic_load_n(&window_shut, __ATOMIC_SEQ_CST);
	if (s->shut)
		__atomic_store_n(&s->quick_room, 0, __ATOMIC_SEQ_CST);
}

void stream_window_turned(bool shut)
{
	struct quiet quiet;

	if (!shut || !shared)
		return; /* each thread settles its stream as it comes by */
	quiet_begin(&quiet);
	pthread_mutex_lock(&shared->lock);
	for (struct stream *s = shared->streams; s; s = s->also)
		__atomic_store_n(&s->quick_room, 0, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&shared->lock);
	quiet_end(&quiet);
}

static void put_open(struct stream *s)
{
	uint32_t told = 0;

	for (const struct frame *frame = s->frames + 1; frame <= s->top && told < TRACE_OPEN_MOST; frame++) {
		struct trace_open *record;

		if (!frame_is_recorded(frame))
			continue;
		record = stream_put_head(s, TRACE_OPEN, sizeof *record);
		record->head.node = frame->node;
		record->begin_stamp = frame->begin;
		told++;
	}
}

/* Begins a payload in the (empty) slot: where the clocks stand and what is open, so that it can be read alone. */
static void begin_payload(struct stream *s, uint32_t sequence)
{
	struct trace_block *slot = s->slot;
	struct trace_clock now = clock_sample();

	slot->stream = s->id;
	slot->sequence = sequence;
	slot->tid = s->tid;
	slot->lost = s->lost;
	slot->crc = 0;
	slot->base_stamp = now.raw > s->last ? now.raw : s->last;
	s->room = slot->extent - sizeof *slot;
	stream_settle(s);
	memset(s->calls, 0, sizeof s->calls);
	put_clock(s, &now);
	put_open(s);
	stream_publish(s);
}

/* What the last seal cost, and what was lost before it: into the new payload. */
static void tell(struct stream *s, uint64_t began)
{
	struct trace_self *self = stream_put_head(s, TRACE_SELF, sizeof *self);
	uint64_t now = clock_now();

	self->stamp = s->last = now > s->last ? now : s->last;
	self->duration = self->stamp - began;
	self->what = TRACE_SELF_SEAL;
	if (s->lost > s->lost_told) {
		struct trace_lost *lost = stream_put_head(s, TRACE_LOST, sizeof *lost);

		lost->stamp = s->last;
		lost->events = s->lost - s->lost_told;
		lost->reason = s->reason;
		s->lost_told = s->lost;
	}
	stream_publish(s);
}

static bool seal_quietly(struct stream *s)
{
	uint64_t began = clock_now();
	struct trace_block *slot = s->slot;
	uint64_t offset = s->slot_offset;
	uint32_t sequence = slot->sequence;
	enum trace_loss reason = TRACE_LOST_FULL_DISK;
	bool sealed, larger;

	dictionary_write_back();
	totals_write_back(&s->totals);
	sealed = trace_seal(slot, &reason);
	larger = sealed && !slot_is_later(slot) && take_slot(s, true, &reason);
	s->reason = reason;
	if (!sealed)
		return false;
	slot_empty(slot);
	if (larger)
		slot_give(slot, offset);
	begin_payload(s, sequence + 1);
	tell(s, began);
	return true;
}

/* One seal: the slot's bytes go to the end of the file, then the slot is empty. */
static bool seal(struct stream *s)
{
	struct quiet quiet;
	bool sealed;

	quiet_begin(&quiet);
	sealed = seal_quietly(s);
	quiet_end(&quiet);
	return sealed;
}

void stream_lose(struct stream *s, enum trace_loss reason)
{
	s->lost++;
	s->reason = reason;
	if (s->slot)
		s->slot->lost = s->lost;
	trace_lose(reason, 1);
}

void stream_lose_unseen(void)
{
	stream_here.unseen--;
	trace_lose((enum trace_loss)__atomic_load_n(&shared->reason, __ATOMIC_RELAXED), 1);
}

static bool has_room(struct stream *s, size_t bytes)
{
	if (s->slot->used + bytes <= s->room)
		return true;
	if (s->refusals++ % RETRY_EVERY == 0 && seal(s))
		s->refusals = 0;
	return s->slot->used + bytes <= s->room;
}

/* After a loss nothing more goes into the payload, even if it would fit: what is open is then known again only from the OPEN records of the next one. */
bool stream_make_room(struct stream *s, size_t bytes)
{
	if (has_room(s, bytes))
		return true;
	s->room = s->slot->used;
	stream_settle(s);
	stream_lose(s, (enum trace_loss)s->reason);
	return false;
}

void stream_clock(struct stream *s)
{
	struct trace_clock now;

	if (!has_room(s, sizeof(struct trace_clock_record) + 4)) /* then there is none for the event either, and that is counted */
		return;
	now = clock_sample(); /* making room may take long, and stamps: a sample from before would tie the later stamp to the earlier time */
	put_clock(s, &now);
	stream_publish(s);
}

bool stream_grow_frames(struct stream *s)
{
	size_t used = (size_t)(s->top - s->frames) + 1, room = ((size_t)(s->top_most - s->frames) + 1) * 2;
	struct frame *more = NULL;
	struct quiet quiet;

	if (room <= STREAM_FRAMES_MOST) {
		quiet_begin(&quiet);
		more = fork_memory(room * sizeof *more);
		quiet_end(&quiet);
	}
	if (!more)
		return false;
	memcpy(more, s->frames, used * sizeof *more);
	s->frames = more; /* the smaller one stays: at most as much again */
	stream_set_top(s, more + used - 1);
	s->top_most = more + room - 1;
	return true;
}

/* A stream's memory: that of a thread which ended, or new. */
static struct stream *take_stream(void)
{
	struct stream *s;

	pthread_mutex_lock(&shared->lock);
	s = shared->free_streams;
	if (s)
		shared->free_streams = s->next;
	pthread_mutex_unlock(&shared->lock);
	return s ? s : fork_memory(sizeof *s);
}

/* Once for each stream's memory, and once more in a forked child, where it is zeros. */
static void list_stream(struct stream *s)
{
	if (s->listed)
		return;
	pthread_mutex_lock(&shared->lock);
	s->listed = true;
	s->also = shared->streams;
	shared->streams = s;
	pthread_mutex_unlock(&shared->lock);
}

static void give_stream(struct stream *s)
{
	pthread_mutex_lock(&shared->lock);
	s->next = shared->free_streams;
	shared->free_streams = s;
	pthread_mutex_unlock(&shared->lock);
}

/* Gives `s` an identity and a slot. What a former thread left (frames' room, the cache, its totals) is still good. */
static bool start_stream(struct stream *s, struct trace_header *header, enum trace_loss *reason)
{
	s->beyond = s->refusals = s->vague = s->quiet_used = 0;
	s->last = s->lost = s->lost_told = s->pending = 0;
	if (!s->frames) {
		s->frames = s->first_frames;
		s->top_most = s->frames + STREAM_FRAMES_FIRST - 1;
	}
	*s->frames = (struct frame){.domain = FRAME_NONE, .level = UINT32_MAX};
	stream_set_top(s, s->frames);
	list_stream(s);
	s->tid = (uint32_t)syscall(SYS_gettid);
	s->slot = NULL;
	if (!take_slot(s, false, reason))
		return false;
	s->id = (uint32_t)__atomic_add_fetch(&header->streams, 1, __ATOMIC_RELAXED);
	window_describe(header);
	begin_payload(s, 0);
	return true;
}

/* The first event of a thread, or of a forked child (whose stream is all zeros). */
static struct stream *attach(struct trace_header *header, enum trace_loss *reason)
{
	struct stream *s = stream_here.mine;

	if (s && s->slot)
		return s; /* a signal handler came first */
	if (!dictionary_open(reason))
		return NULL;
	*reason = TRACE_LOST_NO_MEMORY;
	if (!s && !(s = take_stream()))
		return NULL;
	if (!start_stream(s, header, reason)) {
		if (!stream_here.mine)
			give_stream(s);
		return NULL;
	}
	stream_here.mine = s;
	if (end_key_made)
		pthread_setspecific(end_key, s);
	return s;
}

/* Tries to attach, now and then where that fails. NULL: it cannot be, and the event is counted. */
static struct stream *try_to_attach(void)
{
	uint32_t refusals = __atomic_load_n(&shared->refusals, __ATOMIC_RELAXED);
	enum trace_loss reason = (enum trace_loss)__atomic_load_n(&shared->reason, __ATOMIC_RELAXED);
	struct trace_header *header;
	struct stream *s = NULL;
	struct quiet quiet;

	if (refusals % RETRY_EVERY == 0) {
		quiet_begin(&quiet);
		header = trace_open();
		if (header)
			s = attach(header, &reason);
		else
			__atomic_store_n(&shared->off, 1, __ATOMIC_RELAXED);
		quiet_end(&quiet);
	}
	if (s && refusals)
		__atomic_store_n(&shared->refusals, 0, __ATOMIC_RELAXED);
	if (s || is_off())
		return s;
	__atomic_store_n(&shared->reason, reason, __ATOMIC_RELAXED);
	__atomic_add_fetch(&shared->refusals, 1, __ATOMIC_RELAXED);
	trace_lose(reason, 1);
	return NULL;
}

/* There in a program that was built with ThreadSanitizer: it calls handlers itself, later, out of any function of libc, with nothing of the kernel's between. */
extern void __tsan_init(void) __attribute__((weak));

/* Was the work that seems to be under way left, by a handler of the program's with siglongjmp? Then the stack is in use again where that work began: whatever
 * interrupts it lies further down, but for handlers that have a stack of their own. Where signals are held back nothing leaves, and who calls us then was called
 * by us: a function of libc that somebody stands in for. */
static __attribute__((noinline)) bool was_left(void)
{
	const char *began = stream_here.ready, *here = __builtin_frame_address(0);
	stack_t handlers;

	if (!began || stream_is_ready(began) || here + INTERRUPTION_LEAST < began || __tsan_init || quiet_is_open())
		return false;
	return !sigaltstack(NULL, &handlers) && !(handlers.ss_flags & SS_ONSTACK);
}

/* What was half done is forgotten. The row of open ranges may not be what the payload says, so the next event begins another, which tells it. */
static void end_left_work(void)
{
	struct stream *s = stream_here.mine;

	stream_here.busy = 0;
	if (!s || !s->slot)
		return;
	s->pending = s->refusals = 0;
	stream_set_top(s, s->top);
	s->room = s->slot->used;
	stream_settle(s);
	stream_lose(s, TRACE_LOST_REENTERED);
}

static bool is_at_work(void)
{
	if (!stream_at_work())
		return false;
	if (!was_left())
		return true;
	end_left_work();
	return false;
}

struct stream *stream_begin_slowly(void)
{
	struct stream *s;

	if (is_off())
		return NULL;
	if (is_at_work()) {
		trace_lose(TRACE_LOST_REENTERED, 1);
		return NULL;
	}
	stream_busy_begins();
	s = try_to_attach();
	if (!s)
		stream_here.busy = 0;
	return s;
}

bool stream_enter(void)
{
	return stream_begin() != NULL;
}

bool stream_hold(void)
{
	if (is_at_work() || !shared)
		return false;
	stream_busy_begins();
	return true;
}

void stream_leave(void)
{
	stream_finish();
}

uint32_t stream_tid(void)
{
	const struct stream *s = stream_here.mine;

	return s && s->tid ? s->tid : (uint32_t)syscall(SYS_gettid);
}

/* A mapped slot whose last seal fails stays as it is: all is in the file. */
static void end_slot(struct stream *s)
{
	enum trace_loss reason;
	bool sealed;

	dictionary_write_back();
	totals_write_back(&s->totals);
	sealed = trace_seal(s->slot, &reason);
	if (!sealed && trace_tail_at_risk())
		trace_lose(reason, slot_events(s->slot));
	if (!sealed && !trace_tail_at_risk())
		return;
	slot_empty(s->slot);
	slot_give(s->slot, s->slot_offset);
}

void stream_end(void)
{
	struct stream *s = stream_here.mine;
	struct quiet quiet;

	if (!s || !s->slot || is_at_work())
		return;
	stream_busy_begins();
	quiet_begin(&quiet);
	stream_tell_skips(s);
	end_slot(s);
	s->slot = NULL;
	stream_here.mine = NULL;
	give_stream(s);
	quiet_end(&quiet);
	stream_here.busy = 0;
}

/* Of all threads: those that go on have only what is not mapped to lose. */
static void finish_all(void)
{
	struct quiet quiet;

	quiet_begin(&quiet);
	pthread_mutex_lock(&shared->lock);
	for (struct stream *s = shared->streams; s; s = s->also) {
		totals_write_back(&s->totals);
		stream_tell_skips(s);
	}
	pthread_mutex_unlock(&shared->lock);
	quiet_end(&quiet);
}

void stream_end_process(void)
{
	stream_end();
	if (shared && (trace_tail_at_risk() || window_scheduled))
		finish_all();
	if (trace_header())
		dictionary_close();
}
