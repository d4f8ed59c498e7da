/* SPDX-License-Identifier: MIT */
#include "report/trace/correlation_join.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

#define NONE JOIN_NO_SLOT
#define MATCHED_SLACK 64u

struct held_record {
	struct held_record *next;
	struct trace_gpu *record;
};

/* The state of an entry.
 *
 *   FREE          in the free list
 *   WAITING       a launch without a record
 *   MATCHED       a launch that has a record, and is not of a graph
 *   REPLAYED      a launch of a graph that has a record
 *   RECORDS_ONLY  records are held, and their launch has not come */
enum launch_state { FREE, WAITING, MATCHED, REPLAYED, RECORDS_ONLY, STATES };

static const uint32_t queue_limits[STATES] = {
	[WAITING] = JOIN_WAITING, [MATCHED] = JOIN_MATCHED, [REPLAYED] = JOIN_REPLAYED
};

/* An entry of the table. It is also in the queue of its state, which is ordered by age. */
struct join_entry {
	uint64_t correlation;
	struct held_record *last_held; /* a ring: the oldest is after it; NULL: none */
	uint32_t next; /* in its bucket, in the free list, or in the list of evicted entries */
	uint32_t older, newer;
	uint8_t state; /* enum launch_state */
	bool is_graph;
};

struct join_queue {
	uint32_t oldest, newest, count;
};

struct correlation_join {
	struct join_entry *entries;
	size_t room;
	/* `used`: number of entries in `entries`, with those in the lists. `free`, `evicted`: heads
	 * of lists. Evicted entries were replaced by one with the same id. */
	uint32_t used, free, evicted;
	uint32_t *buckets;
	size_t bucket_count;
	struct join_queue queues[STATES];
	uint32_t held_count;
};

/* Ids are assigned in sequence, so neighbouring ids occur at about the same time. The hash puts
 * them into neighbouring buckets. Ids with long strides are still spread. */
static uint32_t *bucket_of(const struct correlation_join *join, uint64_t correlation)
{
	const uint64_t spread = (correlation >> 16) * 0x9e3779b97f4a7c15u;

	return &join->buckets[(correlation ^ spread >> 40) & (join->bucket_count - 1)];
}

static inline void enqueue_launch(
	struct correlation_join *join, uint32_t index, enum launch_state state)
{
	struct join_queue *queue = &join->queues[state];
	struct join_entry *entry = &join->entries[index];

	entry->state = (uint8_t)state;
	entry->older = queue->newest;
	entry->newer = NONE;
	if (queue->newest != NONE)
		join->entries[queue->newest].newer = index;
	else
		queue->oldest = index;
	queue->newest = index;
	queue->count++;
}

static inline void dequeue_launch(struct correlation_join *join, uint32_t index)
{
	const struct join_entry *entry = &join->entries[index];
	struct join_queue *queue = &join->queues[entry->state];

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

static void grow_entries(struct correlation_join *join)
{
	const size_t room = join->room ? join->room * 2 : 1024;

	join->entries = mapped_grow(
		join->entries, join->room * sizeof *join->entries, room * sizeof *join->entries);
	join->room = room;
}

static void add_to_bucket(struct correlation_join *join, uint32_t index)
{
	uint32_t *bucket = bucket_of(join, join->entries[index].correlation);

	join->entries[index].next = *bucket;
	*bucket = index;
}

/* Doubles the number of buckets and adds the entries of all queues to them. Free and evicted
 * entries are in no queue. */
static void grow_buckets(struct correlation_join *join)
{
	free(join->buckets);
	join->bucket_count = join->bucket_count ? join->bucket_count * 2 : 1024;
	join->buckets = xcalloc(join->bucket_count * sizeof *join->buckets);
	/* NONE in every bucket */
	memset(join->buckets, 0xff, join->bucket_count * sizeof *join->buckets);
	for (int state = WAITING; state < STATES; state++)
		for (uint32_t index = join->queues[state].oldest; index != NONE;
			index = join->entries[index].newer)
			add_to_bucket(join, index);
}

struct correlation_join *join_new(void)
{
	struct correlation_join *join = xcalloc(sizeof *join);

	join->free = join->evicted = NONE;
	for (int state = 0; state < STATES; state++)
		join->queues[state].oldest = join->queues[state].newest = NONE;
	grow_buckets(join);
	return join;
}

static inline uint32_t find_launch(const struct correlation_join *join, uint64_t correlation)
{
	uint32_t index = *bucket_of(join, correlation);

	while (index != NONE && join->entries[index].correlation != correlation)
		index = join->entries[index].next;
	return index;
}

/* Removes an entry from its bucket and queue. Its contents stay valid until the entry is used
 * again. */
static void remove_from_table(struct correlation_join *join, uint32_t index)
{
	uint32_t *link = bucket_of(join, join->entries[index].correlation);

	while (*link != index)
		link = &join->entries[*link].next;
	*link = join->entries[index].next;
	dequeue_launch(join, index);
}

/* Prefetches an entry that was used thousands of events ago. NONE is allowed. Inlined: the compiler
 * drops a call without effects. */
static inline __attribute__((always_inline)) void prefetch_entry(
	const struct correlation_join *join, uint32_t index)
{
	if (index != NONE)
		__builtin_prefetch(&join->entries[index], 1);
}

static void release_entry(struct correlation_join *join, uint32_t index)
{
	join->entries[index].state = FREE;
	join->entries[index].next = join->free;
	join->free = index;
}

static uint32_t new_entry(
	struct correlation_join *join, uint64_t correlation, enum launch_state state)
{
	const uint32_t count = join->queues[WAITING].count + join->queues[MATCHED].count +
			       join->queues[REPLAYED].count + join->queues[RECORDS_ONLY].count;
	uint32_t index = join->free;

	if (count * 4 >= join->bucket_count) /* at most a quarter full */
		grow_buckets(join);
	if (index != NONE) {
		join->free = join->entries[index].next;
		prefetch_entry(join, join->free);
	} else {
		index = join->used++;
		if (index == join->room)
			grow_entries(join);
	}
	join->entries[index].correlation = correlation;
	join->entries[index].last_held = NULL;
	add_to_bucket(join, index);
	enqueue_launch(join, index, state);
	return index;
}

static void add_step(
	struct join_steps *steps, enum join_action action, uint32_t slot, struct trace_gpu *record)
{
	*ARRAY_ADD(steps->steps, steps->room, steps->count) = (struct join_step){
		.action = action, .slot = slot, .record = record
	};
}

/* Finds the launch of `correlation` and notes that it has a record. Returns NONE if there is
 * none. */
static uint32_t match_launch(struct correlation_join *join, uint64_t correlation)
{
	const uint32_t index = find_launch(join, correlation);
	struct join_entry *entry = &join->entries[index];
	enum launch_state state;

	if (index == NONE || entry->state == RECORDS_ONLY)
		return NONE;
	if (entry->newer != NONE) /* records come roughly in the order of their launches */
		prefetch_entry(join, join->entries[entry->newer].newer);
	state = entry->is_graph ? REPLAYED : MATCHED;
	dequeue_launch(join, index);
	enqueue_launch(join, index, state);
	return index;
}

static struct trace_gpu *pop_held(struct correlation_join *join, struct join_entry *entry)
{
	struct held_record *oldest;
	struct trace_gpu *record;

	if (!entry->last_held)
		return NULL;
	oldest = entry->last_held->next;
	record = oldest->record;
	if (oldest == entry->last_held)
		entry->last_held = NULL;
	else
		entry->last_held->next = oldest->next;
	free(oldest);
	join->held_count--;
	return record;
}

/* Adds a launch, and the steps of the records that are held for it. An earlier launch with the same
 * id is evicted. Returns its slot. */
static uint32_t add_launch(struct correlation_join *join, uint64_t correlation, bool is_graph,
	struct join_steps *steps)
{
	const uint32_t same = find_launch(join, correlation);
	uint32_t index = same;
	struct trace_gpu *held;

	if (same != NONE && join->entries[same].state == RECORDS_ONLY) {
		dequeue_launch(join, same);
		enqueue_launch(join, same, WAITING);
	} else {
		if (same != NONE) {
			remove_from_table(join, same);
			join->entries[same].next = join->evicted;
			join->evicted = same;
		}
		index = new_entry(join, correlation, WAITING);
	}
	join->entries[index].is_graph = is_graph;
	while ((held = pop_held(join, &join->entries[index]))) {
		match_launch(join, correlation);
		add_step(steps, JOIN_RECORD_MATCHED, index, held);
	}
	return index;
}

/* Keeps a copy of a GPU record until its launch comes. */
static void hold_record(struct correlation_join *join, const struct trace_gpu *record)
{
	const uint32_t known = find_launch(join, record->correlation);
	const uint32_t index = known != NONE ? known
					     : new_entry(join, record->correlation, RECORDS_ONLY);
	struct join_entry *entry = &join->entries[index];
	struct held_record *held = xcalloc(sizeof *held);

	held->record = xcalloc(record->head.size);
	memcpy(held->record, record, record->head.size);
	held->next = entry->last_held ? entry->last_held->next : held;
	if (entry->last_held)
		entry->last_held->next = held;
	entry->last_held = held;
	join->held_count++;
}

/* Returns whether a limit is exceeded. The matched launches may exceed theirs by MATCHED_SLACK, so
 * that many are evicted at once. */
static bool join_is_full(const struct correlation_join *join)
{
	return join->queues[WAITING].count > JOIN_WAITING ||
	       join->queues[MATCHED].count > JOIN_MATCHED + MATCHED_SLACK ||
	       join->queues[REPLAYED].count > JOIN_REPLAYED || join->held_count > JOIN_HELD ||
	       join->evicted != NONE;
}

/* Removes the next evicted launch, with `all` any. Returns NONE if there is none. */
static uint32_t next_evicted(struct correlation_join *join, bool all)
{
	uint32_t index = join->evicted;

	if (index != NONE) {
		join->evicted = join->entries[index].next;
	} else {
		enum launch_state state = WAITING;

		while (state < RECORDS_ONLY &&
			join->queues[state].count <= (all ? 0 : queue_limits[state]))
			state++;
		if (state == RECORDS_ONLY)
			return NONE;
		index = join->queues[state].oldest;
		remove_from_table(join, index);
	}
	prefetch_entry(join, join->entries[index].newer);
	release_entry(join, index);
	return index;
}

/* Removes the oldest held record if more than JOIN_HELD are held, or any with `all`. Returns NULL
 * if there is none. */
static struct trace_gpu *next_unmatched(struct correlation_join *join, bool all)
{
	const uint32_t index = join->queues[RECORDS_ONLY].oldest;
	struct trace_gpu *record;

	if (index == NONE || (!all && join->held_count <= JOIN_HELD))
		return NULL;
	record = pop_held(join, &join->entries[index]);
	if (!join->entries[index].last_held) {
		remove_from_table(join, index);
		release_entry(join, index);
	}
	return record;
}

/* Adds the steps of what is evicted; `all`: everything that waits. */
static void evict(struct correlation_join *join, bool all, struct join_steps *steps)
{
	struct trace_gpu *record;
	uint32_t slot;

	while ((record = next_unmatched(join, all)))
		add_step(steps, JOIN_RECORD_UNMATCHED, NONE, record);
	while ((slot = next_evicted(join, all)) != NONE)
		add_step(steps, JOIN_LAUNCH_EVICTED, slot, NULL);
}

/* Returns the slot of the record's launch. */
static uint32_t join_record(struct correlation_join *join, const struct trace_gpu *record)
{
	uint32_t slot;

	if (!record->correlation)
		return NONE;
	slot = match_launch(join, record->correlation);
	if (slot == NONE)
		hold_record(join, record);
	return slot;
}

void join_event(struct correlation_join *join, struct trace_event *event, struct join_steps *steps)
{
	const struct trace_call *call = event->record;
	const size_t before = steps->count;

	switch (event->kind) {
	case TRACE_KERNEL:
	case TRACE_GPU_COPY:
	case TRACE_GPU_SET:
		event->slot = join_record(join, event->record);
		break;
	case TRACE_LAUNCH:
	case TRACE_GRAPH_LAUNCH:
	case TRACE_COPY:
	case TRACE_SET:
		if (!call_awaits_record(call))
			return;
		event->slot = add_launch(
			join, call->correlation, event->kind == TRACE_GRAPH_LAUNCH, steps);
		break;
	default:
		return;
	}
	if (join_is_full(join))
		evict(join, false, steps);
	event->steps = 0;
	if (steps->count == before)
		return;
	event->steps = (uint32_t)before + 1;
	add_step(steps, JOIN_STEPS_END, NONE, NULL);
}

void join_end(struct correlation_join *join, struct join_steps *steps)
{
	evict(join, true, steps);
	add_step(steps, JOIN_STEPS_END, NONE, NULL);
}

void join_steps_clear(struct join_steps *steps)
{
	while (steps->count)
		free(steps->steps[--steps->count].record);
}

void join_free(struct correlation_join *join)
{
	struct trace_gpu *record;

	if (!join)
		return;
	while ((record = next_unmatched(join, true)))
		free(record);
	mapped_free(join->entries, join->room * sizeof *join->entries);
	free(join->buckets);
	free(join);
}
