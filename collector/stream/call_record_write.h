/* SPDX-License-Identifier: MIT
 * Writes the records of CUDA calls into the calling thread's stream. A call that differs from an
 * earlier one of the same payload in few words is written as the short record AGAIN.
 *
 *	struct stream *stream = call_record_begin(kind, correlation);
 *
 *	if (stream)
 *		call_record_end(stream, &record);
 *
 * Nothing here takes a lock, allocates, or changes errno.
 *
 * The functions are inline, because each call of the program passes through them. Only
 * preload/cuda/traced_call.c includes this header.
 */
#ifndef PPERF_COLLECTOR_STREAM_CALL_RECORD_WRITE_H
#define PPERF_COLLECTOR_STREAM_CALL_RECORD_WRITE_H

#include "collector/stream/call_record.h"
#include "collector/stream/stream_state.h"
#include <assert.h>

/* The longest call record, with the padding before it. */
#define CALL_BYTES_MAX (4 + sizeof(struct trace_launch))

/* The index of each word in a call record. */
enum call_word { HEAD, STAMP, DURATION, CORRELATION, RESULT_API, STACK_DEVICE, REST };
static_assert(offsetof(struct trace_call, duration) == 8 * DURATION &&
		      offsetof(struct trace_call, correlation) == 8 * CORRELATION &&
		      offsetof(struct trace_call, result) == 8 * RESULT_API &&
		      offsetof(struct trace_call, stack) == 8 * STACK_DEVICE &&
		      sizeof(struct trace_call) == 8 * REST,
	"enum call_word is struct trace_call");
static_assert(
	offsetof(struct trace_again, duration) == 16 && offsetof(struct trace_again, of) == 20 &&
		offsetof(struct trace_again, correlation) == 22 && sizeof(struct trace_again) == 24,
	"append_repeated writes it so");
static_assert(CALL_WORDS(trace_launch) == 6 && CALL_WORDS(trace_graph_launch) == 3 &&
		      CALL_WORDS(trace_copy) == 3 && CALL_WORDS(trace_sync) == 3 &&
		      CALL_WORDS(trace_memory) == 4 && CALL_WORDS(trace_mapping) == 4,
	"is_repeat_of compares 3, 4 or 6 words");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	"call_pair puts the first number into the low half");

/* Returns the slot of s->calls that holds the last similar call. The hash leaves out the words that
 * AGAIN may change, but includes the function of a launch. */
static inline uint16_t *similar_call_slot(struct stream *s, const struct call_record *record)
{
	uint64_t key = record->result_api + record->rest[2] +
		       (record->words == CALL_WORDS(trace_launch) ? record->rest[1] : 0);

	return &s->calls[key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - __builtin_ctz(STREAM_CALLS))];
}

/* True if an AGAIN record that refers to the record at `was` can express this call. Unrolled,
 * because a loop would take longer than the comparisons. */
static inline bool is_repeat_of(const uint64_t *was, const struct call_record *record)
{
	uint64_t differ = (uint32_t)was[HEAD] ^ record->head;

	differ |= was[RESULT_API] ^ record->result_api;
	differ |= was[STACK_DEVICE] ^ record->stack_device;
	differ |= (record->correlation - was[CORRELATION]) >> 16;
	differ |= (record->stamp - record->begin) >> 32;
	differ |= was[REST + 2] ^ record->rest[2];
	if (record->words > 3)
		differ |= was[REST + 3] ^ record->rest[3];
	if (record->words > 4)
		differ |= (was[REST + 4] ^ record->rest[4]) | (was[REST + 5] ^ record->rest[5]);
	return !differ;
}

/* Writes an AGAIN record to `at`. `of`: the position of the earlier record, which is at `was`.
 * Returns the record's size in words. */
static inline size_t append_repeated(uint64_t *at, const struct call_record *record, uint32_t node,
	uint16_t of, const uint64_t *was)
{
	size_t words = record->rest[1] != was[REST + 1] ? 2 : record->rest[0] != was[REST];
	uint32_t correlation = (uint32_t)(record->correlation - was[CORRELATION]);

	at[0] = call_pair(
		(uint32_t)(sizeof(struct trace_again) + 8 * words) | TRACE_AGAIN << 16, node);
	at[1] = record->stamp;
	at[2] = call_pair((uint32_t)(record->stamp - record->begin), of | correlation << 16);
	at[3] = record->rest[0];
	at[4] = record->rest[1];
	return 3 + words;
}

static inline size_t append_full(uint64_t *at, const struct call_record *record, uint32_t node)
{
	at[HEAD] = call_pair(record->head, node);
	at[STAMP] = record->stamp;
	at[DURATION] = record->stamp - record->begin;
	at[CORRELATION] = record->correlation;
	at[RESULT_API] = record->result_api;
	at[STACK_DEVICE] = record->stack_device;
	for (size_t i = 0; i < record->words; i++)
		at[REST + i] = record->rest[i];
	return REST + record->words;
}

/* Writes the call as an AGAIN record if possible, else in full. The caller has reserved the
 * room. */
static inline void append_call(struct stream *s, struct call_record *record)
{
	uint64_t *payload = (void *)(s->slot + 1);
	uint64_t used = s->slot->used, at = (used + 7) / 8;
	uint16_t *similar = similar_call_slot(s, record), of = *similar;
	size_t words;

	if (used & 4)
		((uint32_t *)payload)[used / 4] = 0; /* padding */
	record->stamp = s->last = record->stamp > s->last ? record->stamp : s->last;
	if (of && is_repeat_of(payload + of, record)) {
		words = append_repeated(payload + at, record, s->node, of, payload + of);
	} else {
		words = append_full(payload + at, record, s->node);
		*similar = at <= UINT16_MAX ? (uint16_t)at : 0;
	}
	__atomic_store_n(&s->slot->used, 8 * (at + words), __ATOMIC_RELEASE);
}

/* True if the call is skipped; the stream is then released. While recording is paused, only
 * allocations and frees of CUDA are recorded. */
static inline bool call_record_is_skipped(struct stream *s, enum trace_kind kind)
{
	if (!recording_is_paused() || recording_skip_kind(kind) < 0)
		return false;
	stream_skip_end(s, TRACE_SKIPPED_CALLS, stream_skip_begin(s, TRACE_SKIPPED_CALLS));
	stream_finish();
	return true;
}

/* Acquires the thread's stream for one record of `kind`. Returns NULL if the event is not recorded:
 * the stream was refused, or recording is paused. Then call_record_end must not be called. */
static inline struct stream *call_record_begin(enum trace_kind kind, uint64_t correlation)
{
	struct stream *s = stream_begin();

	if (!s || call_record_is_skipped(s, kind))
		return NULL;
	if (__builtin_expect(recording_scheduled, 0) && !recording_is_paused())
		recording_note_call(correlation);
	if (__builtin_expect(s->unresolved, 0))
		stream_resolve_nodes(s);
	return s;
}

/* Writes the record and releases the stream. Raises the stamp to the stream's last stamp if that is
 * later. If record->stack_ticks is not 0, writes a record of that cost as well. Returns false if
 * there was no room; the loss is counted. */
static inline bool call_record_end(struct stream *s, struct call_record *record)
{
	const uint64_t end = record->stamp;
	bool written;

	if (__builtin_expect(end > s->last + STREAM_GAP_MAX, 0))
		stream_write_clock(s);
	written = stream_reserve(s, CALL_BYTES_MAX);
	if (written)
		append_call(s, record);
	if (written && record->stack_ticks)
		stream_write_stack_cost(end, record->stack_ticks);
	stream_finish();
	return written;
}

#endif
