/* SPDX-License-Identifier: MIT
 * Finds the threads of a file by the names of thread and process.
 */
#include "report/base/alloc.h"
#include "report/import/kineto/kineto_reader.h"
#include <stdlib.h>

static uint32_t *thread_slot(const struct kineto_reader *reader, struct imported_thread thread)
{
	const uint64_t hash = ((uint64_t)thread.pid << 32 | thread.tid) * 0x9e3779b97f4a7c15u;
	size_t i = (hash >> 32) & (reader->thread_slot_count - 1);

	for (;; i = (i + 1) & (reader->thread_slot_count - 1)) {
		uint32_t *slot = &reader->thread_slots[i];
		const struct imported_thread *known = *slot ? &reader->imported->threads[*slot - 1]
							    : NULL;

		if (!known || (known->pid == thread.pid && known->tid == thread.tid))
			return slot;
	}
}

static void grow_thread_slots(struct kineto_reader *reader)
{
	struct event_rows *imported = reader->imported;

	free(reader->thread_slots);
	reader->thread_slot_count = reader->thread_slot_count ? reader->thread_slot_count * 2 : 64;
	reader->thread_slots = xcalloc(reader->thread_slot_count * sizeof *reader->thread_slots);
	for (size_t i = 0; i < imported->thread_count; i++)
		*thread_slot(reader, imported->threads[i]) = (uint32_t)i + 1;
}

static uint32_t find_or_add_thread(struct kineto_reader *reader, struct imported_thread thread)
{
	struct event_rows *imported = reader->imported;
	uint32_t *slot;

	if (imported->thread_count * 2 >= reader->thread_slot_count)
		grow_thread_slots(reader);
	slot = thread_slot(reader, thread);
	if (!*slot) {
		array_grow_zeroed(&imported->threads, &imported->thread_room,
			imported->thread_count + 1, sizeof *imported->threads);
		imported->threads[imported->thread_count++] = thread;
		*slot = (uint32_t)imported->thread_count;
	}
	return *slot - 1;
}

static bool is_same_text(const struct json_text *text, const char *bytes, size_t length)
{
	return text->length == length && !memcmp(text->bytes, bytes, length);
}

/* Most events are on the same thread as the event before. */
uint32_t kineto_thread_of(struct kineto_reader *reader)
{
	const struct json_text *pid = &reader->event.pid, *tid = &reader->event.tid;

	if (pid->length && tid->length &&
		is_same_text(pid, reader->last_pid, reader->last_pid_bytes) &&
		is_same_text(tid, reader->last_tid, reader->last_tid_bytes))
		return reader->last_thread;
	reader->last_thread = find_or_add_thread(
		reader, (struct imported_thread){ .pid = kineto_intern(reader, pid),
				.tid = kineto_intern(reader, tid) });
	reader->last_pid_bytes = reader->last_tid_bytes = SIZE_MAX;
	if (pid->length && tid->length && pid->length <= sizeof reader->last_pid &&
		tid->length <= sizeof reader->last_tid) {
		memcpy(reader->last_pid, pid->bytes, pid->length);
		memcpy(reader->last_tid, tid->bytes, tid->length);
		reader->last_pid_bytes = pid->length;
		reader->last_tid_bytes = tid->length;
	}
	return reader->last_thread;
}
