/* SPDX-License-Identifier: MIT */
#include "collector/file/slots.h"

#include "collector/process/fork_wiped_memory.h"
#include "collector/file/trace_file.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define SLOT_SMALL_BYTES TRACE_FIRST_SLOT
#define SLOT_LARGE_BYTES (64u << 10)
#define INLINE_FREE_SLOTS 1024u

struct free_slot {
	struct trace_block *block;
	uint64_t offset;
};

struct free_slot_list {
	/* `inline_slots`, or a larger array */
	struct free_slot *slots;
	uint32_t count, room;
	struct free_slot inline_slots[INLINE_FREE_SLOTS];
};

/* Wiped in a forked child. */
static struct free_slots {
	pthread_mutex_t lock;
	struct free_slot_list lists[2]; /* small slots, large slots */
} * free_slots;

bool slots_setup(void)
{
	free_slots = fork_wiped_alloc(sizeof *free_slots);
	return free_slots != NULL;
}

static uint64_t slot_bytes(bool large)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE),
		 bytes = large ? SLOT_LARGE_BYTES : SLOT_SMALL_BYTES;

	return bytes > page ? bytes : page;
}

bool slot_is_large(const struct trace_block *slot)
{
	return slot->extent >= slot_bytes(true);
}

/* Makes space for one more. The former array is not freed, which wastes at most the size of the new
 * one. Returns false if there is no memory. */
static bool grow_free_list(struct free_slot_list *list)
{
	const uint32_t room = list->room ? list->room * 2 : INLINE_FREE_SLOTS;
	struct free_slot *grown;

	if (list->count < list->room)
		return true;
	grown = list->room ? fork_wiped_alloc(room * sizeof *grown) : list->inline_slots;
	if (!grown)
		return false;
	if (list->count)
		memcpy(grown, list->slots, list->count * sizeof *grown);
	list->slots = grown;
	list->room = room;
	return true;
}

struct trace_block *slot_acquire(bool large, uint64_t *offset, enum trace_loss *reason)
{
	struct free_slot_list *list = &free_slots->lists[large];
	struct free_slot found = { 0 };

	pthread_mutex_lock(&free_slots->lock);
	if (list->count)
		found = list->slots[--list->count];
	pthread_mutex_unlock(&free_slots->lock);
	if (!found.block)
		found.block = trace_map_block(TRACE_SLOT, slot_bytes(large), &found.offset, reason);
	*offset = found.offset;
	return found.block;
}

/* If memory for the list is missing, the slot is never used again. */
void slot_release(struct trace_block *slot, uint64_t offset)
{
	struct free_slot_list *list = &free_slots->lists[slot->extent > slot_bytes(false)];

	slot->stream = 0;
	pthread_mutex_lock(&free_slots->lock);
	if (grow_free_list(list))
		list->slots[list->count++] = (struct free_slot){ slot, offset };
	pthread_mutex_unlock(&free_slots->lock);
}

/* Empties the slot by an exchange. A plain store could become visible after the stores that follow
 * it, and a reader would take the old records for those of the new head. */
void slot_clear(struct trace_block *slot)
{
	__atomic_exchange_n(&slot->used, 0, __ATOMIC_ACQ_REL);
}

uint64_t slot_events(const struct trace_block *slot)
{
	const uint32_t *word = (const void *)(slot + 1), *end = word + slot->used / sizeof *word;
	uint64_t events = 0;

	while (word < end) {
		const struct trace_head *head = (const void *)word;
		unsigned form = *word & 3;

		if (form || !*word) {
			events += form != 0;
			word += form == 3 ? 2 : 1;
			continue;
		}
		events += head->kind != TRACE_CLOCK && head->kind != TRACE_OPEN &&
			  head->kind != TRACE_SELF && head->kind != TRACE_LOST;
		word += head->size / sizeof *word;
	}
	return events - slot->reserved;
}
