/* SPDX-License-Identifier: MIT
 * Writes the map of device memory over time (memory --over-time), and at chosen moments (memory
 * --map): segments, the blocks in them, and gaps.
 */
#ifndef PPERF_REPORT_PAGE_PAGE_MEMORY_MAP_H
#define PPERF_REPORT_PAGE_PAGE_MEMORY_MAP_H

#include "report/table/view.h"
#include "report/text/json_writer.h"

#define MAP_HISTORY_ROWS 200u
#define MAP_SEGMENTS 64u /* of a moment */
/* Blocks of a moment. Of more, adjacent ones are written as one, without their call path. A segment
 * that has more than are left then is written in cells. */
#define MAP_BLOCKS 2000u
#define MAP_CELLS 200u

/* Writes the member `memory_map`, if the trace has segments with known blocks:
 *
 *	{"memory_history": TABLE, "memory_map": TABLE, "command": TEXT, "holders": [TEXT],
 *	 "moments": [{"address": [...], "blocks": [{"begin": [...], "bytes": [...],
 *	              "since_ns": [...], "holder": [...], "count": [...]} or {"cells": [...]}]}]}
 *
 * TABLE: rows of the two views, as page_table_write writes them. `moments` are in the order of the
 * rows of the kind `moment`.
 *
 * | key     | what                                                                          |
 * |---------|-------------------------------------------------------------------------------|
 * | address | of each segment that has a row and blocks                                     |
 * | begin   | distance to the end of the block before, or to the begin of the segment       |
 * | holder  | index in `holders`; 0: several                                                |
 * | cells   | occupied bytes of equal parts of the segment                                  |
 */
void page_memory_map_write(
	struct json_writer *json, const struct options *options, struct processes *processes);

#endif
