/* SPDX-License-Identifier: MIT
 * memory.h: who holds how much of which memory, from the allocations and releases of a program.
 *
 * A release carries an address only; the map from addresses knows its size and who took it, so its bytes are a flow
 * of the path that took them, whoever gives them back. `reserved` is the level of device memory (TRACE_MEMORY_DEVICE
 * and DEVICE_STATIC) of one device; pinned, managed and array memory are counted apart. Failed calls take nothing and
 * are counted.
 *
 * Tensors are a kind of memory of their own (MEMORY_TENSOR): what PyTorch's caching allocator gave out of the device
 * memory that it holds (`reserved`). So theirs are bytes that count a second time in the level of the device, and the
 * two are never added up. The allocator says with each of them what all of a device's tensors hold; where that is not
 * the sum of what the trace has, something is missing, which is counted, and its word is believed.
 *
 * Memory: 80 to 160 bytes an allocation of as many as were live at once, 136 a site (a place of the tree, a call stack, a kind of memory).
 */
#ifndef PPERF_REPORT_PROFILE_MEMORY_OWNERS_H
#define PPERF_REPORT_PROFILE_MEMORY_OWNERS_H

#include "collector/trace_format.h"
#include <stdbool.h>
#include <stddef.h>

#define MEMORY_KINDS 8 /* enum trace_memory_kind; what is beyond counts as unknown */
#define MEMORY_TENSOR MEMORY_KINDS
#define MEMORY_OOMS_MAX 1000u /* of which all is kept; the rest are counted */

/* Bytes that came and went, and what was held. */
struct memory_flow {
	uint64_t alloc_bytes, free_bytes, allocs, frees, failed;
	uint64_t held;     /* now, at last at the end */
	uint64_t held_max; /* the most at one time */
	uint64_t
		at_peak; /* held when the level of its kind and device was highest; after memory_finish */
	uint64_t
		at_oom; /* held when an allocation of its kind on its device last failed for want of memory; likewise */
	uint64_t peak_serial, peak_held, oom_serial, oom_held;
};

/* What PyTorch's allocator says of a device. */
struct memory_pool {
	uint64_t allocated, reserved; /* the tensors', its own: now */
	uint64_t peak, reserved_at_peak, reserved_peak_bytes;
	int64_t outside,
		outside_at_peak; /* device memory taken past it; below 0: not all that it holds was seen taken */
	uint32_t peak_node; /* of the tree: where the peak was reached */
	bool unknown;       /* memory_resume: the next record says what there is */
};

/* All of one kind on one device. */
struct memory_level {
	uint32_t kind, device; /* device UINT32_MAX: not known, or the host's */
	struct memory_flow flow;
	struct memory_pool pool; /* MEMORY_TENSOR */
	uint64_t peak_ns,
		serial; /* when it was highest; how often it has been higher than before */
	uint64_t ooms;
};

/* Where memory was taken. */
struct memory_site {
	uint32_t level;       /* index of the kind and device */
	uint32_t node, stack; /* of the tree; of the trace, 0 none */
	struct memory_flow flow;
	bool is_several; /* of merged ones: `most` is not known */
};

struct memory_counts {
	uint64_t
		unknown_frees; /* of addresses that nobody took: taken before the trace began, or by a call that it does not see */
	uint64_t
		replaced; /* taken again while held: the release was not seen before; it counts as released then */
	uint64_t null_frees, failed_frees;
	uint64_t tensors, ooms; /* records */
	uint64_t unknown_tensor_frees;
	uint64_t
		tensor_differences; /* times that the sum of tensors was not what the allocator said */
};

/* PyTorch's allocator had no memory left, not even after it had given back what it kept for later. */
struct memory_oom {
	uint64_t time_ns, requested_bytes, allocated, reserved;
	int64_t outside; /* as in struct memory_pool */
	uint32_t device, node, tid;
	uint32_t first_open, open; /* of the fold's list of ranges that were open there */
};

struct memory_owners {
	struct memory_level *levels;
	uint32_t level_count;
	struct memory_site *sites;
	uint32_t site_count;
	struct memory_site *merged; /* memory_sites.h; NULL: not made */
	uint32_t merged_count;
	struct memory_oom *ooms;
	uint32_t oom_count;
	struct memory_counts counts;
	bool resumed;                    /* memory_resume has been called */
	struct allocation_table *tables; /* private */
};

/* What one record changed. */
struct memory_change {
	uint32_t kind, device;                 /* of the memory, as it was taken */
	uint32_t node;                         /* of the tree: who took it */
	uint64_t allocated_bytes, freed_bytes; /* bytes; both where an address was taken again */
	uint32_t freed_node;                   /* who had taken what was given back */
	uint32_t freed_kind, freed_device;
	bool known, failed; /* known: something changed */
};

struct memory_owners *memory_owners_new(void);
void memory_owners_destroy(struct memory_owners *memory);

/* An ALLOC or FREE record made at node `node` of the tree; it began at begin_ns and ended at end_ns. */
struct memory_change memory_owners_alloc(struct memory_owners *memory,
	const struct trace_memory *record, uint32_t node, uint64_t end_ns);
struct memory_change memory_owners_free(
	struct memory_owners *memory, const struct trace_memory *record, uint64_t begin_ns);

/* A FREE of all that a context had (TRACE_MEMORY_ALL): gives back one piece of it. *at: 0 at first. false: there is no more. Tensors stay until the allocator
 * says otherwise. */
bool memory_owners_free_context(struct memory_owners *memory, const struct trace_memory *record,
	size_t *at, struct memory_change *change);

/* A TENSOR record made at node `node`. */
struct memory_change memory_owners_tensor(struct memory_owners *memory,
	const struct trace_tensor *record, uint32_t node, uint64_t at_ns);
/* A TENSOR_OOM record; NULL: there have been too many to keep. */
struct memory_oom *memory_owners_oom(struct memory_owners *memory,
	const struct trace_tensor *record, uint32_t node, uint64_t at_ns);

/* Records of tensors begin again after some were left out (PPERF_SCHEDULE): what is held now is not known, and what the next record says of it is no
 * difference. Releases of what was taken before, or is not seen, are not counted as unknown from here on. */
void memory_owners_resume(struct memory_owners *memory);

/* The tensors of a device, NULL if there are none. */
const struct memory_level *memory_owners_tensors(
	const struct memory_owners *memory, uint32_t device);

/* Fills in at_peak and at_oom. Once, after the last record. */
void memory_owners_finish(struct memory_owners *memory);

/* Counts towards `reserved`. */
bool memory_is_device(uint32_t kind);
const char *memory_kind_name(uint32_t kind);

#endif
