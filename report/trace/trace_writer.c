/* SPDX-License-Identifier: MIT */
#include "report/trace/trace_writer.h"
#include "report/base/alloc.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADER_BYTES 4096u
#define BLOCK_BYTES 65536u      /* with its head */
#define START_TICKS 1000000000u /* raw and monotonic time of the trace's start */
#define PUSH4_TICKS (1u << 14)
#define PUSH4_NODES (1u << 16)
#define POP4_TICKS (1u << 30)

struct writer_block {
	struct trace_block head;
	unsigned char payload[BLOCK_BYTES - sizeof(struct trace_block)];
};

struct trace_writer {
	int fd, error; /* error: errno of the first write that failed */
	struct trace_header header;
	struct writer_block *dictionary, *stream; /* being filled */
	uint32_t names, nodes;
	uint64_t last; /* stamp of the stream's last record */
	struct trace_open *open;
	size_t open_room;
	uint32_t depth;
};

static void write_bytes(
	struct trace_writer *writer, const void *from, size_t bytes, uint64_t offset)
{
	const char *at = from;

	while (bytes && !writer->error) {
		const ssize_t done = pwrite(writer->fd, at, bytes, (off_t)offset);

		if (done < 0 && errno != EINTR)
			writer->error = errno;
		if (done <= 0)
			continue;
		at += done;
		offset += (uint64_t)done;
		bytes -= (size_t)done;
	}
}

/* Writes `block` to the file and empties it. */
static void seal_writer_block(struct trace_writer *writer, struct writer_block *block)
{
	struct trace_block *head = &block->head;
	const size_t used = sizeof *head + (size_t)head->used;

	if (!head->used)
		return;
	head->magic = TRACE_BLOCK_MAGIC;
	head->extent = (used + TRACE_ALIGN - 1) / TRACE_ALIGN * TRACE_ALIGN;
	head->head_crc = trace_crc32c(0, head, offsetof(struct trace_block, head_crc));
	head->crc = trace_block_crc(head, block->payload);
	memset((char *)block + used, 0, (size_t)head->extent - used);
	write_bytes(writer, block, (size_t)head->extent, writer->header.end);
	writer->header.end += head->extent;
	head->sequence++;
	head->used = 0;
}

struct trace_writer *writer_new(int fd, uint64_t realtime_ns, uint32_t pid)
{
	struct trace_writer *writer = xcalloc(sizeof *writer);

	writer->fd = fd;
	writer->dictionary = xcalloc(sizeof *writer->dictionary);
	writer->stream = xcalloc(sizeof *writer->stream);
	writer->dictionary->head.type = TRACE_DICT;
	writer->stream->head.type = TRACE_CHUNK;
	writer->names = writer->nodes = 1;
	writer->header = (struct trace_header){
		.version = TRACE_VERSION,
		.endian = TRACE_ENDIAN,
		.header_bytes = HEADER_BYTES,
		.clock_kind = TRACE_CLOCK_MONOTONIC,
		.pid = pid,
		.page_bytes = 4096,
		.start = { START_TICKS, START_TICKS, realtime_ns },
		.end = HEADER_BYTES,
	};
	memcpy(writer->header.magic, TRACE_MAGIC, sizeof writer->header.magic);
	return writer;
}

static void *reserve_dictionary(struct trace_writer *writer, size_t size)
{
	struct writer_block *block = writer->dictionary;
	void *at;

	if (block->head.used + size > sizeof block->payload)
		seal_writer_block(writer, block);
	at = block->payload + block->head.used;
	memset(at, 0, size);
	block->head.used += size;
	return at;
}

static struct trace_head make_head(enum trace_kind kind, size_t size, uint32_t node)
{
	return (struct trace_head){ .size = (uint16_t)size, .kind = (uint8_t)kind, .node = node };
}

static size_t align_record_size(size_t size)
{
	return (size + 7) / 8 * 8;
}

void writer_dictionary(struct trace_writer *writer, enum trace_kind kind, void *record, size_t size)
{
	struct trace_head *head = record;

	*head = make_head(kind, size, head->node);
	memcpy(reserve_dictionary(writer, size), record, size);
}

void writer_meta(struct trace_writer *writer, const char *key, const char *value, size_t length)
{
	const size_t key_bytes = strlen(key),
		     value_bytes = length < TRACE_TEXT_MAX ? length : TRACE_TEXT_MAX,
		     size = align_record_size(sizeof(struct trace_meta) + key_bytes + value_bytes);
	struct trace_meta *meta = reserve_dictionary(writer, size);

	meta->head = make_head(TRACE_META, size, 0);
	meta->key_bytes = (uint32_t)key_bytes;
	meta->value_bytes = (uint32_t)value_bytes;
	memcpy(meta + 1, key, key_bytes);
	memcpy((char *)(meta + 1) + key_bytes, value, value_bytes);
}

uint32_t writer_name(struct trace_writer *writer, const char *text, size_t length)
{
	const bool cut = length > TRACE_TEXT_MAX;
	const size_t bytes = cut ? TRACE_TEXT_MAX : length,
		     size = align_record_size(sizeof(struct trace_name) + bytes);
	struct trace_name *name = reserve_dictionary(writer, size);
	const size_t mark = strlen(TRACE_TEXT_CUT);

	name->head = make_head(TRACE_NAME, size, 0);
	name->name = writer->names;
	name->bytes = (uint32_t)bytes;
	memcpy(name + 1, text, bytes);
	if (cut)
		memcpy((char *)(name + 1) + bytes - mark, TRACE_TEXT_CUT, mark);
	return writer->names++;
}

uint32_t writer_node(struct trace_writer *writer, const struct trace_node *node)
{
	struct trace_node *record = reserve_dictionary(writer, sizeof *record);

	*record = *node;
	record->head = make_head(TRACE_NODE, sizeof *record, writer->nodes);
	return writer->nodes++;
}

/* Starts a payload with a CLOCK and the open ranges, so that it can be read alone. */
static void begin_stream_payload(struct trace_writer *writer)
{
	struct writer_block *block = writer->stream;
	struct trace_clock_record clock = { .head = make_head(TRACE_CLOCK, sizeof clock, 0),
		.stamp = writer->last,
		.monotonic_ns = writer->last,
		.realtime_ns = writer->header.start.realtime_ns + (writer->last - START_TICKS) };
	const uint32_t open = writer->depth < TRACE_OPEN_MAX ? writer->depth : TRACE_OPEN_MAX;

	block->head.base_stamp = writer->last;
	memcpy(block->payload, &clock, sizeof clock);
	if (open)
		memcpy(block->payload + sizeof clock, writer->open, open * sizeof *writer->open);
	block->head.used = sizeof clock + open * sizeof *writer->open;
}

/* Reserves `size` bytes for a record at a multiple of `align` (4 or 8). Fills a gap with
 * padding. */
static void *reserve_stream(struct trace_writer *writer, size_t size, size_t align)
{
	struct writer_block *block = writer->stream;
	void *at;

	if (block->head.used + size + 4 > sizeof block->payload)
		seal_writer_block(writer, block);
	if (!block->head.used)
		begin_stream_payload(writer);
	if (block->head.used % align) {
		memset(block->payload + block->head.used, 0, 4);
		block->head.used += 4;
	}
	at = block->payload + block->head.used;
	block->head.used += size;
	return at;
}

void writer_stream(struct trace_writer *writer, uint32_t tid)
{
	seal_writer_block(writer, writer->stream);
	writer->stream->head.stream = (uint32_t)++writer->header.streams;
	writer->stream->head.sequence = 0;
	writer->stream->head.tid = tid;
	writer->last = START_TICKS;
	writer->depth = 0;
}

/* Returns the ticks since the last record. Writes a CLOCK first if they are 2^30 or more, which
 * the short forms cannot hold. */
static uint32_t ticks_since(struct trace_writer *writer, uint64_t time)
{
	const uint64_t stamp = time + START_TICKS;
	struct trace_clock_record clock = { .monotonic_ns = stamp,
		.realtime_ns = writer_realtime(writer, time) };

	if (stamp - writer->last >= POP4_TICKS)
		writer_timed(writer, time, TRACE_CLOCK, &clock, sizeof clock);
	return (uint32_t)(stamp - writer->last);
}

void writer_push(struct trace_writer *writer, uint64_t time, uint32_t node)
{
	uint32_t ticks = ticks_since(writer, time), *words = reserve_stream(writer, 8, 4);

	if (ticks < PUSH4_TICKS && node < PUSH4_NODES) {
		words[0] = 1 | ticks << 2 | node << 16;
		writer->stream->head.used -= 4;
	} else {
		words[0] = 3 | node << 2;
		words[1] = ticks;
	}
	writer->last = time + START_TICKS;
	ARRAY_GROW(writer->open, writer->open_room, (size_t)writer->depth + 1);
	writer->open[writer->depth++] = (struct trace_open){ .head = make_head(TRACE_OPEN,
								     sizeof *writer->open, node),
		.begin_stamp = writer->last };
}

void writer_pop(struct trace_writer *writer, uint64_t time, uint32_t inside)
{
	const uint32_t index = writer->depth - 1 - inside;
	struct trace_pop_at pop = { .head.node = writer->open[index].head.node, .index = index };
	uint32_t ticks;

	if (inside) {
		writer_timed(writer, time, TRACE_POP_AT, &pop, sizeof pop);
	} else {
		ticks = ticks_since(writer, time);
		*(uint32_t *)reserve_stream(writer, 4, 4) = 2 | ticks << 2;
		writer->last = time + START_TICKS;
	}
	memmove(&writer->open[index], &writer->open[index + 1], inside * sizeof *writer->open);
	writer->depth--;
}

void writer_timed(
	struct trace_writer *writer, uint64_t time, enum trace_kind kind, void *record, size_t size)
{
	struct trace_timed *timed = record;
	void *at = reserve_stream(writer, size, 8);

	timed->head.size = (uint16_t)size;
	timed->head.kind = (uint8_t)kind;
	timed->stamp = writer->last = time + START_TICKS;
	memcpy(at, record, size);
}

void writer_plain(struct trace_writer *writer, enum trace_kind kind, void *record, size_t size)
{
	struct trace_head *head = record;

	head->size = (uint16_t)size;
	head->kind = (uint8_t)kind;
	memcpy(reserve_stream(writer, size, 8), record, size);
}

uint64_t writer_realtime(const struct trace_writer *writer, uint64_t time)
{
	return writer->header.start.realtime_ns + time;
}

bool writer_close(struct trace_writer *writer, uint64_t duration, bool whole)
{
	struct trace_header *header = &writer->header;
	int error;

	seal_writer_block(writer, writer->stream);
	seal_writer_block(writer, writer->dictionary);
	header->flags = whole ? TRACE_ENDED : TRACE_TAIL_AT_RISK;
	header->limit_bytes = header->end;
	header->last = (struct trace_clock){ START_TICKS + duration, START_TICKS + duration,
		writer_realtime(writer, duration) };
	write_bytes(writer, header, sizeof *header, 0);
	error = writer->error;
	free(writer->dictionary);
	free(writer->stream);
	free(writer->open);
	free(writer);
	errno = error;
	return !error;
}
