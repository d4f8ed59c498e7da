/* SPDX-License-Identifier: MIT
 * Reads memory whose layout is assumed but not proven.
 * A layout is first tested, then trusted. Until safe_read_trust is called, memory is read through
 * /proc/self/mem, so that a wrong address makes the read fail and does not crash the program.
 * Afterwards memory is read directly. Threads: only one before safe_read_trust.
 */
#ifndef PPERF_PRELOAD_PYTHON_SAFE_READ_H
#define PPERF_PRELOAD_PYTHON_SAFE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SAFE_READ_MIN_ADDRESS UINT64_C(0x10000) /* nothing is mapped below */

extern bool safe_read_trusted; /* written before another thread reads anything */

/* Opens /proc/self/mem. Returns false if it cannot be read; every read fails then. */
bool safe_read_open(void);
/* Ends the test: from here on memory is read directly. */
void safe_read_trust(void);
/* Closes what safe_read_open opened. After safe_read_trust, memory can still be read. */
void safe_read_close(void);

/* Reads through /proc/self/mem. Only safe_read and safe_read_bytes call it. */
bool safe_read_checked(void *to, uintptr_t from, size_t bytes);

/* Reads `bytes` bytes. Returns false if `from` is less than SAFE_READ_MIN_ADDRESS or, before
 * safe_read_trust, if they cannot be read. Afterwards any other address is read unchecked. */
static inline bool safe_read(void *to, uintptr_t from, size_t bytes)
{
	if (__builtin_expect(from < SAFE_READ_MIN_ADDRESS, 0))
		return false;
	if (__builtin_expect(!safe_read_trusted, 0))
		return safe_read_checked(to, from, bytes);
	memcpy(to, (const void *)from, bytes);
	return true;
}

/* safe_read for a pointer. */
static inline bool safe_read_pointer(uintptr_t *to, uintptr_t from)
{
	return safe_read(to, from, sizeof *to);
}

/* Returns a pointer to the `bytes` bytes at `from`. Returns NULL if `from` is less than
 * SAFE_READ_MIN_ADDRESS. Before safe_read_trust the pointer is to a copy, which is valid until the
 * next call, and NULL also means that the memory cannot be read or is more than 256 KiB. Afterwards
 * the pointer is `from` itself, unchecked. */
const void *safe_read_bytes(uintptr_t from, size_t bytes);

#endif
