/* SPDX-License-Identifier: MIT
 * Writes the records of CUDA calls into the calling thread's stream. A call that differs from an
 * earlier one of the same payload in few words is written as the short record AGAIN.
 *
 *	struct stream *stream = call_record_begin(kind, correlation);
 *
 *	if (stream) {
 *		call_record_put(stream, &record);
 *		call_record_end();
 *	}
 *
 * Nothing here takes a lock, allocates, or changes errno.
 */
#ifndef PPERF_COLLECTOR_STREAM_CALL_RECORD_H
#define PPERF_COLLECTOR_STREAM_CALL_RECORD_H

#include "collector/trace_format.h"
#include <stdbool.h>
#include <stddef.h>

struct stream;

/* The number of 8-byte words that a record of this type has after struct trace_call. */
#define CALL_WORDS(type) ((sizeof(struct type) - sizeof(struct trace_call)) / 8)

/* Packs two 4-byte numbers as the format stores them in one word. */
static inline uint64_t call_pair(uint32_t first, uint32_t second)
{
	return first | (uint64_t)second << 32;
}

/* The content of a call's record, in the words of the format. The members are whole words, because
 * they are compared as such. Reading a word whose halves were just stored separately would stall
 * the processor. */
struct call_record {
	uint64_t begin, stamp, correlation;
	uint64_t result_api;   /* call_pair(result, api) */
	uint64_t stack_device; /* call_pair(stack, device) */
	const uint64_t *rest;
	size_t words;  /* words in `rest`: CALL_WORDS of the record's type */
	uint32_t head; /* from call_record_head */
};

/* Returns the first 4 bytes of the record: its size, kind and flags. */
uint32_t call_record_head(enum trace_kind kind, uint32_t flags, size_t words);

/* Acquires the thread's stream for one record of `kind`. Returns NULL if the event is not recorded:
 * the stream was refused, or recording is paused. Then call_record_end must not be called. */
struct stream *call_record_begin(enum trace_kind kind, uint64_t correlation);

/* Writes the record. Raises its stamp to the stream's last stamp if that is later. Returns false if
 * there was no room; the loss is counted. */
bool call_record_put(struct stream *stream, struct call_record *record);

/* Releases the thread's stream. */
void call_record_end(void);

#endif
