/* SPDX-License-Identifier: MIT
 * lanes.h: the streams of each device, numbered as they are met. At most LANES_MOST; what comes after is in one for all
 * the rest, of each device.
 */
#ifndef PPERF_REPORT_ANALYSIS_STREAM_TABLE_H
#define PPERF_REPORT_ANALYSIS_STREAM_TABLE_H

#include "report/analysis/activities.h"
#include "report/base/hash_index.h"

#define STREAM_TABLE_MAX 4096u
#define STREAM_TABLE_REST UINT64_MAX /* the stream of that one */

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

/* Its number; the next one if it is new. */
uint32_t stream_table_number(struct stream_table *table, uint32_t device, uint64_t stream);
void stream_table_free(struct stream_table *table);

/* `stream 7`, `stream 7 "copies"`: as the program named it (NVTX), if it did. Any bytes; returns their number, at most
 * `room` - 1, terminated. */
size_t stream_table_label(const struct device_stream *entry, const struct activities *activities,
	char *out, size_t room);

#endif
