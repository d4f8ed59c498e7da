/* SPDX-License-Identifier: MIT
 * trace_state.h: what the reader keeps to itself. For trace_reader.c, trace_turn.c, trace_stream.c and
 * trace_quick.c only.
 */
#ifndef PPERF_REPORT_TRACE_TRACE_READER_STATE_H
#define PPERF_REPORT_TRACE_TRACE_READER_STATE_H

#include "report/trace/short_records.h"
#include "report/trace/trace_blocks.h"
#include "report/trace/trace_clock.h"
#include "report/trace/dictionary.h"
#include "report/trace/counted_totals.h"

#define STAMP_END (UINT64_C(1) << 63) /* no clock reaches it */

/* What a stream needs to go on. */
struct stream_cursor {
	struct stream_run run;
	struct block_payload payload;
	uint64_t last_ns;    /* when the last payload ended */
	uint64_t lost;       /* as its heads say */
	size_t room;         /* of run.ranges */
	uint32_t next;       /* block entry from which the next payload is taken */
	uint32_t sequence;   /* that the next payload should have */
	uint32_t missing;    /* payloads, up to the one at hand */
	uint32_t open_index; /* OPEN records seen in this payload */
	uint64_t payload_at; /* offset in the file, for warnings */
	bool opening;        /* still among the CLOCK and OPENs of a payload */
	bool gap;            /* EVENT_GAP is due */
	bool broken;         /* this payload does not go on where the last one ended */
	bool truncated;      /* something of it is missing; counted */
	bool alive;          /* its last payload is a slot: the thread had not ended */
	bool stopped;        /* what comes next was being written while the file was opened */
	bool finishing;      /* no more payloads */
};

/* A stream that waits: the stamp of its next record, and below it the address of its struct trace_stream (which is
 * in the order of ids), so that one comparison orders them. */
#define MERGE_KEY(stamp, stream) ((wide_uint)(stamp) << 64 | (uintptr_t)(stream))
#define MERGE_KEY_NONE (~(wide_uint)0)
#define MERGE_KEY_STAMP(waiting) ((uint64_t)((waiting) >> 64))
#define MERGE_KEY_STREAM(waiting) ((struct trace_stream *)(uintptr_t)(uint64_t)(waiting))

struct reader_state {
	struct read_warnings warnings, warnings_at_open;
	struct trace_blocks blocks;
	struct clock_map clock;
	struct trace_dictionary dictionary;
	struct counted_totals totals;
	struct trace_stream *streams;
	uint32_t stream_count;
	/* of WAITING, the least first; without the stream whose turn it is. heap[0] is WAITING_NONE if none waits. */
	wide_uint *heap;
	uint32_t heap_count;
	uint32_t piece;         /* of the clock */
	uint64_t piece_end;     /* its last stamp */
	struct stream_run idle; /* reader->run when it is nobody's turn: nothing to run */
	uint64_t now;           /* stamps only go up */
	uint64_t last_ns;       /* the latest time handed out by reader_next_any */
	uint64_t last_stream_lost;
	union expanded_call call; /* what the AGAIN that was handed out stands for */
	const struct trace_call *
		repeated_from; /* which call that repeats as it is; of the payload at hand. NULL: not known */
	struct trace_tensor tensor; /* what the TENSOR_NEXT that was handed out stands for */
	struct tensor_totals tensor_totals;
	struct trace_stream *ended_stream; /* its EVENT_STREAM_END was handed out */
	bool failed;
	char *path;
	char error[READER_ERROR_BYTES];
};

/* trace_turn.c: whose turn it is. */

/* `stream` waits with `stamp`. */
void merge_push(struct reader_state *state, struct trace_stream *stream, uint64_t stamp);
/* The first stream that waits has the turn; false: none waits. */
bool merge_take_next(struct trace_reader *reader);
/* May the present stream hand out something at `stamp`? If not, another one has the turn now. */
bool merge_may_continue(struct trace_reader *reader, uint64_t stamp);
/* Brings clock and limit to `stamp`, which it is the present stream's turn to hand out. */
void merge_advance_clock(struct trace_reader *reader, uint64_t stamp);

/* The same for a stream amid its short records: hands the turn over if it must, as fast as can be. */
void merge_switch_if_due(struct trace_reader *reader);

/* trace_stream.c: one step of the stream whose turn it is. 1: an event; 0: none yet; -1: state->error. */
int stream_step(struct trace_reader *reader, struct trace_event *event);
void stream_free(struct trace_stream *stream);

/* trace_quick.c: the next record, where it is one of those that are many and nothing speaks against it; false: nothing was done. Some word must be
 * left. */
bool stream_step_fast(struct trace_reader *reader, struct trace_event *event);

#endif
