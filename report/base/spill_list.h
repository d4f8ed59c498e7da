/* SPDX-License-Identifier: MIT
 * tape.h: entries of one size, written one after the other, then read in that order as often as somebody likes. What does
 * not fit into TAPE_HELD bytes lies in a temporary file without a name; memory: those bytes.
 *
 *	struct tape *tape = tape_new(sizeof(struct entry), "what the GPU did");
 *	*(struct entry *)tape_add(tape) = ...;
 *	for (tape_rewind(tape); (entry = tape_next(tape));)
 *
 * Ends the program with a sentence if there is no room for it. Threads: one.
 */
#ifndef PPERF_REPORT_BASE_SPILL_LIST_H
#define PPERF_REPORT_BASE_SPILL_LIST_H

#include <stddef.h>

#define SPILL_LIST_MEMORY_BYTES (256u << 10)

struct spill_list;

/* of: whose entries they are, for a sentence. */
struct spill_list *spill_list_new(size_t bytes, const char *what);
void spill_list_free(struct spill_list *list); /* NULL is fine */

/* Room for one more, to be filled before the next call. Not once it is being read. */
void *spill_list_push(struct spill_list *list);
/* The first one comes next. */
void spill_list_rewind(struct spill_list *list);
/* Lives until the next call; NULL: there are no more. */
const void *spill_list_next(struct spill_list *list);

#endif
