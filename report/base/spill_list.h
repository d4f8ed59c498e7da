/* SPDX-License-Identifier: MIT
 * Stores entries of one size, which are appended and then read in that order, any number of
 * times. It holds SPILL_LIST_MEMORY_BYTES in memory and the rest in a temporary file without a
 * name.
 *
 *	struct spill_list *list = spill_list_new(sizeof(struct entry), "the GPU's records");
 *	*(struct entry *)spill_list_push(list) = ...;
 *	for (spill_list_rewind(list); (entry = spill_list_next(list));)
 *
 * The program ends with an error message if there is no room. Threads: one.
 */
#ifndef PPERF_REPORT_BASE_SPILL_LIST_H
#define PPERF_REPORT_BASE_SPILL_LIST_H

#include <stddef.h>

#define SPILL_LIST_MEMORY_BYTES (256u << 10)

struct spill_list;

/* Creates a list of entries of `bytes` bytes. `what`: the entries in error messages. */
struct spill_list *spill_list_new(size_t bytes, const char *what);
void spill_list_free(struct spill_list *list); /* `list` may be NULL */

/* Returns an entry to be filled before the next call. Must not be called once reading has begun. */
void *spill_list_push(struct spill_list *list);
/* Starts reading at the first entry. */
void spill_list_rewind(struct spill_list *list);
/* Returns the next entry, valid until the next call, or NULL at the end. */
const void *spill_list_next(struct spill_list *list);

#endif
