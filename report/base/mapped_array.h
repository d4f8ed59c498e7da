/* SPDX-License-Identifier: MIT
 * Stores an array in a mapped temporary file without a name. Its size is limited by the disk,
 * and the kernel decides how much of it is in memory. Use it for data that is read backwards or
 * at random.
 *
 *	struct mapped_array nodes = { .size = sizeof(struct node), .what = "the calls" };
 *	struct node *node = mapped_array_push(&nodes);
 *
 * mapped_array_push and mapped_array_resize may move the entries. The program ends with an error
 * message if there is no room. Threads: one.
 */
#ifndef PPERF_REPORT_BASE_MAPPED_ARRAY_H
#define PPERF_REPORT_BASE_MAPPED_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/* Most entries. For each one, the critical path numbers a begin and an end (2 * index + 1), which
 * must fit in 32 bits. */
#define MAPPED_ARRAY_MAX (UINT32_MAX / 4)

#define MAPPED_ARRAY_RESIDENT (2u << 20)

struct mapped_array {
	size_t size;      /* bytes of an entry */
	const char *what; /* the entries in error messages */
	void *entries;
	size_t count, room;
	size_t paged_out; /* bytes of entries when mapped_array_push last released memory */
	int file;         /* file descriptor + 1; 0: no file yet */
};

/* Appends a zeroed entry and returns it. */
void *mapped_array_push(struct mapped_array *array);
/* Sets the number of entries. New entries are zeroed. */
void mapped_array_resize(struct mapped_array *array, size_t count);
/* Releases the memory of the entries. They stay in the file, and are read from it when they are
 * used. mapped_array_push does this for every MAPPED_ARRAY_RESIDENT bytes. A loop over all entries
 * calls it now and then, so that memory does not grow with the number of entries. */
void mapped_array_page_out(const struct mapped_array *array);
void mapped_array_free(struct mapped_array *array);

#endif
