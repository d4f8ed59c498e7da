/* SPDX-License-Identifier: MIT
 * block_writer.h: large traces, written as fast as they can be, for measurements. What is in them
 * is the caller's affair; whatever goes wrong ends the program with a sentence.
 *
 *	struct block_writer *writer = block_writer_open("trace.bin");
 *
 *	((struct trace_name *)block_writer_record(writer, TRACE_NAME, ...))->name = 1;
 *	block_writer_seal(writer, TRACE_DICT, 0);
 *	block_writer_begin(writer, 1000);
 *	...
 *	block_writer_seal(writer, TRACE_CHUNK, 1);
 *	block_writer_close(writer, 1);
 */
#ifndef PPERF_TESTS_SUPPORT_BLOCK_WRITER_H
#define PPERF_TESTS_SUPPORT_BLOCK_WRITER_H

#include "collector/trace_format.h"
#include <stddef.h>
#include <stdio.h>

#define BLOCK_WRITER_PAYLOAD 65536u /* seal before there is more: 64 bytes of room are behind it */
#define BLOCK_WRITER_STREAMS 4u

/* Ticks are nanoseconds. */
struct block_writer {
	FILE *file;
	uint64_t offset, base; /* base: the stamp with which the payload began */
	unsigned char payload[BLOCK_WRITER_PAYLOAD + 64];
	size_t used;
	uint32_t sequences[BLOCK_WRITER_STREAMS];
	const char *path;
};

struct block_writer *block_writer_open(const char *path);
/* Head filled, the rest zero; lives until the next one. */
void *block_writer_record(struct block_writer *writer, enum trace_kind kind, size_t size);
/* The payload is over: of TRACE_DICT, or of TRACE_CHUNK of that stream. */
void block_writer_seal(struct block_writer *writer, uint32_t type, uint32_t stream);
/* A payload of events begins: its CLOCK record. */
void block_writer_begin(struct block_writer *writer, uint64_t stamp);
/* Writes the header and frees it; how many bytes the file has. */
uint64_t block_writer_close(struct block_writer *writer, uint32_t streams);

#endif
