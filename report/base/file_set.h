/* SPDX-License-Identifier: MIT
 * Stores a set of files. A file is identified by device and inode, so that its other names are
 * found too. A name that is not a file (a process in another tool's export) is identified by its
 * text.
 */
#ifndef PPERF_REPORT_BASE_FILE_SET_H
#define PPERF_REPORT_BASE_FILE_SET_H

#include <stdbool.h>

struct file_set;

struct file_set *file_set_new(void);
/* Adds `path`. Returns false if the set already has it. */
bool file_set_add(struct file_set *set, const char *path);
bool file_set_has(const struct file_set *set, const char *path);
void file_set_free(struct file_set *set);

#endif
