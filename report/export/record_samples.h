/* SPDX-License-Identifier: MIT
 * Reads the CPU samples of a process for formats that write single events, in the order of the
 * times at which they were taken.
 *
 *	struct record_samples *samples = record_samples_read(process);
 *	struct record_sample sample;
 *
 *	while (record_samples_next(samples, &sample))
 *		...
 */
#ifndef PPERF_REPORT_EXPORT_RECORD_SAMPLES_H
#define PPERF_REPORT_EXPORT_RECORD_SAMPLES_H

#include "report/analysis/sample_stacks.h"

struct record_sample {
	uint64_t at_ns;                 /* since the trace's start */
	const struct sample_cell *cell; /* node, thread, state; its sums are those of other samples,
					 * too */
	uint64_t weight_ns;             /* 0: not known, as in imported traces */
	uint32_t frame;                 /* number of the innermost frame */
	uint32_t tid;
};

struct record_samples {
	struct sample_cells *cells;
	const struct sample_stacks *stacks;
	struct external_sort *sorted; /* private */
};

/* Returns the samples of the process, or NULL if it has none. */
struct record_samples *record_samples_read(struct process *process);
void record_samples_free(struct record_samples *samples); /* NULL is allowed */
/* Sets `sample` to the next one. Returns false at the end. */
bool record_samples_next(struct record_samples *samples, struct record_sample *sample);

/* Returns the name of a frame's function; its library or Python file, which may be empty. */
struct string_view record_frame_name(
	const struct record_samples *samples, const struct stack_frame *frame);
struct string_view record_frame_file(
	const struct record_samples *samples, const struct stack_frame *frame);
/* Returns what the thread did: `cpu`, `kernel`, `waits for a core`, `blocked`. */
const char *record_sample_state(const struct record_sample *sample);

#endif
