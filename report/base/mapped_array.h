/* SPDX-License-Identifier: MIT
 * spool.h: an array that lies in a temporary file without a name and is mapped: as large as the disk has room for, in
 * memory only as far as the system finds it worth it. For what must be gone through backwards, or here and there.
 *
 *	struct spool nodes = { .size = sizeof(struct node), .of = "the calls and the work" };
 *	struct node *one = spool_add(&nodes);
 *
 * Addresses change by spool_add. Ends the program with a sentence if there is no room for it. Threads: one.
 */
#ifndef PPERF_REPORT_BASE_MAPPED_ARRAY_H
#define PPERF_REPORT_BASE_MAPPED_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#define MAPPED_ARRAY_MAX \
	(UINT32_MAX / 4) /* entries: their numbers, and those of two moments of each, fit 32 bits */

struct mapped_array {
	size_t size;      /* of an entry, in bytes */
	const char *what; /* whose entries they are, for a sentence */
	void *entries;
	size_t count, room;
	int file; /* + 1; 0: none yet */
};

/* One more, zeroed. */
void *mapped_array_push(struct mapped_array *array);
/* So many, zeroed where they are new. */
void mapped_array_resize(struct mapped_array *array, size_t count);
void mapped_array_free(struct mapped_array *array);

#endif
