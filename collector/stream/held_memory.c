/* SPDX-License-Identifier: MIT */
#include "collector/stream/held_memory.h"

#include "collector/file/ring.h"
#include "collector/file/trace_file.h"
#include "collector/process/clock.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/stream/held_mappings.h"
#include "collector/stream/held_records.h"
#include "collector/stream/held_restate.h"
#include "collector/stream/stream_state.h"

#include <pthread.h>
#include <string.h>

bool held_memory_wanted;
struct held_state *held_state;
static _Thread_local bool is_locked_here __attribute__((tls_model("initial-exec")));

void held_memory_setup(void)
{
	struct held_state *made = ring_is_used() ? fork_wiped_alloc(sizeof *made) : NULL;

	held_state = made;
	held_memory_wanted = made != NULL;
}

/* Sets up the tables. A forked child finds them wiped. */
static void prepare_tables(void)
{
	struct held_state *held = held_state;

	if (held->blocks.max)
		return;
	held->blocks = (struct held_table){ .entry_bytes = sizeof(struct held_block),
		.max = HELD_BLOCKS_MAX };
	held->records = (struct held_table){ .entry_bytes = sizeof(struct held_record),
		.max = HELD_RECORDS_MAX };
	held->virtual = (struct held_table){ .entry_bytes = sizeof(struct held_virtual),
		.max = HELD_MAPPINGS_MAX };
}

void held_memory_lock(struct signal_guard *guard)
{
	signal_guard_begin(guard);
	pthread_mutex_lock(&held_state->lock);
	is_locked_here = true;
	prepare_tables();
}

/* Restates what is held if that became due while this thread held the lock. */
static void restate_after_unlock(void)
{
	const bool working = stream_is_working();
	struct stream *s = working ? stream_tls.mine : stream_begin();

	if (s && s->slot)
		held_memory_restate_if_due(s);
	if (!working && s)
		stream_finish();
}

void held_memory_unlock(const struct signal_guard *guard)
{
	is_locked_here = false;
	pthread_mutex_unlock(&held_state->lock);
	if (ring_wants_restatement())
		restate_after_unlock();
	signal_guard_end(guard);
}

void held_count_unlisted(void)
{
	struct trace_header *header = trace_header();

	if (header)
		__atomic_fetch_add(&header->ring.unlisted, 1, __ATOMIC_RELAXED);
}

void held_memory_add(const struct held_block *block)
{
	struct held_block *entry = held_table_add(
		&held_state->blocks, block->key.space, block->key.key);
	const bool replaces = entry && entry->begin;
	const uint16_t late = replaces ? (uint16_t)(entry->late_frees + 1) : 0;

	if (!entry) {
		held_count_unlisted();
		return;
	}
	*entry = *block;
	entry->late_frees = late;
}

void held_memory_remove(enum held_space space, uint64_t address, uint64_t begin)
{
	struct held_block *entry = held_table_find(&held_state->blocks, space, address);

	if (!entry)
		return;
	/* Another thread allocated the address before this release was recorded. */
	if (entry->late_frees && begin < entry->begin)
		entry->late_frees--;
	else
		held_table_remove(&held_state->blocks, entry);
}

void held_memory_remove_context(uint32_t device, uint32_t context)
{
	const struct held_table *table = &held_state->blocks;

	for (uint32_t i = 0; i < table->slots;) {
		struct held_block *block = held_table_at(table, i);
		const uint32_t of = block ? block->flags >> TRACE_MEMORY_CONTEXT_SHIFT : 0;

		if (block && block->key.space != HELD_TENSOR && block->device == device &&
			(!context || !of || of == (context & 0xFFFF)))
			held_table_remove(&held_state->blocks, block); /* look here again */
		else
			i++;
	}
}

void held_memory_set_level(uint32_t device, uint64_t allocated, uint64_t reserved)
{
	held_state->levels[device % TRACE_TENSOR_DEVICES] = (struct held_level){ allocated,
		reserved };
}

static bool stops_at_oom;

void held_memory_stop_at_oom(void)
{
	stops_at_oom = held_memory_wanted;
}

void held_memory_ran_out(uint64_t bytes, bool of_call)
{
	bool has_allocator = false;

	for (uint32_t device = 0; of_call && device < TRACE_TENSOR_DEVICES; device++)
		has_allocator |= held_state->levels[device].reserved != 0;
	if (stops_at_oom && !has_allocator)
		ring_stop(TRACE_STOP_OOM, false, bytes, 0);
}

uint32_t held_memory_restatements(void)
{
	return held_memory_wanted ? held_state->restatements : 0;
}

/* ---- restating ---- */

/* Returns a zeroed record at the end of the stream. NULL: no room, the loss is counted. */
static void *restated_record(struct stream *s, enum trace_kind kind, size_t bytes, uint64_t stamp)
{
	struct trace_timed *record;

	if (s->slot->used + bytes + 4 > s->room && !stream_seal_to_restate(s, bytes + 4))
		return NULL;
	record = stream_put_head(s, kind, bytes);
	s->slot->reserved++;
	record->stamp = s->last = stamp > s->last ? stamp : s->last;
	return record;
}

bool held_restate(struct stream *s, const void *record, uint64_t stamp)
{
	struct trace_timed timed, *restated;

	memcpy(&timed, record, sizeof timed);
	restated = restated_record(s, (enum trace_kind)timed.head.kind, timed.head.size, stamp);
	if (!restated)
		return false;
	timed.stamp = restated->stamp;
	memcpy(restated, record, timed.head.size);
	memcpy(restated, &timed, sizeof timed);
	stream_publish(s);
	return true;
}

static bool restate_edge(struct stream *s, enum trace_window_edge edge, uint64_t stamp)
{
	struct trace_window *window = restated_record(s, TRACE_WINDOW, sizeof *window, stamp);

	if (!window)
		return false;
	window->edge = edge;
	stream_publish(s);
	return true;
}

static bool restate_tensor(struct stream *s, uint8_t flags, const struct held_block *block,
	const struct held_level *level, uint64_t stamp)
{
	struct trace_tensor *tensor = restated_record(s, TRACE_TENSOR, sizeof *tensor, stamp);

	if (!tensor)
		return false;
	tensor->head.flags = flags;
	tensor->head.node = block->node;
	tensor->address = block->key.key;
	tensor->bytes = (int64_t)block->bytes;
	tensor->allocated = level->allocated;
	tensor->reserved = level->reserved;
	tensor->device = block->device;
	tensor->stack = block->stack;
	stream_publish(s);
	return true;
}

static bool restate_allocation(struct stream *s, const struct held_block *block, uint64_t stamp)
{
	struct trace_memory *memory = restated_record(s, TRACE_ALLOC, sizeof *memory, stamp);

	if (!memory)
		return false;
	memory->call.head.node = block->node;
	memory->call.api = block->api;
	memory->call.stack = block->stack;
	memory->call.device = block->device;
	memory->address = block->key.key;
	memory->bytes = block->bytes;
	memory->stream = block->stream;
	memory->memory_kind = block->memory_kind;
	memory->flags = block->flags;
	stream_publish(s);
	return true;
}

/* Restates the totals of each device less its blocks, which are restated next and add up to
 * them. */
static bool restate_levels(struct stream *s, struct held_level *levels, uint64_t stamp)
{
	const struct held_table *table = &held_state->blocks;

	memcpy(levels, held_state->levels, sizeof held_state->levels);
	for (uint32_t i = 0; i < table->slots; i++) {
		const struct held_block *block = held_table_at(table, i);

		if (block && block->key.space == HELD_TENSOR)
			levels[block->device % TRACE_TENSOR_DEVICES].allocated -= block->bytes;
	}
	for (uint32_t device = 0; device < TRACE_TENSOR_DEVICES; device++) {
		const struct held_block none = { .device = device };

		if ((held_state->levels[device].allocated || levels[device].reserved) &&
			!restate_tensor(s, TRACE_TENSOR_LEVEL, &none, &levels[device], stamp))
			return false;
	}
	return true;
}

static bool restate_tensors(struct stream *s, uint64_t stamp)
{
	struct held_level levels[TRACE_TENSOR_DEVICES];
	const struct held_table *table = &held_state->blocks;

	if (!restate_levels(s, levels, stamp))
		return false;
	for (uint32_t i = 0; i < table->slots; i++) {
		const struct held_block *block = held_table_at(table, i);
		struct held_level *level = block ? &levels[block->device % TRACE_TENSOR_DEVICES]
						 : NULL;

		if (!block || block->key.space != HELD_TENSOR)
			continue;
		level->allocated += block->bytes;
		if (!restate_tensor(s, 0, block, level, stamp))
			return false;
	}
	return true;
}

static bool restate_allocations(struct stream *s, uint64_t stamp)
{
	const struct held_table *table = &held_state->blocks;

	for (uint32_t i = 0; i < table->slots; i++) {
		const struct held_block *block = held_table_at(table, i);

		if (block && block->key.space != HELD_TENSOR &&
			!restate_allocation(s, block, stamp))
			return false;
	}
	return true;
}

/* CUDA's allocations come before PyTorch's blocks, which are inside them. */
static void restate_held(struct stream *s)
{
	const uint64_t stamp = clock_now() > s->last ? clock_now() : s->last + 1;
	const uint64_t bytes = held_state->blocks.count * sizeof(struct trace_memory) +
			       held_records_bytes() + held_mappings_bytes();

	held_state->restatements++;
	if (restate_edge(s, TRACE_WINDOW_RESTATES, stamp) && held_records_restate(s, stamp) &&
		restate_allocations(s, stamp) && held_mappings_restate(s, stamp) &&
		restate_tensors(s, stamp) && restate_edge(s, TRACE_WINDOW_RESTATED, stamp))
		ring_note_restated(stamp, bytes);
}

bool held_memory_restate_if_due(struct stream *s)
{
	if (!held_memory_wanted || is_locked_here || !ring_wants_restatement())
		return false;
	pthread_mutex_lock(&held_state->lock);
	is_locked_here = true;
	prepare_tables();
	restate_held(s);
	is_locked_here = false;
	pthread_mutex_unlock(&held_state->lock);
	return true;
}
