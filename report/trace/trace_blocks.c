/* SPDX-License-Identifier: MIT */
#include "report/trace/trace_blocks.h"

#include "report/base/alloc.h"
#include "report/trace/trace_header.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEW_BLOCK_BYTES 131072u /* no slot or dictionary block is larger */
#define STARTING_MAX 16u        /* threads that may be getting their first slot */

static int compare_block_entries(const void *left, const void *right)
{
	const struct block_entry *a = left, *b = right;
	bool dictionary_a = a->type == TRACE_DICT, dictionary_b = b->type == TRACE_DICT;
	unsigned worth_a = a->cut ? 2 : a->type == TRACE_SLOT,
		 worth_b = b->cut ? 2 : b->type == TRACE_SLOT;

	if (dictionary_a != dictionary_b)
		return dictionary_a - dictionary_b;
	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	if (a->sequence != b->sequence)
		return a->sequence < b->sequence ? -1 : 1;
	if (worth_a != worth_b)
		return worth_a < worth_b ? -1 : 1;
	return (a->offset > b->offset) - (a->offset < b->offset);
}

static void sort_block_entries(struct trace_blocks *blocks)
{
	if (blocks->count)
		qsort(blocks->entries, blocks->count, sizeof *blocks->entries,
			compare_block_entries);
	for (uint32_t i = 0; i < blocks->count && blocks->entries[i].type != TRACE_DICT; i++) {
		blocks->streams_end = i + 1;
		blocks->layout.streams += i == 0 || blocks->entries[i].stream !=
							    blocks->entries[i - 1].stream;
	}
}

/* Reports a file that ends before header.end. A killed or live process has often reserved space
 * that it has not written: chunks of its slots, new slots, dictionary blocks. Nothing is missing
 * then. A process that ended by exit() has written everything. */
static void check_end(struct trace_blocks *blocks, struct read_warnings *warnings)
{
	uint64_t end = blocks->header.end,
		 have = (blocks->file_bytes + TRACE_ALIGN - 1) / TRACE_ALIGN * TRACE_ALIGN;
	uint64_t about_to_write = blocks->in_flight +
				  (blocks->layout.slots + STARTING_MAX) * NEW_BLOCK_BYTES;

	if (have >= end || (!(blocks->header.flags & TRACE_ENDED) && end - have <= about_to_write))
		return;
	warnings->integrity.cut_bytes = end - have;
	read_warnings_add(warnings, blocks->file_bytes,
		"the file ends here, %" PRIu64 " bytes before the end given in its header: %s",
		end - have,
		blocks->header.lost[TRACE_LOST_FULL_DISK]
			? "the disk was full, or a limit was reached, while it was recorded; free "
			  "space and record again"
			: "it is truncated; copy it again");
}

/* Sets unstable_from if header.end has moved since the file was opened. */
static void check_growth(struct trace_blocks *blocks)
{
	struct trace_header now;

	blocks->unstable_from = UINT64_MAX;
	if (pread_all(blocks->fd, &now, sizeof now, 0) != sizeof now)
		return;
	if (now.end != blocks->header.end)
		blocks->unstable_from = blocks->header.end;
	blocks->header.ring = now.ring; /* the scan may have seen what was overwritten since */
}

bool blocks_open(struct trace_blocks *blocks, int fd, uint64_t file_bytes, bool may_grow,
	struct read_warnings *warnings, char error[READER_ERROR_BYTES])
{
	bool whole;

	*blocks = (struct trace_blocks){ .fd = fd, .file_bytes = file_bytes, .may_grow = may_grow };
	if (!header_read(blocks->fd, warnings->path, &blocks->header, error))
		return false;
	whole = blocks_scan(blocks, warnings);
	if (!whole)
		snprintf(error, READER_ERROR_BYTES, "%.300s: cannot be read: %s", warnings->path,
			strerror(errno));
	sort_block_entries(blocks);
	check_growth(blocks);
	check_end(blocks, warnings);
	return whole;
}

void blocks_close(struct trace_blocks *blocks)
{
	if (blocks->fd >= 0)
		close(blocks->fd);
	for (uint32_t i = 0; i < blocks->copy_count; i++)
		free(blocks->copies[i]);
	free(blocks->copies);
	free(blocks->entries);
	free(blocks->totals);
	free(blocks->samples);
}

void blocks_drop_before(struct trace_blocks *blocks, uint64_t since)
{
	uint32_t kept = 0, streams = 0;

	for (uint32_t i = 0; since && i < blocks->count; i++) {
		const struct block_entry *entry = &blocks->entries[i], *next = entry + 1;
		const bool ends_before = i + 1 < blocks->streams_end &&
					 next->stream == entry->stream && next->base_stamp <= since;

		if (i < blocks->streams_end && ends_before)
			continue;
		streams += i < blocks->streams_end &&
			   (!kept || blocks->entries[kept - 1].stream != entry->stream);
		blocks->entries[kept++] = *entry;
		if (i + 1 == blocks->streams_end)
			blocks->layout.streams = streams;
	}
	if (!since)
		return;
	blocks->streams_end = blocks->streams_end - (blocks->count - kept);
	blocks->count = kept;
}

static const struct slot_copy *find_copy(const struct trace_blocks *blocks, uint64_t offset)
{
	uint32_t low = 0, high = blocks->copy_count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (blocks->copies[middle]->offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return blocks->copies[low];
}

static void set_payload_head(
	struct block_payload *payload, const struct trace_block *head, uint32_t used)
{
	payload->used = used;
	payload->tid = head->tid;
	payload->base_stamp = head->base_stamp;
	payload->lost = head->lost;
}

void blocks_warn_cut(const struct block_entry *entry, struct read_warnings *warnings)
{
	warnings->integrity.cut_blocks++;
	read_warnings_add(warnings, entry->offset,
		"the file ends within this block: its first %u bytes were read", entry->used);
}

enum load_result blocks_load(const struct trace_blocks *blocks, const struct block_entry *entry,
	struct block_payload *payload)
{
	size_t bytes = sizeof(struct trace_block) + entry->used;
	struct trace_block head;
	int64_t got;

	if (entry->type == TRACE_SLOT) {
		const struct slot_copy *copy = find_copy(blocks, entry->offset);

		payload->bytes = copy->payload;
		set_payload_head(payload, &copy->head, entry->used);
		return LOAD_FINE;
	}
	payload->used = 0;
	array_grow_zeroed(&payload->storage, &payload->room, bytes, 1);
	got = pread_all(blocks->fd, payload->storage, bytes, entry->offset);
	if (got < 0)
		return LOAD_ERROR;
	memcpy(&head, payload->storage, sizeof head);
	if ((size_t)got < bytes || head.stream != entry->stream ||
		head.sequence != entry->sequence || head.used < entry->used)
		return LOAD_TORN;
	payload->bytes = payload->storage + sizeof head;
	set_payload_head(payload, &head, entry->used);
	if (entry->cut || (entry->type == TRACE_DICT && head.crc == 0))
		return LOAD_FINE;
	return head.used == entry->used && trace_block_crc(&head, payload->bytes) == head.crc
		       ? LOAD_FINE
		       : LOAD_TORN;
}

void block_payload_free(struct block_payload *payload)
{
	free(payload->storage);
	*payload = (struct block_payload){ 0 };
}
