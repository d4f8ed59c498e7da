/* SPDX-License-Identifier: MIT
 * Reads an SQLite export of Nsight Systems (NVTX, calls and GPU work) into event rows.
 * nsys.c reads the database as a whole, processes and devices. nsys_events.c reads everything that
 * has a time.
 *
 * The schema differs between versions. Every table and column is looked up, and all of them may be
 * absent.
 */
#ifndef PPERF_REPORT_IMPORT_NSYS_NSYS_H
#define PPERF_REPORT_IMPORT_NSYS_NSYS_H

#include "report/base/hash_index.h"
#include "report/import/convert/event_rows.h"
#include "report/import/nsys/nsys_database.h"

/* Reads an open file, which the caller closes. Returns true for an export, also for a damaged one
 * (`truncated` of struct event_rows). Returns false for any other file, with the end of a sentence
 * that begins with "it" in `problem`. Initialises `imported` in both cases. Free it with
 * event_rows_free. */
bool nsys_read(struct event_rows *imported, int fd, char *problem, size_t problem_bytes);

/* Everything below is shared by nsys.c and nsys_events.c only. */

/* A hash table from ids of the file to indices or text ids. */
struct nsys_id_map {
	struct nsys_id_pair {
		uint64_t key;
		uint32_t value; /* the index or text id, + 1; 0: not known yet */
	} * pairs;
	size_t room;
	struct hash_index index; /* of pairs, by key */
};

struct nsys_reader {
	struct nsys_database *db;
	struct event_rows *imported;
	/* By id of the file: the index in `imported`; text_of_id: the id in imported->texts. */
	struct nsys_id_map thread_of_id, process_of_id, text_of_id, domain_of_id;
	uint32_t caller; /* process that made the first call */
	int64_t earliest, latest;
	uint64_t spans; /* number of start/end ranges; the last id used */
	size_t *open;   /* rows of ranges without an end */
	size_t open_count, open_room;
};

/* Returns the slot of `key`, valid until the next call. A new slot is 0, and the caller must set it
 * to the index or text id, + 1. */
uint32_t *nsys_id_map_slot(struct nsys_id_map *map, uint64_t key);
/* Returns the row number of a process, in order of appearance. Adds a row if it is new. `global`:
 * nsys's global id of the process or of one of its threads. */
uint32_t nsys_process(struct nsys_reader *reader, int64_t global);
/* Returns the process id that is part of a global id. */
uint32_t nsys_pid(int64_t global);

/* Reads everything that has a time. */
void nsys_events_read(struct nsys_reader *reader);
/* the tables that nsys_events_read reads, ended by NULL */
extern const char *const nsys_event_tables[];

#endif
