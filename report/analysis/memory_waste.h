/* SPDX-License-Identifier: MIT
 *
 * Finds reserved device memory that tensors do not use, and why, for the rules of diagnose:
 * requests that failed although enough was free, segments that a small tensor keeps, segments that
 * stay empty, and sizes that change from step to step. Makes one more pass over the trace, which
 * other analyses may share (report/analysis/shared_pass.h).
 *
 * Figures are of one device, profile_totals.level_device. Moments of the run are counted in steps,
 * or, where there are fewer than WASTE_STEPS_MIN, in time from the first record of memory to the
 * end (memory_end_ns):
 *
 *	warm_ns    the end of the first step (of the first tenth of the time)
 *	early_ns   the end of the first fifth
 *	recent_ns  the begin of the last quarter
 *
 * Memory: the map of segments (memory_segments.h), a copy of it, and 24 bytes per different size of
 * a call path, at most WASTE_SIZES_MAX.
 */
#ifndef PPERF_REPORT_ANALYSIS_MEMORY_WASTE_H
#define PPERF_REPORT_ANALYSIS_MEMORY_WASTE_H

#include "report/analysis/memory_moments.h"
#include "report/analysis/shared_pass.h"

#define WASTE_STEPS_MIN 5u
#define WASTE_SIZES_MAX 65536u
/* Tensors of PyTorch below this size share segments of 2 MiB, whatever their size is. */
#define WASTE_SIZE_MIN (UINT64_C(1) << 20)

/* A request for device memory that failed, with what was free inside PyTorch's segments then. */
struct refused_request {
	uint64_t at_ns, requested, free_inside, gaps, largest_gap, empty;
};

/* Segments of one kind. */
struct wasted_segments {
	uint64_t count, bytes; /* bytes: what no tensor occupies of them */
	/* The call path with the largest part of `bytes`, and when its first segment was
	 * allocated. `node`: of the tree that holds them (kept) or allocated them (idle). */
	uint64_t path_bytes, path_count, since_ns;
	uint32_t node, stack;
	/* The innermost range or module of the program around all allocations of the segments; 0:
	 * there is none. */
	uint32_t range;
	uint64_t holding; /* kept: bytes of the tensors in them */
};

/* The call path whose tensors have the most different sizes. */
struct changing_sizes {
	uint32_t node; /* 0: none */
	uint64_t sizes, smallest, largest;
};

struct memory_waste {
	uint64_t first_ns, warm_ns, early_ns, recent_ns, end_ns;
	/* Of the requests that failed although the gaps together were large enough, no gap alone
	 * was, and the empty segments were not: the last one, and how many there were. */
	struct refused_request refused;
	uint64_t refusals;
	/* The highest levels up to early_ns, and after it: of device memory and of tensors. */
	uint64_t early_reserved, early_tensors, late_reserved, late_tensors;
	struct changing_sizes changing;
	/* At the end: segments of which tensors that were allocated before recent_ns, after the
	 * segment itself, occupy less than a quarter, and tensors occupied no half since then. */
	struct wasted_segments kept;
	/* At the end: segments that were allocated after warm_ns, and have been empty since
	 * recent_ns. */
	struct wasted_segments idle;
	struct memory_moments moments;   /* the end, with parts */
	const struct memory_moment *end; /* NULL: there was no device memory */
};

/* Returns the result for a process, made at the first call and attached to the process. NULL: no
 * device memory is in the trace. */
const struct memory_waste *memory_waste_of(struct process *process);
/* Reads the result in a pass that other analyses share, for later calls of memory_waste_of. Does
 * nothing if no device memory is in the trace. */
void memory_waste_read_in(struct shared_pass *shared);
/* Reads the result in the pass that makes the profile, as if the end for memory were that of the
 * last step. Where it is not, or there are few steps, another pass has to read it. */
void memory_waste_try_in(struct shared_pass *shared);

#endif
