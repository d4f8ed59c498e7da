/* SPDX-License-Identifier: MIT
 * Files without a name, which vanish when the process ends. They are in TMPDIR, or in /tmp if that
 * is not set, or in memory if no file can be created there.
 *
 *	struct temporary_file *file = temporary_file_new("the list of calls");
 *
 *	temporary_file_write(file, bytes, count, 0);
 *	temporary_file_read(file, bytes, count, 0);
 *	temporary_file_free(file);
 *
 * The program ends with an error message if a file cannot be created, written or read. Threads: any
 * may read and write different parts.
 */
#ifndef PPERF_REPORT_BASE_TEMPORARY_FILE_H
#define PPERF_REPORT_BASE_TEMPORARY_FILE_H

#include <stddef.h>
#include <stdint.h>

struct temporary_file;

/* `what`: what is in it, for error messages; it must outlive the file. */
struct temporary_file *temporary_file_new(const char *what);
void temporary_file_free(struct temporary_file *file); /* `file` may be NULL */

void temporary_file_write(
	struct temporary_file *file, const void *bytes, size_t count, uint64_t at);
void temporary_file_read(
	const struct temporary_file *file, void *bytes, size_t count, uint64_t at);
/* Returns how many bytes it has read: fewer than `count` only at the end of the file. */
size_t temporary_file_read_some(
	const struct temporary_file *file, void *bytes, size_t count, uint64_t at);

/* Frees the space of a part that is not needed any more, if the file system can. */
void temporary_file_release(struct temporary_file *file, uint64_t at, uint64_t count);
/* Frees the space from `end` on. */
void temporary_file_cut(struct temporary_file *file, uint64_t end);

/* Creates such a file and returns its descriptor, or -1 with errno. */
int temporary_file_create(void);
/* Returns the folder of temporary files. */
const char *temporary_folder(void);

#endif
