/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/mutate.h"

#include "collector/trace_format.h"

#include <string.h>

#define BLOCKS_MOST 256
#define RECORDS_MOST 4096
#define HEADER_BYTES 4096u

struct image {
	unsigned char *bytes;
	size_t count, room;
	size_t blocks[BLOCKS_MOST], block_count;
};

/* The records of one payload; short forms are one or two words. */
struct payload {
	size_t begin, end; /* in the image */
	size_t records[RECORDS_MOST], count;
};

size_t dice_below(struct dice *dice, size_t below)
{
	dice->state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t mixed = dice->state;

	mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
	mixed ^= mixed >> 31;
	return below ? (size_t)(mixed % below) : 0;
}

/* A value that something may break at. */
static uint64_t value(struct dice *dice, uint64_t old)
{
	static const uint64_t edges[] = { 0, 1, 2, 3, 7, 8, 63, 64, 255, 4095, 65535, 65536,
		0x7fffffff, 0x80000000, 0xffffffff, UINT64_C(1) << 32, UINT64_C(1) << 48,
		UINT64_C(1) << 62, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - 63 };

	switch (dice_below(dice, 6)) {
	case 0:
		return edges[dice_below(dice, sizeof edges / sizeof *edges)];
	case 1:
		return old + 1;
	case 2:
		return old - 1;
	case 3:
		return old ^ UINT64_C(1) << dice_below(dice, 64);
	case 4:
		return old * 2;
	default:
		return dice_below(dice, 16);
	}
}

static struct trace_block head_of(const struct image *image, size_t block)
{
	struct trace_block head;

	memcpy(&head, image->bytes + image->blocks[block], sizeof head);
	return head;
}

static void find_blocks(struct image *image)
{
	size_t at = HEADER_BYTES;

	image->block_count = 0;
	while (at + sizeof(struct trace_block) <= image->count &&
		image->block_count < BLOCKS_MOST) {
		struct trace_block head;

		memcpy(&head, image->bytes + at, sizeof head);
		if (head.magic == TRACE_BLOCK_MAGIC)
			image->blocks[image->block_count++] = at;
		at += head.magic == TRACE_BLOCK_MAGIC && head.extent >= sizeof head &&
				      head.extent < image->count
			      ? (size_t)(head.extent + TRACE_ALIGN - 1) / TRACE_ALIGN * TRACE_ALIGN
			      : TRACE_ALIGN;
	}
}

static void find_records(const struct image *image, size_t block, struct payload *payload)
{
	const struct trace_block head = head_of(image, block);
	size_t at = payload->begin = image->blocks[block] + sizeof head, most = image->count - at;

	payload->end = at + (head.used < most ? (size_t)head.used : most);
	payload->count = 0;
	while (at + 4 <= payload->end && payload->count < RECORDS_MOST) {
		uint32_t word;

		memcpy(&word, image->bytes + at, sizeof word);
		payload->records[payload->count++] = at;
		if (word & 3)
			at += (word & 3) == 3 ? 8 : 4;
		else
			at += word & 0xffff ? word & 0xffff : 4;
	}
	while (payload->count && payload->records[payload->count - 1] >= payload->end)
		payload->count--;
}

/* Moves what is behind `at` by `by` bytes, and has the block and its neighbours know. */
static int shift(struct image *image, size_t block, size_t at, size_t gone, size_t come)
{
	struct trace_block head = head_of(image, block);
	const size_t was = sizeof head + (size_t)head.used;
	size_t extent, old_extent = (size_t)head.extent, end;

	if (head.used > image->count || at + gone > image->blocks[block] + was ||
		image->blocks[block] + old_extent > image->count)
		return 0;
	if (gone > come && (gone - come) % 4)
		return 0;
	extent = (was - gone + come + TRACE_ALIGN - 1) / TRACE_ALIGN * TRACE_ALIGN;
	if (extent < old_extent)
		extent = old_extent;
	end = image->blocks[block] + old_extent;
	if (image->count - old_extent + extent > image->room)
		return 0;
	memmove(image->bytes + end + (extent - old_extent), image->bytes + end, image->count - end);
	image->count += extent - old_extent;
	memmove(image->bytes + at + come, image->bytes + at + gone,
		image->blocks[block] + was - at - gone);
	head.used = head.used - gone + come;
	head.extent = extent;
	memcpy(image->bytes + image->blocks[block], &head, sizeof head);
	return 1;
}

/* A field of the record: of 4 or 8 bytes, at a multiple of that. */
static void change_field(struct image *image, size_t record, size_t end, struct dice *dice)
{
	const size_t width = dice_below(dice, 2) ? 8 : 4, fields = (end - record) / width;
	const size_t at = record + width * dice_below(dice, fields);
	uint64_t field = 0;

	if (at + width > image->count || !fields)
		return;
	memcpy(&field, image->bytes + at, width);
	field = value(dice, field);
	memcpy(image->bytes + at, &field, width);
}

static void change_head(struct image *image, size_t at, struct dice *dice)
{
	struct trace_head head;

	if (at + sizeof head > image->count)
		return;
	memcpy(&head, image->bytes + at, sizeof head);
	switch (dice_below(dice, 4)) {
	case 0:
		head.size = (uint16_t)value(dice, head.size);
		break;
	case 1:
		head.kind = (uint8_t)dice_below(dice, TRACE_KINDS + 1);
		break;
	case 2:
		head.flags = (uint8_t)value(dice, head.flags);
		break;
	default:
		head.node = (uint32_t)value(dice, head.node);
	}
	memcpy(image->bytes + at, &head, sizeof head);
}

/* A record of any block is put in here, or in its place. */
static void copy_record(struct image *image, size_t block, const struct payload *to, size_t which,
	struct dice *dice)
{
	static struct payload from;
	unsigned char record[512];
	size_t at, end, bytes;

	find_records(image, dice_below(dice, image->block_count), &from);
	if (!from.count)
		return;
	at = dice_below(dice, from.count);
	end = at + 1 < from.count ? from.records[at + 1] : from.end;
	if (end > from.end || end < from.records[at])
		return;
	bytes = end - from.records[at];
	if (bytes > sizeof record)
		return;
	memcpy(record, image->bytes + from.records[at], bytes);
	if (shift(image, block, to->records[which], 0, bytes))
		memcpy(image->bytes + to->records[which], record, bytes);
}

static void change_text(struct image *image, size_t record, size_t end, struct dice *dice)
{
	static const char *const texts[] = { "\x1b]0;x\a", "\xe2\x80\xae", "=1+1", "\xff\xfe",
		"%s%n", "<script>", "a.7.b", "_ZN", "\\u202e", "/", "\n", "ProfilerStep#",
		"backward", "nccl", "\xf0\x9f\x98\x80", "\"", "\\" };
	const char *text = texts[dice_below(dice, sizeof texts / sizeof *texts)];
	const size_t length = strlen(text);

	if (end - record > 16 + length)
		memcpy(image->bytes + record + 16 + dice_below(dice, end - record - 16 - length),
			text, length);
}

static void change_record(struct image *image, size_t block, struct dice *dice)
{
	static struct payload payload;
	size_t which, at, end;

	find_records(image, block, &payload);
	if (!payload.count)
		return;
	which = dice_below(dice, payload.count);
	at = payload.records[which];
	end = which + 1 < payload.count ? payload.records[which + 1] : payload.end;
	if (end > payload.end || end < at)
		end = payload.end;
	switch (dice_below(dice, 10)) {
	case 0:
		change_head(image, at, dice);
		break;
	case 1:
		shift(image, block, at, end - at, 0);
		break;
	case 2:
	case 3:
		copy_record(image, block, &payload, which, dice);
		break;
	case 4:
		change_text(image, at, end, dice);
		break;
	default:
		change_field(image, at, end, dice);
	}
}

static void change_block(struct image *image, size_t block, struct dice *dice)
{
	struct trace_block head = head_of(image, block);

	switch (dice_below(dice, 8)) {
	case 0:
		head.stream = (uint32_t)value(dice, head.stream);
		break;
	case 1:
		head.sequence = (uint32_t)value(dice, head.sequence);
		break;
	case 2:
		head.type = (uint32_t)dice_below(dice, 6);
		break;
	case 3:
		head.used = value(dice, head.used);
		break;
	case 4:
		head.extent = value(dice, head.extent);
		break;
	case 5:
		head.base_stamp = value(dice, head.base_stamp);
		break;
	case 6:
		head.lost = value(dice, head.lost);
		break;
	default:
		head.tid = (uint32_t)value(dice, head.tid);
	}
	memcpy(image->bytes + image->blocks[block], &head, sizeof head);
}

static void change_header(struct image *image, struct dice *dice)
{
	const size_t width = dice_below(dice, 2) ? 8 : 4,
		     at = 16 + width * dice_below(dice, 480 / width);
	uint64_t field = 0;

	if (at + width > image->count)
		return;
	memcpy(&field, image->bytes + at, width);
	field = value(dice, field);
	memcpy(image->bytes + at, &field, width);
}

void mutate_mend(unsigned char *trace, size_t bytes)
{
	struct image image = { .bytes = trace, .count = bytes };

	find_blocks(&image);
	for (size_t i = 0; i < image.block_count; i++) {
		struct trace_block *head = (void *)(trace + image.blocks[i]);

		head->head_crc = trace_crc32c(0, head, offsetof(struct trace_block, head_crc));
		if (head->type != TRACE_SLOT &&
			head->used <= bytes - image.blocks[i] - sizeof *head)
			head->crc = trace_block_crc(head, head + 1);
	}
}

size_t mutate_trace(unsigned char *trace, size_t bytes, size_t room, struct dice *dice)
{
	struct image image = { .bytes = trace, .count = bytes, .room = room };

	for (size_t changes = 1 + dice_below(dice, 4); changes; changes--) {
		find_blocks(&image);
		if (!image.block_count || !dice_below(dice, 24))
			change_header(&image, dice);
		else if (!dice_below(dice, 8))
			change_block(&image, dice_below(dice, image.block_count), dice);
		else
			change_record(&image, dice_below(dice, image.block_count), dice);
	}
	if (dice_below(dice, 16))
		mutate_mend(trace, image.count);
	return image.count;
}
