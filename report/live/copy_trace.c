/* SPDX-License-Identifier: MIT
 * Copies a trace while it is written. The order makes the copy complete up to its begin:
 *
 *   1. The latest payload that begins before the copy is found.
 *   2. Slots. A payload that is no longer in its slot then was written as a chunk.
 *   3. All else but the dictionary: the chunks.
 *   4. The dictionary, which has all names of these records by then, and what was appended.
 *   5. The header, which says what a ring has overwritten by then.
 */
#include "report/live/live_trace.h"

#include "report/base/alloc.h"
#include "report/trace/trace_header.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES (1u << 20)
#define SLOT_TRIES 8
#define COPY_TRIES 5 /* while a ring is overwritten faster than that */

struct extent {
	uint64_t offset, bytes;
	uint32_t type;
};

struct copying {
	int from, to;
	uint64_t bytes, begin_stamp; /* size of the file; latest begin of a payload */
	struct extent *extents;      /* slots and dictionary blocks, in file order */
	size_t count, room;
	unsigned char *piece;
	bool overtaken; /* a ring has overwritten all that was recorded before the copy */
};

/* Copies the part from `at` to `end`. Parts that are all zero stay holes. */
static bool copy_part(struct copying *copying, uint64_t at, uint64_t end)
{
	while (at < end) {
		const size_t wanted = end - at < PIECE_BYTES ? (size_t)(end - at) : PIECE_BYTES;
		const int64_t got = pread_all(copying->from, copying->piece, wanted, at);

		if (got < 0)
			return false;
		if (got == 0)
			return true;
		if ((*copying->piece ||
			    memcmp(copying->piece, copying->piece + 1, (size_t)got - 1)) &&
			pwrite(copying->to, copying->piece, (size_t)got, (off_t)at) != got)
			return false;
		at += (uint64_t)got;
	}
	return true;
}

static bool head_is_good(const struct trace_block *head)
{
	return head->magic == TRACE_BLOCK_MAGIC && head->extent >= sizeof *head &&
	       head->extent % TRACE_ALIGN == 0 &&
	       head->head_crc == trace_crc32c(0, head, offsetof(struct trace_block, head_crc));
}

/* Finds slots, dictionary blocks, and the latest begin of a payload. */
static bool scan_heads(struct copying *copying, uint64_t at)
{
	struct trace_block head;

	while (at + sizeof head <= copying->bytes) {
		const int64_t got = pread_all(copying->from, &head, sizeof head, at);
		const bool good = got == sizeof head && head_is_good(&head);

		if (got < 0)
			return false;
		if (good && (head.type == TRACE_SLOT || head.type == TRACE_DICT))
			*ARRAY_ADD(copying->extents, copying->room,
				copying->count) = (struct extent){ at, head.extent, head.type };
		if (good && head.stream && head.base_stamp > copying->begin_stamp)
			copying->begin_stamp = head.base_stamp;
		at += good ? head.extent : TRACE_ALIGN;
	}
	return true;
}

/* Copies a slot. If it was emptied meanwhile, its bytes may be of two payloads: it is copied again,
 * which finds the next payload. The former one was written as a chunk before. */
static bool copy_slot(struct copying *copying, const struct extent *slot)
{
	struct trace_block before, after;

	for (int tries = 0; tries < SLOT_TRIES; tries++)
		if (pread_all(copying->from, &before, sizeof before, slot->offset) < 0 ||
			!copy_part(copying, slot->offset, slot->offset + slot->bytes) ||
			pread_all(copying->from, &after, sizeof after, slot->offset) < 0)
			return false;
		else if (after.stream == before.stream && after.sequence == before.sequence &&
			 after.used >= before.used)
			return pwrite(copying->to, &before, sizeof before, (off_t)slot->offset) ==
			       sizeof before;
	before.stream = 0;
	before.used = 0;
	return pwrite(copying->to, &before, sizeof before, (off_t)slot->offset) == sizeof before;
}

static bool copy_slots(struct copying *copying)
{
	for (size_t i = 0; i < copying->count; i++)
		if (copying->extents[i].type == TRACE_SLOT &&
			!copy_slot(copying, &copying->extents[i]))
			return false;
	return true;
}

static bool write_unused(const struct copying *copying, uint64_t at, uint64_t end)
{
	struct trace_block head = {
		.magic = TRACE_BLOCK_MAGIC, .type = TRACE_UNUSED, .extent = end - at
	};

	head.head_crc = trace_crc32c(0, &head, offsetof(struct trace_block, head_crc));
	return pwrite(copying->to, &head, sizeof head, (off_t)at) == sizeof head;
}

/* Whether a chunk of the copy is as it was written. */
static bool chunk_is_whole(
	const struct copying *copying, const struct trace_block *head, uint64_t at)
{
	return head->used <= PIECE_BYTES && head->used <= head->extent - sizeof *head &&
	       pread_all(copying->to, copying->piece, (size_t)head->used, at + sizeof *head) ==
		       (int64_t)head->used &&
	       trace_block_crc(head, copying->piece) == head->crc;
}

/* Makes unused space of the parts of the copy in which a ring has overwritten one chunk by another
 * meanwhile. The ring's counts include them. */
static bool remove_torn_parts(struct copying *copying, uint64_t at)
{
	uint64_t torn_from = 0;
	struct trace_block head;

	while (at + sizeof head <= copying->bytes) {
		bool good;

		if (pread_all(copying->to, &head, sizeof head, at) != sizeof head)
			return false;
		good = head_is_good(&head) &&
		       (head.type != TRACE_CHUNK || chunk_is_whole(copying, &head, at));
		if (!good && !torn_from)
			torn_from = at;
		if (good && torn_from && !write_unused(copying, torn_from, at))
			return false;
		torn_from = good ? 0 : torn_from;
		at += good ? head.extent : TRACE_ALIGN;
	}
	return !torn_from || write_unused(copying, torn_from, at);
}

static bool copy_blocks(struct copying *copying, uint32_t type)
{
	for (size_t i = 0; i < copying->count; i++)
		if (copying->extents[i].type == type &&
			!copy_part(copying, copying->extents[i].offset,
				copying->extents[i].offset + copying->extents[i].bytes))
			return false;
	return true;
}

static bool copy_between(struct copying *copying, uint64_t at)
{
	for (size_t i = 0; i < copying->count; i++) {
		if (!copy_part(copying, at, copying->extents[i].offset))
			return false;
		at = copying->extents[i].offset + copying->extents[i].bytes;
	}
	return copy_part(copying, at, copying->bytes);
}

static bool copy_header(struct copying *copying, uint64_t *size)
{
	struct trace_header header;

	if (pread_all(copying->from, &header, sizeof header, 0) != sizeof header)
		return false;
	copying->overtaken = header.ring.window_stamp > copying->begin_stamp;
	header.control.copied_at = copying->begin_stamp;
	header.control.request = header.control.answer = header.control.tool = 0;
	header.end = header.end < *size ? header.end : *size;
	return pwrite(copying->to, &header, sizeof header, 0) == sizeof header;
}

static bool copy_all(struct copying *copying, uint64_t *size)
{
	struct trace_header header;
	struct stat status;
	const uint64_t first = copying->bytes;

	if (pread_all(copying->from, &header, sizeof header, 0) != sizeof header ||
		!scan_heads(copying, header.header_bytes) || !copy_slots(copying) ||
		!copy_between(copying, header.header_bytes) || fstat(copying->from, &status))
		return false;
	copying->bytes = *size = (uint64_t)status.st_size;
	return copy_blocks(copying, TRACE_DICT) && copy_part(copying, first, *size) &&
	       !ftruncate(copying->to, (off_t)*size) && copy_header(copying, size) &&
	       (!header.ring.bytes || remove_torn_parts(copying, header.header_bytes));
}

bool live_trace_copy(
	const char *from, const char *to, uint64_t *bytes, char error[READER_ERROR_BYTES])
{
	struct copying copying = { .from = trace_file_open(from, bytes, error) };
	struct trace_header header;
	bool copied;

	if (copying.from < 0)
		return false;
	if (!header_read(copying.from, from, &header, error)) {
		close(copying.from);
		return false;
	}
	copying.bytes = *bytes;
	copying.to = open(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	copying.piece = xcalloc(PIECE_BYTES);
	copied = copying.to >= 0 && copy_all(&copying, bytes);
	for (int tries = 1; copied && copying.overtaken && tries < COPY_TRIES; tries++) {
		copying.count = 0;
		copying.begin_stamp = 0;
		copied = !ftruncate(copying.to, 0) && copy_all(&copying, bytes);
	}
	if (copied && copying.overtaken) {
		snprintf(error, READER_ERROR_BYTES,
			"%.300s: the ring is overwritten faster than it can be copied; stop it "
			"first (pperf ctl PID stop), or use a larger one",
			from);
		copied = false;
	} else if (!copied)
		snprintf(error, READER_ERROR_BYTES, "%.300s: cannot be written: %s", to,
			strerror(errno));
	if (copying.to >= 0 && (close(copying.to) || !copied))
		unlink(to);
	close(copying.from);
	free(copying.piece);
	free(copying.extents);
	return copied;
}
