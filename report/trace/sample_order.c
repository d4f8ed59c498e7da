/* SPDX-License-Identifier: MIT */
#include "report/trace/sample_order.h"

#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/trace/record_check.h"

#include <stdlib.h>
#include <string.h>

/* Samples are written in batches of all threads, so few records are between two of one moment. */
#define NEAR_RECORDS 32u

struct moved_record {
	uint64_t stamp;
	uint32_t at; /* in the payload, in bytes */
	uint32_t size;
};

struct record_moves {
	struct moved_record *records;
	size_t count, room;
	uint32_t end; /* the records are those of the payload's bytes before it */
	bool has_samples, is_sorted;
};

/* Returns whether a record means the same wherever it is in its payload. */
static bool is_movable(unsigned kind)
{
	return kind == TRACE_CLOCK || kind == TRACE_SAMPLE || kind == TRACE_SAMPLED_THREAD ||
	       kind == TRACE_SELF || kind == TRACE_LOST || kind >= TRACE_KINDS;
}

/* Returns when the record belongs: SAMPLE when it was taken, others with their stamp. A record
 * without one stays behind the record before it, whose stamp is `last`. */
static uint64_t moment_of(const struct trace_head *head, uint64_t last, uint64_t floor)
{
	const struct trace_sample *sample = (const void *)head;
	uint64_t stamp = last;

	if (head->kind == TRACE_SAMPLE)
		stamp = sample->ago < sample->stamp ? sample->stamp - sample->ago : 0;
	else if (kind_is_timed(head->kind))
		stamp = ((const struct trace_timed *)(const void *)head)->stamp;
	return stamp > floor ? stamp : floor;
}

/* Moves the last record before those with later stamps. Returns false if it belongs before more
 * than NEAR_RECORDS of them: the whole list is then sorted. */
static bool move_back(struct record_moves *moves)
{
	const struct moved_record last = moves->records[moves->count - 1];
	size_t at = moves->count - 1;

	while (at && moves->records[at - 1].stamp > last.stamp) {
		if (moves->count - at > NEAR_RECORDS)
			break;
		moves->records[at] = moves->records[at - 1];
		at--;
	}
	moves->records[at] = last;
	return !at || moves->records[at - 1].stamp <= last.stamp;
}

/* Returns whether record_check finds that the record is a sample of the usual size. */
static bool is_plain_sample(const struct trace_head *head, uint32_t at, uint32_t used)
{
	return used - at >= sizeof(struct trace_sample) && at % 8 == 0 &&
	       head->kind == TRACE_SAMPLE && head->size == sizeof(struct trace_sample);
}

/* Lists the records up to the first that is malformed. Returns false if one must not be moved. */
static bool list_records(
	const struct block_payload *payload, uint64_t floor, struct record_moves *moves)
{
	uint64_t last = floor;
	uint32_t at = 0, word;

	for (; payload->used - at >= 4; moves->end = at) {
		const struct trace_head *head = (const void *)(payload->bytes + at);

		memcpy(&word, payload->bytes + at, sizeof word);
		if (word == 0) {
			at += 4;
			continue;
		}
		if (word & 3)
			return false;
		if (!is_plain_sample(head, at, payload->used) &&
			(at % 8 || record_check(head, payload->used - at)))
			return true;
		if (head->kind != TRACE_SAMPLE && !is_movable(head->kind))
			return false;
		moves->has_samples |= head->kind == TRACE_SAMPLE;
		*ARRAY_ADD(moves->records, moves->room, moves->count) = (struct moved_record){
			moment_of(head, last, floor), at, head->size
		};
		last = moves->records[moves->count - 1].stamp;
		moves->is_sorted &= move_back(moves);
		at += head->size;
	}
	return true;
}

static int compare_moments(const void *left, const void *right)
{
	const struct moved_record *a = left, *b = right;

	return a->stamp != b->stamp ? COMPARE(a->stamp, b->stamp) : COMPARE(a->at, b->at);
}

/* `out` is aligned: sizes of records are multiples of 8. */
static size_t copy_record(
	unsigned char *out, const unsigned char *from, const struct moved_record *record)
{
	struct trace_sample *sample = (void *)out;

	if (record->size == sizeof *sample)
		memcpy(out, from, sizeof *sample);
	else
		memcpy(out, from, record->size);
	if (sample->head.kind != TRACE_SAMPLE)
		return record->size;
	/* A sample that is late stays with the time at which it comes. */
	sample->ago = sample->stamp > record->stamp ? (uint32_t)(sample->stamp - record->stamp) : 0;
	sample->stamp = record->stamp;
	return record->size;
}

static bool is_left_out(const struct record_moves *moves, size_t index,
	const struct trace_head *head, uint32_t nodes)
{
	return head->kind == TRACE_SAMPLE && head->node < nodes && index &&
	       index + 1 < moves->count;
}

static void write_copy(struct block_payload *payload, struct ordered_payload *ordered,
	const struct record_moves *moves, uint32_t left_out_nodes)
{
	const uint32_t rest = payload->used - moves->end;
	size_t used = 0;

	if (payload->used > ordered->room)
		array_grow(&ordered->bytes, &ordered->room, payload->used, 1);
	for (size_t i = 0; i < moves->count; i++) {
		const unsigned char *from = payload->bytes + moves->records[i].at;

		if (!is_left_out(moves, i, (const void *)from, left_out_nodes))
			used += copy_record(ordered->bytes + used, from, &moves->records[i]);
	}
	memcpy(ordered->bytes + used, payload->bytes + moves->end, rest);
	payload->bytes = ordered->bytes;
	payload->used = (uint32_t)(used + rest);
	if (moves->count)
		payload->base_stamp = moves->records[0].stamp;
}

void sample_order(struct block_payload *payload, struct ordered_payload *ordered, uint64_t floor,
	uint32_t left_out_nodes)
{
	struct record_moves moves = {
		.records = ordered->records, .room = ordered->record_room, .is_sorted = true
	};

	if (list_records(payload, floor, &moves) && moves.has_samples) {
		if (!moves.is_sorted)
			qsort(moves.records, moves.count, sizeof *moves.records, compare_moments);
		write_copy(payload, ordered, &moves, left_out_nodes);
	}
	ordered->records = moves.records;
	ordered->record_room = moves.room;
}

void ordered_payload_free(struct ordered_payload *ordered)
{
	free(ordered->bytes);
	free(ordered->records);
	*ordered = (struct ordered_payload){ .bytes = NULL };
}
