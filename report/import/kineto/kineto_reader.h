/* SPDX-License-Identifier: MIT
 * kineto_read.h: what the parts of the reading share: kineto_read.c (the file), kineto_events.c (an event of it), and the
 * row that becomes of one: kineto_rows.c, kineto_ranges.c (what has a begin and an end on a thread), kineto_tids.c (threads).
 * Nobody else includes it.
 */
#ifndef PPERF_REPORT_IMPORT_KINETO_KINETO_READER_H
#define PPERF_REPORT_IMPORT_KINETO_KINETO_READER_H

#include "report/base/hash_index.h"
#include "report/import/convert/event_rows.h"
#include "report/import/kineto/event_args.h"
#include "report/import/kineto/read_window.h"

/* What kind of event it is, by its phase and category. */
enum kineto_class {
	KINETO_OTHER,
	KINETO_IS_OPERATOR,
	KINETO_IS_ANNOTATION,
	KINETO_IS_CALL,
	KINETO_IS_KERNEL,
	KINETO_IS_COPY,
	KINETO_IS_MEMSET,
	KINETO_IS_PYTHON,
	KINETO_IS_SYNC,
	KINETO_IS_OVERHEAD,
	KINETO_IS_MEMORY,
	KINETO_IS_FLOW,
	KINETO_IS_META,
	KINETO_IS_END, /* of what phase B began */
	KINETO_CLASSES
};

#define KINETO_NO_RANGE UINT32_MAX

/* The event at hand: spans of the window. */
struct kineto_event {
	struct json_text phase, category, name, pid, tid, time, duration, id;
	enum kineto_class class;
	bool has_args;
	struct kineto_args args; /* if the class asks for them */
};

struct kineto_reader {
	struct event_rows *imported;
	struct read_window window;
	struct kineto_event event;
	struct json_keys keys, args[KINETO_CLASSES]; /* of events, of the arguments of each class */
	bool has_events;
	char *plain; /* a text without its escapes */
	size_t plain_room;
	struct hash_index threads;       /* of kineto->threads, by pid and tid */
	char last_pid[24], last_tid[24]; /* of the thread found last, as they stood in the window */
	size_t last_pid_bytes, last_tid_bytes;
	uint32_t last_thread;
	struct kineto_open_event {
		uint32_t range; /* its row; KINETO_NO_RANGE: it is none */
		uint32_t
			outer; /* what its thread had begun before and not ended, + 1; 0: nothing */
	} * open_events;       /* all of phase B */
	size_t open_event_count, open_event_room;
	uint32_t *innermost; /* by thread: what it began last and has not ended, + 1; 0: nothing */
	size_t innermost_room;
	uint8_t *wants_values; /* by an operator's name */
	size_t wants_room;
	int64_t latest_time;       /* the latest moment of any event */
	uint32_t *metadata_of_key; /* by a key's text: its row + 1; 0: none */
	size_t metadata_of_key_room;
	size_t names; /* of processes */
};

uint32_t kineto_intern(struct kineto_reader *reader, const struct json_text *text);
void kineto_add_metadata(
	struct kineto_reader *reader, const char *key, const struct json_text *value);

struct kineto_times {
	int64_t start;
	uint64_t duration; /* KINETO_OPEN: phase B */
};

/* Reads the event that the scan stands at into reader->event. False: scan.problem. */
bool kineto_event_read(struct kineto_reader *reader);
/* Makes a row of it. */
void kineto_add_event(struct kineto_reader *reader);
/* All events were read. */
void kineto_finish_events(struct kineto_reader *reader);

/* Of the event at hand: its thread, its External id (0: none). */
uint32_t kineto_thread_of(struct kineto_reader *reader);
uint64_t kineto_external_id(const struct kineto_args *args);
/* It is a range, or a call of Python's. */
void kineto_add_range(struct kineto_reader *reader, const struct kineto_times *span);
/* Phase B: its E is to find it. range: its row, or KINETO_NO_RANGE. */
void kineto_begin_event(struct kineto_reader *reader, uint32_t range);
/* Phase E: ends what its thread began last. False: there is nothing, or it began later. */
bool kineto_end_event(struct kineto_reader *reader, int64_t time);
/* What has not ended does with the last event. */
void kineto_close_open_ranges(struct kineto_reader *reader);

#endif
