/* SPDX-License-Identifier: MIT
 * Creates a trace file under a free name. No file with half a header is ever visible, and no file
 * in use is replaced.
 */
#ifndef PPERF_COLLECTOR_FILE_OUTPUT_PATH_H
#define PPERF_COLLECTOR_FILE_OUTPUT_PATH_H

#include "collector/trace_format.h"

/* Creates the file with `header` as its first header->header_bytes bytes, and stores its name in
 * path[4096]. The name is `output`, unless that exists:
 *
 *   trace of this run                       the pid is inserted before the last dot
 *   finished trace of another run           it is renamed to NAME.old
 *   any other file or link                  it stays; the pid is inserted
 *   device or folder                        no file is created
 *
 * Returns a high, close-on-exec descriptor, which holds a read lock while it is open. Returns -1
 * and sets errno on failure. */
int output_create(const char *output, const struct trace_header *header, char *path);

/* Returns a high, close-on-exec descriptor of the same file, which holds the lock. Closes `fd`,
 * also on failure. Returns -1 and sets errno on failure. output_create calls it, and trace_file.c
 * when it opens the trace again because the program closed its descriptor. */
int output_move_fd_high(int fd);

/* Makes the kernel grow the process's descriptor table to what a high descriptor needs. With
 * several threads that waits for all CPUs (10 to 20 ms), with one thread it takes some
 * microseconds. The constructor calls it, so that no thread's first record waits. No descriptor
 * stays open. */
void output_grow_fd_table(void);

#endif
