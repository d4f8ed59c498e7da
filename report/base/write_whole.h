/* SPDX-License-Identifier: MIT
 * Writes a buffer to a descriptor, however many calls of write() that takes.
 */
#ifndef PPERF_REPORT_BASE_WRITE_WHOLE_H
#define PPERF_REPORT_BASE_WRITE_WHOLE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes all `count` bytes at the descriptor's position. Returns false with errno if that fails. */
bool write_whole(int fd, const void *bytes, size_t count);

#endif
