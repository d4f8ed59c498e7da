/* SPDX-License-Identifier: MIT
 * trace_blocks.h: the blocks of a trace file: found, ordered, and read one at a time. Never mapped: a file that
 * shrinks or is being written must not raise a signal here.
 */
#ifndef PPERF_REPORT_TRACE_TRACE_BLOCKS_H
#define PPERF_REPORT_TRACE_TRACE_BLOCKS_H

#include "report/trace/read_warnings.h"

/* What a slot held when the file was opened: it may be something else by now. */
struct slot_copy {
	uint64_t offset;
	struct trace_block head;
	unsigned char payload[];
};

/* 32 bytes a block. */
struct block_entry {
	uint64_t offset;     /* of the head */
	uint64_t base_stamp; /* as the head said, not yet checked by a crc */
	uint32_t stream, sequence;
	uint32_t used; /* payload bytes that are in the file */
	uint8_t type;  /* enum trace_block_type */
	bool cut;      /* the file ends before the payload does */
	uint16_t reserved;
};

struct trace_blocks {
	int fd;
	uint64_t file_bytes;
	struct trace_header header;
	/* slots and chunks by stream, sequence, worth (whole chunk, slot, cut chunk), offset; then the dictionary's */
	struct block_entry *entries;
	uint32_t count, streams_end; /* entries in all; those before the dictionary's */
	size_t room;
	struct block_entry *totals; /* TRACE_TOTALS, in the order of the file */
	uint32_t totals_count;
	size_t totals_room;
	struct slot_copy **copies; /* by offset */
	uint32_t copy_count;
	size_t copy_room;
	struct trace_clock *
		samples; /* as the payloads' CLOCK records say, unchecked, in the order of the file */
	uint32_t sample_count;
	size_t sample_room;
	struct trace_layout layout;
	/* blocks from here on were begun while this was read: they may be half written. UINT64_MAX: none were */
	uint64_t unstable_from;
	uint64_t in_flight; /* bytes that the slots' next chunks would take */
};

/* A payload that was read. Zeros: nothing yet. */
struct block_payload {
	const unsigned char *bytes; /* 8-aligned; in `storage`, or a slot's copy */
	unsigned char *storage;
	size_t room;
	uint32_t used, tid;
	uint64_t base_stamp, lost;
};

/* Finds the blocks of the file `fd` of `file_bytes` bytes, which blocks_close closes. false: refused or unreadable, `error` is one sentence. */
bool blocks_open(struct trace_blocks *blocks, int fd, uint64_t file_bytes,
	struct read_warnings *warnings, char error[READER_ERROR_BYTES]);
void blocks_close(struct trace_blocks *blocks);
/* For blocks_open alone: the blocks of the open file, as they lie there. false: errno. */
bool blocks_scan(struct trace_blocks *blocks, struct read_warnings *warnings);

enum load_result { LOAD_FINE, LOAD_TORN /* its crc is wrong */, LOAD_ERROR /* errno */ };

/* Reads the payload of an entry; what it held before is overwritten. */
enum load_result blocks_load(const struct trace_blocks *blocks, const struct block_entry *entry,
	struct block_payload *payload);
void block_payload_free(struct block_payload *payload);

#endif
