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

struct external_sort;

/* Entries of `bytes` each, `held` of them in memory at most (and some of each part of the file while it is read).
 * order: as qsort's. of: whose entries they are, for a sentence ("the GPU's records"); outlives the sorter. */
struct external_sort *external_sort_new(
	size_t bytes, size_t held, int (*order)(const void *, const void *), const char *what);
void external_sort_free(struct external_sort *sorter); /* NULL is fine */

/* Room for one more, zeroed, to be filled before the next call. Never after sorter_rewind. */
void *external_sort_add(struct external_sort *sorter);
/* Forgets all entries: they come anew. */
void external_sort_clear(struct external_sort *sorter);
uint64_t external_sort_count(const struct external_sort *sorter);

/* Reading begins, or begins anew, at the least. */
void external_sort_rewind(struct external_sort *sorter);
/* The next one; NULL: no more. Lives until sorter_next. */
const void *external_sort_peek(const struct external_sort *sorter);
void external_sort_next(struct external_sort *sorter);

#endif
