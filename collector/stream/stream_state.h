/* SPDX-License-Identifier: MIT
 * stream_state.h: a thread's stream from the inside, for the hot paths of ranges.c and preload/cuda/traced_call.c. Nobody else includes it.
 */
#ifndef PPERF_COLLECTOR_STREAM_STREAM_STATE_H
#define PPERF_COLLECTOR_STREAM_STREAM_STATE_H

#include "collector/process/clock.h"
#include "collector/stream/stream.h"
#include "collector/stream/counted_totals.h"
#include "collector/stream/recording_switch.h"

#define STREAM_BY_PARENT 16384u /* entries of the two caches; powers of two */
#define STREAM_BY_TEXT 16384u
#define STREAM_CALLS 1024u        /* call records that later ones may refer to; a power of two */
#define STREAM_FRAMES_INLINE 256u /* open ranges before more room is fetched */
#define STREAM_FRAMES_MAX 65536u

/* Short forms hold no longer gaps than this; before a longer one a CLOCK record is written, which also keeps the clocks of a
 * stream that is never sealed in step (0.1 s at 2.7 GHz). */
#define STREAM_GAP_MAX ((uint64_t)1 << 28)
/* The same where ranges are only counted: what a process that is killed has counted needs the rate of its clock. */
#define STREAM_COUNTED_GAP_MAX ((uint64_t)1 << 32)

struct range_frame { /* an open range */
	uint64_t begin;
	uint32_t node, domain;
	uint32_t level;     /* in its domain, from 0 */
	uint32_t reserved;  /* quiet_ranges.c */
	const void *object; /* whose range it is: of those that have one */
};
/* Domains that no domain of NVTX closes: */
#define FRAME_NONE \
	UINT32_MAX /* of the frame below all others, which is no range: node 0, level UINT32_MAX */
#define FRAME_OBJECT (UINT32_MAX - 1) /* of ranges that range_open opened */
#define FRAME_COUNTED \
	(UINT32_MAX - 2) /* and that range_open_counted opened: no record tells of them */
#define FRAME_UNRECORDED_OBJECT \
	(UINT32_MAX - 3) /* and either of them while nothing is recorded (window.h): nor of them */
#define FRAME_UNRECORDED \
	0x80000000u /* with the domain of NVTX: the same of ranges without an owner */

/* Whether the trace's records have it: they tell of a row of open ranges without the others. */
static inline bool frame_is_recorded(const struct range_frame *frame)
{
	return frame->domain < FRAME_UNRECORDED || frame->domain == FRAME_OBJECT;
}

struct cached_child {      /* of a push: this text in this domain under this parent is that node */
	const char *chars; /* the text, kept by the dictionary */
	uint32_t
		key; /* parent and domain; 0: free. CACHED_MANY: the children of place `node` are so many that they are all in `far` */
	uint32_t bytes : 12, node : 20; /* of the text, or CACHED_LONG; the child. In memory only */
};
#define CACHED_LONG 4095u /* longer than what is compared without a call */
#define CACHED_INLINE_BYTES 48u
#define CACHED_MANY UINT32_MAX

/* The same of range_open where a link or detail is asked for. */
struct cached_linked_child {
	const char *chars;
	uint32_t parent, kind, link, detail;
	uint32_t bytes, node; /* bytes: CACHED_LONG alike */
};
#define STREAM_LINKED 8192u /* a power of two */

/* Parent and sort in one word, neither 0 nor CACHED_MANY. A sort is a domain, of a range; only those that fit are cached, nearly all. Sorts from
 * CACHED_DOMAINS on are the other kinds of nodes, which have no domain. */
#define CACHED_DOMAINS 4080u
#define CACHED_KIND(kind) (CACHED_DOMAINS + (uint32_t)(kind))
#define CACHED_KEY(parent, domain_or_kind) (((domain_or_kind) << 20 | (parent)) + 1)

/* Events of a sort that were not recorded, and not told of yet: see window_skipped. */
struct stream_skips {
	uint32_t events, measured; /* atomic: told at the end of the process by whoever ends it */
	uint64_t ticks;
};
#define STREAM_SKIPS_FLUSH_AT 64u /* at a time; one of so many is measured */

struct stream {                   /* lies in fork memory: in a forked child all of it is zero */
	struct trace_block *slot; /* slot->used is the cursor. NULL: the stream has yet to begin */
	uint64_t room;            /* payload bytes of the slot */
	uint64_t
		fast_room; /* the same for the quick ways of ranges, or 0 while they may not be gone: stream_settle. Atomic: see window.h */
	uint64_t last;     /* the last stamp: what deltas count from */
	struct range_frame *top;       /* the innermost open range: stream_set_top */
	uint32_t node;                 /* top->node, without a detour */
	struct range_frame *top_limit; /* the last one there is room for */
	struct range_frame *frames;    /* the first is FRAME_NONE */
	uint64_t pending;              /* bytes written beyond slot->used and not yet published */
	uint64_t slot_offset;
	uint64_t lost, lost_reported; /* events not recorded; of these, said in LOST records */
	uint32_t too_deep;            /* pushes refused by STREAM_FRAMES_MOST and not yet popped */
	uint32_t id, tid;
	uint32_t refusals;          /* since the last successful seal: backs off */
	uint32_t reason;            /* enum trace_loss of the last refusal */
	struct stream *next;        /* in the list of free ones */
	struct stream *next_listed; /* in the list of all, if `listed`; never changes */
	bool listed;
	bool paused;            /* as stream_settle found the window */
	uint32_t unresolved;    /* open ranges whose nodes are not known: see stream_find_path */
	char *unrecorded_texts; /* of those, see quiet_ranges.c */
	uint32_t unrecorded_texts_used;
	struct stream_skips skips[TRACE_SKIP_KINDS];
	uint16_t calls
		[STREAM_CALLS]; /* call records of this payload, each in a place by what it says: words of 8 bytes to it. 0: none */
	_Alignas(64) struct range_frame first_frames
		[STREAM_FRAMES_INLINE]; /* no frame or entry of a cache lies in two lines */
	/* Two caches of children, both entered by where the text lies and checked by what it says. near: two places for each parent, side
	 * by side, so that memory is touched as contexts are; far: by parent and text together, for parents with many children. */
	struct cached_child by_parent[STREAM_BY_PARENT], by_text[STREAM_BY_TEXT];
	struct cached_linked_child linked[STREAM_LINKED];
	struct totals totals; /* of ranges that are only counted */
};

/* All that a thread has of us in its thread-local storage (with call_here). */
struct stream_tls {
	char *owner_word; /* the stream, and 1, while pperf is not at work on this thread: who begins takes it, and gives it back at the end. Else, an even
			       * number, the stack where that work began, or NULL */
	struct stream *mine;
	uint8_t busy; /* at work without having taken it: it has no slot yet, or is not needed */
	uint32_t
		refused_ranges; /* open ranges from when the thread was refused a stream: their ends are lost, too */
};
extern __thread struct stream_tls stream_tls __attribute__((tls_model("initial-exec")));

/* The first event of a thread, or one that comes from within pperf. NULL: refused. */
struct stream *stream_begin_slow(void);

/* From here on pperf is at work. Where the stack is: what an interruption puts there lies below that, by much. On x86-64 it takes no instruction more than a
 * zero would. */
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

/* Is pperf at work on this thread? In a forked child the stream is all zeros, and whatever was at work is not any more. */
static inline bool stream_is_working(void)
{
	return stream_tls.busy ||
	       (!stream_is_idle(stream_tls.owner_word) && stream_tls.mine && stream_tls.mine->slot);
}

/* The stream, if pperf is not at work already; now it is. NULL: nothing has changed. It is taken before anything in it is looked at: a signal
 * handler, and the child that it may fork, see that before anything half done. */
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

/* By those who took it and had it in hand. In a child that was forked meanwhile it is nobody's any more: stream_begin. */
static inline void stream_release(struct stream *acquired)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	stream_tls.owner_word = stream_owner_word(acquired);
}

/* stream_enter for those who want the stream. NULL: refused. */
static inline struct stream *stream_begin(void)
{
	struct stream *s = stream_acquire();

	return __builtin_expect(s && s == stream_tls.mine && s->slot, 1) ? s : stream_begin_slow();
}

/* Pieces of work that have not taken the stream, around what they do. */
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
	s->node = top->node;
}

/* After a change of what the quick ways rely on: the room, the clock, no range beyond those we keep, the window. */
void stream_update_limits(struct stream *s);

/* One word, and either value of it will do: an atomic load would be an instruction more on each of the quick ways. */
static inline uint64_t stream_fast_room(const struct stream *s)
{
#if defined(__SANITIZE_THREAD__)
	return __atomic_load_n(&s->fast_room, __ATOMIC_RELAXED);
#else
	return s->fast_room;
#endif
}

/* Makes `node` what it should be, before anything names it, if `vague` is not 0. */
void stream_resolve_nodes(struct stream *s);

/* The window was shut or opened, just now. Those who are on their quick ways on other threads go them to the end. */
void stream_recording_changed(bool paused);

/* Around what is done for an event that is not recorded. Between stream_begin and stream_finish. */
static inline uint64_t stream_skip_begin(const struct stream *s, enum trace_skip_kind kind)
{
	return s->skips[kind].events == STREAM_SKIPS_FLUSH_AT / 2 ? clock_now() : 0;
}
void stream_skip_end(struct stream *s, enum trace_skip_kind kind, uint64_t begin);

/* What has not been told yet, to the header. By the thread itself, or at the end of the process. */
void stream_flush_skips(struct stream *s);

/* While the window is shut: whether records of the kind are not written; one is counted. */
bool stream_is_skipped(struct stream *s, enum trace_kind kind);

/* Makes room for `bytes` where there is none: seals. false: no room, one event is counted as lost. */
bool stream_reserve_slow(struct stream *s, size_t bytes);

/* Begins a record behind those that are pending: zeroed, with its head filled in and aligned to 8 bytes. There is room for `size`
 * bytes and 4 of padding. */
void *stream_put_head(struct stream *s, enum trace_kind kind, size_t size);

/* One event of this stream was not recorded. */
void stream_lose(struct stream *s, enum trace_loss reason);

/* The end of a range that was open before the thread had a stream. Not the stream's loss: its row of open ranges stays right. */
void stream_lose_refused_end(void);

/* A CLOCK record now: the stream's last stamp becomes the present. */
void stream_write_clock(struct stream *s);

/* One frame more. false: too deep. */
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

/* The short forms: one or two words, published at once. Release: whoever sees the length sees the bytes. */
static inline void stream_put_words(struct stream *s, const void *words, size_t bytes)
{
	uint64_t used = s->slot->used;

	__builtin_memcpy((uint8_t *)(s->slot + 1) + used, words, bytes);
	__atomic_store_n(&s->slot->used, used + bytes, __ATOMIC_RELEASE);
}

/* One word, where `used` (the slot's) is known already. */
static inline void stream_put_word_at(struct trace_block *slot, uint64_t used, uint32_t word)
{
	__builtin_memcpy((uint8_t *)(slot + 1) + used, &word, sizeof word);
	__atomic_store_n(&slot->used, used + sizeof word, __ATOMIC_RELEASE);
}

/* Publishes what is pending. */
static inline void stream_publish(struct stream *s)
{
	__atomic_store_n(&s->slot->used, s->slot->used + s->pending, __ATOMIC_RELEASE);
	s->pending = 0;
}

#endif
