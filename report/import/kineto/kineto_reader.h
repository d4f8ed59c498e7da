/* SPDX-License-Identifier: MIT
 * Declares what the files of this folder share, and nothing for other folders:
 *
 *	kineto_reader.c		the file
 *	parse_event.c		one event
 *	parse_ranges.c		rows of events with begin and end on a thread
 *	parse_other.c		rows of other events
 *	process_groups.c	process groups of the streams of NCCL
 *	thread_ids.c		threads
 */
#ifndef PPERF_REPORT_IMPORT_KINETO_KINETO_READER_H
#define PPERF_REPORT_IMPORT_KINETO_KINETO_READER_H

#include "report/base/hash_index.h"
#include "report/import/convert/event_rows.h"
#include "report/import/kineto/event_args.h"
#include "report/import/kineto/read_window.h"

/* The class of an event, by its phase and category. */
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
	KINETO_IS_END, /* end of a phase B event */
	KINETO_CLASSES
};

#define KINETO_NO_RANGE UINT32_MAX

/* The current event. Its texts point into the read window. */
struct kineto_event {
	struct json_text phase, category, name, pid, tid, time, duration, id;
	enum kineto_class class;
	bool has_args;
	struct kineto_args args; /* valid if the class uses arguments */
};

struct kineto_reader {
	struct event_rows *imported;
	struct read_window window;
	struct kineto_event event;
	/* key orders of events, and of the arguments of each class */
	struct json_keys keys, args[KINETO_CLASSES];
	bool has_events, has_gpu_annotations;
	char *plain; /* buffer for a text without its escapes, and for an operator's inputs */
	size_t plain_room;
	struct hash_index threads;       /* of imported->threads, by pid and tid */
	char last_pid[24], last_tid[24]; /* of the thread found last, as written in the file */
	size_t last_pid_bytes, last_tid_bytes;
	uint32_t last_thread;
	struct kineto_open_event {
		uint32_t range; /* its row; KINETO_NO_RANGE: none */
		/* The enclosing open event of its thread, + 1. 0: none. */
		uint32_t outer;
	} * open_events; /* all events of phase B, also those that have ended */
	size_t open_event_count, open_event_room;
	uint32_t *innermost; /* by thread: the innermost open event, + 1; 0: none */
	size_t innermost_room;
	uint8_t *needs_values; /* by name of an operator: cache of needs_input_values */
	size_t needs_values_room;
	int64_t latest_time; /* latest time of any event */
	size_t names;        /* number of process names stored */
	/* Streams with a process group, or with kernels of NCCL. Texts; 0: not known. */
	struct kineto_stream {
		uint32_t device, stream, name, ranks;
		int64_t sequence; /* lowest of a collective; INT64_MAX: not known */
		bool is_nccl;     /* known after the last event */
		bool several;     /* has collectives of several groups */
	} * streams;
	size_t stream_count, stream_room;
	struct hash_index stream_index; /* of `streams` */
	struct kineto_group {
		uint32_t name, ranks;
		uint64_t size; /* ranks; 0: not known */
		bool is_nccl;
	} * groups; /* of pg_config */
	size_t group_count, group_room;
	/* Operators that name a process group. Not needed if kernels do, too. */
	struct kineto_launcher {
		uint64_t external;
		uint32_t name, ranks;
	} * launchers;
	size_t launcher_count, launcher_room;
	bool kernels_have_groups;
};

uint32_t kineto_intern(struct kineto_reader *reader, const struct json_text *text);
void kineto_add_metadata(
	struct kineto_reader *reader, const char *key, const struct json_text *value);

struct kineto_times {
	int64_t start;
	uint64_t duration; /* IMPORTED_NOT_ENDED: phase B */
};

/* Reads the event at the scan position into reader->event. Returns false with scan.problem. */
bool kineto_event_read(struct kineto_reader *reader);
/* Adds a row for the current event. */
void kineto_add_event(struct kineto_reader *reader);
/* Closes open ranges, and frees what the events needed. Called after the last event. */
void kineto_finish_events(struct kineto_reader *reader);

/* Returns the index of the current event's thread in imported->threads, which is added if
 * needed. */
uint32_t kineto_thread_of(struct kineto_reader *reader);
/* Returns the External id of an event. 0: none. */
uint64_t kineto_external_id(const struct kineto_args *args);
/* Returns the text of the current event's `Call stack`. 0: it has none. */
uint32_t kineto_call_stack(struct kineto_reader *reader);
/* Adds the current event as a range or as a Python call. */
void kineto_add_range(struct kineto_reader *reader, const struct kineto_times *span);
/* Opens an event of phase B, to be closed by its E. `range`: its row, or KINETO_NO_RANGE. */
void kineto_begin_event(struct kineto_reader *reader, uint32_t range);
/* Closes the innermost open event of the current event's thread (phase E). Returns false, and
 * changes nothing, if none is open or if its range began after `time`. */
bool kineto_end_event(struct kineto_reader *reader, int64_t time);
/* Ends each range without an E event at reader->latest_time, and counts these ranges in
 * imported->unended. */
void kineto_close_open_ranges(struct kineto_reader *reader);
/* Frees the members that these functions allocated. */
void kineto_free_ranges(struct kineto_reader *reader);

/* Adds the process group that the current event, a kernel, has in its arguments. */
void kineto_add_kernel_group(struct kineto_reader *reader, uint32_t device, uint32_t stream);
/* Keeps the process group that the current event, an operator, has in its arguments. */
void kineto_add_operator_group(struct kineto_reader *reader);
/* Reads pg_config, the list of the process groups. `world`: ranks of the job; 0: not known. */
void kineto_read_groups(
	struct kineto_reader *reader, const struct json_text *array, uint64_t world);
/* Adds the group of each stream as metadata, once, and frees what that needed. A stream that has
 * several groups is not named. */
void kineto_finish_groups(struct kineto_reader *reader);

#endif
