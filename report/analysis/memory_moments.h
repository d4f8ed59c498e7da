/* SPDX-License-Identifier: MIT
 *
 * Takes snapshots of the map of device memory (memory_segments.h) at chosen moments of a trace, in
 * one pass of its own.
 *
 * In every snapshot, to the byte:
 *
 *	reserved          = in segments whose blocks are known + unknown
 *	in these segments = in blocks + free inside + overlapped
 *	tensors           = in blocks + outside
 */
#ifndef PPERF_REPORT_ANALYSIS_MEMORY_MOMENTS_H
#define PPERF_REPORT_ANALYSIS_MEMORY_MOMENTS_H

#include "report/analysis/memory_segments.h"
#include "report/run/process.h"

enum moment_kind {
	MOMENT_PEAK, /* of tensors; without tensors: of device memory */
	MOMENT_OOM,  /* memory last ran out */
	MOMENT_END,  /* of the last step; without steps: of the trace */
	MOMENT_STEP, /* the end of a step */
	MOMENT_TIME,
	MOMENT_CHANGE, /* segments were allocated or freed */
};

/* What there was on a device at a moment. */
struct memory_figures {
	uint64_t reserved; /* device memory that the program had allocated */
	uint64_t tensors;  /* in the blocks that the trace reports */
	uint64_t segments; /* allocations of device memory */
	/* Part of `segments` and `reserved`: no block was ever seen in it, so it is not known what
	 * is in it. */
	uint64_t unknown_segments, unknown;
	uint64_t pool_segments; /* of these, allocations from memory pools of CUDA */
	uint64_t free_inside, gaps, largest_gap;
	uint64_t empty_segments, empty; /* without a block now; part of free_inside */
	/* Segments that blocks occupy by less than a quarter: their number and bytes, and the
	 * number and bytes of these blocks. */
	uint64_t sparse_segments, sparse, sparse_blocks, sparse_occupied;
	uint64_t blocks;     /* number of tensors */
	uint64_t outside;    /* part of `tensors`: in no known segment */
	uint64_t overlapped; /* segment bytes counted twice; 0 in a consistent trace */
	/* What PyTorch's allocator reported last; 0: nothing. */
	uint64_t reported_allocated, reported_reserved;
	uint64_t changes; /* of segments, and times out of memory, since the trace began */
};

/* Returns 1 - largest gap / free inside: 0 if all free memory is one gap, and if less than 2 MiB or
 * 1 % of the reserved memory is free. */
double figures_fragmentation(const struct memory_figures *figures);
/* Returns the part of memory with known blocks that is free. */
double figures_free_share(const struct memory_figures *figures);

struct moment_gap {
	uint64_t address, bytes;
};

/* A segment at a moment, with its own blocks and gaps. */
struct moment_segment {
	struct memory_segment segment;
	uint64_t in_blocks, in_gaps, largest_gap, overlapped, byte_ns;
	size_t first_block, block_count; /* in moment.blocks */
	size_t first_gap, gap_count;     /* in moment.gaps */
	bool has_blocks_known;
};

struct memory_moment {
	enum moment_kind kind;
	uint64_t at_ns;
	uint64_t step; /* MOMENT_STEP */
	uint32_t device;
	uint64_t requested; /* MOMENT_OOM: bytes */
	bool has_tensors;   /* PyTorch's allocator was followed on this device */
	struct memory_figures figures;
	/* In order of addresses. Blocks that are in no known segment come last. NULL: figures
	 * only. */
	struct moment_segment *segments;
	struct memory_block *blocks;
	struct moment_gap *gaps;
	size_t segment_count, block_count, gap_count;
	size_t segment_room, block_room, gap_room;
	bool taken;
};

struct memory_moments {
	struct memory_moment *moments; /* by time */
	size_t count, room;
	/* After how many changes of a device's segments its next moment is taken. 0: none is. */
	uint64_t change_stride;
	uint64_t changes_left_out; /* changes without a moment of their own */
	size_t map_bytes;          /* most memory that the map of segments took */
};

/* Adds the moment of each device that has memory (or only of `options->device`) that one word of
 * --at names: peak, oom, end, a step, or a time such as 12.5ms. Adds nothing if the trace has no
 * such moment. Ends the program if the word is none of these. */
void memory_moments_add(struct memory_moments *moments, const struct options *options,
	const struct process *process, const char *word, size_t length);
/* Adds the moments of `list`, words separated by commas. NULL: oom if memory ran out, else peak. */
void memory_moments_add_list(struct memory_moments *moments, const struct options *options,
	const struct process *process, const char *list);
/* Requests at most `most` moments of each device, for a history: at equal distances in time, after
 * equal numbers of changes, and the peak, the last time out of memory, and the end. UINT32_MAX:
 * every change, or as many as can be visited in some seconds. */
void memory_moments_add_history(struct memory_moments *moments, const struct options *options,
	const struct process *process, uint32_t most);

/* Takes the snapshots. `with_parts`: with their segments, blocks and gaps. */
void memory_moments_take(struct memory_moments *moments, struct process *process,
	const struct options *options, bool with_parts);
/* Takes one snapshot of `map` now. */
void memory_moment_take(
	struct memory_moment *moment, const struct memory_segments *map, bool with_parts);
/* Frees its parts. */
void memory_moment_free(struct memory_moment *moment);
void memory_moments_free(struct memory_moments *moments);

/* Returns when the program's work ended: the end of its last step, else the last event. */
uint64_t memory_end_ns(const struct process *process);

#endif
