/* SPDX-License-Identifier: MIT
 * file_room.h: blocks of a file secured before they are used, and mapped so that they are really there; and no signal for a limit that only our file has
 * hit. For trace_file.c.
 */
#ifndef PPERF_COLLECTOR_FILE_FILE_SPACE_H
#define PPERF_COLLECTOR_FILE_FILE_SPACE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

uint64_t file_page_bytes(void);

/* SIGXFSZ would kill the program for a limit that only our file has hit. Blocked around each growth, and taken off if it came.
 * Only where there is a limit at all: nearly nowhere. */
struct sigxfsz_guard {
	sigset_t before;
	bool limited, was_pending;
};
struct sigxfsz_guard sigxfsz_block(void);
void sigxfsz_restore(const struct sigxfsz_guard *guard);

/* fallocate(2) itself: the posix_ form writes zeros where the file system cannot. 0 or errno. */
int file_allocate(int fd, int mode, uint64_t offset, uint64_t bytes);

/* Shared, not inherited by a forked child, every page present and dirty. NULL: no memory. */
void *file_map(int fd, uint64_t offset, uint64_t bytes);

#endif
