/* SPDX-License-Identifier: MIT */
#include "report/gpu/correlation_join.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define MATCHED_SLACK 64u

struct held {
	struct held *next;
	struct trace_gpu *record;
};

enum state { FREE, WAITING, MATCHED, REPLAYED, AWAITED, STATES }; /* REPLAYED: a graph that is matched; AWAITED: only records of it are there */

static const uint32_t most[STATES] = { [WAITING] = JOIN_WAITING, [MATCHED] = JOIN_MATCHED, [REPLAYED] = JOIN_REPLAYED };

/* A launch in the table; in the queue of its state, by age. */
struct entry {
	struct launch launch;
	struct held *held, *last_held; /* oldest first */
	uint32_t next;                 /* in its bucket, or of the free ones, or of those pushed out */
	uint32_t older, newer;
	enum state state;
};

struct queue {
	uint32_t oldest, newest, count;
};

struct join {
	struct entry *entries;
	size_t room;
	uint32_t used, free, pushed_out; /* pushed_out: replaced by one of the same id */
	uint32_t *buckets;
	size_t bucket_count;
	struct queue queues[STATES];
	uint32_t held_count;
};

/* Ids are given in turn, and what has neighbouring ids happens at about the same time: it lies side by side. Ids with
 * long strides are spread all the same. */
static uint32_t *bucket_of(const struct join *join, uint64_t correlation)
{
	const uint64_t spread = (correlation >> 16) * 0x9e3779b97f4a7c15u;

	return &join->buckets[(correlation ^ spread >> 40) & (join->bucket_count - 1)];
}

static void enqueue(struct join *join, uint32_t index, enum state state)
{
	struct queue *queue = &join->queues[state];
	struct entry *entry = &join->entries[index];

	entry->state = state;
	entry->older = queue->newest;
	entry->newer = NONE;
	if (queue->newest != NONE)
		join->entries[queue->newest].newer = index;
	else
		queue->oldest = index;
	queue->newest = index;
	queue->count++;
}

static void dequeue(struct join *join, uint32_t index)
{
	const struct entry *entry = &join->entries[index];
	struct queue *queue = &join->queues[entry->state];

	if (entry->older != NONE)
		join->entries[entry->older].newer = entry->newer;
	else
		queue->oldest = entry->newer;
	if (entry->newer != NONE)
		join->entries[entry->newer].older = entry->older;
	else
		queue->newest = entry->older;
	queue->count--;
}

static void chain(struct join *join, uint32_t index)
{
	uint32_t *bucket = bucket_of(join, join->entries[index].launch.correlation);

	join->entries[index].next = *bucket;
	*bucket = index;
}

static void widen(struct join *join)
{
	free(join->buckets);
	join->bucket_count = join->bucket_count ? join->bucket_count * 2 : 1024;
	join->buckets = need(join->bucket_count * sizeof *join->buckets);
	memset(join->buckets, 0xff, join->bucket_count * sizeof *join->buckets);
	for (int state = WAITING; state < STATES; state++)
		for (uint32_t index = join->queues[state].oldest; index != NONE; index = join->entries[index].newer)
			chain(join, index);
}

struct join *join_new(void)
{
	struct join *join = need(sizeof *join);

	join->free = join->pushed_out = NONE;
	for (int state = 0; state < STATES; state++)
		join->queues[state].oldest = join->queues[state].newest = NONE;
	widen(join);
	return join;
}

void join_free(struct join *join)
{
	struct trace_gpu *record;

	if (!join)
		return;
	while ((record = join_next_lone(join, true)))
		free(record);
	free(join->entries);
	free(join->buckets);
	free(join);
}

static uint32_t find(const struct join *join, uint64_t correlation)
{
	uint32_t index = *bucket_of(join, correlation);

	while (index != NONE && join->entries[index].launch.correlation != correlation)
		index = join->entries[index].next;
	return index;
}

/* Out of the table; the entry's content stays readable until it is used again. */
static void take_out(struct join *join, uint32_t index)
{
	uint32_t *link = bucket_of(join, join->entries[index].launch.correlation);

	while (*link != index)
		link = &join->entries[*link].next;
	*link = join->entries[index].next;
	dequeue(join, index);
}

static void set_free(struct join *join, uint32_t index)
{
	join->entries[index].state = FREE;
	join->entries[index].next = join->free;
	join->free = index;
}

static uint32_t new_entry(struct join *join, const struct launch *launch, enum state state)
{
	const uint32_t count = join->queues[WAITING].count + join->queues[MATCHED].count + join->queues[REPLAYED].count +
			       join->queues[AWAITED].count;
	uint32_t index = join->free;

	if (count * 4 >= join->bucket_count)
		widen(join);
	if (index != NONE) {
		join->free = join->entries[index].next;
	} else {
		grow(&join->entries, &join->room, (size_t)join->used + 1, sizeof *join->entries);
		index = join->used++;
	}
	join->entries[index] = (struct entry){ .launch = *launch };
	chain(join, index);
	enqueue(join, index, state);
	return index;
}

void join_add(struct join *join, const struct launch *launch)
{
	const uint32_t same = find(join, launch->correlation);

	if (same != NONE && join->entries[same].state == AWAITED) {
		dequeue(join, same);
		join->entries[same].launch = *launch;
		enqueue(join, same, WAITING);
		return;
	}
	if (same != NONE) {
		take_out(join, same);
		join->entries[same].next = join->pushed_out;
		join->pushed_out = same;
	}
	new_entry(join, launch, WAITING);
}

struct launch *join_match(struct join *join, uint64_t correlation)
{
	const uint32_t index = find(join, correlation);
	struct entry *entry = &join->entries[index];

	if (index == NONE || entry->state == AWAITED)
		return NULL;
	dequeue(join, index);
	enqueue(join, index, entry->launch.graph_node ? REPLAYED : MATCHED);
	entry->launch.records++;
	return &entry->launch;
}

/* Of those that are matched some more than the most are let in, to give up many in one go. */
bool join_is_full(const struct join *join)
{
	return join->queues[WAITING].count > JOIN_WAITING || join->queues[MATCHED].count > JOIN_MATCHED + MATCHED_SLACK ||
	       join->queues[REPLAYED].count > JOIN_REPLAYED || join->held_count > JOIN_HELD || join->pushed_out != NONE;
}

bool join_next_gone(struct join *join, bool all, struct launch *launch)
{
	uint32_t index = join->pushed_out;

	if (index != NONE) {
		join->pushed_out = join->entries[index].next;
	} else {
		enum state state = WAITING;

		while (state < AWAITED && join->queues[state].count <= (all ? 0 : most[state]))
			state++;
		if (state == AWAITED)
			return false;
		index = join->queues[state].oldest;
		take_out(join, index);
	}
	*launch = join->entries[index].launch;
	set_free(join, index);
	return true;
}

void join_hold(struct join *join, const struct trace_gpu *record)
{
	const uint32_t known = find(join, record->correlation);
	const uint32_t index = known != NONE ? known
					     : new_entry(join, &(struct launch){ .correlation = record->correlation },
						       AWAITED);
	struct entry *entry = &join->entries[index];
	struct held *held = need(sizeof *held);

	held->record = need(record->head.size);
	memcpy(held->record, record, record->head.size);
	if (entry->held)
		entry->last_held->next = held;
	else
		entry->held = held;
	entry->last_held = held;
	join->held_count++;
}

static struct trace_gpu *first_held(struct join *join, struct entry *entry)
{
	struct held *held = entry->held;
	struct trace_gpu *record;

	if (!held)
		return NULL;
	record = held->record;
	entry->held = held->next;
	free(held);
	join->held_count--;
	return record;
}

struct trace_gpu *join_take_held(struct join *join, uint64_t correlation)
{
	const uint32_t index = join->held_count ? find(join, correlation) : NONE;

	return index != NONE ? first_held(join, &join->entries[index]) : NULL;
}

struct trace_gpu *join_next_lone(struct join *join, bool all)
{
	const uint32_t index = join->queues[AWAITED].oldest;
	struct trace_gpu *record;

	if (index == NONE || (!all && join->held_count <= JOIN_HELD))
		return NULL;
	record = first_held(join, &join->entries[index]);
	if (!join->entries[index].held) {
		take_out(join, index);
		set_free(join, index);
	}
	return record;
}
