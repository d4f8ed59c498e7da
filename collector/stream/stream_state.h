/* SPDX-License-Identifier: MIT
 * The inside of a thread's stream, for the hot paths of this folder. No file outside of the folder
 * may include it, except tests.
 */
#ifndef PPERF_COLLECTOR_STREAM_STREAM_STATE_H
#define PPERF_COLLECTOR_STREAM_STREAM_STATE_H

#include "collector/process/clock.h"
#include "collector/stream/stream.h"
#include "collector/stream/counted_totals.h"
#include "collector/stream/recording_switch.h"

#define STREAM_BY_PARENT 16384u /* entries of the two caches; powers of two */
#define STREAM_BY_TEXT 16384u
#define STREAM_CALLS 1024u /* call records that later ones may refer to; a power of two */
/* Range frames that a stream has from the start; stream_grow_frames doubles them. */
#define STREAM_FRAMES_INLINE 256u
#define STREAM_FRAMES_MAX 65536u

/* The longest gap between two stamps that a short form can hold, in ticks: 0.1 s at 2.7 GHz. A
 * CLOCK record is written before a longer gap. So a stream that is never sealed still relates its
 * ticks to the other clocks. */
#define STREAM_GAP_MAX ((uint64_t)1 << 28)
/* The longest gap, in ticks, between two CLOCK records of a stream whose ranges are only counted.
 * If the process is killed, the ticks that it counted need the rate of its clock. */
#define STREAM_COUNTED_GAP_MAX ((uint64_t)1 << 32)

/* An open range: an entry of the range stack. */
struct range_frame {
	uint64_t begin; /* time; while a node is unresolved, see unrecorded_ranges.c */
	uint32_t node, domain;
	/* In its domain, from 0. FRAME_UNRECORDED_OBJECT: the detail of the node. */
	uint32_t level;
	/* Only in ranges that began while recording was paused. */
	union {
		/* Of an NVTX range: stream.unrecorded_texts_used before its text was copied. */
		uint32_t texts_used;
		uint32_t kind; /* of an object's range: enum trace_node_kind */
	};
	const void *object; /* object that the range belongs to, if any */
};
/* Values of range_frame.domain. NVTX pops the first two kinds only.
 *
 *   below FRAME_UNRECORDED    an NVTX domain (a name id): a recorded range
 *   domain | FRAME_UNRECORDED a range of that NVTX domain, pushed while recording was paused
 *   FRAME_UNRECORDED_OBJECT   opened by range_open or range_open_counted while it was paused
 *   FRAME_COUNTED             opened by range_open_counted: counted, without a record
 *   FRAME_OBJECT              opened by range_open: a recorded range
 *   FRAME_NONE                the bottom frame, which is no range: node 0, level UINT32_MAX
 */
#define FRAME_NONE UINT32_MAX
#define FRAME_OBJECT (UINT32_MAX - 1)
#define FRAME_COUNTED (UINT32_MAX - 2)
#define FRAME_UNRECORDED_OBJECT (UINT32_MAX - 3)
#define FRAME_UNRECORDED 0x80000000u

/* True if this frame has a record in the trace. */
static inline bool frame_is_recorded(const struct range_frame *frame)
{
	return frame->domain < FRAME_UNRECORDED || frame->domain == FRAME_OBJECT;
}

/* A cached child: the node of a text in a domain below a parent. */
struct cached_child {
	const char *chars; /* the text in the dictionary, which is never freed */
	/* CACHED_KEY(parent, domain or kind). 0: free. CACHED_MANY: the children of the parent
	 * `node` are all in by_text, because two of them needed this slot. */
	uint32_t key;
	/* `bytes`: length of the text, or CACHED_LONG. `node`: the child's id. */
	uint32_t bytes : 12, node : 20;
};
/* Texts of CACHED_INLINE_BYTES and more have the length CACHED_LONG: equal_fast does not compare
 * them. */
#define CACHED_LONG 4095u
#define CACHED_INLINE_BYTES 48u
#define CACHED_MANY UINT32_MAX

/* A cached child that has a link or a detail (struct trace_node). */
struct cached_linked_child {
	const char *chars;
	uint32_t parent, kind, link, detail;
	uint32_t bytes, node; /* bytes: as in struct cached_child */
};
#define STREAM_LINKED 8192u /* a power of two */

/* Packs a parent and a domain or kind into one word, which is never 0 or CACHED_MANY. Values below
 * CACHED_DOMAINS are domains of ranges; other domains are not cached. Values from CACHED_DOMAINS on
 * are the other kinds of nodes, which have no domain. */
#define CACHED_DOMAINS 4080u
#define CACHED_KIND(kind) (CACHED_DOMAINS + (uint32_t)(kind))
#define CACHED_KEY(parent, domain_or_kind) (((domain_or_kind) << 20 | (parent)) + 1)

/* Skipped events of one kind that are not yet in the header's counters. Atomic, because the thread
 * that ends the process flushes the counters of all threads. */
struct stream_skips {
	uint32_t events, measured;
	uint64_t ticks;
};
/* Skipped events are added to the header in groups of this size. One event of each is measured. */
#define STREAM_SKIPS_FLUSH_AT 64u

/* Allocated by fork_wiped_alloc: in a forked child every byte of it is zero. */
struct stream {
	struct trace_block *slot; /* NULL: not attached yet. slot->used is the cursor. */
	uint64_t room;            /* payload bytes that the slot can hold */
	/* The capacity that the fast paths check: `room`, or 0 if they may not be used
	 * (stream_update_limits). Atomic: another thread sets it to 0 when it pauses recording or
	 * makes a request (frame_request.h). */
	uint64_t fast_room;
	uint64_t last;                 /* the last stamp, from which short forms count */
	struct range_frame *top;       /* innermost open range; changed by stream_set_top */
	uint32_t node;                 /* copy of top->node, for the fast paths */
	struct range_frame *top_limit; /* last frame that is allocated */
	struct range_frame *frames;    /* frames[0] is FRAME_NONE */
	uint64_t pending;              /* bytes after slot->used that are not published yet */
	uint64_t slot_offset;
	uint64_t lost, lost_reported; /* events not recorded; those already in LOST records */
	uint32_t too_deep;            /* pushes beyond STREAM_FRAMES_MAX that are still open */
	uint32_t id;
	uint32_t tid;               /* atomic; 0: no thread has this stream */
	uint32_t refusals;          /* failed seals since the last success; limits retries */
	uint32_t restarts;          /* ring_restarts() at the last seal that was needed */
	uint32_t reason;            /* enum trace_loss of the last failure */
	struct stream *next;        /* in the list of free streams */
	struct stream *next_listed; /* in the list of all streams; constant once `listed` */
	bool listed;
	bool paused;            /* recording_paused as stream_update_limits last read it */
	uint32_t unresolved;    /* number of open ranges without a node: stream_resolve_nodes */
	char *unrecorded_texts; /* copies of their texts: unrecorded_ranges.c */
	uint32_t unrecorded_texts_used;
	struct stream_skips skips[TRACE_SKIP_KINDS];
	/* The request of frame_request.h: its time (0: there is none) and its operator. Atomic. */
	uint64_t frames_due;
	uint32_t frames_due_node;
	/* Hash table of this payload's call records, by their content. An entry is the record's
	 * position in the payload, in words of 8 bytes. 0: free. */
	uint16_t calls[STREAM_CALLS];
	/* Aligned, so that no frame or cache entry crosses a cache line. */
	_Alignas(64) struct range_frame first_frames[STREAM_FRAMES_INLINE];
	/* Two caches of children. Both are indexed by the address of the text and compare its
	 * content. In by_parent each parent has two adjacent slots, so that memory is touched in
	 * the order of contexts. by_text is indexed by parent and text, for parents with many
	 * children. */
	struct cached_child by_parent[STREAM_BY_PARENT], by_text[STREAM_BY_TEXT];
	struct cached_linked_child linked[STREAM_LINKED];
	struct totals totals; /* of counted ranges */
};

/* The thread-local storage of a thread, besides call_tls of preload/cuda/traced_call.h.
 *
 * The owner word says whether pperf is working on this thread. It is a tagged pointer:
 *
 *   owner_word                  meaning                                   set by
 *   odd: stream address + 1     idle: an event may acquire the stream     stream_release
 *   even: a stack address       working; the work began at that address   stream_mark_working
 *   NULL                        no stream yet                             thread start
 *
 * An even value counts as work only if `busy` is set or `mine` has a slot (stream_is_working).
 * After a fork the child's stream is all zeros, so its slot is NULL: nothing is working there. */
struct stream_tls {
	char *owner_word;
	struct stream *mine;
	/* 1 while pperf works without having acquired the stream, which has no slot yet or is not
	 * needed. */
	uint8_t busy;
	/* Open ranges that began while the thread was refused a stream. Their ends are counted as
	 * lost. */
	uint32_t refused_ranges;
};
extern __thread struct stream_tls stream_tls __attribute__((tls_model("initial-exec")));

/* Begins an event where stream_acquire could not: the first one of a thread, or one from inside
 * pperf. Returns NULL if the event is refused. */
struct stream *stream_begin_slow(void);

/* Marks pperf as working on this thread: sets the owner word to the stack pointer. The frames of an
 * interruption are far below that address, so work_was_abandoned() can compare with it. On x86-64
 * this takes no more instructions than storing a zero. */
static inline __attribute__((always_inline)) void stream_mark_working(void)
{
#if defined(__x86_64__)
	__asm__ volatile("movq %%rsp, %0" : "=m"(stream_tls.owner_word));
#else
	stream_tls.owner_word = __builtin_frame_address(0);
#endif
}

static inline bool stream_is_idle(const char *owner_word)
{
	return (uintptr_t)owner_word & 1;
}

/* True if pperf is working on this thread. In a forked child the stream is all zeros, and no work
 * continues there. */
static inline bool stream_is_working(void)
{
	return stream_tls.busy ||
	       (!stream_is_idle(stream_tls.owner_word) && stream_tls.mine && stream_tls.mine->slot);
}

/* Acquires the thread's stream. Returns NULL and changes nothing if pperf is already working on
 * this thread. The owner word is stored before anything in the stream is read. So a signal handler,
 * and a child that it forks, find the word even before they can find a half-done change. */
static inline struct stream *stream_acquire(void)
{
	char *owner_word = stream_tls.owner_word;

	if (__builtin_expect(!stream_is_idle(owner_word), 0))
		return NULL;
	stream_mark_working();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return (struct stream *)(void *)(owner_word - 1);
}

static inline char *stream_owner_word(struct stream *s)
{
	return (char *)s + 1;
}

/* Releases a stream that stream_acquire returned. In a child that was forked in between, the owner
 * word then points to an empty stream: stream_begin notices that. */
static inline void stream_release(struct stream *acquired)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	stream_tls.owner_word = stream_owner_word(acquired);
}

/* Does what stream_enter does and returns the stream. NULL: refused. */
static inline struct stream *stream_begin(void)
{
	struct stream *s = stream_acquire();

	return __builtin_expect(s && s == stream_tls.mine && s->slot, 1) ? s : stream_begin_slow();
}

/* Marks pperf as working without acquiring the stream. Ended by stream_finish. */
static inline void stream_begin_unacquired(void)
{
	stream_mark_working();
	stream_tls.busy = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void stream_finish(void)
{
	if (__builtin_expect(stream_tls.mine != NULL, 1))
		stream_release(stream_tls.mine);
	stream_tls.busy = 0;
}

static inline void stream_set_top(struct stream *s, struct range_frame *top)
{
	s->top = top;
	/* Atomic: the sampler reads it (collector/stream/peer.h). */
	__atomic_store_n(&s->node, top->node, __ATOMIC_RELAXED);
}

/* Recomputes fast_room after a change of the room, too_deep, the recording switch or the request of
 * frame_request.h. */
void stream_update_limits(struct stream *s);

/* Returns fast_room. A plain load: either value suits an event under way, and an atomic load costs
 * one more instruction on each fast path. */
static inline uint64_t stream_fast_room(const struct stream *s)
{
#if defined(__SANITIZE_THREAD__)
	return __atomic_load_n(&s->fast_room, __ATOMIC_RELAXED);
#else
	return s->fast_room;
#endif
}

/* Resolves the nodes of the open ranges that were pushed while recording was paused, and sets
 * s->node. Called before a record names a node, if `unresolved` is not 0. */
void stream_resolve_nodes(struct stream *s);

/* Called after recording was paused or resumed. Events that are on their fast path on other threads
 * still complete. */
void stream_recording_changed(bool paused);

/* Begins a skipped event. Returns the begin time if this event is measured, else 0. Between
 * stream_begin and stream_finish. */
static inline uint64_t stream_skip_begin(const struct stream *s, enum trace_skip_kind kind)
{
	return s->skips[kind].events == STREAM_SKIPS_FLUSH_AT / 2 ? clock_now() : 0;
}
void stream_skip_end(struct stream *s, enum trace_skip_kind kind, uint64_t begin);

/* Adds the skipped events of `s` to the header's counters. Called by the stream's own thread, or at
 * the end of the process for all streams. */
void stream_flush_skips(struct stream *s);

/* True if records of `kind` are skipped while recording is paused; the event is then counted. */
bool stream_is_skipped(struct stream *s, enum trace_kind kind);

/* Makes room for `bytes` by sealing the slot. Returns false if there is none; the event is then
 * counted as lost. */
bool stream_reserve_slow(struct stream *s, size_t bytes);

/* Makes room for a record of held_memory.h by sealing the slot. Returns false if there is none; the
 * record is then counted as lost. Under the signal guard. */
bool stream_seal_to_restate(struct stream *s, size_t bytes);

/* Appends a zeroed record of `size` bytes after the pending ones, aligned to 8 bytes, with its head
 * filled. The caller has reserved `size` bytes and 4 of padding. */
void *stream_put_head(struct stream *s, enum trace_kind kind, size_t size);

/* Counts one event of this stream as lost. */
void stream_lose(struct stream *s, enum trace_loss reason);

/* Counts the end of a range that began before the thread had a stream. Not a loss of the stream,
 * whose range stack stays correct. */
void stream_lose_refused_end(void);

/* Writes a CLOCK record now, and with it the stream's last stamp. */
void stream_write_clock(struct stream *s);

/* Doubles the capacity of the range stack. Returns false if it is at STREAM_FRAMES_MAX or no
 * memory. */
bool stream_grow_frames(struct stream *s);

static inline bool stream_reserve(struct stream *s, size_t bytes)
{
	return __builtin_expect(s->slot->used + bytes <= s->room, 1) ||
	       stream_reserve_slow(s, bytes);
}

static inline uint8_t *stream_cursor(const struct stream *s)
{
	return (uint8_t *)(s->slot + 1) + s->slot->used + s->pending;
}

/* Writes one or two words of a short form and publishes them. Release: a reader that sees the
 * length sees the bytes. */
static inline void stream_put_words(struct stream *s, const void *words, size_t bytes)
{
	uint64_t used = s->slot->used;

	__builtin_memcpy((uint8_t *)(s->slot + 1) + used, words, bytes);
	__atomic_store_n(&s->slot->used, used + bytes, __ATOMIC_RELEASE);
}

/* Writes and publishes one word. `used`: the slot's, already loaded by the caller. */
static inline void stream_put_word_at(struct trace_block *slot, uint64_t used, uint32_t word)
{
	__builtin_memcpy((uint8_t *)(slot + 1) + used, &word, sizeof word);
	__atomic_store_n(&slot->used, used + sizeof word, __ATOMIC_RELEASE);
}

/* Publishes the pending bytes. */
static inline void stream_publish(struct stream *s)
{
	__atomic_store_n(&s->slot->used, s->slot->used + s->pending, __ATOMIC_RELEASE);
	s->pending = 0;
}

#endif
