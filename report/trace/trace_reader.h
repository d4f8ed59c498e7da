/* SPDX-License-Identifier: MIT
 * trace_reader.h: a trace as one row of events in time order, across all of its streams.
 *
 *	struct trace_reader *reader = reader_open(path, error);
 *	struct trace_event event;
 *
 *	if (!reader)
 *		fatal("%s", error);
 *	while ((status = reader_next(reader, &event)) > 0)
 *		switch (event.kind) {
 *		case TRACE_PUSH: ...
 *		case EVENT_POP: ...
 *		}
 *	if (status < 0)
 *		fatal("%s", reader_error(reader));
 *	integrity = reader_integrity(reader);
 *
 * What is read is the file as it stood at reader_open: a trace that is being written may grow meanwhile, a second
 * pass sees the same events. Damage and loss never end the reading: they are counted (struct trace_integrity), the
 * first of them described (reader_warning), and show up as EVENT_GAP where they lie.
 *
 * Time. Every time handed out is in nanoseconds since the trace's start, never decreasing from event to event;
 * stamps are brought to CLOCK_MONOTONIC piece by piece between the CLOCK samples. CUPTI's times (CLOCK_REALTIME) go
 * through reader_realtime. Order: by stamp, then by stream. Records of the GPU come with the GPU_BATCH that brought
 * them.
 *
 * Ids are checked: event.node is below reader_nodes(); every other id goes through a function here that knows what
 * to say when there is nothing of that id. A node's parent is always below the node's own id, so one ascending loop
 * visits parents first.
 *
 * Memory: the dictionary; 32 bytes a block; 64 a stream; one payload for each stream that has begun and not ended.
 * Never more than ten times the file and 1 MiB. Pointers into the dictionary live as long as the reader;
 * event.record and what follows it until the next call of reader_next. Threads: one reader, one thread.
 */
#ifndef PPERF_REPORT_TRACE_TRACE_READER_H
#define PPERF_REPORT_TRACE_TRACE_READER_H

#include "collector/trace_format.h"
#include "report/text/string_table.h"
#include <stdbool.h>

#define READER_ERROR_BYTES 512
#define READER_SCALE_BITS 56
#define READER_TIME_MAX (UINT64_C(1) << 62) /* no time is later; about 146 years */

/* event.kind is enum trace_kind (the records of trace_format.h as they are, but for OPEN, POP_AT, AGAIN (the call
 * that it stands for) and the dictionary's, which the reader deals with itself) or one of these. */
enum trace_event_kind {
	/* a range closes; record is a POP_AT or NULL. depth need not be the innermost: those inside move out by one */
	EVENT_POP = TRACE_KINDS,
	/* a range that is open here, although its PUSH was not seen (lost before this point); begin_ns is right */
	EVENT_RESUMED,
	/* a range that closed somewhere in a gap, between last_ns and time_ns. Always the innermost; see EVENT_GAP */
	EVENT_UNENDED,
	/* a range still open at its stream's end: the thread ended, or the process did. Innermost first */
	EVENT_LEFT_OPEN,
	/* `missing` payloads of this stream are lost or unreadable (0: part of one); UNENDED and RESUMED follow */
	EVENT_GAP,
	EVENT_UNMATCHED, /* a POP where nothing is open, or of a range with thousands in it: it has no range; counted as unmatched_ends */
	EVENT_STREAM_END, /* nothing more of this stream will come; event.stream dies at the next call */
	EVENT_KINDS
};

/* A range that is open. */
struct trace_open_range {
	uint64_t begin_ns;
	uint32_t node, reserved;
};

/* A thread that recorded. Lives until EVENT_STREAM_END. */
struct trace_stream {
	uint32_t stream;  /* its id in the trace */
	uint32_t tid;     /* the kernel's id of the thread */
	uint32_t ordinal; /* 0, 1, ... below reader_streams(), in the order of ids */
	uint32_t started; /* 1 once an event of it was handed out */
	void *user; /* the caller's; NULL at first; to be freed by the caller at EVENT_STREAM_END */
	struct stream_cursor *cursor;
	uint32_t block, blocks; /* its part of the block index */
};

struct trace_event {
	uint32_t kind;
	uint32_t
		node; /* range events: the range; other records: where they happened (0: in no range) */
	uint32_t
		depth; /* range events: in the row of open ranges, outermost 0; others: how many are open */
	uint32_t missing;  /* GAP */
	uint64_t time_ns;  /* of a record without a stamp: of the one before it */
	uint64_t begin_ns; /* PUSH, POP, RESUMED, UNENDED, LEFT_OPEN: when the range opened */
	uint64_t last_ns;  /* UNENDED, LEFT_OPEN, GAP: the last time at which the stream was seen */
	/* struct record of `kind` (PUSH: trace_range, POP: trace_pop_at), at least as long as its struct; NULL: a
	 * short form, or no record */
	const void *record;
	struct trace_stream *stream;
};

/* What is missing or wrong, after the last event of a pass. Zeros are good. */
struct trace_integrity {
	/* counted by the writer: the larger of the header's sum and the streams' */
	uint64_t lost_events;
	uint64_t lost[TRACE_LOSS_KINDS]; /* header, by enum trace_loss */
	uint64_t missing_chunks;         /* sequences of which no block is left */
	uint64_t torn_chunks;      /* chunks with a wrong crc and no other copy: dropped whole */
	uint64_t damaged_payloads; /* a record made no sense: the rest of the payload was dropped */
	/* dictionary blocks with a wrong crc (used all the same), heads that contradict themselves */
	uint64_t damaged_blocks;
	uint64_t cut_blocks;    /* the file ends inside them */
	uint64_t skipped_bytes; /* not zero, and not in any block */
	/* the file ends that much before its header says (and not for a seal under way) */
	uint64_t cut_bytes;
	uint64_t
		duplicate_chunks; /* more than one chunk of a sequence: the first whole one counts */
	uint64_t truncated_streams; /* streams with a gap, a torn, missing or cut chunk */
	uint64_t unmatched_ends;    /* POP with nothing open, or of what thousands are in */
	uint64_t unended, left_open, resumed; /* as many events of these kinds */
	uint64_t clock_violations;            /* times that ran backwards and were clamped */
	uint64_t clock_steps;                 /* CLOCK_REALTIME was set while the program ran */
	uint64_t clock_samples_refused;       /* CLOCK records that contradict the others */
	uint64_t unknown_kinds;               /* records skipped: of a newer pperf */
	uint64_t unknown_nodes, unknown_names;
	uint64_t unknown_bytes; /* of unknown kinds */
	bool ended;             /* the process ended by exit(): no tail can be missing */
	bool tail_at_risk;      /* TRACE_TAIL_AT_RISK and not ended */
	/* nothing of the above was lost or damaged (left_open and clocks aside) */
	bool complete;
};

/* How the file is made up. */
struct trace_layout {
	uint64_t file_bytes;                        /* when it was opened */
	uint64_t slots, chunks, dictionary, totals; /* blocks; slots: those in use */
	uint64_t slot_bytes, chunk_bytes, dictionary_bytes, totals_bytes; /* payload */
	uint64_t streams;
};

struct trace_text {
	const char *bytes; /* any bytes, not terminated; never NULL */
	uint32_t length;
	bool known; /* false: no such id, or id 0 */
};

/* The same bytes; NULL if the text is not known. */
static inline struct string_view trace_text_or_null(struct trace_text text)
{
	return (struct string_view){ text.known ? text.bytes : NULL, text.length };
}

/* A place in the tree of contexts. Node 0 is the root; the last one (reader_nodes() - 1) stands for ids that the
 * dictionary lacks. */
struct trace_node_info {
	uint32_t parent, name, domain;
	uint32_t
		link; /* BACKWARD: the place of the operator that created it; below its own number, or 0 */
	uint32_t detail; /* a name or 0. MODULE: its class; OP: its inputs (op_inputs.h) */
	uint16_t kind;   /* enum trace_node_kind; 0: the root, or not in the dictionary */
	uint16_t depth;  /* root 0; 65535 and more: 65535 */
};

/* Where a stream is. */
struct stream_run {
	const uint32_t *word, *end; /* the next record; the end of its payload */
	uint64_t stamp;             /* the last one */
	struct trace_open_range *ranges;
	uint32_t depth, room; /* ranges open, ranges that fit */
	struct trace_stream *stream;
};

struct trace_reader {
	struct stream_run *run; /* the stream whose turn it is */
	/* up to this stamp it may go on: then another stream comes first, or the clock's next piece begins */
	uint64_t until;
	/* ns = clock_ns + (stamp - clock_raw) * clock_scale >> READER_SCALE_BITS */
	uint64_t clock_raw, clock_ns, clock_scale;
	uint32_t node_last; /* nodes 1 .. node_last are in the table */
	uint32_t reserved;
	struct reader_state *state;
};

/* Opens a trace. NULL: refused, with one sentence in `error`: path, offset, what was expected, what to do. */
struct trace_reader *reader_open(const char *path, char error[READER_ERROR_BYTES]);

/* Reads the trace in the open file `fd`, which the reader closes, also on failure. `path` names it in messages and is copied. */
struct trace_reader *reader_open_fd(
	int fd, uint64_t file_bytes, const char *path, char error[READER_ERROR_BYTES]);
void reader_close(struct trace_reader *reader); /* NULL is fine */

/* The next pass begins at the first event again. Streams are new; integrity's counts begin anew. */
void reader_rewind(struct trace_reader *reader);

/* As reader_next; for anything but the common short forms. */
int reader_next_any(struct trace_reader *reader, struct trace_event *event);

/* Facts, all valid from reader_open on. */
const char *reader_path(const struct trace_reader *reader);
const struct trace_header *reader_header(const struct trace_reader *reader);
const struct trace_layout *reader_layout(const struct trace_reader *reader);
uint32_t reader_stream_count(const struct trace_reader *reader);
/* ordinal below reader_streams() */
struct trace_stream *reader_stream(const struct trace_reader *reader, uint32_t ordinal);
uint64_t reader_start_unix_ns(const struct trace_reader *reader);
/* to the last CLOCK sample or event seen so far, whichever is later */
uint64_t reader_duration_ns(const struct trace_reader *reader);
double reader_ticks_per_second(const struct trace_reader *reader);

/* Counts of this pass so far; complete after reader_next returned 0. Lives in the reader. */
const struct trace_integrity *reader_integrity(struct trace_reader *reader);
/* The first few of what was wrong, each a sentence with path and offset; NULL: no more. */
const char *reader_warning(const struct trace_reader *reader, unsigned index);
/* The sentence for reader_next's -1 (a read error, or no memory). */
const char *reader_error(const struct trace_reader *reader);

/* A raw stamp as time; stamps before the start are 0. */
uint64_t reader_time(const struct trace_reader *reader, uint64_t stamp);
/* A duration in ticks that ended at `stamp`. */
uint64_t reader_duration(const struct trace_reader *reader, uint64_t stamp, uint64_t ticks);
/* CUPTI's time on the same axis. Ambiguous moments (the clock was set back) are taken to lie before the event last
 * handed out. */
uint64_t reader_realtime(struct trace_reader *reader, uint64_t realtime_ns);
/* Both ends of a GPU record; an end before its start becomes its start, counted. false: CUPTI could not time it
 * (both 0). */
bool reader_gpu_times(struct trace_reader *reader, uint64_t start_ns, uint64_t end_ns,
	uint64_t *start, uint64_t *end);

/* The dictionary. */
struct trace_text reader_name(struct trace_reader *reader, uint32_t name);
uint32_t reader_node_count(const struct trace_reader *reader);
/* never NULL; below reader_nodes() */
const struct trace_node_info *reader_node(const struct trace_reader *reader, uint32_t node);
/* The text of a PUSH, START or MARK record: its own, or its name's, or its node's. Of an event without record: its
 * node's. */
struct trace_text reader_event_text(struct trace_reader *reader, const struct trace_event *event);
/* The texts that follow a record, checked against its size. */
struct trace_text reader_module_path(const struct trace_module *module);
struct trace_text reader_module_build_id(const struct trace_module *module);
/* META; the last of its key. Not known: not given. */
struct trace_text reader_meta(const struct trace_reader *reader, const char *key);
/* From now on META tells no arguments, folders, host and paths: what may be nobody else's business. */
void reader_redact(void);
uint32_t reader_meta_count(const struct trace_reader *reader);
void reader_meta_at(const struct trace_reader *reader, uint32_t index, struct trace_text *key,
	struct trace_text *value);
/* Every record of a dictionary kind (COUNTER, MODULE, STACK, DEVICE, CONTEXT, GRAPH_NODE, GRAPH_EXEC, PYTHON_STACK,
 * SOURCE), in the order of the file (COUNTER, STACK, PYTHON_STACK: of their ids; SOURCE: of its places); NULL: no more. Each is whole: what its counts say follows does
 * follow. */
const void *reader_dictionary(
	const struct trace_reader *reader, enum trace_kind kind, uint32_t index);
uint32_t reader_dictionary_count(const struct trace_reader *reader, enum trace_kind kind);
/* The STACK, the PYTHON_STACK, the COUNTER of an id, the SOURCE of a place, NULL if there is none. A call's stack is one of
 * the first two. */
const struct trace_stack *reader_stack(const struct trace_reader *reader, uint32_t stack);
const struct trace_python_stack *reader_python_stack(
	const struct trace_reader *reader, uint32_t stack);
const struct trace_source *reader_source(const struct trace_reader *reader, uint32_t node);
const struct trace_counter *reader_counter(const struct trace_reader *reader, uint32_t counter);

/* What ranges that were only counted come to, on all threads: one for each place that has any, ascending. They are in
 * no event; nothing is known of when they were, and of each alone. total_ns is as exact as the mean rate of the clock. */
struct trace_counted {
	uint32_t node, reserved;
	uint64_t calls, total_ns, longest_ns;
};
const struct trace_counted *reader_counted(const struct trace_reader *reader, uint32_t *count);

/* Traces of one run (header.run_id), in the folder of `path` and with it, by start, then pid, then path. */
struct run_file {
	char *path;
	uint32_t pid, parent_pid;
	uint64_t start_unix_ns, bytes;
};
struct run_files {
	struct run_file *traces;
	uint32_t count;
};
/* false: `path` itself cannot be read as a trace; `error` says why. */
bool run_files_find(const char *path, struct run_files *siblings, char error[READER_ERROR_BYTES]);
void run_files_free(struct run_files *siblings);

/* Forms of a record's first word. */
enum trace_form { FORM_STRUCT, FORM_PUSH4, FORM_POP4, FORM_PUSH8 };

__extension__ typedef unsigned __int128 wide_uint;

static inline uint64_t reader_scale(uint64_t ticks, uint64_t scale)
{
	return (uint64_t)((wide_uint)ticks * scale >> READER_SCALE_BITS);
}

static inline uint64_t reader_stamp_time(const struct trace_reader *reader, uint64_t stamp)
{
	return reader->clock_ns + reader_scale(stamp - reader->clock_raw, reader->clock_scale);
}

static inline __attribute__((always_inline)) int reader_short_push(struct trace_reader *reader,
	struct trace_event *event, uint32_t node, uint64_t stamp, int words)
{
	struct stream_run *run = reader->run;
	struct trace_open_range *range;
	uint64_t now;

	if (__builtin_expect(stamp > reader->until || node - 1 >= reader->node_last ||
				     run->depth >= run->room,
		    0))
		return 0;
	now = reader_stamp_time(reader, stamp);
	run->word += words;
	run->stamp = stamp;
	range = &run->ranges[run->depth];
	range->begin_ns = now;
	range->node = node;
	event->kind = TRACE_PUSH;
	event->node = node;
	event->depth = run->depth++;
	event->time_ns = event->begin_ns = now;
	event->record = NULL;
	event->stream = run->stream;
	return 1;
}

static inline __attribute__((always_inline)) int reader_short_pop(
	struct trace_reader *reader, struct trace_event *event, uint64_t stamp)
{
	struct stream_run *run = reader->run;
	const struct trace_open_range *range;

	if (__builtin_expect(stamp > reader->until || run->depth == 0, 0))
		return 0;
	run->word++;
	run->stamp = stamp;
	range = &run->ranges[--run->depth];
	event->kind = EVENT_POP;
	event->node = range->node;
	event->depth = run->depth;
	event->time_ns = reader_stamp_time(reader, stamp);
	event->begin_ns = range->begin_ns;
	event->record = NULL;
	event->stream = run->stream;
	return 1;
}

/* The next event if it is a common one and due. 1; 0: reader_next_any must look. */
static inline __attribute__((always_inline)) int reader_next_short(
	struct trace_reader *reader, struct trace_event *event)
{
	const struct stream_run *run = reader->run;
	const uint32_t *word = run->word;
	uint32_t first;

	if (__builtin_expect(word == run->end, 0))
		return 0;
	first = *word;
	switch (first & 3) {
	case FORM_PUSH4:
		return reader_short_push(
			reader, event, first >> 16, run->stamp + (first >> 2 & 0x3fff), 1);
	case FORM_POP4:
		return reader_short_pop(reader, event, run->stamp + (first >> 2));
	case FORM_PUSH8:
		return run->end - word >= 2 &&
		       reader_short_push(reader, event, first >> 2, run->stamp + word[1], 2);
	default:
		return 0;
	}
}

/* The next event. 1: `event` is filled; 0: there are no more; -1: reader_error() says why it cannot go on. */
static inline int reader_next(struct trace_reader *reader, struct trace_event *event)
{
	return __builtin_expect(reader_next_short(reader, event), 1)
		       ? 1
		       : reader_next_any(reader, event);
}

#endif
