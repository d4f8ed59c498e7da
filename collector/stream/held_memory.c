/* SPDX-License-Identifier: MIT */
#include "collector/stream/held_memory.h"

#include "collector/file/ring.h"
#include "collector/file/trace_file.h"
#include "collector/process/clock.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/stream/stream_state.h"

#include <pthread.h>
#include <string.h>

#define SLOTS_MIN 4096u

struct held_level {
	uint64_t allocated, reserved;
};

/* Wiped in a forked child, whose memory is its parent's. */
struct held_memory {
	pthread_mutex_t lock;
	struct held_block *slots; /* open addressing; at least half of it is free */
	uint32_t mask, count;     /* mask: number of slots minus one */
	uint32_t restatements;
	struct held_level levels[TRACE_TENSOR_DEVICES];
};

bool held_memory_wanted;
static struct held_memory *held;
static _Thread_local bool is_locked_here __attribute__((tls_model("initial-exec")));

void held_memory_setup(void)
{
	held = ring_is_used() ? fork_wiped_alloc(sizeof *held) : NULL;
	held_memory_wanted = held != NULL;
}

void held_memory_lock(struct signal_guard *guard)
{
	signal_guard_begin(guard);
	pthread_mutex_lock(&held->lock);
	is_locked_here = true;
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
	pthread_mutex_unlock(&held->lock);
	if (ring_wants_restatement())
		restate_after_unlock();
	signal_guard_end(guard);
}

static uint32_t home_slot(enum held_space space, uint64_t address)
{
	return (uint32_t)((address >> 4 ^ space) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & held->mask;
}

/* Returns the slot that holds the address, or the free slot where it belongs. */
static struct held_block *find_slot(enum held_space space, uint64_t address)
{
	uint32_t at = home_slot(space, address);

	while (held->slots[at].space &&
		(held->slots[at].address != address || held->slots[at].space != space))
		at = (at + 1) & held->mask;
	return &held->slots[at];
}

/* Makes room for one more block. The smaller table is not freed: all of them together are no larger
 * than the last one. */
static bool grow_slots(void)
{
	struct held_block *had = held->slots, *grown;
	const uint32_t slots = had ? held->mask + 1 : 0;

	if (had && held->count * 2 < slots)
		return true;
	if (held->count >= HELD_BLOCKS_MAX)
		return false;
	grown = fork_wiped_alloc((had ? (size_t)slots * 2 : SLOTS_MIN) * sizeof *grown);
	if (!grown)
		return false;
	held->slots = grown;
	held->mask = had ? slots * 2 - 1 : SLOTS_MIN - 1;
	for (uint32_t i = 0; i < slots; i++)
		if (had[i].space)
			*find_slot((enum held_space)had[i].space, had[i].address) = had[i];
	return true;
}

static void count_unlisted(void)
{
	struct trace_header *header = trace_header();

	if (header)
		__atomic_fetch_add(&header->ring.unlisted, 1, __ATOMIC_RELAXED);
}

void held_memory_add(const struct held_block *block)
{
	struct held_block *slot;
	uint16_t late = 0;

	if (!grow_slots()) {
		count_unlisted();
		return;
	}
	slot = find_slot((enum held_space)block->space, block->address);
	if (slot->space)
		late = (uint16_t)(slot->late_frees + 1);
	else
		held->count++;
	*slot = *block;
	slot->late_frees = late;
}

/* Frees the slot. Later entries move up, so that none becomes unreachable. */
static void free_slot(struct held_block *slot)
{
	uint32_t hole = (uint32_t)(slot - held->slots), at = hole;

	for (;;) {
		uint32_t wanted;

		at = (at + 1) & held->mask;
		if (!held->slots[at].space)
			break;
		wanted = home_slot((enum held_space)held->slots[at].space, held->slots[at].address);
		if (((at - wanted) & held->mask) < ((at - hole) & held->mask))
			continue;
		held->slots[hole] = held->slots[at];
		hole = at;
	}
	held->slots[hole].space = 0;
	held->count--;
}

void held_memory_remove(enum held_space space, uint64_t address, uint64_t begin)
{
	struct held_block *slot = held->slots ? find_slot(space, address) : NULL;

	if (!slot || !slot->space)
		return;
	/* Another thread allocated the address before this release was recorded. */
	if (slot->late_frees && begin < slot->begin)
		slot->late_frees--;
	else
		free_slot(slot);
}

void held_memory_remove_context(uint32_t device, uint32_t context)
{
	for (uint32_t i = 0; held->slots && i <= held->mask;) {
		struct held_block *slot = &held->slots[i];
		const uint32_t of = slot->flags >> TRACE_MEMORY_CONTEXT_SHIFT;
		const bool physical = slot->memory_kind == TRACE_MEMORY_DEVICE &&
				      slot->flags & TRACE_MEMORY_MAPPED;

		if (slot->space > HELD_TENSOR && !physical && slot->device == device &&
			(!context || !of || of == (context & 0xFFFF)))
			free_slot(slot); /* another entry may have moved here */
		else
			i++;
	}
}

void held_memory_set_level(uint32_t device, uint64_t allocated, uint64_t reserved)
{
	held->levels[device % TRACE_TENSOR_DEVICES] = (struct held_level){ allocated, reserved };
}

static bool stops_at_oom;

void held_memory_stop_at_oom(void)
{
	stops_at_oom = held != NULL;
}

void held_memory_ran_out(uint64_t bytes, bool of_call)
{
	bool has_allocator = false;

	for (uint32_t device = 0; of_call && device < TRACE_TENSOR_DEVICES; device++)
		has_allocator |= held->levels[device].reserved != 0;
	if (stops_at_oom && !has_allocator)
		ring_stop(TRACE_STOP_OOM, false, bytes, 0);
}

uint32_t held_memory_restatements(void)
{
	return held ? held->restatements : 0;
}

/* ---- restating ---- */

/* Returns a zeroed record at the end of the stream. NULL: no room, the loss is counted. */
static void *restated_record(struct stream *s, enum trace_kind kind, size_t bytes, uint64_t stamp)
{
	struct trace_timed *record;

	if (s->slot->used + bytes + 4 > s->room && !stream_seal_to_restate(s, bytes + 4))
		return NULL;
	record = stream_put_head(s, kind, bytes);
	record->stamp = s->last = stamp > s->last ? stamp : s->last;
	return record;
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
	tensor->address = block->address;
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
	memory->address = block->address;
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
	for (uint32_t device = 0; device < TRACE_TENSOR_DEVICES; device++) {
		const struct held_block none = { .device = device };
		struct held_level *level = &levels[device];

		*level = held->levels[device];
		for (uint32_t i = 0; level->allocated && held->slots && i <= held->mask; i++)
			if (held->slots[i].space == HELD_TENSOR && held->slots[i].device == device)
				level->allocated -= held->slots[i].bytes;
		if ((level->allocated || level->reserved) &&
			!restate_tensor(s, TRACE_TENSOR_LEVEL, &none, level, stamp))
			return false;
	}
	return true;
}

/* CUDA's allocations come first, as PyTorch's blocks are inside them. */
static bool restate_blocks(struct stream *s, struct held_level *levels, uint64_t stamp)
{
	for (uint32_t i = 0; held->slots && i <= held->mask; i++)
		if (held->slots[i].space > HELD_TENSOR &&
			!restate_allocation(s, &held->slots[i], stamp))
			return false;
	if (!restate_levels(s, levels, stamp))
		return false;
	for (uint32_t i = 0; held->slots && i <= held->mask; i++) {
		const struct held_block *block = &held->slots[i];

		if (block->space != HELD_TENSOR)
			continue;
		levels[block->device % TRACE_TENSOR_DEVICES].allocated += block->bytes;
		if (!restate_tensor(
			    s, 0, block, &levels[block->device % TRACE_TENSOR_DEVICES], stamp))
			return false;
	}
	return true;
}

static void restate_held(struct stream *s)
{
	struct held_level levels[TRACE_TENSOR_DEVICES];
	const uint64_t stamp = clock_now() > s->last ? clock_now() : s->last + 1;
	const uint64_t bytes = (uint64_t)held->count * sizeof(struct trace_memory);

	held->restatements++;
	if (restate_edge(s, TRACE_WINDOW_RESTATES, stamp) && restate_blocks(s, levels, stamp) &&
		restate_edge(s, TRACE_WINDOW_RESTATED, stamp))
		ring_note_restated(stamp, bytes);
}

bool held_memory_restate_if_due(struct stream *s)
{
	if (!held || is_locked_here || !ring_wants_restatement())
		return false;
	pthread_mutex_lock(&held->lock);
	is_locked_here = true;
	restate_held(s);
	is_locked_here = false;
	pthread_mutex_unlock(&held->lock);
	return true;
}
