/* SPDX-License-Identifier: MIT
 *
 * Says what memory grows from step to step: the sentence that several views print, and the rows of
 * `memory --growth`.
 */
#ifndef PPERF_REPORT_VIEWS_MEMORY_GROWTH_H
#define PPERF_REPORT_VIEWS_MEMORY_GROWTH_H

#include "report/analysis/memory_leaks.h"
#include "report/table/computed_row.h"
#include "report/table/view.h"
#include "report/text/paragraph.h"

/* What the kind of memory is called in a sentence, such as `pinned memory of the host`. */
const char *memory_growth_kind(uint32_t kind);
/* What the cause is called, such as `outputs kept by their graph`. */
const char *memory_growth_cause(enum leak_cause cause);
/* Writes the source line or function that allocated a path; empty if it was not recorded. Returns
 * its length. */
size_t memory_growth_line(
	struct process *process, const struct memory_path *path, char *out, size_t room);

/* Appends who allocates at a path: the module, else the operator, else the range. */
void memory_growth_add_owner(
	struct paragraph *paragraph, const struct process *process, const struct memory_path *path);
/* Appends `grows 2.62 MB a step, 80 % of it in 1 (ReLU): outputs kept by their graph`, with the
 * source line where it was recorded. */
void memory_growth_add_sentence(
	struct paragraph *paragraph, struct process *process, const struct memory_leak *leak);
/* Prints the sentence of the fastest leak. Prints nothing and returns false if there is none. */
bool memory_growth_put(struct process *process, const struct style *style);

/* Names a row by the kind of memory and, unless it is the host's, the device. */
void memory_growth_set_name(struct computed_row *computed, const struct memory_held *held);

/* Adds the rows of `memory --growth`: what grows of each kind of memory and, below it, the call
 * paths. */
void arrange_memory_growth(
	const struct options *options, struct process *process, struct rows *rows);
/* Adds the rows of `memory --by class`: how long the blocks of each kind of memory lived and, below
 * it, the call paths. */
void arrange_memory_classes(
	const struct options *options, struct process *process, struct rows *rows);

#endif
