/* SPDX-License-Identifier: MIT
 * Writes what a page has of one process: verdict, findings, timeline, tables, flame graphs. The
 * shape is documented in README.md of this folder.
 */
#ifndef PPERF_REPORT_PAGE_RUN_DATA_H
#define PPERF_REPORT_PAGE_RUN_DATA_H

#include "report/page/flame_data.h"
#include "report/table/view.h"
#include "report/text/json_writer.h"

/* How much is written. */
struct run_detail {
	bool has_events;   /* single events, and windows around steps and findings */
	size_t frames_max; /* of a flame graph; 0: no flame graph is written */
	size_t rows_max;   /* of a table */
	bool is_side;      /* one of two runs: no table but that of steps */
};

#define RUN_DETAIL_FULL       \
	((struct run_detail){ \
		.has_events = true, .frames_max = FLAME_FRAMES_MAX, .rows_max = SIZE_MAX })

/* Writes members of the current object about processes->all[0]. */
void run_data_write(struct json_writer *json, const struct options *options,
	struct processes *processes, const struct run_detail *detail);

/* An object with the head and the data of one process, in a temporary file: its size is known
 * before it is in a page. Zeroed: there is none. */
struct run_spool {
	int file; /* descriptor + 1 */
	uint64_t bytes;
};

/* Ends the program if there is no room. */
struct run_spool run_spool_write(const struct options *options, struct processes *processes,
	const struct run_detail *detail);
/* Copies the object into a page, as a value. */
void run_spool_copy(struct json_writer *json, const struct run_spool *spool);
void run_spool_free(struct run_spool *spool);

#endif
