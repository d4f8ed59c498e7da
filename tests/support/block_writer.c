/* SPDX-License-Identifier: MIT */
#include "tests/support/block_writer.h"
#include <stdlib.h>
#include <string.h>

#define UNIX_NS UINT64_C(1700000000000000000)

static void fail(const struct block_writer *writer)
{
	perror(writer->path);
	exit(2);
}

struct block_writer *block_writer_open(const char *path)
{
	struct block_writer *writer = calloc(1, sizeof *writer);

	if (!writer)
		abort();
	writer->path = path;
	writer->unix_ns = UNIX_NS;
	writer->run_id = writer->pid = 1;
	writer->file = fopen(path, "w");
	writer->offset = 4096;
	if (!writer->file || fseek(writer->file, 4096, SEEK_SET))
		fail(writer);
	return writer;
}

void block_writer_seal(struct block_writer *writer, uint32_t type, uint32_t stream)
{
	struct trace_block block = { .magic = TRACE_BLOCK_MAGIC,
		.type = type,
		.stream = stream,
		.sequence = writer->sequences[stream]++,
		.tid = stream,
		.base_stamp = writer->base,
		.used = writer->used };
	static const unsigned char zeros[TRACE_ALIGN];
	const size_t padding = (TRACE_ALIGN - writer->used % TRACE_ALIGN) % TRACE_ALIGN;

	block.extent = sizeof block + writer->used + padding;
	block.head_crc = trace_crc32c(0, &block, offsetof(struct trace_block, head_crc));
	block.crc = trace_block_crc(&block, writer->payload);
	if (!fwrite(&block, sizeof block, 1, writer->file) ||
		fwrite(writer->payload, 1, writer->used, writer->file) != writer->used ||
		fwrite(zeros, 1, padding, writer->file) != padding)
		fail(writer);
	writer->offset += block.extent;
	writer->used = 0;
}

void *block_writer_record(struct block_writer *writer, enum trace_kind kind, size_t size)
{
	struct trace_head *head;

	while (writer->used % 8)
		writer->payload[writer->used++] = 0;
	head = (struct trace_head *)(void *)(writer->payload + writer->used);
	memset(head, 0, (size + 7) / 8 * 8);
	head->size = (uint16_t)((size + 7) / 8 * 8);
	head->kind = (uint8_t)kind;
	writer->used += head->size;
	return head;
}

void block_writer_begin(struct block_writer *writer, uint64_t stamp)
{
	struct trace_clock_record *clock;

	writer->base = stamp;
	clock = block_writer_record(writer, TRACE_CLOCK, sizeof *clock);
	clock->stamp = clock->monotonic_ns = stamp;
	clock->realtime_ns = writer->unix_ns + stamp;
}

uint64_t block_writer_close(struct block_writer *writer, uint32_t streams)
{
	const uint64_t bytes = writer->offset;
	struct trace_header header = { .magic = TRACE_MAGIC,
		.version = TRACE_VERSION,
		.endian = TRACE_ENDIAN,
		.header_bytes = 4096,
		.clock_kind = TRACE_CLOCK_MONOTONIC,
		.run_id = writer->run_id,
		.pid = writer->pid,
		.flags = writer->killed ? 0 : TRACE_ENDED,
		.page_bytes = 4096,
		.streams = streams,
		.end = bytes,
		.start = { .raw = 1, .monotonic_ns = 1, .realtime_ns = writer->unix_ns + 1 },
		.last = { .raw = writer->base,
			.monotonic_ns = writer->base,
			.realtime_ns = writer->unix_ns + writer->base } };

	if (writer->killed)
		memset(&header.last, 0, sizeof header.last);

	rewind(writer->file);
	if (!fwrite(&header, sizeof header, 1, writer->file) || fclose(writer->file))
		fail(writer);
	free(writer);
	return bytes;
}
