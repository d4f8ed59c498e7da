/* SPDX-License-Identifier: MIT
 * Scans a trace file from block head to block head. Some heads may be damaged, and the program may
 * still be writing.
 */
#include "report/trace/trace_blocks.h"

#include "report/base/alloc.h"
#include "report/trace/record_check.h"
#include "report/trace/short_records.h"
#include "report/trace/trace_header.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAYLOAD_MAX (64u << 20) /* a larger payload is damaged; pperf writes about 64 KiB */
#define LOOK_BYTES (sizeof(struct trace_block) + sizeof(struct trace_clock_record))
#define SCAN_WINDOW_BYTES 65536u
#define SLOT_TRIES 8
#define GROWTHS_MAX 16
#define HEAD_WAITS_MAX 16u /* per scan, for heads of which only the payload has arrived */
#define HEAD_WAIT_NS 500000

/* A scan of the file from head to head. */
struct block_scan {
	struct trace_blocks *blocks;
	struct read_warnings *warnings;
	uint64_t end; /* of the file, as last measured */
	uint64_t at;  /* file offset of `window` */
	size_t count;
	unsigned growths;
	/* There was no head at the last position: SCAN_WINDOW_BYTES are read at once until one is
	 * found. */
	bool no_head_here;
	uint64_t no_head_from;   /* first offset without a head */
	uint64_t skipped_before; /* skipped_bytes when that offset was reached */
	bool head_wait_failed;   /* head_has_appeared has given up for that offset */
	unsigned waits;
	/* Second scan: slots found now are newer than the first scan. */
	bool skip_slots;
	unsigned char window[SCAN_WINDOW_BYTES];
};

/* Reads a block head and the record after it at `at`. Sets `count` to the bytes available.
 * Returns NULL with errno on failure. */
static const unsigned char *read_head_bytes(struct block_scan *scan, uint64_t at, size_t *count)
{
	int64_t got;

	*count = scan->end - at < LOOK_BYTES ? (size_t)(scan->end - at) : LOOK_BYTES;
	if (at >= scan->at && at + *count <= scan->at + scan->count)
		return scan->window + (at - scan->at);
	got = pread_all(scan->blocks->fd, scan->window,
		scan->no_head_here ? SCAN_WINDOW_BYTES : LOOK_BYTES, at);
	if (got < 0)
		return NULL;
	scan->at = at;
	scan->count = (size_t)got;
	*count = scan->count < *count ? scan->count : *count;
	return scan->window;
}

static uint64_t file_size(int fd)
{
	struct stat status;

	return fstat(fd, &status) || status.st_size < 0 ? 0 : (uint64_t)status.st_size;
}

static struct block_entry *add_block_entry(
	struct trace_blocks *blocks, const struct trace_block *head, uint64_t offset)
{
	struct block_entry *entry;

	entry = ARRAY_ADD(blocks->entries, blocks->room, blocks->count);
	*entry = (struct block_entry){
		.offset = offset,
		.base_stamp = head->base_stamp,
		.stream = head->type == TRACE_DICT ? 0 : head->stream,
		.sequence = head->sequence,
		.used = (uint32_t)head->used,
		.type = (uint8_t)head->type,
	};
	return entry;
}

static void add_sample(struct trace_blocks *blocks, const unsigned char *payload, size_t count)
{
	struct trace_clock_record record;

	if (count < sizeof record)
		return;
	memcpy(&record, payload, sizeof record);
	if (record.head.kind != TRACE_CLOCK || record.head.size < sizeof record)
		return;
	*ARRAY_ADD(blocks->samples, blocks->sample_room,
		blocks->sample_count) = (struct trace_clock){ record.stamp, record.monotonic_ns,
		record.realtime_ns };
}

/* Adds every CLOCK of a payload, up to the first malformed record. A process that was killed may
 * never have sealed a slot. Then these samples are the only source for the rate of its clock. */
static void add_samples(struct trace_blocks *blocks, const unsigned char *payload, size_t count)
{
	size_t at = 0, step;

	for (; count - at >= 4; at += step) {
		uint32_t word;

		memcpy(&word, payload + at, sizeof word);
		step = (word & 3) == FORM_PUSH8 ? 8 : 4;
		if (word == 0 || word & 3) {
			if (count - at < step)
				break;
			continue;
		}
		step = word & 0xffff;
		if (at % 8 || record_check((const void *)(payload + at), count - at))
			break;
		add_sample(blocks, payload + at, count - at);
	}
}

/* Updates `end` if the file has grown. Returns false if it has not, or after GROWTHS_MAX
 * updates. */
static bool file_has_grown(struct block_scan *scan)
{
	uint64_t now;

	if (scan->growths == GROWTHS_MAX || !scan->blocks->may_grow)
		return false;
	now = file_size(scan->blocks->fd);
	if (now <= scan->end)
		return false;
	scan->growths++;
	scan->end = now;
	return true;
}

/* Returns how many of the `used` payload bytes at `at` are in the file. */
static uint64_t bytes_present(struct block_scan *scan, uint64_t at, uint64_t used)
{
	while (at + used > scan->end && file_has_grown(scan))
		;
	return at >= scan->end ? 0 : at + used > scan->end ? scan->end - at : used;
}

/* Returns whether the payload's size fits into the block and is at most PAYLOAD_MAX. If not, warns
 * and counts a damaged block. The head must have passed head_is_good. */
static bool check_used_bytes(struct block_scan *scan, const struct trace_block *head, uint64_t at)
{
	if (head->used <= head->extent - sizeof *head && head->used <= PAYLOAD_MAX)
		return true;
	read_warnings_add(scan->warnings, at,
		"the header of a block of %" PRIu64 " bytes says that %" PRIu64
		" are used: damaged, skipped",
		head->extent, head->used);
	scan->warnings->integrity.damaged_blocks++;
	return false;
}

/* Whether the payload began after the file was copied while it was written. Others like it may be
 * missing. */
static bool is_after_copy(const struct block_scan *scan, const struct trace_block *head)
{
	const uint64_t copied_at = scan->blocks->header.control.copied_at;

	return copied_at && head->stream && head->base_stamp > copied_at;
}

static bool is_same_state(const struct trace_block *before, const struct trace_block *after)
{
	return after->stream == before->stream && after->sequence == before->sequence &&
	       after->used >= before->used;
}

/* Copies the present records of the slot at `at`. Afterwards the head is read again. If owner
 * and sequence are unchanged, the slot was not emptied meanwhile, so the bytes below `used` were
 * complete. Returns 1 with a copy, 0 if the slot is or has become empty, -1 with errno. */
static int copy_slot(struct block_scan *scan, uint64_t at, struct slot_copy **copy)
{
	const int fd = scan->blocks->fd;

	for (int tries = 0; tries < SLOT_TRIES; tries++) {
		struct trace_block head, after;
		uint64_t there;

		if (pread_all(fd, &head, sizeof head, at) < 0)
			return -1;
		if (!head.stream || !head.used || !check_used_bytes(scan, &head, at))
			return 0;
		there = bytes_present(scan, at + sizeof head, head.used);
		*copy = xcalloc(sizeof **copy + (size_t)there);
		(*copy)->offset = at;
		(*copy)->head = head;
		if (pread_all(fd, (*copy)->payload, (size_t)there, at + sizeof head) < 0 ||
			pread_all(fd, &after, sizeof after, at) < 0)
			return -1;
		if (is_same_state(&head, &after))
			return 1;
		free(*copy);
	}
	return 0;
}

static bool add_slot(struct block_scan *scan, uint64_t at)
{
	struct trace_blocks *blocks = scan->blocks;
	struct slot_copy *copy = NULL;
	struct block_entry *entry;
	int status = copy_slot(scan, at, &copy);

	if (status <= 0)
		return status == 0;
	if (is_after_copy(scan, &copy->head)) {
		free(copy);
		return true;
	}
	entry = add_block_entry(blocks, &copy->head, at);
	entry->used = (uint32_t)bytes_present(scan, at + sizeof copy->head, copy->head.used);
	entry->cut = entry->used < copy->head.used;
	array_grow_zeroed(&blocks->copies, &blocks->copy_room, (size_t)blocks->copy_count + 1,
		sizeof(struct slot_copy *));
	blocks->copies[blocks->copy_count++] = copy;
	blocks->layout.slots++;
	blocks->layout.slot_bytes += entry->used;
	blocks->in_flight += (sizeof copy->head + copy->head.used + TRACE_ALIGN - 1) / TRACE_ALIGN *
			     TRACE_ALIGN;
	add_samples(blocks, copy->payload, entry->used);
	return true;
}

static void add_chunk(struct block_scan *scan, const struct trace_block *head, uint64_t at,
	const unsigned char *look, size_t count)
{
	struct trace_layout *layout = &scan->blocks->layout;
	struct block_entry *entry;

	if (!check_used_bytes(scan, head, at) || is_after_copy(scan, head))
		return;
	if ((head->stream == 0) != (head->type == TRACE_DICT)) {
		read_warnings_add(scan->warnings, at,
			"a block of type %u belongs to stream %u: damaged, skipped", head->type,
			head->stream);
		scan->warnings->integrity.damaged_blocks++;
		return;
	}
	entry = add_block_entry(scan->blocks, head, at);
	entry->used = (uint32_t)bytes_present(scan, at + sizeof *head, head->used);
	entry->cut = entry->used < head->used;
	if (head->type == TRACE_DICT) {
		layout->dictionary++;
		layout->dictionary_bytes += entry->used;
	} else {
		layout->chunks++;
		layout->chunk_bytes += entry->used;
		add_sample(scan->blocks, look + sizeof *head,
			entry->used < count - sizeof *head ? entry->used : count - sizeof *head);
	}
}

static void add_totals_block(struct block_scan *scan, const struct trace_block *head, uint64_t at)
{
	struct trace_blocks *blocks = scan->blocks;
	struct block_entry *entry;

	if (!check_used_bytes(scan, head, at))
		return;
	entry = ARRAY_ADD(blocks->totals, blocks->totals_room, blocks->totals_count);
	*entry = (struct block_entry){ .offset = at, .type = TRACE_TOTALS };
	entry->used = (uint32_t)bytes_present(scan, at + sizeof *head, head->used);
	entry->cut = entry->used < head->used;
	blocks->layout.totals++;
	blocks->layout.totals_bytes += entry->used;
}

/* Counts a block of a type that only a newer pperf knows. */
static void count_unknown_block(struct block_scan *scan, const struct trace_block *head)
{
	scan->warnings->integrity.unknown_kinds++;
	scan->warnings->integrity.unknown_bytes += head->extent;
}

static bool head_is_good(const struct trace_block *head)
{
	return head->head_crc == trace_crc32c(0, head, offsetof(struct trace_block, head_crc)) &&
	       head->type >= TRACE_SLOT && head->extent >= sizeof *head &&
	       head->extent % TRACE_ALIGN == 0 && head->extent < UINT64_C(1) << 62;
}

/* Returns true for the head of a block that has no contents yet. Its process was killed before
 * writing it, or is writing it now. */
static bool is_unwritten_head(const struct block_scan *scan, const void *bytes, size_t count)
{
	static const unsigned char
		nothing[sizeof(struct trace_block) - offsetof(struct trace_block, stream)];
	struct trace_block head;

	if (count < sizeof head || scan->blocks->header.flags & TRACE_ENDED)
		return false;
	memcpy(&head, bytes, sizeof head);
	return (head.magic == TRACE_BLOCK_MAGIC || head.magic == 0) &&
	       !memcmp(&head.stream, nothing, sizeof nothing);
}

/* Adds the block at `at`, if there is one. Sets `next` to the end of the block, or to `at` if
 * there is none. Returns false with errno on failure. */
static bool add_block(struct block_scan *scan, uint64_t at, uint64_t *next)
{
	struct trace_block head;
	size_t count;
	const unsigned char *bytes = read_head_bytes(scan, at, &count);

	*next = at;
	if (!bytes)
		return false;
	if (count < sizeof head)
		return true;
	memcpy(&head, bytes, sizeof head);
	if (head.magic != TRACE_BLOCK_MAGIC)
		return true;
	if (!head_is_good(&head) && is_unwritten_head(scan, bytes, count))
		return true;
	if (!head_is_good(&head)) {
		read_warnings_add(scan->warnings, at,
			"a block with a damaged header starts here: its content is lost");
		scan->warnings->integrity.damaged_blocks++;
		return true;
	}
	*next = at + head.extent;
	if (head.type == TRACE_CHUNK || head.type == TRACE_DICT)
		add_chunk(scan, &head, at, bytes, count);
	else if (head.type == TRACE_TOTALS)
		add_totals_block(scan, &head, at);
	else if (head.type > TRACE_UNUSED)
		count_unknown_block(scan, &head);
	else if (head.type == TRACE_UNUSED)
		return true;
	else if (!scan->skip_slots && head.stream)
		return add_slot(scan, at);
	return true;
}

/* Returns the first offset from `at` on that is not in a hole of the file, rounded down to
 * TRACE_ALIGN. Returns the end of the file if there is none, and `at` if the file system cannot
 * tell. */
static uint64_t skip_hole(const struct block_scan *scan, uint64_t at)
{
	off_t data = at > INT64_MAX ? -1 : lseek(scan->blocks->fd, (off_t)at, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? scan->end : at;
	return (uint64_t)data / TRACE_ALIGN * TRACE_ALIGN > at
		       ? (uint64_t)data / TRACE_ALIGN * TRACE_ALIGN
		       : at;
}

/* Counts the nonzero bytes at `at`, where no head is. Returns false with errno on failure. */
static bool skip_unknown_bytes(struct block_scan *scan, uint64_t at)
{
	size_t count;
	const unsigned char *bytes;

	if (!scan->no_head_here) {
		scan->no_head_here = true;
		scan->no_head_from = at;
		scan->skipped_before = scan->warnings->integrity.skipped_bytes;
		scan->head_wait_failed = false;
		scan->count = 0;
	}
	bytes = read_head_bytes(scan, at, &count);
	for (size_t i = 0;
		bytes && !is_unwritten_head(scan, bytes, count) && i < count && i < TRACE_ALIGN;
		i++)
		scan->warnings->integrity.skipped_bytes += bytes[i] != 0;
	return bytes != NULL;
}

/* Waits for a missing head. A live process writes the payload first, so the scan may reach it
 * before its head. Returns true if the head is there now, and resets skipped_bytes. */
static bool head_has_appeared(struct block_scan *scan)
{
	struct trace_integrity *integrity = &scan->warnings->integrity;
	struct trace_block head;

	if (scan->head_wait_failed || integrity->skipped_bytes == scan->skipped_before ||
		(scan->blocks->header.flags & TRACE_ENDED))
		return false;
	while (pread_all(scan->blocks->fd, &head, sizeof head, scan->no_head_from) != sizeof head ||
		head.magic != TRACE_BLOCK_MAGIC || !head_is_good(&head)) {
		scan->head_wait_failed = scan->waits == HEAD_WAITS_MAX;
		if (scan->head_wait_failed)
			return false;
		scan->waits++;
		nanosleep(&(struct timespec){ 0, HEAD_WAIT_NS }, NULL);
	}
	integrity->skipped_bytes = scan->skipped_before;
	scan->no_head_here = false;
	scan->count = 0;
	return true;
}

/* Adds all blocks from `at` to the end of the file and jumps over holes. Advances `at`. Returns
 * false with errno on failure. */
static bool scan_blocks(struct block_scan *scan, uint64_t *at)
{
	while (*at < scan->end) {
		uint64_t next;

		if (scan->no_head_here && *at + LOOK_BYTES > scan->at + scan->count) {
			*at = skip_hole(scan, *at);
			if (*at >= scan->end)
				break;
		}
		if (!add_block(scan, *at, &next))
			return false;
		scan->no_head_here &= next == *at;
		if (next == *at && !skip_unknown_bytes(scan, *at))
			return false;
		if (next == *at && head_has_appeared(scan))
			next = scan->no_head_from;
		else if (next == *at)
			next += TRACE_ALIGN;
		*at = next;
	}
	return true;
}

/* Scans again what was appended during the first scan. This finds the chunks that were sealed
 * before their slots were copied. */
static bool scan_blocks_twice(struct block_scan *scan)
{
	/* Start after the struct instead of at header_bytes: if that field is damaged, no block
	 * is missed. */
	uint64_t at = (sizeof(struct trace_header) + TRACE_ALIGN - 1) / TRACE_ALIGN * TRACE_ALIGN;

	if (!scan_blocks(scan, &at))
		return false;
	scan->skip_slots = true;
	scan->growths = 0;
	return !file_has_grown(scan) || scan_blocks(scan, &at);
}

bool blocks_scan(struct trace_blocks *blocks, struct read_warnings *warnings)
{
	struct block_scan *scan = xcalloc(sizeof *scan);
	bool whole;

	scan->blocks = blocks;
	scan->warnings = warnings;
	scan->end = blocks->file_bytes;
	whole = scan_blocks_twice(scan);
	blocks->file_bytes = blocks->layout.file_bytes = scan->end;
	free(scan);
	return whole;
}
