/* SPDX-License-Identifier: MIT
 * Holds the events between the decoder and the user of a reader, in batches. With a large trace, a
 * second thread fills them ahead of the user (-j). Otherwise the user's thread fills one batch
 * whenever it has read the one before. The events are the same in both cases, so results do not
 * depend on the number of threads. Only for the files of the reader.
 *
 * A batch owns all that its events refer to: short records in full, and the payloads that were
 * replaced while it was filled. It is filled again once the event after its last one is needed.
 */
#ifndef PPERF_REPORT_TRACE_DECODE_AHEAD_H
#define PPERF_REPORT_TRACE_DECODE_AHEAD_H

#include "report/base/threads.h"
#include "report/trace/correlation_join.h"
#include "report/trace/event_decoder.h"
#include "report/trace/short_records.h"

#define BATCH_EVENTS 1024u               /* a batch that another thread takes */
#define SMALL_BATCH_EVENTS 128u          /* stays in the first cache until it is read */
#define BATCH_RETIRED_BYTES (512u << 10) /* a batch that keeps more ends */
#define BATCH_READ_BYTES (1u << 20)      /* so does one for which more was read */
#define AHEAD_BATCHES 16u                /* the threads wake each other once for half of them */
/* A smaller trace is decoded within a millisecond: a thread is not worth its start. */
#define AHEAD_TRACE_BYTES (1u << 20)
#define SPARE_BUFFERS 16u /* for payloads */

/* In cache lines of its own, as an event is: two threads exchange whole lines. */
union expanded_record {
	_Alignas(64) union expanded_call call;
	struct trace_tensor tensor;
};
static_assert(sizeof(struct trace_event) == 64, "an event is a cache line");

/* From event `at` of the batch on, `stream` has the thread id `tid`. */
struct stream_tid {
	uint32_t at, tid;
	struct trace_stream *stream;
};

struct read_buffer {
	unsigned char *bytes;
	size_t room;
};

/* How far the decoder had come at the end of a batch. */
struct pass_progress {
	struct trace_integrity integrity;
	uint32_t warning_count;
	bool window_unreadable;
	uint64_t streams_lost, last_stamp, window_begin_ns, early_gpu;
};

struct event_batch {
	struct trace_event events[BATCH_EVENTS];
	union expanded_record expanded[BATCH_EVENTS]; /* of some of the events, in their order */
	uint32_t count, expanded_count;
	int status;           /* what comes after the events: 1 a batch, 0 the end, -1 a failure */
	uint64_t first_event; /* number of events in the batches before */
	struct stream_tid *tids; /* sorted by `at` */
	size_t tid_count, tid_room;
	struct read_buffer *retired; /* the payloads that were replaced */
	size_t retired_count, retired_room, retired_bytes;
	uint64_t read_bytes, read_at; /* read from the file, and where last */
	struct join_steps joined;     /* of its events; in the last batch, then those of the end */
	size_t joined_end;            /* index of the steps of the end */
	unsigned char *deferred; /* items of the work that was put off (struct deferred_work) */
	size_t deferred_count, deferred_room;
	struct pass_progress reached;
};

struct decode_ahead {
	struct event_batch *batches[AHEAD_BATCHES];
	size_t most; /* batches of this pass; 0: it has not begun */
	struct read_buffer spares[SPARE_BUFFERS];
	size_t spare_count;
	struct helper *helper; /* decodes this pass; NULL: the user's thread does */

	/* Numbers of batches of this pass, which are used in turns. */
	size_t filled, handed_back;
	bool is_cancelled;
	pthread_mutex_t lock; /* of the three above */
	pthread_cond_t has_batch, has_room;

	struct deferred_work work;
	size_t worked;             /* number of batches of this pass whose items were handled */
	pthread_mutex_t work_lock; /* of `worked`, and held while items are handled */

	/* Used by the user's thread only. */
	bool has_deferred;           /* some items may not have been handled */
	struct event_batch *current; /* NULL: none was taken in this pass */
	size_t tid_next;             /* index of the next change in current->tids */
	uint64_t last_ns;            /* time of the last event of the batch before */
	struct pass_progress reached;
};

void decode_ahead_open(struct reader_state *state);
void decode_ahead_close(struct reader_state *state);
/* Ends the pass. The decoder may be rewound then. */
void decode_ahead_stop(struct reader_state *state);
/* Returns the next event as reader_next does. */
int decode_ahead_next(struct trace_reader *reader, struct trace_event *event);

/* The following are called by the decoder. */

/* Returns room for the record of the next event, if it is not in the payload. */
static inline union expanded_record *batch_expanded(struct event_batch *batch)
{
	return &batch->expanded[batch->expanded_count];
}

/* Returns the number of events of this pass. */
static inline uint64_t batch_event_number(const struct event_batch *batch)
{
	return batch->first_event + batch->count;
}

/* Takes the ownership of `*bytes`, which stays as long as the events of the batch. */
void batch_retire(struct event_batch *batch, unsigned char **bytes, size_t *room);
/* Returns a buffer that was retired and that no event refers to any more, or NULL. */
struct read_buffer ahead_spare_buffer(struct decode_ahead *ahead);
/* Sets the thread id of `stream` from the next event on. */
void batch_set_tid(struct event_batch *batch, struct trace_stream *stream, uint32_t tid);

#endif
