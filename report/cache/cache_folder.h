/* SPDX-License-Identifier: MIT
 * The folder of the cache: where it is, whether it can be trusted, and how much it holds.
 */
#ifndef PPERF_REPORT_CACHE_CACHE_FOLDER_H
#define PPERF_REPORT_CACHE_CACHE_FOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define CACHE_ENTRY_END ".entry" /* names of entries end with it, */
#define CACHE_NEW_END ".new"     /* and names of files that will be entries with this */

/* Opens the folder, and makes it if it is not there. Returns -1 if it cannot be used. */
int cache_folder_open(void);
/* Returns true if the file belongs to this user and no other user can write to it. */
bool cache_is_own(const struct stat *status);
/* Removes the entries that were used longest ago, until `bytes` more fit below `limit`, and files
 * that a process left behind. Keeps those used at `used_ns` or later. Returns false if there is not
 * enough room. */
bool cache_folder_make_room(int folder, uint64_t bytes, uint64_t limit, uint64_t used_ns);
/* Returns a time of a file in nanoseconds. */
uint64_t cache_time_ns(const struct timespec *time);

#endif
