/* SPDX-License-Identifier: MIT
 * stream_state.h: a thread's stream from the inside, for the hot path of ranges.c. Nobody else includes it.
 */
#ifndef PPERF_STREAM_STATE_H
#define PPERF_STREAM_STATE_H

#include "stream.h"

#define STREAM_CACHE 4096u       /* entries; a power of two */
#define STREAM_FRAMES_FIRST 256u /* open ranges before more room is fetched */
#define STREAM_FRAMES_MOST 65536u

/* Short forms hold no longer gaps than this; before a longer one a CLOCK record is written, which also keeps the clocks of a
 * stream that is never sealed in step (0.1 s at 2.7 GHz). */
#define STREAM_GAP_MOST ((uint64_t)1 << 28)

struct frame { /* an open range */
	uint64_t begin;
	uint32_t node, domain;
	uint32_t level; /* in its domain, from 0 */
	uint32_t reserved;
};

struct cached_child { /* of a push: this text under this parent is that node */
	const char *text;  /* as the program passed it */
	const char *chars; /* what it was, kept by the dictionary */
	uint32_t parent, domain;
	uint32_t node, reserved;
};

struct stream { /* lies in fork memory: in a forked child all of it is zero */
	uint8_t *cursor, *limit; /* the next free byte of the slot's payload, and its end */
	uint64_t last;           /* the last stamp: what deltas count from */
	uint32_t node;           /* of the innermost open range */
	uint32_t depth;          /* open frames */
	struct frame *frames;
	uint32_t frames_room;
	uint32_t beyond;         /* pushes refused by STREAM_FRAMES_MOST and not yet popped */
	struct trace_block *slot;
	uint64_t slot_offset;
	uint64_t lost, lost_told; /* events not recorded; of these, said in LOST records */
	uint32_t id, tid;
	uint32_t refusals;       /* since the last successful seal: backs off */
	uint32_t reason;         /* enum trace_loss of the last refusal */
	struct stream *next;     /* in the list of free ones */
	struct frame first_frames[STREAM_FRAMES_FIRST];
	struct cached_child cache[STREAM_CACHE];
};

extern __thread struct stream *stream_mine __attribute__((tls_model("initial-exec")));

/* stream_enter for those who want the stream. NULL: refused. */
struct stream *stream_begin(void);

/* Makes room for `bytes` where there is none: seals. false: no room, one event is counted as lost. */
bool stream_make_room(struct stream *s, size_t bytes);

/* One event of this stream was not recorded. */
void stream_lose(struct stream *s, enum trace_loss reason);

/* A CLOCK record now: the stream's last stamp becomes the present. */
void stream_clock(struct stream *s);

/* One frame more. false: too deep. */
bool stream_grow_frames(struct stream *s);

static inline bool stream_room(struct stream *s, size_t bytes)
{
	return __builtin_expect((size_t)(s->limit - s->cursor) >= bytes, 1) || stream_make_room(s, bytes);
}

/* Publishes all below the cursor. Release: whoever sees the length sees the bytes. */
static inline void stream_publish(struct stream *s)
{
	__atomic_store_n(&s->slot->used, (uint64_t)(s->cursor - (uint8_t *)(s->slot + 1)), __ATOMIC_RELEASE);
}

#endif
