/* SPDX-License-Identifier: MIT
 *
 * Makes one stack of the native frames and the Python frames of a sample.
 *
 * C code that calls the interpreter makes an entry frame of Python, and runs it in one native frame
 * of _PyEval_EvalFrameDefault. So if a stack has as many of one as of the other, the k-th of them
 * belong together: each such native frame is replaced by its entry frame and the Python frames that
 * this one called directly. If the numbers differ, the Python frames are above all native ones.
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
};

/* Initialise it with zeros. */
struct sample_stack {
	struct sample_frame *frames; /* the outermost first */
	size_t count, room;
	bool is_apart; /* Python frames and native ones did not fit together */
	struct sample_frame *native, *python; /* private */
	size_t native_count, native_room, python_count, python_room;
};

/* Sets `stack` to the frames of a cell, and what the thread did if it ran no function: `(kernel)`,
 * `(waits for a core)`, `(blocked)`. A cell without any frame has `(no frames)`. */
void sample_stack_set(struct sample_stack *stack, struct sample_cells *cells,
	const struct sample_cell *cell, enum sample_frames which);
void sample_stack_free(struct sample_stack *stack);

#endif
