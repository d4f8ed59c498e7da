/* SPDX-License-Identifier: MIT
 * Reads a trace as one sequence of events in time order, merged from all of its streams.
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
 * The reader shows the file as it was at reader_open. A trace that is being written may grow
 * meanwhile, yet a second pass sees the same events. Damage and loss never end the reading. They
 * are counted (struct trace_integrity), the first of them are described (reader_warning), and they
 * appear as EVENT_GAP at their position.
 *
 * Time: all times are in nanoseconds since the start of the trace and never decrease from event to
 * event. Between CLOCK samples, stamps are converted linearly to CLOCK_MONOTONIC. CUPTI's times
 * (CLOCK_REALTIME) are converted by reader_realtime. Events are ordered by stamp, then by stream.
 * GPU records come right after the GPU_BATCH that they arrived with.
 *
 * Ids are checked: event.node is below reader_node_count(). Every other id goes through a function
 * here, which returns a defined value if the id is unknown. The id of a node's parent is always
 * smaller than the node's own, so one ascending loop visits parents first.
 *
 * Memory: the dictionary, 32 bytes per block, 64 per stream, one payload for each stream that has
 * begun and not ended, and what is decoded ahead: less than 4 MiB unless payloads are larger than
 * pperf writes them. In a pass that joins, also 50 bytes per waiting launch. In total at most ten
 * times the size of the file plus 1 MiB. Pointers into the dictionary are valid as long as the
 * reader. event.record and what follows it are valid until the next call of reader_next.
 *
 * Threads: a reader must be used by one thread only. The events of a large trace are decoded ahead
 * by a second thread, if the user allows one (decode_ahead.h). What is returned does not depend on
 * it.
 */
#ifndef PPERF_REPORT_TRACE_TRACE_READER_H
#define PPERF_REPORT_TRACE_TRACE_READER_H

#include "collector/trace_format.h"
#include "report/text/string_table.h"
#include <stdbool.h>

#define READER_ERROR_BYTES 512
#define READER_TIME_MAX (UINT64_C(1) << 62) /* no time is later; about 146 years */

/* event.kind is one of these or an enum trace_kind, whose record is passed as it is in the file.
 * The reader handles OPEN, POP_AT and dictionary records itself, and replaces AGAIN by the call
 * it describes. */
enum trace_event_kind {
	/* A range closes. `record` is a POP_AT or NULL. If `depth` is not the innermost, the
	 * ranges inside move out by one. */
	EVENT_POP = TRACE_KINDS,
	/* A range that is open here although its PUSH is missing (lost earlier). `begin_ns` is
	 * correct. */
	EVENT_RESUMED,
	/* A range that closed inside a gap, between last_ns and time_ns. Always the innermost
	 * one; comes after EVENT_GAP. */
	EVENT_UNENDED,
	/* A range that is still open at the end of its stream, where the thread or the process
	 * ended. Innermost first. */
	EVENT_LEFT_OPEN,
	/* `missing` payloads of this stream are lost or unreadable (0: a part of one). UNENDED
	 * and RESUMED events follow. */
	EVENT_GAP,
	/* A POP without a range: none is open, or thousands are open inside the range. Counted
	 * in unmatched_ends. */
	EVENT_UNMATCHED,
	/* No more events of this stream follow. event.stream is freed at the next call. */
	EVENT_STREAM_END,
	EVENT_KINDS
};

struct trace_open_range {
	uint64_t begin_ns;
	uint32_t node, reserved;
};

/* A thread that recorded. Valid until EVENT_STREAM_END. */
struct trace_stream {
	uint32_t stream;  /* its id in the trace */
	uint32_t tid;     /* the kernel's thread id */
	uint32_t ordinal; /* 0, 1, ... below reader_stream_count(), in the order of ids */
	void *user;       /* owned by the caller, NULL at first; free it at EVENT_STREAM_END */
	/* The following are used by the reader only. */
	struct stream_cursor *cursor;
	uint32_t block, blocks; /* its part of the block index: first entry, number of entries */
};

struct trace_event {
	uint32_t kind;
	/* The range of a range event. For other records the innermost open range, 0 if none. */
	uint32_t node;
	/* Index in the range stack for range events, 0 is outermost. Else the number of ranges. */
	uint32_t depth;
	uint32_t missing;  /* GAP only */
	uint64_t time_ns;  /* for a record without a stamp: that of the record before it */
	uint64_t begin_ns; /* PUSH, POP, RESUMED, UNENDED, LEFT_OPEN: when the range opened */
	/* UNENDED, LEFT_OPEN, GAP: time of the last record before the gap or end */
	uint64_t last_ns;
	/* The record of `kind` (PUSH: trace_range, POP: trace_pop_at), at least as long as its
	 * struct. NULL: a short form, or no record. */
	const void *record;
	struct trace_stream *stream;
	/* After reader_join, of a launch that awaits GPU records (call_awaits_record) and of GPU
	 * work only: the slot of the launch, or JOIN_NO_SLOT; the event's steps, 0: none. */
	uint32_t slot, steps;
};

#define JOIN_NO_SLOT UINT32_MAX

/* What happens at an event to launches and GPU records that came before it. */
enum join_action {
	JOIN_STEPS_END,
	JOIN_RECORD_MATCHED,   /* `record` was held until its launch came, which has `slot` */
	JOIN_RECORD_UNMATCHED, /* the launch of `record` is not in the trace */
	JOIN_LAUNCH_EVICTED    /* no more records of the launch in `slot` are expected */
};

struct join_step {
	enum join_action action;
	uint32_t slot;
	struct trace_gpu *record; /* a copy, valid as long as the event's record */
};

/* What is missing or damaged, complete after the last event of a pass. All zero is good. */
struct trace_integrity {
	/* counted by the writer: the larger of the header's sum and the streams' sum */
	uint64_t lost_events;
	uint64_t lost[TRACE_LOSS_KINDS]; /* from the header, by enum trace_loss */
	uint64_t missing_chunks;         /* sequence numbers of which the file has no block */
	uint64_t torn_chunks; /* chunks with a wrong crc and no other copy; dropped whole */
	/* payloads with a malformed record; the rest of the payload was dropped */
	uint64_t damaged_payloads;
	/* dictionary blocks with a wrong crc (used anyway), and heads that contradict themselves */
	uint64_t damaged_blocks;
	uint64_t cut_blocks;    /* blocks that the end of the file cuts off */
	uint64_t skipped_bytes; /* nonzero bytes outside all blocks */
	/* bytes missing at the end, compared with the header (without what a live or killed
	 * process was still writing) */
	uint64_t cut_bytes;
	/* further chunks of a sequence number; the first whole one is used */
	uint64_t duplicate_chunks;
	uint64_t truncated_streams; /* streams with a gap, or with a torn, missing or cut chunk */
	uint64_t unmatched_ends;    /* POPs without a range (EVENT_UNMATCHED) */
	/* Part of unmatched_ends: the program itself had no open range. Nothing is missing. */
	uint64_t pops_without_push;
	uint64_t unended, left_open, resumed; /* number of events of these kinds */
	uint64_t clock_violations;            /* times that ran backwards and were clamped */
	uint64_t clock_steps;           /* how often CLOCK_REALTIME was set while the program ran */
	uint64_t clock_samples_refused; /* CLOCK records that contradict the others */
	/* records and blocks of unknown kinds, skipped: written by a newer pperf */
	uint64_t unknown_kinds;
	uint64_t unknown_nodes, unknown_names;
	uint64_t unknown_bytes; /* size of what unknown_kinds counts */
	bool ended;             /* the process ended by exit(), so that no tail can be missing */
	bool tail_at_risk; /* TRACE_TAIL_AT_RISK is set and the process did not end by exit() */
	/* Nothing was lost or damaged. left_open and the clock counters do not count. */
	bool complete;
};

/* The composition of the file. */
struct trace_layout {
	uint64_t file_bytes;                        /* when it was opened */
	uint64_t slots, chunks, dictionary, totals; /* number of blocks; slots: those in use */
	uint64_t slot_bytes, chunk_bytes, dictionary_bytes, totals_bytes; /* payload */
	uint64_t streams;
};

struct trace_text {
	const char *bytes; /* any bytes, not terminated; never NULL */
	uint32_t length;
	bool known; /* false: the id is 0 or unknown */
};

/* Converts `text` to a string view. Its bytes are NULL if the text is not known. */
static inline struct string_view trace_text_or_null(struct trace_text text)
{
	return (struct string_view){ text.known ? text.bytes : NULL, text.length };
}

/* A node of the call tree. Node 0 is the root. The last one, reader_node_count() - 1, is
 * used for all ids that are not in the dictionary. */
struct trace_node_info {
	uint32_t parent, name, domain;
	uint32_t link;   /* as in struct trace_node, but smaller than its own id, or 0 */
	uint32_t detail; /* name id or 0. MODULE: its class; OP: its inputs (op_inputs.h) */
	uint16_t kind;   /* enum trace_node_kind; 0: the root, or not in the dictionary */
	uint16_t depth;  /* root 0; 65535 means 65535 or more */
};

struct trace_reader {
	const struct trace_event *next, *end; /* the events that are decoded and not returned */
	struct reader_state *state;
};

/* Opens the trace at `path`. Returns NULL if the file is refused, with one sentence in `error`:
 * path, offset, what was expected, what to do. */
struct trace_reader *reader_open(const char *path, char error[READER_ERROR_BYTES]);

/* Opens the trace without the payloads that end before the stamp `since`. Their events are missing,
 * which counts as damage. */
struct trace_reader *reader_open_since(
	const char *path, uint64_t since, char error[READER_ERROR_BYTES]);

/* Opens the trace in the first `file_bytes` bytes of the open file `fd`, and takes ownership of
 * `fd`, also on failure. `may_grow`: a process may append to the file. `path` names the trace in
 * messages and is copied. Returns NULL with one sentence in `error`. */
struct trace_reader *reader_open_fd(int fd, uint64_t file_bytes, bool may_grow, const char *path,
	char error[READER_ERROR_BYTES]);
void reader_close(struct trace_reader *reader); /* NULL is allowed */

/* Starts a new pass at the first event. Streams and the counters of the pass are reset. */
void reader_rewind(struct trace_reader *reader);
/* In the pass that begins, after reader_rewind, SAMPLE records are left out: all but a few, which
 * mark the times of payloads. For passes that use none of them. All else is the same. */
void reader_leave_out_samples(struct trace_reader *reader);

/* Sees the events of a pass in the thread that decodes them, as soon as they are decoded. */
struct event_watch {
	void *context;
	/* Receives all events, in order, some at a time. They are valid within the call. It may
	 * use `user` of their streams, reader_watched_tid, and functions that read the dictionary.
	 * Calls and tensors are not expanded: the record of a call may be that of the call that
	 * it repeats, and only function and flags are its own, unless it launches a graph. The
	 * record of a tensor is not to be used. */
	void (*see)(void *context, const struct trace_event *events, size_t count);
	bool returns[EVENT_KINDS]; /* the kinds that reader_next returns; others are only seen */
};
/* Called after reader_rewind, for the pass that begins, which must not join or defer. */
void reader_watch(struct trace_reader *reader, const struct event_watch *watch);
/* Returns the thread id of the stream of an event that is seen, unless the stream has ended: its
 * `tid` is for the user of reader_next. */
uint32_t reader_watched_tid(const struct trace_stream *stream);

/* Joins GPU records to launches in this pass (correlation_join.h). Called before its first
 * event. */
void reader_join(struct trace_reader *reader);
/* Returns the steps of the event that was returned last, up to JOIN_STEPS_END. Its `steps` must not
 * be 0. */
const struct join_step *reader_join_steps(
	const struct trace_reader *reader, const struct trace_event *event);
/* Returns the steps after the last event, which must have been returned, up to JOIN_STEPS_END. */
const struct join_step *reader_join_end(const struct trace_reader *reader);
/* Returns whether a call issued GPU work whose record is expected. `call`: of a LAUNCH,
 * GRAPH_LAUNCH, COPY or SET. */
static inline bool call_awaits_record(const struct trace_call *call)
{
	return call->result == 0 && call->correlation &&
	       !(call->head.flags & (TRACE_CALL_CAPTURED | TRACE_CALL_NO_RECORD));
}

/* Work that is put off until the events of its batch have been read. It is done in order, by the
 * thread that decodes if there is one, never by two threads at a time. */
struct deferred_work {
	void (*run)(void *context, const void *items, size_t count);
	void *context;
	size_t item_bytes;
};
/* Sets how this pass does the work of reader_defer. Called before its first event. */
void reader_set_deferred(struct trace_reader *reader, const struct deferred_work *work);
/* Returns room for an item of work. It may refer to the record of the event that was returned
 * last. */
void *reader_defer(struct trace_reader *reader);
/* Does all work that was put off. */
void reader_run_deferred(struct trace_reader *reader);

/* Does what reader_next does, which calls it once no further event is decoded. */
int reader_next_any(struct trace_reader *reader, struct trace_event *event);

/* The functions from here to reader_ticks_per_second return properties of the trace, valid from
 * reader_open on. */
const char *reader_path(const struct trace_reader *reader);
int reader_descriptor(const struct trace_reader *reader); /* of the file, for pread; not owned */
const struct trace_header *reader_header(const struct trace_reader *reader);
const struct trace_layout *reader_layout(const struct trace_reader *reader);
uint32_t reader_stream_count(const struct trace_reader *reader);
/* `ordinal` must be below reader_stream_count(). */
struct trace_stream *reader_stream(const struct trace_reader *reader, uint32_t ordinal);
uint64_t reader_start_unix_ns(const struct trace_reader *reader);
/* Returns the time of the last CLOCK sample or of the last event read, whichever is later. */
uint64_t reader_duration_ns(const struct trace_reader *reader);
/* With PPERF_RING: returns where the window begins, if older records were overwritten; else 0. What
 * was overwritten is in reader_header()->ring. */
uint64_t reader_window_begin_ns(const struct trace_reader *reader);
/* Returns the latest stamp that was read: within a pass, it may be that of an event to come. */
uint64_t reader_last_stamp(const struct trace_reader *reader);
/* Returns how many GPU records this pass has left out because their calls are before the window. */
uint64_t reader_early_gpu_records(const struct trace_reader *reader);
double reader_ticks_per_second(const struct trace_reader *reader);

/* Returns the counts of this pass so far: what is decoded ahead may be in them. They are complete
 * after reader_next returned 0. Owned by the reader. */
const struct trace_integrity *reader_integrity(struct trace_reader *reader);
/* Returns the finding `index` as a sentence with path and offset, or NULL. Only the first few
 * are kept. */
const char *reader_warning(const struct trace_reader *reader, unsigned index);
/* Returns the sentence for a -1 of reader_next (a read error). */
const char *reader_error(const struct trace_reader *reader);

/* What a reader knows only after a pass over the whole trace. */
struct reader_end {
	struct trace_integrity integrity;
	uint64_t last_stamp, last_ns;
};
/* Returns it after the last event of a pass. */
struct reader_end reader_end_of_pass(struct trace_reader *reader);
/* Returns whether it says all about a pass: the trace is complete and without findings, and has no
 * ring. */
bool reader_end_says_all(struct trace_reader *reader);
/* Makes the reader say what it said after that pass. Returns false if no such pass can have
 * been. */
bool reader_resume_end(struct trace_reader *reader, const struct reader_end *end);

/* Converts a raw stamp. Stamps before the start of the trace become 0. */
uint64_t reader_time(const struct trace_reader *reader, uint64_t stamp);
/* Converts a duration of `ticks` that ended at `stamp`. */
uint64_t reader_duration(const struct trace_reader *reader, uint64_t stamp, uint64_t ticks);
/* Converts a time of CUPTI to the trace's axis. If the clock was set back and two times fit, the
 * result is the one that is not after the last event. */
uint64_t reader_realtime(struct trace_reader *reader, uint64_t realtime_ns);
/* Converts both ends of a GPU record. An end before its start is set to the start and counted in
 * clock_violations. Returns false if both are 0: CUPTI could not time it. */
bool reader_gpu_times(struct trace_reader *reader, uint64_t start_ns, uint64_t end_ns,
	uint64_t *start, uint64_t *end);

/* The functions from here to reader_counter read the dictionary. */
struct trace_text reader_name(struct trace_reader *reader, uint32_t name);
uint32_t reader_node_count(const struct trace_reader *reader);
/* Never returns NULL. An unknown `node` yields the node for unknown ids. */
const struct trace_node_info *reader_node(const struct trace_reader *reader, uint32_t node);
/* Returns the text of a PUSH, START or MARK record: its own text, its name, or the name of its
 * node. For an event without a record, returns the name of its node. */
struct trace_text reader_event_text(struct trace_reader *reader, const struct trace_event *event);
/* Returns the last value of META `key`. `known` is false if the trace does not have it. */
struct trace_text reader_meta(const struct trace_reader *reader, const char *key);
/* Returns the value of META `GROUP.NAME`, such as source.cupti or version.torch. */
struct trace_text reader_meta_of(
	const struct trace_reader *reader, const char *group, const char *name);
/* Sets `number` to a META value that is a decimal number of at most 18 digits. Returns false if the
 * trace does not have `key`, or its value is no such number. */
bool reader_meta_number(const struct trace_reader *reader, const char *key, uint64_t *number);
/* The names of the sources of events, META `source.NAME`, in the order of the view `info`. */
#define TRACE_SOURCES 10u
extern const char *const trace_source_names[TRACE_SOURCES];
/* From now on, META values hide arguments, folders, the host name and paths, which may be
 * private. */
void reader_redact(void);
uint32_t reader_meta_count(const struct trace_reader *reader);
void reader_meta_at(const struct trace_reader *reader, uint32_t index, struct trace_text *key,
	struct trace_text *value);
/* Returns record `index` of `kind`, or NULL past the last one. `kind` is any dictionary kind but
 * NAME and NODE, which reader_name and reader_node look up. COUNTER and stacks are sorted by id,
 * SOURCE by node, the others are in file order. Every record is whole, including the texts or
 * arrays after its struct. Owned by the reader. */
const void *reader_dictionary(
	const struct trace_reader *reader, enum trace_kind kind, uint32_t index);
uint32_t reader_dictionary_count(const struct trace_reader *reader, enum trace_kind kind);
/* These four return the record of an id (of a node, for SOURCE), or NULL. The stack id of a call
 * belongs to a STACK, a PYTHON_STACK or a MIXED_STACK, which has one of each. */
const struct trace_stack *reader_stack(const struct trace_reader *reader, uint32_t stack);
const struct trace_python_stack *reader_python_stack(
	const struct trace_reader *reader, uint32_t stack);
/* Returns the id of the PYTHON_STACK that reader_python_stack returns; 0: there is none. */
uint32_t reader_python_stack_id(const struct trace_reader *reader, uint32_t stack);
const struct trace_source *reader_source(const struct trace_reader *reader, uint32_t node);
const struct trace_counter *reader_counter(const struct trace_reader *reader, uint32_t counter);

/* A frame of a sampled stack, with the id of the frame that called it; 0: it is the outermost. The
 * caller's id is always smaller. */
struct trace_frame_info {
	uint32_t parent;
	bool is_python;
	uint64_t address;             /* native: where the frame continues */
	struct trace_python_frame at; /* Python; at.reserved is 1 for an entry frame */
};
/* Fills `info` with the frame `frame` of FRAME and PYTHON_FRAME. Returns false if the trace has no
 * such frame. */
bool reader_frame(const struct trace_reader *reader, uint32_t frame, struct trace_frame_info *info);
/* Returns the highest id of a frame, for arrays by id. In a damaged trace ids above 64 times the
 * number of frames do not count. */
uint32_t reader_frame_last(const struct trace_reader *reader);

/* The sums of the counted ranges (PPERF_OPS=totals) of a node, over all threads. These ranges
 * are in no event: their times and their single instances are not known. total_ns is as exact as
 * the mean rate of the clock. */
struct trace_counted {
	uint32_t node, reserved;
	uint64_t calls, total_ns, longest_ns;
};
const struct trace_counted *reader_counted(const struct trace_reader *reader, uint32_t *count);
/* Returns the sum of their calls, and the number of nodes in `*count`. */
uint64_t reader_counted_calls(const struct trace_reader *reader, uint32_t *count);

__extension__ typedef unsigned __int128 wide_uint;

/* Returns 1 and the next event if it is decoded. Returns 0 otherwise, without a change:
 * reader_next_any must be called. */
static inline __attribute__((always_inline)) int reader_next_decoded(
	struct trace_reader *reader, struct trace_event *event)
{
	if (__builtin_expect(reader->next == reader->end, 0))
		return 0;
	*event = *reader->next++;
	return 1;
}

/* Returns the event `count` after the one that was returned last, if it is decoded; else NULL. */
static inline const struct trace_event *reader_peek(
	const struct trace_reader *reader, ptrdiff_t count)
{
	return reader->end - reader->next >= count ? reader->next + count - 1 : NULL;
}

/* Reads the next event. Returns 1 if `event` is filled, 0 after the last event, -1 if reading
 * failed (reader_error). */
static inline int reader_next(struct trace_reader *reader, struct trace_event *event)
{
	return __builtin_expect(reader_next_decoded(reader, event), 1)
		       ? 1
		       : reader_next_any(reader, event);
}

/* As reader_next, without a copy where possible: sets `*event` to the event in the reader's memory,
 * else to `room`. It is valid until the next call. */
static inline __attribute__((always_inline)) int reader_next_in_place(
	struct trace_reader *reader, struct trace_event *room, const struct trace_event **event)
{
	if (__builtin_expect(reader->next != reader->end, 1)) {
		*event = reader->next++;
		return 1;
	}
	*event = room;
	return reader_next_any(reader, room);
}

#endif
