/* SPDX-License-Identifier: MIT
 * Remembers the records that hold until another one, so that PPERF_RING can restate them as it does
 * memory (held_memory.h):
 *
 *   OBJECT   the name of an object, until it gets another one or is destroyed
 *   METRIC   the last value of a counter
 *   START    a start/end range that is open
 *   AWAY     CUPTI is released to another client
 *
 *	held_records_lock(&guard);
 *	record = stream_record(TRACE_METRIC, sizeof *record);
 *	(fill it)
 *	held_records_set(record->counter, record);
 *	stream_commit();
 *	held_records_unlock(&guard);
 *
 * Nothing that may wait for the dynamic linker may be called between lock and unlock. Without a
 * ring, each function does nothing.
 */
#ifndef PPERF_COLLECTOR_STREAM_HELD_RECORDS_H
#define PPERF_COLLECTOR_STREAM_HELD_RECORDS_H

#include "collector/stream/held_memory.h"

/* Beyond this number of records, further ones are counted in header.ring.unlisted. */
#define HELD_RECORDS_MAX 65536u
/* The largest record, with its text. A longer text is cut. */
#define HELD_RECORD_BYTES 144u

static inline void held_records_lock(struct signal_guard *guard)
{
	if (__builtin_expect(held_memory_wanted, 0))
		held_memory_lock(guard);
}

static inline void held_records_unlock(const struct signal_guard *guard)
{
	if (__builtin_expect(held_memory_wanted, 0))
		held_memory_unlock(guard);
}

/* Remembers a copy of the record, which begins as a struct trace_timed, instead of the one of the
 * same kind and key. */
void held_records_set(uint64_t key, const void *record);
void held_records_remove(enum trace_kind kind, uint64_t key);

/* The key of an OBJECT that says what is at `object`. */
uint64_t held_object_key(uint32_t type, uint64_t object, uint32_t domain);

/* Writes all of them in the stream, at `stamp`. Returns false if there is no room. Only for
 * held_memory.c, under its lock. */
struct stream;
bool held_records_restate(struct stream *s, uint64_t stamp);
/* The bytes that held_records_restate would write, at most. */
uint64_t held_records_bytes(void);

#endif
