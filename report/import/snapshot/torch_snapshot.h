/* SPDX-License-Identifier: MIT
 * Reads a snapshot of PyTorch's CUDA allocator (torch.cuda.memory._dump_snapshot) into event rows:
 * segments, tensors, and the times that memory ran out.
 *
 * A snapshot has the segments and blocks of the moment when it was made. If PyTorch recorded
 * history, it also has the last events of each device. What was allocated before the first of them
 * follows from the segments and blocks by undoing the events, and is written as allocated at the
 * time of the first one. A tensor is free from when it was to be freed, not from when all streams
 * were done with it. Frames in Python files become call stacks, others do not.
 *
 * Events have the size that was requested, blocks the one that was allocated. An event of a block
 * of the snapshot gets the block's size. That of others is rounded up to SNAPSHOT_ROUNDING.
 *
 * The pickle is not executed (report/text/pickle_reader.h). What a hostile one can make of itself
 * by referring to its parts again and again is limited by its length: events, blocks, and the texts
 * of call stacks (of which those beyond are left out, and counted in a skip row).
 */
#ifndef PPERF_REPORT_IMPORT_SNAPSHOT_TORCH_SNAPSHOT_H
#define PPERF_REPORT_IMPORT_SNAPSHOT_TORCH_SNAPSHOT_H

#include "report/import/convert/event_rows.h"

#define SNAPSHOT_ROUNDING 512u /* the least unit of PyTorch's allocator */

/* Reads an open file, which the caller closes. Returns false for any other file, with the end of a
 * sentence that begins with "it" in `problem`. Initialises `imported` in both cases. Free it with
 * event_rows_free. */
bool torch_snapshot_read(struct event_rows *imported, int fd, char *problem, size_t problem_bytes);
/* The same of a pickle in memory. */
bool torch_snapshot_parse(struct event_rows *imported, const unsigned char *bytes, size_t length,
	char *problem, size_t problem_bytes);

#endif
