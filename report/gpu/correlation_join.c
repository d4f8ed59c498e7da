/* SPDX-License-Identifier: MIT */
#include "report/gpu/correlation_join.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
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

/* An entry of the table. It is also in the queue of its state, which is ordered by age. Thousands
 * of launches wait, so what each of them needs is at the begin of 96 bytes. */
struct join_entry {
	uint32_t next; /* in its bucket, in the free list, or in the list of evicted entries */
	uint32_t older, newer;
	enum launch_state state;
	struct gpu_launch launch;
	struct held_record *last_held; /* a ring: the oldest is after it; NULL: none */
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

static void add_to_bucket(struct correlation_join *join, uint32_t index)
{
	uint32_t *bucket = bucket_of(join, join->entries[index].launch.correlation);

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

void join_free(struct correlation_join *join)
{
	struct trace_gpu *record;

	if (!join)
		return;
	while ((record = join_next_unmatched(join, true)))
		free(record);
	free(join->entries);
	free(join->buckets);
	free(join);
}

static inline uint32_t find_launch(const struct correlation_join *join, uint64_t correlation)
{
	uint32_t index = *bucket_of(join, correlation);

	while (index != NONE && join->entries[index].launch.correlation != correlation)
		index = join->entries[index].next;
	return index;
}

/* Removes an entry from its bucket and queue. Its contents stay valid until the entry is used
 * again. */
static void remove_from_table(struct correlation_join *join, uint32_t index)
{
	uint32_t *link = bucket_of(join, join->entries[index].launch.correlation);

	while (*link != index)
		link = &join->entries[*link].next;
	*link = join->entries[index].next;
	dequeue_launch(join, index);
}

/* Prefetches an entry that was used thousands of events ago. NONE is allowed. */
static inline void prefetch_entry(const struct correlation_join *join, uint32_t index)
{
	if (index == NONE)
		return;
	__builtin_prefetch(&join->entries[index], 1);
	__builtin_prefetch((const char *)&join->entries[index] + sizeof(struct join_entry) - 1, 1);
}

static void release_entry(struct correlation_join *join, uint32_t index)
{
	join->entries[index].state = FREE;
	join->entries[index].next = join->free;
	join->free = index;
}

static uint32_t new_entry(
	struct correlation_join *join, const struct gpu_launch *launch, enum launch_state state)
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
		ARRAY_GROW(join->entries, join->room, (size_t)join->used + 1);
		index = join->used++;
	}
	join->entries[index].launch = *launch;
	join->entries[index].last_held = NULL;
	add_to_bucket(join, index);
	enqueue_launch(join, index, state);
	return index;
}

void join_add(struct correlation_join *join, const struct gpu_launch *launch)
{
	const uint32_t same = find_launch(join, launch->correlation);

	if (same != NONE && join->entries[same].state == RECORDS_ONLY) {
		dequeue_launch(join, same);
		join->entries[same].launch = *launch;
		enqueue_launch(join, same, WAITING);
		return;
	}
	if (same != NONE) {
		remove_from_table(join, same);
		join->entries[same].next = join->evicted;
		join->evicted = same;
	}
	new_entry(join, launch, WAITING);
}

/* Records come roughly in the order of their launches. Prefetches what the next ones need: the
 * instance of the launch after `entry`, and the launch after that. */
static inline void prefetch_next_matches(
	const struct correlation_join *join, const struct join_entry *entry)
{
	if (entry->newer == NONE)
		return;
	if (join->entries[entry->newer].launch.instance)
		__builtin_prefetch(join->entries[entry->newer].launch.instance, 1);
	prefetch_entry(join, join->entries[entry->newer].newer);
}

struct gpu_launch *join_match(struct correlation_join *join, uint64_t correlation)
{
	const uint32_t index = find_launch(join, correlation);
	struct join_entry *entry = &join->entries[index];

	if (index == NONE || entry->state == RECORDS_ONLY)
		return NULL;
	prefetch_next_matches(join, entry);
	dequeue_launch(join, index);
	enqueue_launch(join, index, entry->launch.graph_node ? REPLAYED : MATCHED);
	entry->launch.records++;
	return &entry->launch;
}

/* The matched launches may exceed their limit by MATCHED_SLACK, so that many are evicted at
 * once. */
bool join_is_full(const struct correlation_join *join)
{
	return join->queues[WAITING].count > JOIN_WAITING ||
	       join->queues[MATCHED].count > JOIN_MATCHED + MATCHED_SLACK ||
	       join->queues[REPLAYED].count > JOIN_REPLAYED || join->held_count > JOIN_HELD ||
	       join->evicted != NONE;
}

bool join_next_evicted(struct correlation_join *join, bool all, struct gpu_launch *launch)
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
			return false;
		index = join->queues[state].oldest;
		remove_from_table(join, index);
	}
	*launch = join->entries[index].launch;
	prefetch_entry(join, join->entries[index].newer);
	release_entry(join, index);
	return true;
}

void join_hold(struct correlation_join *join, const struct trace_gpu *record)
{
	const uint32_t known = find_launch(join, record->correlation);
	const uint32_t index = known != NONE ? known
					     : new_entry(join,
						       &(struct gpu_launch){
							       .correlation = record->correlation },
						       RECORDS_ONLY);
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

struct trace_gpu *join_take_held(struct correlation_join *join, uint64_t correlation)
{
	const uint32_t index = join->held_count ? find_launch(join, correlation) : NONE;

	return index != NONE ? pop_held(join, &join->entries[index]) : NULL;
}

struct trace_gpu *join_next_unmatched(struct correlation_join *join, bool all)
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
