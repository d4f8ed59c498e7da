/* SPDX-License-Identifier: MIT
 * nsys.h: what Nsight Systems exports as an SQLite database, as the rows that kineto.h has: NVTX, calls, the GPU's work.
 * nsys.c (the database as a whole, processes, devices), nsys_events.c (NVTX, calls and the GPU's work).
 *
 * Its schema differs from version to version: each table and column is asked for, and none must be there.
 */
#ifndef PPERF_REPORT_IMPORT_NSYS_NSYS_H
#define PPERF_REPORT_IMPORT_NSYS_NSYS_H

#include "report/base/hash_index.h"
#include "report/import/convert/event_rows.h"
#include "report/import/nsys/nsys_database.h"

/* Reads an open file. False: `problem` says what it is instead, as in "it ...". kineto_free in either case. */
bool nsys_read(struct event_rows *imported, int fd, char *problem, size_t problem_bytes);

/* ---- between those files ---- */

/* Numbers of the file, and what they stand for here. */
struct nsys_id_map {
	struct nsys_id_pair {
		uint64_t key;
		uint32_t value; /* + 1; 0: not known yet */
	} * pairs;
	size_t room;
	struct hash_index index; /* of pairs, by key */
};

struct nsys_reader {
	struct nsys_database *db;
	struct event_rows *imported;
	struct nsys_id_map threads, processes, texts, domains;
	uint32_t caller; /* the process that made the first call */
	int64_t earliest, latest;
	uint64_t spans; /* start/end ranges, from 1 */
	size_t *open;   /* ranges without an end, by row */
	size_t open_count, open_room;
};

/* The value's place, *value 0 if it is new: then it is to be filled with what it stands for, + 1. */
uint32_t *nsys_id_map_slot(struct nsys_id_map *map, uint64_t key);
/* The process's number in the order in which they are met, from 0. */
uint32_t nsys_process(struct nsys_reader *reader, int64_t global);
uint32_t nsys_pid(int64_t global);

/* Everything with a time. */
void nsys_events_read(struct nsys_reader *reader);
/* The tables that it reads; NULL behind the last. */
extern const char *const nsys_event_tables[];

#endif
