/* SPDX-License-Identifier: MIT
 *
 * Adds up samples by the line of the program's own Python files in which they were taken.
 *
 * A sample counts for one line only: that of the innermost frame that is in a file of the program
 * itself, so the line has the time of all that it called in packages and in native code. The frames
 * of generator expressions and comprehensions count for the function that they are part of.
 */
#ifndef PPERF_REPORT_ANALYSIS_OWN_LINES_H
#define PPERF_REPORT_ANALYSIS_OWN_LINES_H

#include "report/analysis/sample_cells.h"

struct own_line {
	uint32_t function, line;
	uint32_t thread; /* index in profile.sampled_threads; 0 if threads are added up */
	struct sample_sums sums;
};

struct own_lines {
	struct own_line *lines;
	size_t count, room;
	struct hash_index index; /* private */
};

/* Returns the lines with samples, in no order: one for each thread that ran it if `by_thread`. The
 * caller frees them by own_lines_free(). */
struct own_lines own_lines_of(struct sample_cells *cells, bool by_thread);
void own_lines_free(struct own_lines *lines);

#endif
