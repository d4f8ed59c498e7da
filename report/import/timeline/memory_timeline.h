/* SPDX-License-Identifier: MIT
 * Reads a memory timeline (torch.profiler.profile.export_memory_timeline), plain or gzip, into
 * event rows:
 *
 *	[[time, ...], [[0, size, ...], ...]]           sizes by category at each time, in us
 *	[[time, action, bytes, category], ...]         one event each (.raw.json.gz), in ns
 *
 * Both are of one device, which the file does not name: it becomes CUDA device 0. The place of each
 * event is its category, such as `parameters`. There are neither addresses nor segments.
 *
 * Of events, a free belongs to the latest allocation of its size and category. Memory from before
 * the recording (time -1) is allocated at the first time. Of sizes, only what changed from one time
 * to the next is known. A decrease frees what was allocated last, so that an increase may become
 * several allocations. Negative sizes count as 0, and are counted in a skip row. The sum of what is
 * allocated after each time is that of the file, to the byte.
 *
 * Memory: 8 bytes a time, 40 bytes an increase or decrease, and the rows.
 */
#ifndef PPERF_REPORT_IMPORT_TIMELINE_MEMORY_TIMELINE_H
#define PPERF_REPORT_IMPORT_TIMELINE_MEMORY_TIMELINE_H

#include "report/base/gzip_file.h"
#include "report/import/convert/event_rows.h"

/* Whether JSON with this beginning may be such a file: an array of arrays. */
bool memory_timeline_begins(const unsigned char *head, size_t bytes);
/* Reads a whole file, which the caller closes. Returns true for a timeline, also for one that is
 * damaged after its first numbers (`truncated`). Returns false for any other file, with the end of
 * a sentence that begins with "it" in imported->problem. Initialises `imported` in both cases. Free
 * it with event_rows_free. */
bool memory_timeline_read(struct event_rows *imported, struct gzip_file *file);

#endif
