/* SPDX-License-Identifier: MIT
 * slots.c: see slots.h.
 */
#include "collector/file/slots.h"

#include "collector/process/fork_wiped_memory.h"
#include "collector/file/trace_file.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define SLOT_FIRST TRACE_FIRST_SLOT
#define SLOT_LATER (64u << 10)
#define LISTED_FIRST 1024u

struct slot { /* a free one */
	struct trace_block *block;
	uint64_t offset;
};

struct slot_list {
	struct slot *slots; /* `first`, or more */
	uint32_t count, room;
	struct slot first[LISTED_FIRST];
};

/* Emptied in a forked child. */
static struct free_slots {
	pthread_mutex_t lock;
	struct slot_list lists[2]; /* of first and later sizes */
} *free_slots;

bool slots_setup(void)
{
	free_slots = fork_memory(sizeof *free_slots);
	return free_slots != NULL;
}

static uint64_t slot_bytes(bool later)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes = later ? SLOT_LATER : SLOT_FIRST;

	return bytes > page ? bytes : page;
}

bool slot_is_later(const struct trace_block *slot)
{
	return slot->extent >= slot_bytes(true);
}

/* Room for one more. A shorter list stays: at most as much again. false: no memory. */
static bool widen(struct slot_list *list)
{
	const uint32_t room = list->room ? list->room * 2 : LISTED_FIRST;
	struct slot *wider;

	if (list->count < list->room)
		return true;
	wider = list->room ? fork_memory(room * sizeof *wider) : list->first;
	if (!wider)
		return false;
	if (list->count)
		memcpy(wider, list->slots, list->count * sizeof *wider);
	list->slots = wider;
	list->room = room;
	return true;
}

struct trace_block *slot_take(bool later, uint64_t *offset, enum trace_loss *reason)
{
	struct slot_list *list = &free_slots->lists[later];
	struct slot found = {0};

	pthread_mutex_lock(&free_slots->lock);
	if (list->count)
		found = list->slots[--list->count];
	pthread_mutex_unlock(&free_slots->lock);
	if (!found.block)
		found.block = trace_map_block(TRACE_SLOT, slot_bytes(later), &found.offset, reason);
	*offset = found.offset;
	return found.block;
}

/* One that is not listed, for want of memory, is never used again. */
void slot_give(struct trace_block *slot, uint64_t offset)
{
	struct slot_list *list = &free_slots->lists[slot->extent > slot_bytes(false)];

	slot->stream = 0;
	pthread_mutex_lock(&free_slots->lock);
	if (widen(list))
		list->slots[list->count++] = (struct slot){slot, offset};
	pthread_mutex_unlock(&free_slots->lock);
}

/* An exchange, since a mere store would let what is written afterwards come before it, and a reader would take the old records for those of the new
 * head. */
void slot_empty(struct trace_block *slot)
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
		events += head->kind != TRACE_CLOCK && head->kind != TRACE_OPEN && head->kind != TRACE_SELF && head->kind != TRACE_LOST;
		word += head->size / sizeof *word;
	}
	return events;
}
