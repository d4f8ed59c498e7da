/* SPDX-License-Identifier: MIT
 *
 * What the views of memory at a moment share: the moments of a process, cells and sentences.
 */
#ifndef PPERF_REPORT_VIEWS_MEMORY_MOMENT_H
#define PPERF_REPORT_VIEWS_MEMORY_MOMENT_H

#include "report/analysis/memory_groups.h"
#include "report/table/computed_row.h"
#include "report/text/paragraph.h"

/* Returns the moments that --at requests, taken with their parts at the first call. They belong to
 * the process. */
struct memory_moments *process_moments(struct process *process, const struct options *options);

/* Makes a row for a moment, with its figures. */
struct computed_row *moment_row(struct process *process, const struct memory_moment *moment);
/* Appends when the moment is: "when memory ran out (12 ms)". */
void paragraph_add_moment(struct paragraph *paragraph, const struct memory_moment *moment);
/* Prints the sentences about a moment: what was reserved, what tensors held, what was free.
 * `names_process`: beginning with the process. */
void memory_moment_print(const struct process *process, bool names_process,
	const struct memory_moment *moment, const struct style *style);
/* Sets the column `line`, if a line of the program is known. */
void computed_row_set_line(struct computed_row *computed, struct process *process, uint32_t stack);

/* Returns the indices of a moment's segments in the order of the memory map: most free bytes first,
 * those whose blocks are not known last. The caller frees the array. */
size_t *memory_map_order(const struct memory_moment *moment);
/* Adds to each of `width` equal parts of a segment the bytes of it that a block occupies. */
void memory_map_add_to_cells(uint64_t *occupied, unsigned width,
	const struct moment_segment *segment, const struct memory_block *block);

#endif
