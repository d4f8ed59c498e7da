/* SPDX-License-Identifier: MIT
 * Reads an SQLite export of Nsight Systems (NVTX, calls and GPU work) into event rows.
 * nsys.c reads the database as a whole, processes and devices. nsys_events.c reads everything that
 * has a time, except for CPU samples, which nsys_samples.c reads.
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

/* Everything below is shared by the files of this folder only. */

#define NSYS_SAMPLES "COMPOSITE_EVENTS"

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
	uint16_t mpi_domain;    /* of the ranges from tables of MPI: row + 1; 0: there are none */
	size_t first_mpi_range; /* row of the first of these ranges */
	uint64_t spans;         /* number of start/end ranges; the last id used */
	size_t *open;           /* rows of ranges without an end */
	size_t open_count, open_room;
};

/* Returns the slot of `key`, valid until the next call. A new slot is 0, and the caller must set it
 * to the index or text id, + 1. */
uint32_t *nsys_id_map_slot(struct nsys_id_map *map, uint64_t key);
/* Returns the value of `key`; 0 if there is none. */
uint32_t nsys_id_map_value(const struct nsys_id_map *map, uint64_t key);
void nsys_id_map_free(struct nsys_id_map *map);
/* Returns the row number of a process, in order of appearance. Adds a row if it is new. `global`:
 * nsys's global id of the process or of one of its threads. */
uint32_t nsys_process(struct nsys_reader *reader, int64_t global);
/* Returns the process id that is part of a global id. */
uint32_t nsys_pid(int64_t global);

/* Reads everything that has a time, except for CPU samples. */
void nsys_events_read(struct nsys_reader *reader);
/* Reads the CPU samples of threads that have ranges or calls, each with its innermost function.
 * Counts those of other threads as skipped. Called after nsys_events_read. */
void nsys_samples_read(struct nsys_reader *reader);
/* Adds to the number of skipped events of a category. */
void nsys_skip(struct nsys_reader *reader, const char *what, uint64_t events);
/* Returns the id in imported->texts of the string whose StringIds id is in `column`. Returns 0 if
 * the column is NULL or there is no such string. */
uint32_t nsys_string_column(
	struct nsys_reader *reader, const struct nsys_rows *rows, unsigned column);
/* the tables of events that are read, ended by NULL */
extern const char *const nsys_event_tables[];

#endif
