/* SPDX-License-Identifier: MIT
 * sorter.h: any number of entries of one size in order, in bounded memory: so many at a time are held and sorted, the
 * rest lies in a temporary file that has no name, and is merged as it is read.
 *
 * First all are put in, then they are read, as often as wanted. Equal entries come in any order: whoever wants one
 * has a comparison that knows no equal ones. Ends the program with a sentence if the file cannot be written or read.
 */
#ifndef PPERF_REPORT_BASE_EXTERNAL_SORT_H
#define PPERF_REPORT_BASE_EXTERNAL_SORT_H

#include <stddef.h>
#include <stdint.h>

struct sorter;

/* Entries of `bytes` each, `held` of them in memory at most (and some of each part of the file while it is read).
 * order: as qsort's. of: whose entries they are, for a sentence ("the GPU's records"); outlives the sorter. */
struct sorter *sorter_new(size_t bytes, size_t held, int (*order)(const void *, const void *), const char *of);
void sorter_free(struct sorter *sorter); /* NULL is fine */

/* Room for one more, zeroed, to be filled before the next call. Never after sorter_rewind. */
void *sorter_add(struct sorter *sorter);
/* Forgets all entries: they come anew. */
void sorter_empty(struct sorter *sorter);
uint64_t sorter_count(const struct sorter *sorter);

/* Reading begins, or begins anew, at the least. */
void sorter_rewind(struct sorter *sorter);
/* The next one; NULL: no more. Lives until sorter_next. */
const void *sorter_first(const struct sorter *sorter);
void sorter_next(struct sorter *sorter);

#endif
