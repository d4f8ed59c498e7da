/* SPDX-License-Identifier: MIT
 * trace_name.h: where a new trace file goes, and how it gets there without ever showing half a header or taking a file that is in use.
 */
#ifndef PPERF_COLLECTOR_FILE_OUTPUT_PATH_H
#define PPERF_COLLECTOR_FILE_OUTPUT_PATH_H

#include "collector/trace_format.h"

/* Makes the file with `header` as its first header->header_bytes bytes and gives its name in path[4096]. The first process of a run gets
 * `output` as it stands; when that is taken by this run the pid is put before the last dot; another run's finished file becomes
 * NAME.old; any other file or link that has the name stays (and the pid is put in); beside a device or a folder nothing is made. A high, close-on-exec
 * descriptor that holds a lock for as long as the writer has it open, or -1 and errno. */
int output_create(const char *output, const struct trace_header *header, char *path);

/* Such a descriptor instead of `fd`, which is closed. -1: there is none, errno. */
int output_move_fd_high(int fd);

/* Has the kernel make the process's table of descriptors as large as such a one needs. With several threads that waits for all CPUs (10 to 20 ms),
 * with one it takes some microseconds: for the constructor, so that a thread's first record need not wait. Nothing stays open. */
void output_grow_fd_table(void);

#endif
