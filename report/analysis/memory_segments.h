/* SPDX-License-Identifier: MIT
 *
 * Keeps the map of device memory: which segments are reserved, and which blocks are in them. A
 * profile observer feeds it with every change (its callbacks `memory` and `memory_mark`).
 *
 * A segment is device memory of one allocation, such as a cudaMalloc of PyTorch's caching
 * allocator. A block is what that allocator hands out to a tensor. A gap is a part of a segment
 * that no block occupies. The map follows exactly what memory_owners counts, so the segments of a
 * device sum to its device memory, and the blocks to its tensors.
 *
 * The blocks of a segment are known only if it ever had one. Of other device memory (a program
 * without PyTorch, the workspace of a library) it is not known what is in it: it is neither free
 * nor empty.
 *
 * Memory made by cuMemCreate has no address until it is mapped. Adjacent mappings in one reserved
 * range are one segment, as in PyTorch's own snapshots (expandable_segments). It has the node of
 * the memory that was mapped first. What is not mapped is a segment without an address. Memory that
 * is mapped at several addresses counts once, at the first of them.
 *
 * Each change takes O(log n). Memory: 65 to 100 bytes per block and 140 to 210 per segment, of
 * those that were held at the same time.
 */
#ifndef PPERF_REPORT_ANALYSIS_MEMORY_SEGMENTS_H
#define PPERF_REPORT_ANALYSIS_MEMORY_SEGMENTS_H

#include "report/profile/profile.h"

struct memory_block {
	uint64_t address, bytes;
	uint64_t since_ns;
	uint64_t serial; /* number of the change that allocated it */
	uint32_t node, stack;
	uint32_t device;
	uint32_t next_unused;
};

struct memory_segment {
	uint64_t address, bytes;
	uint64_t since_ns;
	uint64_t serial;   /* number of the change that allocated it */
	uint64_t occupied; /* bytes of the blocks in it */
	uint64_t occupied_most;
	uint64_t changed_ns; /* when `occupied` changed */
	/* When its last block was freed. Meaningful if `blocks` is 0 and `ever` is not. */
	uint64_t emptied_ns;
	/* When blocks last occupied at least half of it, while they do not do so now. 0: never. */
	uint64_t half_ns;
	double byte_ns; /* integral of `occupied` over time, up to changed_ns */
	uint64_t ever;  /* blocks that were allocated in it */
	uint32_t blocks;
	uint32_t node, stack;
	uint32_t device;
	/* The CUDA stream that PyTorch's allocator allocated it for, and whether that was being
	 * captured. Only if has_stream. */
	uint64_t for_stream;
	bool has_stream, for_capture;
	bool is_pool; /* an allocation from a memory pool of CUDA: part of what the pool holds */
	/* Memory of cuMemCreate that is not mapped: `address` is a key (memory_mappings.h). */
	bool is_unmapped;
	uint64_t reserved; /* mapped memory of cuMemCreate: begin of the reserved range; else 0 */
	uint32_t next_unused;
};

/* Totals of one device. */
struct memory_device {
	uint32_t device;
	uint64_t held;    /* bytes of all segments */
	uint64_t tensors; /* bytes of all blocks */
	uint64_t blocks;
	uint64_t changes; /* segments allocated, freed or refused so far, and times out of memory */
	/* What PyTorch's allocator reported last about itself. */
	uint64_t reported_allocated, reported_reserved;
	bool has_tensors;
};

struct memory_segments;

struct memory_segments *memory_segments_new(void);
void memory_segments_free(struct memory_segments *map);
/* Forgets everything. */
void memory_segments_restart(struct memory_segments *map);
void memory_segments_change(struct memory_segments *map, const struct observed_memory *seen);
void memory_segments_map(struct memory_segments *map, const struct observed_mapping *seen);
void memory_segments_mark(struct memory_segments *map, const struct trace_event *event);

/* Returns the totals of `device`, valid until the next change. NULL: it had no memory. */
const struct memory_device *memory_segments_device(
	const struct memory_segments *map, uint32_t device);
/* Returns the memory that the map takes. */
size_t memory_segments_bytes(const struct memory_segments *map);

/* The parts of a segment, as memory_segments_visit passes them. In a consistent trace `overlapped`
 * is 0. Otherwise a segment or block was freed without a record, and its address range was
 * allocated again. Always blocks + gaps + overlapped == segment->bytes. */
struct segment_parts {
	const struct memory_segment *segment;
	uint64_t in_blocks, in_gaps, largest_gap;
	uint64_t overlapped; /* bytes that belong to an earlier segment as well */
	uint64_t gaps;       /* their number */
	uint64_t blocks;
	bool has_blocks_known; /* false: it is not known what is in it, and the rest is 0 */
};

/* Each callback may be NULL. */
struct segment_visitor {
	void *context;
	/* A block, with the bytes of it that are in the segment; a gap. In order of addresses. */
	void (*block)(void *context, const struct memory_block *block, uint64_t bytes);
	void (*gap)(void *context, uint64_t address, uint64_t bytes);
	/* After the blocks and gaps of a segment. */
	void (*segment)(void *context, const struct segment_parts *parts);
	/* After all segments: each block whose segment is not known. */
	void (*stray)(void *context, const struct memory_block *block);
};

/* Visits the segments of `device` in order of addresses. Pointers are valid during the callback. */
void memory_segments_visit(
	const struct memory_segments *map, uint32_t device, const struct segment_visitor *visitor);

#endif
