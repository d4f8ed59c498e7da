/* SPDX-License-Identifier: MIT
 * block_writer.h: Writes large traces quickly, for benchmarks. The caller decides the content.
 * A failure ends the program with a message.
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
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Bytes of a payload. Seal before it is larger; 64 bytes of reserve follow it. */
#define BLOCK_WRITER_PAYLOAD 65536u
#define BLOCK_WRITER_STREAMS 80u

/* The state of a writer. Ticks are nanoseconds. The members of the header may be changed before
 * block_writer_close. */
struct block_writer {
	uint64_t unix_ns; /* CLOCK_REALTIME at stamp 0 */
	uint64_t run_id;
	uint32_t pid;
	bool killed; /* the process did not end by exit() */
	FILE *file;
	uint64_t offset, base; /* base: the stamp at which the payload began */
	unsigned char payload[BLOCK_WRITER_PAYLOAD + 64];
	size_t used;
	uint32_t sequences[BLOCK_WRITER_STREAMS];
	const char *path;
};

struct block_writer *block_writer_open(const char *path);
/* Appends a record with its head filled and the rest zero. The pointer is valid until the next
 * call. */
void *block_writer_record(struct block_writer *writer, enum trace_kind kind, size_t size);
/* Writes the payload as a block: TRACE_DICT, or TRACE_CHUNK of `stream`. */
void block_writer_seal(struct block_writer *writer, uint32_t type, uint32_t stream);
/* Begins a payload of events with its CLOCK record. */
void block_writer_begin(struct block_writer *writer, uint64_t stamp);
/* Writes the header, closes the file and frees the writer. Returns the size of the file in
 * bytes. */
uint64_t block_writer_close(struct block_writer *writer, uint32_t streams);

#endif
