/* SPDX-License-Identifier: MIT
 * Defines the content of a call's record. traced_call.c fills it in, call_record_write.h writes it.
 */
#ifndef PPERF_COLLECTOR_STREAM_CALL_RECORD_H
#define PPERF_COLLECTOR_STREAM_CALL_RECORD_H

#include "collector/trace_format.h"
#include <stddef.h>

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
	uint64_t
		stack_ticks; /* ticks that pperf spent on the call's stack after `stamp`; 0: none */
};

/* Returns the first 4 bytes of a record with `words` words after struct trace_call: its size, kind
 * and flags. */
static inline uint32_t call_record_head(enum trace_kind kind, uint32_t flags, size_t words)
{
	return (uint32_t)(sizeof(struct trace_call) + 8 * words) | (uint32_t)kind << 16 |
	       flags << 24;
}

#endif
