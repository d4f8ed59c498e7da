/* SPDX-License-Identifier: MIT
 * kineto_tids.c: the threads of a file, by what it calls their processes and them.
 */
#include "report/base/alloc.h"
#include "report/import/kineto/kineto_reader.h"
#include <stdlib.h>

static uint32_t *thread_slot(const struct kineto_reader *reader, struct kineto_thread thread)
{
	const uint64_t hash = ((uint64_t)thread.pid << 32 | thread.tid) * 0x9e3779b97f4a7c15u;
	size_t i = (hash >> 32) & (reader->thread_slot_count - 1);

	for (;; i = (i + 1) & (reader->thread_slot_count - 1)) {
		uint32_t *slot = &reader->thread_slots[i];
		const struct kineto_thread *known = *slot ? &reader->kineto->threads[*slot - 1] : NULL;

		if (!known || (known->pid == thread.pid && known->tid == thread.tid))
			return slot;
	}
}

static void widen_threads(struct kineto_reader *reader)
{
	struct kineto *kineto = reader->kineto;

	free(reader->thread_slots);
	reader->thread_slot_count = reader->thread_slot_count ? reader->thread_slot_count * 2 : 64;
	reader->thread_slots = need(reader->thread_slot_count * sizeof *reader->thread_slots);
	for (size_t i = 0; i < kineto->thread_count; i++)
		*thread_slot(reader, kineto->threads[i]) = (uint32_t)i + 1;
}

static uint32_t thread_of(struct kineto_reader *reader, struct kineto_thread thread)
{
	struct kineto *kineto = reader->kineto;
	uint32_t *slot;

	if (kineto->thread_count * 2 >= reader->thread_slot_count)
		widen_threads(reader);
	slot = thread_slot(reader, thread);
	if (!*slot) {
		grow(&kineto->threads, &kineto->thread_room, kineto->thread_count + 1, sizeof *kineto->threads);
		kineto->threads[kineto->thread_count++] = thread;
		*slot = (uint32_t)kineto->thread_count;
	}
	return *slot - 1;
}

static bool same(const struct json_text *text, const char *bytes, size_t length)
{
	return text->length == length && !memcmp(text->bytes, bytes, length);
}

/* Most are of the same one as the event before. */
uint32_t kineto_thread_of(struct kineto_reader *reader)
{
	const struct json_text *pid = &reader->event.pid, *tid = &reader->event.tid;

	if (pid->length && tid->length && same(pid, reader->last_pid, reader->last_pid_bytes) &&
		same(tid, reader->last_tid, reader->last_tid_bytes))
		return reader->last_thread;
	reader->last_thread =
		thread_of(reader, (struct kineto_thread){ .pid = kineto_text(reader, pid), .tid = kineto_text(reader, tid) });
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
