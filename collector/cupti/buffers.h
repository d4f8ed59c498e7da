/* SPDX-License-Identifier: MIT
 * cupti_buffers.h: the memory that CUPTI writes its records to. A bounded pool, made before it is
 * needed, never freed: a buffer is CUPTI's from the moment it asks for it until it says that it is
 * complete, whatever happens in between.
 *
 * Threads: any, without locks.
 */
#ifndef PPERF_COLLECTOR_CUPTI_BUFFERS_H
#define PPERF_COLLECTOR_CUPTI_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reserves the pool, once: `total` bytes at most (PPERF_CUPTI_BUFFERS), in buffers of a mebibyte or
 * more. false: no memory. */
bool cupti_buffers_setup(uint64_t total);

/* A buffer, NULL if all are in use. */
uint8_t *cupti_buffers_acquire(size_t *bytes);

/* Where to write what nobody will read: one piece for all who find the pool empty. */
uint8_t *cupti_buffers_scratch(size_t *bytes);

/* Whether it is of the pool, and holds records: not the scratch, not another client's. */
bool cupti_buffers_contains(const uint8_t *buffer);

bool cupti_buffers_is_scratch(const uint8_t *buffer);

/* Takes back one that has been read. Others are let be. */
void cupti_buffers_release(const uint8_t *buffer);

/* Makes sure that a few more buffers than are in use have memory behind them, so that a launch does
 * not wait for it. On one thread at a time. */
void cupti_buffers_prefault(void);

#endif
