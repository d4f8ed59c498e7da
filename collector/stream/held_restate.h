/* SPDX-License-Identifier: MIT
 * The inside of held_memory.c, held_records.c and held_mappings.c, which share one lock.
 */
#ifndef PPERF_COLLECTOR_STREAM_HELD_RESTATE_H
#define PPERF_COLLECTOR_STREAM_HELD_RESTATE_H

#include "collector/stream/held_memory.h"
#include "collector/stream/held_records.h"
#include "collector/stream/held_table.h"

#include <pthread.h>

struct stream;

struct held_level {
	uint64_t allocated, reserved;
};

struct held_record {
	struct held_key key; /* space: the record's kind */
	unsigned char record[HELD_RECORD_BYTES];
};

struct held_virtual {
	struct held_key key; /* held_mappings.c */
	union {
		struct trace_memory created;
		struct trace_mapping mapping;
	} record; /* both begin with the call; its duration and correlation are 0 */
	/* Of physical memory. late_releases: of earlier memory with its handle, whose records are
	 * still to come. */
	uint32_t references, mappings, late_releases;
	uint64_t physical; /* of a mapping: the memory's key; 0: not known */
};

/* What is held. Wiped in a forked child, which holds nothing of its parent's. */
struct held_state {
	pthread_mutex_t lock;
	struct held_table blocks;  /* of struct held_block */
	struct held_table records; /* of struct held_record */
	struct held_table virtual; /* of struct held_virtual */
	uint64_t renamed;          /* number of its keys that are no handle */
	uint32_t restatements;
	struct held_level levels[TRACE_TENSOR_DEVICES];
};

/* Set if held_memory_wanted. */
extern struct held_state *held_state;

/* Appends a copy of the record, which begins as a struct trace_timed, to the stream, at `stamp`.
 * Returns false if there is no room; the loss is counted. */
bool held_restate(struct stream *s, const void *record, uint64_t stamp);

/* Counts what had no place in a table. */
void held_count_unlisted(void);

#endif
