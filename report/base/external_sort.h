/* SPDX-License-Identifier: MIT
 * Sorts any number of entries of one size in bounded memory. A limited number of entries is sorted
 * in memory. More are packed in a temporary file without a name, and are merged while they are
 * read. Entries that come nearly in order, or from a few sources that are in order, are merged
 * only, not sorted.
 *
 * First all entries are added; then they are read, any number of times. Equal entries come in
 * any order, so `order` must be total where the order matters. Ends the program with an error
 * message if the file cannot be written or read.
 */
#ifndef PPERF_REPORT_BASE_EXTERNAL_SORT_H
#define PPERF_REPORT_BASE_EXTERNAL_SORT_H

#include <stddef.h>
#include <stdint.h>

struct external_sort;

/* Creates a sorter of entries of `bytes` bytes, at most 4 KiB. At most `held` of them are in
 * memory, or twice as many if they are in no order, plus some of each sorted run. `order`: as for
 * qsort. `what`: the entries in error messages ("the GPU's records"); it must outlive the sorter.
 */
struct external_sort *external_sort_new(
	size_t bytes, size_t held, int (*order)(const void *, const void *), const char *what);
void external_sort_free(struct external_sort *sorter); /* `sorter` may be NULL */
/* Entries are of several kinds: the byte at offset `class_at` says of which. They take less space
 * in the file if this is known. To be called before the first entry is added. */
void external_sort_set_class(struct external_sort *sorter, size_t class_at);
/* Two 64-bit numbers of an entry grow together (entry_packer_relate). To be called after
 * external_sort_set_class, before the first entry is added. */
void external_sort_relate(struct external_sort *sorter, size_t at, size_t to);

/* As external_sort_relate, to the same number of the entry before (entry_packer_follow). */
void external_sort_follow(struct external_sort *sorter, size_t at);

/* Returns a zeroed entry, to be filled before the next call. Must not be called after
 * external_sort_rewind. */
void *external_sort_add(struct external_sort *sorter);
/* Drops all entries, so that new ones can be added. */
void external_sort_clear(struct external_sort *sorter);
/* Returns the number of entries that were added. */
uint64_t external_sort_count(const struct external_sort *sorter);

/* Starts reading at the smallest entry. May be called again. */
void external_sort_rewind(struct external_sort *sorter);
/* As external_sort_rewind, for the last time: the space of the file is freed while it is read, so
 * the entries can be read once only. */
void external_sort_rewind_last(struct external_sort *sorter);
/* Returns the next entry, or NULL if there is none. It is valid until external_sort_next. */
const void *external_sort_peek(const struct external_sort *sorter);
void external_sort_next(struct external_sort *sorter);

#endif
