/* SPDX-License-Identifier: MIT
 * file_set.h: files that were met, each once, whatever it was called: by device and inode; what is no file (a process in another
 * tool's export) by its name.
 */
#ifndef PPERF_REPORT_BASE_FILE_SET_H
#define PPERF_REPORT_BASE_FILE_SET_H

#include <stdbool.h>

struct file_set;

struct file_set *file_set_new(void);
/* false: it was there. */
bool file_set_add(struct file_set *set, const char *path);
bool file_set_has(const struct file_set *set, const char *path);
void file_set_free(struct file_set *set);

#endif
