/* SPDX-License-Identifier: MIT
 * Provides the memory that CUPTI writes its records to.
 *
 * The pool is bounded, allocated before it is needed, and never freed. A buffer belongs to CUPTI
 * from its request until its completion, whatever happens in between. Any thread may call, without
 * locks.
 */
#ifndef PPERF_COLLECTOR_CUPTI_BUFFERS_H
#define PPERF_COLLECTOR_CUPTI_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Allocates the pool, once: `total` bytes at most (PPERF_CUPTI_BUFFERS), in buffers of at most 128
 * KiB, or more if there would be more than 8192. Returns false if there is no memory. */
bool cupti_buffers_setup(uint64_t total);

/* Returns a buffer and its size in `bytes`, or NULL if all are in use. Buffers are larger while
 * requests follow each other fast, so that each is full in about a tenth of a second. */
uint8_t *cupti_buffers_acquire(size_t *bytes);

/* Returns a buffer whose records are never read. All requests that find the pool empty share it. */
uint8_t *cupti_buffers_scratch(size_t *bytes);

/* Whether `buffer` is in the pool. The scratch buffer and another client's buffers are not. */
bool cupti_buffers_contains(const uint8_t *buffer);

bool cupti_buffers_is_scratch(const uint8_t *buffer);

/* Releases a buffer that has been read. Does nothing if it is not in the pool. */
void cupti_buffers_release(const uint8_t *buffer);

/* Makes the pages of a few more buffers present than were ever in use, so that a launch does not
 * wait for that. Called by one thread at a time. */
void cupti_buffers_prefault(void);

#endif
