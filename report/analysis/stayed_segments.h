/* SPDX-License-Identifier: MIT
 *
 * Finds the segments of device memory that a range left behind: they were allocated in it and were
 * still reserved when memory ran out, or when the run's last step ended. A pass over the trace of
 * its own.
 */
#ifndef PPERF_REPORT_ANALYSIS_STAYED_SEGMENTS_H
#define PPERF_REPORT_ANALYSIS_STAYED_SEGMENTS_H

#include "report/analysis/memory_moments.h"

#define STAYED_RANGES_MAX 8

/* `bytes` is the sum of empty_bytes, held_bytes and unknown_bytes; free_inside is what no tensor
 * occupies of the first two. */
struct stayed_segments {
	/* The ranges of the program below the root, outermost first, in each of which more than
	 * half of what stayed free was allocated. Without such a range: the modules, else only the
	 * root. If there are more than STAYED_RANGES_MAX, the outermost are left out. The figures
	 * are those of the last one. */
	const struct instance *ranges[STAYED_RANGES_MAX];
	size_t range_count;
	enum moment_kind until; /* MOMENT_OOM or MOMENT_END */
	uint64_t segments, bytes;
	uint64_t empty, empty_bytes;             /* without a tensor at that moment */
	uint64_t held, held_bytes, held_tensors; /* tensors: the bytes of those in them */
	/* No tensor was ever seen in them, so it is not known what is in them. */
	uint64_t unknown, unknown_bytes;
	uint64_t free_inside;
	uint64_t occupied_most; /* the most bytes that tensors occupied in each of them, summed */
	bool emptied_inside;    /* `empty` have been so since the last range ended, or longer */
};

/* `root`: an instance with its children, whose nodes are in `tree`. `segments` is 0 if none stayed,
 * or if tensors fill nearly all of what stayed: at least STAYED_FREE_SHARE and STAYED_FREE_BYTES
 * must be free. Where no tensors are known, it is 0 if only the root itself could be named. */
#define STAYED_FREE_SHARE 0.1 /* rounding to whole segments alone leaves less */
#define STAYED_FREE_BYTES (UINT64_C(1) << 20)
struct stayed_segments stayed_segments_find(struct process *process, const struct options *options,
	const struct tree *tree, const struct instance *root);

#endif
