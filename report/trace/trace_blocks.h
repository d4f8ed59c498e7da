/* SPDX-License-Identifier: MIT
 * Finds and orders the blocks of a trace file, and reads them one at a time. The file is never
 * mapped: one that shrinks or is being written must not raise a signal here.
 */
#ifndef PPERF_REPORT_TRACE_TRACE_BLOCKS_H
#define PPERF_REPORT_TRACE_TRACE_BLOCKS_H

#include "report/trace/read_warnings.h"

/* The contents of a slot when the file was opened. The slot in the file may hold something else
 * by now. */
struct slot_copy {
	uint64_t offset;
	struct trace_block head;
	unsigned char payload[];
};

/* One block. 32 bytes each. */
struct block_entry {
	uint64_t offset;     /* of the block's head */
	uint64_t base_stamp; /* from the head, before its crc was checked */
	uint32_t stream, sequence;
	uint32_t used; /* payload bytes present in the file */
	uint8_t type;  /* enum trace_block_type */
	bool cut;      /* the file ends before the payload does */
	uint16_t reserved;
};

struct trace_blocks {
	int fd;
	uint64_t file_bytes;
	bool may_grow; /* a process may be writing to the file */
	struct trace_header header;
	/* Slots and chunks, followed by dictionary blocks. Sorted by stream, sequence, rank,
	 * then offset. The rank of copies is: whole chunk, slot, cut block. */
	struct block_entry *entries;
	/* count: all entries. streams_end: number of entries before the dictionary's. */
	uint32_t count, streams_end;
	size_t room;
	struct block_entry *totals; /* TRACE_TOTALS blocks, in file order */
	uint32_t totals_count;
	size_t totals_room;
	struct slot_copy **copies; /* by offset */
	uint32_t copy_count;
	size_t copy_room;
	/* from the CLOCK records of the payloads, unchecked, in file order */
	struct trace_clock *samples;
	uint32_t sample_count;
	size_t sample_room;
	struct trace_layout layout;
	/* Blocks at or after this offset were begun while the file was read and may be half
	 * written. UINT64_MAX: there are none. */
	uint64_t unstable_from;
	uint64_t in_flight; /* bytes that the slots' next chunks would take */
};

/* A payload that was read. Initialise it with zeros. */
struct block_payload {
	const unsigned char *bytes; /* 8-byte aligned; points into `storage` or to a slot's copy */
	unsigned char *storage;
	size_t room;
	uint32_t used, tid;
	uint64_t base_stamp, lost;
};

/* Finds the blocks of the open file `fd` in its first `file_bytes` bytes and, if it `may_grow`, in
 * what is appended meanwhile. Takes ownership of `fd`:
 * blocks_close closes it, also after a failure. Returns false if the file is refused or cannot
 * be read, with one sentence in `error`. */
bool blocks_open(struct trace_blocks *blocks, int fd, uint64_t file_bytes, bool may_grow,
	struct read_warnings *warnings, char error[READER_ERROR_BYTES]);
void blocks_close(struct trace_blocks *blocks);
/* Lists all blocks of the open file in file order. Only blocks_open calls it. Returns false with
 * errno. */
bool blocks_scan(struct trace_blocks *blocks, struct read_warnings *warnings);

/* Removes the payloads that end before the stamp `since`: the next one of their stream begins
 * before it. 0: none. */
void blocks_drop_before(struct trace_blocks *blocks, uint64_t since);

enum load_result {
	LOAD_FINE,
	LOAD_TORN, /* the crc is wrong, or the head has changed */
	LOAD_ERROR /* a read failed; errno is set */
};

/* Reads the payload of `entry` into `payload` and overwrites what it held before. */
enum load_result blocks_load(const struct trace_blocks *blocks, const struct block_entry *entry,
	struct block_payload *payload);
void block_payload_free(struct block_payload *payload);
/* Counts an entry whose block the end of the file cuts, and warns of it. */
void blocks_warn_cut(const struct block_entry *entry, struct read_warnings *warnings);

#endif
