/* SPDX-License-Identifier: MIT
 *
 * Makes one stack of the native frames and the Python frames of each cell.
 *
 *	const struct sample_stacks *stacks = sample_stacks_of(cells, SAMPLE_FRAMES_MERGED);
 *
 *	for (uint32_t at = stacks->of_cell[i]; at; at = stacks->all[at].caller)
 *		... stacks->all[at].frame ...
 *
 * C code that calls the interpreter makes an entry frame of Python, and runs it in one native frame
 * of _PyEval_EvalFrameDefault. So if a stack has as many of one as of the other, the k-th of them
 * belong together: each such native frame is replaced by its entry frame and the Python frames that
 * this one called directly. If the numbers differ, the Python frames are above all native ones.
 *
 * Stacks are a tree: those that begin with the same frames share these. Memory: 20 bytes for each
 * frame of the tree; while it is made 60 more.
 */
#ifndef PPERF_REPORT_ANALYSIS_SAMPLE_STACKS_H
#define PPERF_REPORT_ANALYSIS_SAMPLE_STACKS_H

#include "report/analysis/sample_cells.h"

#define SAMPLE_STACK_MAX 700u /* frames; of more, the innermost of them are left out but one */

enum sample_frames {
	SAMPLE_FRAMES_MERGED, /* without the interpreter's own functions */
	SAMPLE_FRAMES_ALL,    /* with them */
	SAMPLE_FRAMES_PYTHON,
	SAMPLE_FRAMES_NATIVE,
	SAMPLE_FRAMES_KINDS
};

/* A frame with its callers. */
struct stack_frame {
	uint32_t caller; /* number of a frame, always a lower one; 0: it is the outermost */
	uint32_t depth;  /* number of frames from the outermost to this one */
	struct sample_frame frame;
};

struct sample_stacks {
	struct stack_frame *all; /* entry 0 is not used: depth 0, no function */
	size_t count, room;
	/* By cell, the innermost frame; never 0. It says what the thread did if it ran no function:
	 * `(kernel)`, `(waits for a core)`, `(blocked)`; `(no frames)` if none is known. */
	uint32_t *of_cell;
};

/* Returns the stacks of all cells, made at the first call. They belong to the process. */
const struct sample_stacks *sample_stacks_of(struct sample_cells *cells, enum sample_frames which);

/* Returns the frame of the same stack whose depth is `depth`, or `at` if that is less deep. */
static inline uint32_t stack_frame_at(
	const struct sample_stacks *stacks, uint32_t at, uint32_t depth)
{
	while (stacks->all[at].depth > depth)
		at = stacks->all[at].caller;
	return at;
}

#endif
