/* SPDX-License-Identifier: MIT
 * Tracks CUDA's virtual memory: which physical memory is mapped at which addresses, and whether it
 * is still in use.
 *
 * cuMemCreate allocates physical memory and returns a handle, which is a reference to it. The
 * memory is free when all references are released and nothing of it is mapped any more. A driver
 * may then return the same number as a handle of other memory. So each physical memory has a key of
 * its own, which is never used again.
 *
 * A mapping belongs to the reserved range of addresses that contains its begin. Adjacent mappings
 * of one range form a segment of PyTorch's allocator (expandable_segments).
 *
 * Each function takes O(log n). Memory: 130 bytes for each mapping, and 90 for each physical memory
 * and each reserved range, of the largest number at the same time.
 */
#ifndef PPERF_REPORT_PROFILE_MEMORY_MAPPINGS_H
#define PPERF_REPORT_PROFILE_MEMORY_MAPPINGS_H

#include "collector/trace_format.h"
#include <stdbool.h>

/* Keys of physical memory have this bit, which no address of a GPU has. */
#define PHYSICAL_KEY (UINT64_C(1) << 63)

struct memory_mapping {
	uint64_t address, bytes;
	uint64_t key;      /* of the physical memory; 0: its handle is not known */
	uint64_t reserved; /* begin of the reserved range; 0: not known */
	uint32_t device;
	uint32_t next_unused;
};

struct mapping_counts {
	uint64_t mapped, unmapped;
	/* Mappings of handles that the trace does not have. */
	uint64_t unknown_handles;
	/* Mappings at addresses that were mapped: the unmapping was not seen. */
	uint64_t replaced;
};

struct memory_mappings;

struct memory_mappings *memory_mappings_new(void);
void memory_mappings_free(struct memory_mappings *mappings);
const struct mapping_counts *memory_mappings_counts(const struct memory_mappings *mappings);

/* The physical memory `handle` was created, at `at_ns`. Returns its key. `replaced_key`: of memory
 * that had the same handle and is not mapped. Its release was not seen, and it counts as free now.
 * 0: there is none. */
uint64_t memory_mappings_create(
	struct memory_mappings *mappings, uint64_t handle, uint64_t at_ns, uint64_t *replaced_key);

enum mapping_release {
	RELEASE_UNKNOWN, /* the trace does not have the handle */
	RELEASE_KEPT,    /* other references or mappings are left, or the memory is imported */
	RELEASE_FREED,   /* the memory is free */
};
/* A reference was released, by a call that began at `begin_ns`. `key`: of memory that is free. */
enum mapping_release memory_mappings_release(
	struct memory_mappings *mappings, uint64_t handle, uint64_t begin_ns, uint64_t *key);

/* A record other than UNMAP, of a call that succeeded. Stores the new mapping in `made` and returns
 * true if the record is a MAP. */
bool memory_mappings_record(struct memory_mappings *mappings, const struct trace_mapping *record,
	struct memory_mapping *made);
/* Ends one of the mappings that begin in the range. Call it until it returns false: before a MAP is
 * recorded with the range of that, and with the range of an UNMAP. `freed_key`: of memory that is
 * free now; else 0. */
bool memory_mappings_end_next(struct memory_mappings *mappings, const struct trace_mapping *range,
	struct memory_mapping *ended, uint64_t *freed_key);

#endif
