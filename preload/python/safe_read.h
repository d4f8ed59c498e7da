/* SPDX-License-Identifier: MIT
 * python_peek.h: reading memory of which we believe to know what it is.
 *
 * Until peek_trust each read goes through the kernel, so that a wrong address is an answer and no crash: that is
 * how layouts are tried. Afterwards they are plain reads. Threads: before peek_trust one only.
 */
#ifndef PPERF_PRELOAD_PYTHON_SAFE_READ_H
#define PPERF_PRELOAD_PYTHON_SAFE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SAFE_READ_MIN_ADDRESS UINT64_C(0x10000) /* nothing lies below it */

extern bool safe_read_trusted; /* written before another thread reads anything */

/* false: the memory cannot be read so. Then peek fails. */
bool safe_read_open(void);
void safe_read_trust(void);
/* Ends what peek_open began; trust stays. */
void safe_read_close(void);

bool safe_read_checked(void *to, uintptr_t from, size_t bytes);

/* false: there is no memory. */
static inline bool safe_read(void *to, uintptr_t from, size_t bytes)
{
	if (__builtin_expect(from < SAFE_READ_MIN_ADDRESS, 0))
		return false;
	if (__builtin_expect(!safe_read_trusted, 0))
		return safe_read_checked(to, from, bytes);
	memcpy(to, (const void *)from, bytes);
	return true;
}

static inline bool safe_read_pointer(uintptr_t *to, uintptr_t from)
{
	return safe_read(to, from, sizeof *to);
}

/* The bytes themselves, or before peek_trust a copy of them, of which there is one at a time. NULL: there is no
 * memory, or too much of it. */
const void *safe_read_bytes(uintptr_t from, size_t bytes);

#endif
