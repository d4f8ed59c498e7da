/* SPDX-License-Identifier: MIT
 * Allocates blocks of a file before they are used, and maps them with their pages present. Raises
 * no signal if only our file has reached a limit.
 */
#ifndef PPERF_COLLECTOR_FILE_FILE_SPACE_H
#define PPERF_COLLECTOR_FILE_FILE_SPACE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

uint64_t file_page_bytes(void);

/* Blocks SIGXFSZ while the file grows, and removes the signal if it was raised. Otherwise a limit
 * that only our file has reached would kill the program. Does nothing if there is no limit, which
 * is the usual case. */
struct sigxfsz_guard {
	sigset_t before;
	bool limited, was_pending;
};
struct sigxfsz_guard sigxfsz_block(void);
void sigxfsz_restore(const struct sigxfsz_guard *guard);

/* Calls fallocate(2), because the one of POSIX writes zeros if the file system lacks the call.
 * Returns 0 or errno. */
int file_allocate(int fd, int mode, uint64_t offset, uint64_t bytes);

/* Maps part of a file, shared. A forked child does not inherit the mapping. Every page is present
 * and dirty. Returns NULL if there is no memory. */
void *file_map(int fd, uint64_t offset, uint64_t bytes);

#endif
