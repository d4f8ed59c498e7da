/* SPDX-License-Identifier: MIT
 * A segment is consistent after each single write, so that a reader, or a kill, never finds
 * anything but whole blocks in it. A chunk is written in this order: the TRACE_UNUSED head of the
 * space behind it, the TRACE_UNUSED head of the chunk's own space, its payload, its head.
 */
#include "collector/file/ring.h"

#include "collector/process/clock.h"
#include "collector/process/fork_wiped_memory.h"

#include <pthread.h>
#include <string.h>

#define SEGMENTS 64u             /* parts of a ring, unless a limit below changes that */
#define SEGMENT_MIN (128u << 10) /* more than the longest chunk */
#define SEGMENT_MAX (16u << 20)
#define SEGMENT_UNIT (64u << 10)
#define SEGMENTS_MAX 65536u
#define RESTATEMENTS 256u /* a power of two; more than the restatements that a ring holds */
/* What is restated takes at most one part of so many of the ring. */
#define RESTATEMENT_SHARE 8u

struct ring_segment {
	uint64_t offset, used;
	uint64_t last_stamp;                  /* of its chunks */
	uint64_t chunks, events, chunk_bytes; /* what it holds */
	uint32_t writers;                     /* threads that are writing to it */
};

/* Wiped in a forked child. */
struct ring_state {
	pthread_mutex_t lock;
	struct ring_segment *segments;
	uint32_t count, current;
	bool full_grown;            /* no further segment can be had */
	uint64_t written, stops_at; /* bytes of chunks; stops_at: 0: the ring was not stopped */
	uint64_t since_restatement; /* bytes of chunks */
	uint64_t restated_bytes;    /* of the last restating */
	uint64_t restatements[RESTATEMENTS];
	uint32_t first_restatement,
		restatement_end; /* of `restatements`, as numbers that only grow */
};

static struct ring_state *ring;
static struct ring_file file;
static uint64_t segment_bytes;
static uint64_t ring_bytes;
static uint32_t segments_max;
static uint32_t restarts; /* atomic */

bool ring_setup(uint64_t bytes, const struct ring_file *access)
{
	uint64_t part = bytes / SEGMENTS / SEGMENT_UNIT * SEGMENT_UNIT;

	part = part < SEGMENT_MIN ? SEGMENT_MIN : part > SEGMENT_MAX ? SEGMENT_MAX : part;
	file = *access;
	segment_bytes = part;
	segments_max = bytes / part < SEGMENTS_MAX ? (uint32_t)(bytes / part) : SEGMENTS_MAX;
	ring_bytes = segments_max * part;
	ring = fork_wiped_alloc(sizeof *ring);
	return ring != NULL;
}

bool ring_is_used(void)
{
	return ring != NULL;
}

/* Writes the head of a block that holds no chunk. */
static bool write_unused(uint64_t offset, uint64_t bytes)
{
	struct trace_block block;

	memset(&block, 0, sizeof block);
	block.magic = TRACE_BLOCK_MAGIC;
	block.type = TRACE_UNUSED;
	block.extent = bytes;
	block.head_crc = trace_crc32c(0, &block, offsetof(struct trace_block, head_crc));
	return file.write(&block, sizeof block, offset);
}

/* Adds a segment. Returns false if there is no space. */
static bool add_segment(enum trace_loss *reason)
{
	const char last[TRACE_ALIGN] = { 0 };
	uint64_t offset;

	if (!ring->segments)
		ring->segments = fork_wiped_alloc(segments_max * sizeof *ring->segments);
	*reason = TRACE_LOST_NO_MEMORY;
	if (!ring->segments)
		return false;
	*reason = TRACE_LOST_FULL_FILE;
	offset = file.reserve(segment_bytes);
	if (!offset)
		return false;
	*reason = TRACE_LOST_FULL_DISK;
	if (!file.allocate(offset, segment_bytes) || !write_unused(offset, segment_bytes) ||
		!file.write(last, sizeof last, offset + segment_bytes - sizeof last))
		return false;
	ring->segments[ring->count] = (struct ring_segment){ .offset = offset };
	ring->current = ring->count++;
	return true;
}

uint32_t ring_restarts(void)
{
	return __atomic_load_n(&restarts, __ATOMIC_ACQUIRE);
}

/* The largest size that the ring can have now. */
static uint64_t ring_capacity(void)
{
	return ring->full_grown ? ring->count * segment_bytes : ring_bytes;
}

/* Chooses where the window begins, now that nothing above `last` was overwritten. If nothing was
 * restated after that, levels are not known at its begin. */
static void move_window(struct trace_header *header, uint64_t last)
{
	uint64_t begin = last + 1;

	while (ring->first_restatement != ring->restatement_end &&
		ring->restatements[ring->first_restatement % RESTATEMENTS] <= last)
		ring->first_restatement++;
	if (ring->first_restatement != ring->restatement_end)
		begin = ring->restatements[ring->first_restatement % RESTATEMENTS];
	__atomic_store_n(&header->ring.last_overwritten, last, __ATOMIC_RELAXED);
	__atomic_store_n(&header->ring.window_stamp, begin, __ATOMIC_RELEASE);
}

/* Counts what the segment holds as overwritten, and empties it. */
static bool reuse_segment(struct ring_segment *segment)
{
	struct trace_ring *counts = &file.header()->ring;

	if (segment->chunks) {
		__atomic_fetch_add(&counts->chunks, segment->chunks, __ATOMIC_RELAXED);
		__atomic_fetch_add(&counts->events, segment->events, __ATOMIC_RELAXED);
		__atomic_fetch_add(&counts->chunk_bytes, segment->chunk_bytes, __ATOMIC_RELAXED);
		if (segment->last_stamp > counts->last_overwritten)
			move_window(file.header(), segment->last_stamp);
	}
	*segment = (struct ring_segment){ .offset = segment->offset };
	return write_unused(segment->offset, segment_bytes);
}

/* Makes an empty segment the current one. A segment to which a thread is still writing is passed
 * over. */
static bool next_segment(enum trace_loss *reason)
{
	*reason = TRACE_LOST_FULL_DISK;
	if (!ring->full_grown && ring->count < segments_max) {
		if (add_segment(reason))
			return true;
		ring->full_grown = ring->count > 1;
	}
	*reason = TRACE_LOST_STOPPED;
	if (ring->stops_at && ring->written >= ring->stops_at) {
		file.header()->control.stopped = 1;
		return false;
	}
	*reason = TRACE_LOST_FULL_DISK;
	if (!ring->segments || ring->count < 2)
		return false;
	for (uint32_t i = 1; i <= ring->count; i++) {
		const uint32_t next = (ring->current + i) % ring->count;

		if (ring->segments[next].writers)
			continue;
		ring->current = next;
		return reuse_segment(&ring->segments[next]);
	}
	return false;
}

static bool has_room(const struct ring_segment *segment, uint64_t bytes)
{
	return segment->used + bytes <= segment_bytes;
}

/* Takes space for the chunk off the current segment. Called under the lock. */
static struct ring_segment *take_space(
	const struct trace_block *head, uint64_t stamp, uint64_t *offset, enum trace_loss *reason)
{
	struct ring_segment *segment = ring->count ? &ring->segments[ring->current] : NULL;
	uint64_t behind;

	if (!segment || !has_room(segment, head->extent)) {
		if (!next_segment(reason))
			return NULL;
		segment = &ring->segments[ring->current];
	}
	*reason = TRACE_LOST_FULL_DISK;
	*offset = segment->offset + segment->used;
	behind = segment_bytes - segment->used - head->extent;
	if ((behind && !write_unused(*offset + head->extent, behind)) ||
		!write_unused(*offset, head->extent))
		return NULL;
	segment->used += head->extent;
	segment->writers++;
	segment->chunks++;
	segment->events += head->reserved;
	segment->chunk_bytes += head->extent;
	segment->last_stamp = segment->last_stamp > stamp ? segment->last_stamp : stamp;
	ring->written += head->extent;
	ring->since_restatement += head->extent;
	return segment;
}

bool ring_write(const struct trace_block *head, const void *payload, uint64_t stamp,
	enum trace_loss *reason)
{
	struct ring_segment *segment;
	uint64_t offset;
	bool written;

	pthread_mutex_lock(&ring->lock);
	segment = take_space(head, stamp, &offset, reason);
	pthread_mutex_unlock(&ring->lock);
	if (!segment)
		return false;
	written = file.write(payload, (size_t)head->used, offset + sizeof *head) &&
		  file.write(head, sizeof *head, offset);
	pthread_mutex_lock(&ring->lock);
	segment->writers--;
	if (!written) { /* its slot is written again, and counted then */
		segment->chunks--;
		segment->events -= head->reserved;
		segment->chunk_bytes -= head->extent;
	}
	pthread_mutex_unlock(&ring->lock);
	return written;
}

void ring_stop(enum trace_stop why, bool at_once, uint64_t value, uint64_t median)
{
	struct trace_control *control = &file.header()->control;

	pthread_mutex_lock(&ring->lock);
	if (!ring->stops_at) {
		ring->stops_at = ring->written + (at_once ? 1 : ring_capacity() / 4);
		control->stop_stamp = clock_now();
		control->stop_value = value;
		control->stop_median = median;
		__atomic_store_n(&control->stop, (uint32_t)why, __ATOMIC_RELEASE);
	} else if (at_once && ring->stops_at > ring->written) {
		ring->stops_at = ring->written;
	}
	pthread_mutex_unlock(&ring->lock);
}

void ring_restart(void)
{
	struct trace_control *control = &file.header()->control;

	pthread_mutex_lock(&ring->lock);
	if (control->stopped) { /* records were refused meanwhile: the window begins anew */
		ring->first_restatement = ring->restatement_end;
		move_window(file.header(), clock_now());
		ring->since_restatement = ring_bytes; /* it is time to */
		__atomic_add_fetch(&restarts, 1, __ATOMIC_RELEASE);
	}
	ring->stops_at = 0;
	control->stopped = 0;
	__atomic_store_n(&control->stop, TRACE_STOP_NONE, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&ring->lock);
}

bool ring_wants_restatement(void)
{
	uint64_t every, capacity;
	bool wanted;

	pthread_mutex_lock(&ring->lock);
	capacity = ring_capacity();
	every = capacity / 2 / RESTATEMENT_SHARE;
	if (every < ring->restated_bytes * RESTATEMENT_SHARE)
		every = ring->restated_bytes * RESTATEMENT_SHARE;
	if (every > capacity / 4)
		every = capacity / 4;
	wanted = ring->since_restatement >= every;
	pthread_mutex_unlock(&ring->lock);
	return wanted;
}

void ring_note_restated(uint64_t stamp, uint64_t bytes)
{
	pthread_mutex_lock(&ring->lock);
	ring->restatements[ring->restatement_end++ % RESTATEMENTS] = stamp;
	if (ring->restatement_end - ring->first_restatement > RESTATEMENTS)
		ring->first_restatement++;
	ring->restated_bytes = bytes;
	ring->since_restatement = 0;
	pthread_mutex_unlock(&ring->lock);
}
