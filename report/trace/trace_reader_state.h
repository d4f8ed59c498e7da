/* SPDX-License-Identifier: MIT
 * Declares the reader's internal state. Only for the files of the reader.
 */
#ifndef PPERF_REPORT_TRACE_TRACE_READER_STATE_H
#define PPERF_REPORT_TRACE_TRACE_READER_STATE_H

#include "report/trace/decode_ahead.h"
#include "report/trace/event_decoder.h"
#include "report/trace/ring_window.h"
#include "report/trace/sample_order.h"
#include "report/trace/short_records.h"
#include "report/trace/trace_blocks.h"
#include "report/trace/trace_clock.h"
#include "report/trace/dictionary.h"
#include "report/trace/counted_totals.h"

#define STAMP_END (UINT64_C(1) << 63) /* no clock reaches it */

/* The reading state of one stream. */
struct stream_cursor {
	struct stream_run run;
	struct block_payload payload;
	struct ordered_payload ordered; /* the copy that `payload` may refer to */
	uint64_t loaded_at;             /* number of events before `payload` was read */
	uint64_t last_ns;               /* when the last payload ended */
	uint64_t lost;                  /* lost events, from the payloads' heads */
	size_t room;                    /* capacity of run.ranges */
	uint32_t next;                  /* index of the block entry that holds the next payload */
	uint32_t sequence;              /* expected sequence of the next payload */
	uint32_t missing;               /* payloads missing before the current one */
	uint32_t open_index;            /* OPEN records read in this payload */
	uint32_t tid;                   /* from the head of the last payload */
	uint64_t payload_at;            /* offset in the file, for warnings */
	bool opening;     /* still in the CLOCK and OPEN records that begin a payload */
	bool gap;         /* EVENT_GAP is due */
	bool broken;      /* events are missing between the last payload and this one */
	bool truncated;   /* part of the stream is missing; already counted */
	bool alive;       /* its last payload is a slot: the thread had not ended */
	bool stopped;     /* the next payload was being written while the file was opened */
	bool finishing;   /* no more payloads */
	bool enters_ring; /* in its first payload: those before it were overwritten */
	bool restates;    /* between the WINDOW records RESTATES and RESTATED */
	uint32_t resumed; /* open ranges that were reported at the begin of a ring's window */
};

/* Merge key of a waiting stream: the stamp of its next record above the address of its struct
 * trace_stream. The structs are ordered by id, so one comparison orders by stamp and stream. */
#define MERGE_KEY(stamp, stream) ((wide_uint)(stamp) << 64 | (uintptr_t)(stream))
#define MERGE_KEY_NONE (~(wide_uint)0)
#define MERGE_KEY_STAMP(waiting) ((uint64_t)((waiting) >> 64))
#define MERGE_KEY_STREAM(waiting) ((struct trace_stream *)(uintptr_t)(uint64_t)(waiting))

/* The first part is the same from reader_open to reader_close. The second part is changed by the
 * thread that decodes, the third by the thread of the user. */
struct reader_state {
	char *path;
	struct read_warnings warnings_at_open;
	struct trace_blocks blocks;
	struct clock_map clock;
	struct trace_dictionary dictionary;
	struct counted_totals totals;
	struct trace_stream *streams; /* `tid` and `user` are changed by the thread of the user */
	uint32_t stream_count;

	struct event_decoder decoder;
	struct read_warnings warnings;
	/* Min-heap of merge keys, followed by MERGE_KEY_NONE. The current stream is not in it. */
	wide_uint *heap;
	uint32_t heap_count;
	uint32_t piece;         /* index of the current clock piece */
	uint64_t piece_end;     /* last stamp of the current clock piece */
	struct stream_run idle; /* decoder->run while there is no current stream; has no records */
	uint64_t last_stamp;    /* latest stamp read; never decreases */
	uint64_t streams_lost;  /* lost events in the block heads of the streams read so far */
	union expanded_call call; /* the call that the last AGAIN describes */
	/* The call of the current payload that `call` repeats without further fields. NULL: not
	 * known. */
	const struct trace_call *repeated_from;
	struct tensor_totals tensor_totals;
	struct ring_window ring;
	struct correlation_join *join;     /* NULL: this pass joins nothing */
	struct trace_stream *ended_stream; /* its EVENT_STREAM_END was returned */
	bool leaves_out_samples;           /* of reader_leave_out_samples */
	struct event_watch watch;          /* see: NULL: this pass has none */
	bool failed;
	char error[READER_ERROR_BYTES];

	struct decode_ahead ahead;
	struct trace_integrity integrity; /* of reader_integrity */
	/* Counted by calls of this pass; unknown_names also by calls of a watch, in the thread that
	 * decodes. */
	uint64_t unknown_names, gpu_clock_violations;
	uint32_t near_piece; /* of the stamp that was converted last */
};

/* The merge_* functions choose the stream that returns the next record. */

/* Adds `stream` to the heap. `stamp`: of its next record. */
void merge_push(struct reader_state *state, struct trace_stream *stream, uint64_t stamp);
/* Makes the first waiting stream the current one. Returns false if no stream waits. */
bool merge_take_next(struct event_decoder *decoder);
/* Returns true if the current stream may return a record with `stamp`. Otherwise makes the
 * stream that comes first the current one. */
bool merge_may_continue(struct event_decoder *decoder, uint64_t stamp);
/* Moves clock piece and run limit to `stamp`, at which the current stream returns a record. */
void merge_advance_clock(struct event_decoder *decoder, uint64_t stamp);

/* A fast version of merge_may_continue for a stream whose next record is a short form: switches
 * to another stream if that one comes first. */
void merge_switch_if_due(struct event_decoder *decoder);

/* Advances the current stream by one step. Returns 1 with an event, 0 without one, -1 on failure
 * (state->error). */
int stream_step(struct event_decoder *decoder, struct trace_event *event);
void stream_free(struct trace_stream *stream);

/* Returns the next record if it is of a frequent kind, due, and needs no special handling.
 * Returns false without a change otherwise. run->word must be before run->end. */
bool stream_step_fast(struct event_decoder *decoder, struct trace_event *event);

#endif
