/* SPDX-License-Identifier: MIT
 * Stores pieces of bytes in a temporary file without a name, which are read at random. The last
 * SPILL_FILE_HELD_BYTES of them are in memory.
 *
 *	struct spill_file *file = spill_file_new("the durations");
 *	memcpy(spill_file_append(file, sizeof value, &at), &value, sizeof value);
 *	spill_file_read(file, at, &value, sizeof value);
 *
 * The program ends with an error message if there is no room. Threads: one.
 */
#ifndef PPERF_REPORT_BASE_SPILL_FILE_H
#define PPERF_REPORT_BASE_SPILL_FILE_H

#include <stddef.h>
#include <stdint.h>

#define SPILL_FILE_HELD_BYTES (64u << 10)

struct spill_file;

/* Creates the file. `what`: the bytes in error messages; it must outlive the file. */
struct spill_file *spill_file_new(const char *what);
void spill_file_free(struct spill_file *file); /* `file` may be NULL */

/* Returns a piece of at most SPILL_FILE_HELD_BYTES, to be filled before the next call. `*at`
 * receives its place. */
void *spill_file_append(struct spill_file *file, size_t bytes, uint64_t *at);
/* Reads bytes of one piece. */
void spill_file_read(const struct spill_file *file, uint64_t at, void *bytes, size_t count);

#endif
