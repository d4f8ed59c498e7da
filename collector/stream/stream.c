/* SPDX-License-Identifier: MIT
 * A thread's stream is a mapped slot of the trace file, and a cursor in it.
 */
#include "collector/stream/stream_state.h"

#include "collector/process/clock.h"
#include "collector/file/dictionary.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/process/signal_guard.h"
#include "collector/file/ring.h"
#include "collector/file/slots.h"
#include "collector/file/trace_file.h"
#include "collector/stream/control.h"
#include "collector/stream/held_memory.h"
#include "collector/stream/peer.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Refused events between two attempts to get space or a stream. */
#define RETRY_EVERY 1024u
/* The fewest bytes of stack between interrupted work and a signal handler: the kernel saves more
 * than this for the registers alone. */
#define INTERRUPTION_MIN 768

/* What the threads share. Allocated by fork_wiped_alloc: all zeros in a forked child. */
static struct stream_registry {
	pthread_mutex_t lock;
	struct stream *free_streams;
	struct stream *streams; /* all streams that were ever made, in use or not */
	uint32_t off;           /* atomic; 1: there is no file and there will be none */
	/* Atomic: threads that got no stream since the last that did. Limits retries. */
	uint32_t refusals;
	uint32_t reason; /* atomic; enum trace_loss of the last refusal */
} * stream_registry;

static bool is_off(void)
{
	return !stream_registry || __atomic_load_n(&stream_registry->off, __ATOMIC_RELAXED);
}

__thread struct stream_tls stream_tls __attribute__((tls_model("initial-exec")));
static pthread_key_t end_key;
static bool end_key_made;

static void end_thread_stream(void *unused)
{
	(void)unused;
	stream_end();
}

void stream_configure(const struct trace_settings *settings)
{
	trace_configure(settings);
	dictionary_setup();
	held_memory_setup();
	stream_registry = slots_setup() ? fork_wiped_alloc(sizeof *stream_registry) : NULL;
	end_key_made = !pthread_key_create(&end_key, end_thread_stream);
}

/* Acquires a slot for `s`. */
static bool acquire_slot(struct stream *s, bool large, enum trace_loss *reason)
{
	uint64_t offset;
	struct trace_block *slot = slot_acquire(large, &offset, reason);

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

static void append_clock(struct stream *s, const struct trace_clock *now)
{
	struct trace_clock_record *clock = stream_put_head(s, TRACE_CLOCK, sizeof *clock);

	clock->stamp = s->last = now->raw > s->last ? now->raw : s->last;
	clock->monotonic_ns = now->monotonic_ns;
	clock->realtime_ns = now->realtime_ns;
}

/* Reads the switch after storing fast_room, and stores 0 if recording is paused. The thread that
 * pauses recording stores in the opposite order: first the switch, then fast_room of all streams.
 * So a capacity other than 0 never remains. The same holds for a request (frame_request.h). */
void stream_update_limits(struct stream *s)
{
	__atomic_store_n(&s->fast_room, clock_has_fast_read() && !s->too_deep ? s->room : 0,
		__ATOMIC_SEQ_CST);
	s->paused = __atomic_load_n(&recording_paused, __ATOMIC_SEQ_CST);
	if (s->paused || __atomic_load_n(&s->frames_due, __ATOMIC_SEQ_CST))
		__atomic_store_n(&s->fast_room, 0, __ATOMIC_SEQ_CST);
}

void stream_recording_changed(bool paused)
{
	struct signal_guard guard;

	if (!paused || !stream_registry)
		return; /* each thread updates its own stream at its next slow path */
	signal_guard_begin(&guard);
	pthread_mutex_lock(&stream_registry->lock);
	for (struct stream *s = stream_registry->streams; s; s = s->next_listed)
		__atomic_store_n(&s->fast_room, 0, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&stream_registry->lock);
	signal_guard_end(&guard);
}

static void append_open_ranges(struct stream *s)
{
	uint32_t written = 0;

	for (const struct range_frame *frame = s->frames + 1;
		frame <= s->top && written < TRACE_OPEN_MAX; frame++) {
		struct trace_open *record;

		if (!frame_is_recorded(frame))
			continue;
		record = stream_put_head(s, TRACE_OPEN, sizeof *record);
		record->head.node = frame->node;
		record->begin_stamp = frame->begin;
		written++;
	}
}

/* Begins a payload in the empty slot: writes the clocks and the open ranges, so that the payload
 * can be read alone. */
static void begin_slot_payload(struct stream *s, uint32_t sequence)
{
	struct trace_block *slot = s->slot;
	struct trace_clock now = clock_sample();

	slot->stream = s->id;
	slot->sequence = sequence;
	slot->reserved = 0;
	slot->tid = s->tid;
	slot->lost = s->lost;
	slot->crc = 0;
	slot->base_stamp = now.raw > s->last ? now.raw : s->last;
	s->room = slot->extent - sizeof *slot;
	stream_update_limits(s);
	memset(s->calls, 0, sizeof s->calls);
	append_clock(s, &now);
	append_open_ranges(s);
	stream_publish(s);
}

/* Writes the cost of the last seal, and the losses before it, into the new payload. */
static void append_seal_cost(struct stream *s, uint64_t began)
{
	struct trace_self *self = stream_put_head(s, TRACE_SELF, sizeof *self);
	uint64_t now = clock_now();

	self->stamp = s->last = now > s->last ? now : s->last;
	self->duration = self->stamp - began;
	self->what = TRACE_SELF_SEAL;
	if (s->lost > s->lost_reported) {
		struct trace_lost *lost = stream_put_head(s, TRACE_LOST, sizeof *lost);

		lost->stamp = s->last;
		lost->events = s->lost - s->lost_reported;
		lost->reason = s->reason;
		s->lost_reported = s->lost;
	}
	stream_publish(s);
}

static bool seal_guarded(struct stream *s)
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
	larger = sealed && !slot_is_large(slot) && acquire_slot(s, true, &reason);
	s->reason = reason;
	if (!sealed)
		return false;
	slot_clear(slot);
	if (larger)
		slot_release(slot, offset);
	begin_slot_payload(s, sequence + 1);
	append_seal_cost(s, began);
	return true;
}

/* Seals the slot: writes its bytes to the end of the file as a chunk and empties it. */
static bool seal_slot(struct stream *s)
{
	struct signal_guard guard;
	bool sealed, wrote;

	signal_guard_begin(&guard);
	sealed = seal_guarded(s);
	/* Also if the ring was stopped: the request may be to start it. */
	wrote = control_poll_sealed(s);
	wrote |= sealed && held_memory_wanted && held_memory_restate_if_due(s);
	if (sealed && wrote) /* the event that needs room gets a new payload */
		seal_guarded(s);
	signal_guard_end(&guard);
	return sealed;
}

bool stream_seal_to_restate(struct stream *s, size_t bytes)
{
	if (seal_guarded(s) && s->slot->used + bytes <= s->room)
		return true;
	s->room = s->slot->used;
	stream_update_limits(s);
	stream_lose(s, (enum trace_loss)s->reason);
	return false;
}

void stream_lose(struct stream *s, enum trace_loss reason)
{
	s->lost++;
	s->reason = reason;
	if (s->slot)
		s->slot->lost = s->lost;
	trace_lose(reason, 1);
}

void stream_lose_refused_end(void)
{
	stream_tls.refused_ranges--;
	trace_lose((enum trace_loss)__atomic_load_n(&stream_registry->reason, __ATOMIC_RELAXED), 1);
}

static bool seal_for_room(struct stream *s, size_t bytes)
{
	if (s->slot->used + bytes <= s->room)
		return true;
	if (s->restarts != ring_restarts())
		s->refusals = 0;
	s->restarts = ring_restarts();
	if (s->refusals++ % RETRY_EVERY == 0 && seal_slot(s))
		s->refusals = 0;
	return s->slot->used + bytes <= s->room;
}

/* After a loss nothing more goes into the payload, even if it would fit. Its records no longer give
 * the right range stack; the OPEN records of the next payload do. */
bool stream_reserve_slow(struct stream *s, size_t bytes)
{
	if (seal_for_room(s, bytes))
		return true;
	s->room = s->slot->used;
	stream_update_limits(s);
	stream_lose(s, (enum trace_loss)s->reason);
	return false;
}

void stream_write_clock(struct stream *s)
{
	struct trace_clock now;

	/* If there is no room, the event has none either, and is counted then. */
	if (!seal_for_room(s, sizeof(struct trace_clock_record) + 4))
		return;
	/* Sampled after making room, which may take long and writes stamps. An earlier sample would
	 * tie a later stamp to an earlier time. */
	now = clock_sample();
	append_clock(s, &now);
	stream_publish(s);
}

bool stream_grow_frames(struct stream *s)
{
	size_t used = (size_t)(s->top - s->frames) + 1,
	       room = ((size_t)(s->top_limit - s->frames) + 1) * 2;
	struct range_frame *more = NULL;
	struct signal_guard guard;

	if (room <= STREAM_FRAMES_MAX) {
		signal_guard_begin(&guard);
		more = fork_wiped_alloc(room * sizeof *more);
		signal_guard_end(&guard);
	}
	if (!more)
		return false;
	memcpy(more, s->frames, used * sizeof *more);
	/* The smaller stack is not freed: all of them together are no larger than the last one. */
	s->frames = more;
	stream_set_top(s, more + used - 1);
	s->top_limit = more + room - 1;
	return true;
}

/* Returns a stream's memory: that of a thread that ended, or new memory. NULL: no memory. */
static struct stream *acquire_stream(void)
{
	struct stream *s;

	pthread_mutex_lock(&stream_registry->lock);
	s = stream_registry->free_streams;
	if (s)
		stream_registry->free_streams = s->next;
	pthread_mutex_unlock(&stream_registry->lock);
	return s ? s : fork_wiped_alloc(sizeof *s);
}

/* Adds `s` to the list of all streams. Done once for the memory of each stream, and once more in a
 * forked child, where it is all zeros. */
static void list_stream(struct stream *s)
{
	if (s->listed)
		return;
	pthread_mutex_lock(&stream_registry->lock);
	s->listed = true;
	s->next_listed = stream_registry->streams;
	stream_registry->streams = s;
	pthread_mutex_unlock(&stream_registry->lock);
}

static void release_stream(struct stream *s)
{
	pthread_mutex_lock(&stream_registry->lock);
	s->next = stream_registry->free_streams;
	stream_registry->free_streams = s;
	pthread_mutex_unlock(&stream_registry->lock);
}

/* Gives `s` an id and a slot. What a former thread left is still valid: the frames' memory, the
 * caches, the totals. */
static bool start_stream(struct stream *s, struct trace_header *header, enum trace_loss *reason)
{
	s->too_deep = s->refusals = s->unresolved = s->unrecorded_texts_used = 0;
	s->last = s->lost = s->lost_reported = s->pending = 0;
	if (!s->frames) {
		s->frames = s->first_frames;
		s->top_limit = s->frames + STREAM_FRAMES_INLINE - 1;
	}
	*s->frames = (struct range_frame){ .domain = FRAME_NONE, .level = UINT32_MAX };
	stream_set_top(s, s->frames);
	list_stream(s);
	__atomic_store_n(&s->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
	s->slot = NULL;
	if (!acquire_slot(s, false, reason))
		return false;
	s->id = (uint32_t)__atomic_add_fetch(&header->streams, 1, __ATOMIC_RELAXED);
	recording_fill_header(header);
	begin_slot_payload(s, 0);
	return true;
}

/* Makes the stream of a thread at its first event, or at that of a forked child, whose stream is
 * all zeros. */
static struct stream *attach_stream(struct trace_header *header, enum trace_loss *reason)
{
	struct stream *s = stream_tls.mine;

	if (s && s->slot)
		return s; /* a signal handler has attached it already */
	if (!dictionary_open(reason))
		return NULL;
	*reason = TRACE_LOST_NO_MEMORY;
	if (!s && !(s = acquire_stream()))
		return NULL;
	if (!start_stream(s, header, reason)) {
		if (!stream_tls.mine)
			release_stream(s);
		return NULL;
	}
	stream_tls.mine = s;
	if (end_key_made)
		pthread_setspecific(end_key, s);
	return s;
}

/* Tries to attach a stream; after a failure only at every RETRY_EVERY-th event. Returns NULL if
 * there is none; the event is then counted as lost. */
static struct stream *try_attach_stream(void)
{
	uint32_t refusals = __atomic_load_n(&stream_registry->refusals, __ATOMIC_RELAXED);
	enum trace_loss reason = (enum trace_loss)__atomic_load_n(
		&stream_registry->reason, __ATOMIC_RELAXED);
	struct trace_header *header;
	struct stream *s = NULL;
	struct signal_guard guard;

	if (refusals % RETRY_EVERY == 0) {
		signal_guard_begin(&guard);
		header = trace_open();
		if (header)
			s = attach_stream(header, &reason);
		else
			__atomic_store_n(&stream_registry->off, 1, __ATOMIC_RELAXED);
		signal_guard_end(&guard);
	}
	if (s && refusals)
		__atomic_store_n(&stream_registry->refusals, 0, __ATOMIC_RELAXED);
	if (s || is_off())
		return s;
	__atomic_store_n(&stream_registry->reason, reason, __ATOMIC_RELAXED);
	__atomic_add_fetch(&stream_registry->refusals, 1, __ATOMIC_RELAXED);
	trace_lose(reason, 1);
	return NULL;
}

/* Defined in a program built with ThreadSanitizer. Its runtime calls signal handlers itself, later,
 * from within some libc function, so that the kernel's frame is not on the stack between. */
extern void __tsan_init(void) __attribute__((weak));

/* True if the work that the owner word shows was abandoned: a handler of the program left it by
 * siglongjmp. Then the stack is in use again at or above the address where that work began, because
 * an interruption is always further down.
 *
 * This cannot be concluded in three cases:
 * - on an alternate signal stack, which is elsewhere
 * - under the signal guard, where no handler runs: the caller is a libc function that another
 *   library interposes, called by pperf itself
 * - with ThreadSanitizer
 */
static __attribute__((noinline)) bool work_was_abandoned(void)
{
	const char *began = stream_tls.owner_word, *here = __builtin_frame_address(0);
	stack_t handlers;

	if (!began || stream_is_idle(began) || here + INTERRUPTION_MIN < began || __tsan_init ||
		signal_guard_is_active())
		return false;
	return !sigaltstack(NULL, &handlers) && !(handlers.ss_flags & SS_ONSTACK);
}

/* Drops abandoned work. The range stack may differ from what the payload says. So the stream counts
 * a loss, and the next event begins a new payload, which has OPEN records. */
static void drop_abandoned_work(void)
{
	struct stream *s = stream_tls.mine;

	stream_tls.busy = 0;
	if (!s || !s->slot)
		return;
	s->pending = s->refusals = 0;
	stream_set_top(s, s->top);
	s->room = s->slot->used;
	stream_update_limits(s);
	stream_lose(s, TRACE_LOST_REENTERED);
}

static bool is_working(void)
{
	if (!stream_is_working())
		return false;
	if (!work_was_abandoned())
		return true;
	drop_abandoned_work();
	return false;
}

struct stream *stream_begin_slow(void)
{
	struct stream *s;

	if (is_off())
		return NULL;
	if (is_working()) {
		trace_lose(TRACE_LOST_REENTERED, 1);
		return NULL;
	}
	stream_begin_unacquired();
	s = try_attach_stream();
	if (!s)
		stream_tls.busy = 0;
	return s;
}

/* ---- what other threads read of a stream (collector/stream/peer.h) ---- */

struct stream *stream_peer_find(uint32_t tid)
{
	struct stream *s = NULL;
	struct signal_guard guard;

	if (!stream_registry)
		return NULL;
	signal_guard_begin(&guard);
	pthread_mutex_lock(&stream_registry->lock);
	for (s = stream_registry->streams; s; s = s->next_listed)
		if (__atomic_load_n(&s->tid, __ATOMIC_RELAXED) == tid)
			break;
	pthread_mutex_unlock(&stream_registry->lock);
	signal_guard_end(&guard);
	return s;
}

bool stream_peer_node(const struct stream *peer, uint32_t tid, uint32_t *node)
{
	*node = __atomic_load_n(&peer->node, __ATOMIC_ACQUIRE);
	return __atomic_load_n(&peer->tid, __ATOMIC_RELAXED) == tid &&
	       !__atomic_load_n(&peer->unresolved, __ATOMIC_RELAXED);
}

uint64_t stream_peer_count(void)
{
	const struct trace_header *header = trace_header();

	return header ? __atomic_load_n(&header->streams, __ATOMIC_RELAXED) : 0;
}

bool stream_enter(void)
{
	return stream_begin() != NULL;
}

bool stream_enter_dictionary_only(void)
{
	if (is_working() || !stream_registry)
		return false;
	stream_begin_unacquired();
	return true;
}

void stream_leave(void)
{
	stream_finish();
}

uint32_t stream_tid(void)
{
	const struct stream *s = stream_tls.mine;

	return s && s->tid ? s->tid : (uint32_t)syscall(SYS_gettid);
}

/* Seals the slot for the last time and releases it. If that fails and the slot is mapped, it stays
 * as it is: all its records are in the file. */
static void retire_slot(struct stream *s)
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
	slot_clear(s->slot);
	slot_release(s->slot, s->slot_offset);
}

bool stream_position_save(struct stream_position *position, uint64_t bytes)
{
	struct stream *s = stream_tls.mine && stream_tls.mine->slot ? stream_begin() : NULL;
	const bool room = s && stream_reserve(s, bytes);

	if (room)
		*position = (struct stream_position){ s->slot->used, s->last, s->slot->sequence };
	if (s)
		stream_finish();
	return room;
}

uint64_t stream_position_restore(const struct stream_position *position)
{
	struct stream *s = stream_tls.mine && stream_tls.mine->slot ? stream_begin() : NULL;
	uint64_t events = 0;

	if (s && s->slot->sequence == position->sequence && s->slot->used >= position->used) {
		events = slot_events(s->slot);
		__atomic_exchange_n(&s->slot->used, position->used, __ATOMIC_ACQ_REL);
		events -= slot_events(s->slot);
		s->last = position->last;
	}
	if (s)
		stream_finish();
	return events;
}

void stream_end(void)
{
	struct stream *s = stream_tls.mine;
	struct signal_guard guard;

	if (!s || !s->slot || is_working())
		return;
	stream_begin_unacquired();
	signal_guard_begin(&guard);
	stream_flush_skips(s);
	retire_slot(s);
	s->slot = NULL;
	__atomic_store_n(&s->tid, 0, __ATOMIC_RELAXED);
	stream_tls.mine = NULL;
	release_stream(s);
	signal_guard_end(&guard);
	stream_tls.busy = 0;
}

/* Flushes all streams at the end of the process. Other threads may still be running, but can only
 * lose what is not mapped. */
static void flush_all_streams(void)
{
	struct signal_guard guard;

	signal_guard_begin(&guard);
	pthread_mutex_lock(&stream_registry->lock);
	for (struct stream *s = stream_registry->streams; s; s = s->next_listed) {
		totals_write_back(&s->totals);
		stream_flush_skips(s);
	}
	pthread_mutex_unlock(&stream_registry->lock);
	signal_guard_end(&guard);
}

void stream_end_process(void)
{
	stream_end();
	if (stream_registry && (trace_tail_at_risk() || recording_scheduled))
		flush_all_streams();
	if (trace_header())
		dictionary_close();
}
