/* SPDX-License-Identifier: MIT
 *
 * Adds up the samples of a process by where they were taken: the node of the call tree, the
 * functions and the state of the thread.
 *
 *	const struct sample_cells *cells = sample_cells_of(process);
 *
 *	for (size_t i = 0; i < cells->count; i++)
 *		... cells->cells[i] ...
 *
 * Memory follows the number of different stacks, not of samples: 120 bytes for each, and 40 for
 * each frame.
 */
#ifndef PPERF_REPORT_ANALYSIS_SAMPLE_CELLS_H
#define PPERF_REPORT_ANALYSIS_SAMPLE_CELLS_H

#include "report/analysis/sample_functions.h"

/* Samples with the same stack at the same node. */
struct sample_cell {
	uint32_t node;           /* of the process's tree; never 0 */
	uint32_t thread;         /* index in profile.sampled_threads */
	uint32_t leaf;           /* function of the innermost instruction; 0: not known */
	uint32_t native, python; /* numbers of frames (sample_frame_of); 0: none */
	uint32_t innermost;      /* number of the native frame of `leaf`, else `native` */
	uint16_t flags;          /* enum trace_sample_flag, without HAS_NODE */
	uint16_t state;          /* enum trace_sample_state */
	struct sample_sums sums;
};

struct sample_cells {
	struct process *process;
	struct sample_functions functions;
	struct sample_cell *cells;
	size_t count, room;
	struct hash_index index; /* private, while cells are made */
	uint32_t *of_place;      /* private: by place of the profile, the cell */
	struct sample_sums sums; /* of all cells */
	/* Samples of ON_CPU and KERNEL with each of the marks. `unequal`: Python frames were left
	 * out. `no_python`: they could not be read. */
	uint64_t guessed, cut, moved, unequal, no_python;
	uint64_t native, python; /* samples of these states with native frames, with Python's */
};

/* Returns the cells of the process, made at the first call, or NULL if the trace has no samples.
 * They belong to the process. If its profile has no sample_places, a pass over the trace makes
 * them. */
struct sample_cells *sample_cells_of(struct process *process);

/* Makes a further pass and passes each sample to `visit`: the index of its cell, the time that it
 * represents and when it was taken. Samples in ranges come late, so they are not in the order of
 * their times. */
void sample_cells_visit(struct sample_cells *cells,
	void (*visit)(void *context, uint32_t cell, uint64_t ns, uint64_t at_ns), void *context);

/* Returns whether the trace has samples that count. */
bool process_has_samples(const struct process *process);

#endif
