/* SPDX-License-Identifier: MIT
 * Finds the threads of a file by the names of thread and process.
 */
#include "report/base/alloc.h"
#include "report/import/kineto/kineto_reader.h"

static uint32_t find_or_add_thread(struct kineto_reader *reader, struct imported_thread thread)
{
	struct event_rows *imported = reader->imported;
	const uint64_t hash = hash_u64((uint64_t)thread.pid << 32 | thread.tid);
	struct hash_slot *slot;

	hash_index_reserve(&reader->threads);
	for (slot = hash_index_first(&reader->threads, hash); slot->number;
		slot = hash_index_next(&reader->threads, slot)) {
		const struct imported_thread *known = &imported->threads[slot->number - 1];

		if (known->pid == thread.pid && known->tid == thread.tid)
			return slot->number - 1;
	}
	ARRAY_GROW(imported->threads, imported->thread_room, imported->thread_count + 1);
	imported->threads[imported->thread_count] = thread;
	hash_index_add(&reader->threads, slot, hash, (uint32_t)imported->thread_count + 1);
	return (uint32_t)imported->thread_count++;
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
