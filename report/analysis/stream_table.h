/* SPDX-License-Identifier: MIT
 *
 * Numbers the CUDA streams of all devices in the order in which they are found. Of each device, the
 * streams beyond STREAM_TABLE_MAX share one entry.
 */
#ifndef PPERF_REPORT_ANALYSIS_STREAM_TABLE_H
#define PPERF_REPORT_ANALYSIS_STREAM_TABLE_H

#include "report/analysis/activities.h"
#include "report/base/hash_index.h"

#define STREAM_TABLE_MAX 4096u
#define STREAM_TABLE_REST UINT64_MAX /* the stream of the shared entry */

struct device_stream {
	uint64_t stream; /* CUPTI's id */
	uint32_t device;
};

struct stream_table {
	struct device_stream *entries;
	uint32_t count;
	size_t room;
	uint32_t last;
	struct hash_index index; /* of numbers + 1 */
};

/* Returns the number of a stream, and adds the stream if it is new. */
uint32_t stream_table_number(struct stream_table *table, uint32_t device, uint64_t stream);
void stream_table_free(struct stream_table *table);

/* Writes a label such as `stream 7`, or `stream 7 "copies"` with the program's NVTX name. The name
 * may have any bytes. Returns the length, at most `room` - 1; `out` is terminated. */
size_t stream_table_label(const struct device_stream *entry, const struct activities *activities,
	char *out, size_t room);

#endif
