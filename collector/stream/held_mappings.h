/* SPDX-License-Identifier: MIT
 * Remembers CUDA's virtual memory for PPERF_RING: physical memory, which is free when no handle and
 * no mapping of it is left, reserved ranges of addresses, and what is mapped there. It follows
 * report/profile/memory_mappings.h.
 *
 * All functions are called under the lock of held_memory.h. Unmapping takes O(n) only if the
 * program unmaps from an address at which no mapping begins.
 */
#ifndef PPERF_COLLECTOR_STREAM_HELD_MAPPINGS_H
#define PPERF_COLLECTOR_STREAM_HELD_MAPPINGS_H

#include "collector/trace_format.h"
#include <stdbool.h>

/* Beyond this number of them, further ones are counted in header.ring.unlisted. */
#define HELD_MAPPINGS_MAX 262144u

/* A record of a call that succeeded. `begin`: stamp at which the call of a release began. */
void held_mappings_create(const struct trace_memory *record);
void held_mappings_release(uint64_t handle, uint64_t begin);
void held_mappings_record(const struct trace_mapping *record);

/* As held_records_restate and held_records_bytes. */
struct stream;
bool held_mappings_restate(struct stream *s, uint64_t stamp);
uint64_t held_mappings_bytes(void);

#endif
