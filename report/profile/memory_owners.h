/* SPDX-License-Identifier: MIT
 * Tracks who holds how much memory, from the program's allocations and releases.
 *
 * A release carries an address only. The table of addresses knows the size and the owner, so
 * released bytes belong to the node that allocated them. `reserved` is the level of device
 * memory (TRACE_MEMORY_DEVICE and DEVICE_STATIC) of one device. Pinned, managed and array memory
 * are counted separately. Failed calls allocate nothing and are counted.
 *
 * Tensors are a memory kind of their own (MEMORY_TENSOR): what PyTorch's caching allocator hands
 * out of the device memory that it holds (`reserved`). Their bytes are in the device's level
 * already, so the two are never added. With each tensor the allocator reports the total of the
 * device's tensors. If it differs from the sum in the trace, something is missing. The
 * difference is counted, and the allocator's total is used.
 *
 * The end is the last point in time that memory_owners_mark_end marked. What came after it is
 * counted apart: what the program did after its last step (memory_level.after_end), and what an
 * interpreter freed while it shut down (memory_level.shutdown).
 *
 * Memory: 80 to 160 bytes per allocation that was live at the same time. A site (a tree node, a
 * call stack and a memory kind) takes 184 bytes.
 */
#ifndef PPERF_REPORT_PROFILE_MEMORY_OWNERS_H
#define PPERF_REPORT_PROFILE_MEMORY_OWNERS_H

#include "collector/trace_format.h"
#include "report/profile/memory_mappings.h"
#include <stdbool.h>
#include <stddef.h>

#define MEMORY_KINDS 8 /* enum trace_memory_kind; larger values count as unknown */
#define MEMORY_TENSOR MEMORY_KINDS
#define MEMORY_OOMS_MAX 1000u /* failures with all details; further ones are only counted */

/* What was allocated and released up to a point in time, and what was held then. Or what was
 * since then, and by how much more was held. */
struct memory_sums {
	uint64_t alloc_bytes, free_bytes, allocs, frees, held;
	uint64_t serial; /* memory_owners.end_serial or active_serial at that time */
};

/* Bytes allocated and released, and bytes held. After memory_owners_finish a site has what it
 * allocated and released up to the end, and a level what the whole trace has. */
struct memory_flow {
	uint64_t alloc_bytes, free_bytes, allocs, frees, failed;
	uint64_t held;     /* now; after memory_owners_finish: at the end */
	uint64_t held_max; /* highest value of `held` */
	/* `held` when the level of this kind and device was highest. After memory_owners_finish. */
	uint64_t at_peak;
	/* `held` when an allocation of this kind and device last ran out of memory. After
	 * memory_owners_finish. */
	uint64_t at_oom;
	uint64_t peak_serial, peak_held, oom_serial, oom_held;
	struct memory_sums since_end; /* what came after the last mark of the end */
};

/* What PyTorch's allocator reports for a device. */
struct memory_pool {
	/* Now: bytes of tensors; bytes that the allocator holds. */
	uint64_t allocated, reserved;
	uint64_t allocated_at_end; /* `allocated` at the end. After memory_owners_finish. */
	uint64_t peak, reserved_at_peak, reserved_peak_bytes;
	/* Bytes of device memory that were not allocated by PyTorch's allocator. Negative: not
	 * all allocations of that allocator were recorded. */
	int64_t outside_allocator, outside_at_peak;
	/* Of the peak, what the records allocated. */
	uint64_t held_at_peak;
	/* Bytes of tensors that were allocated in no record, such as before the trace began: at the
	 * peak, when memory last ran out, and at the end. The last one is set by
	 * memory_owners_finish, which adds them to the level's flow, but to no site. */
	uint64_t before_at_peak, before_at_oom, before_at_end;
	uint32_t peak_node; /* tree node where the peak was reached */
	bool unknown;       /* memory_owners_resume was called: the next record sets the values */
};

/* All memory of one kind on one device. */
struct memory_level {
	uint32_t kind, device; /* device UINT32_MAX: unknown, or the host's */
	struct memory_flow flow;
	struct memory_pool pool; /* MEMORY_TENSOR only */
	/* When the level was highest; how often it reached a new peak. */
	uint64_t peak_ns, serial;
	uint64_t last_ns; /* MEMORY_TENSOR: of its last record */
	uint64_t ooms;
	struct memory_sums since_active; /* what came after the last mark of activity */
	/* What was allocated and released up to the end, after it and before the shutdown, and
	 * during the shutdown. `held` is set in the first one. After memory_owners_finish. */
	struct memory_sums at_end, after_end, shutdown;
};

/* Where memory was allocated. */
struct memory_site {
	uint32_t level;       /* index in memory_owners.levels */
	uint32_t node, stack; /* tree node; stack of the trace, 0: none */
	uint32_t path;        /* merged sites: node that represents the call path */
	struct memory_flow flow;
	bool is_pool;    /* allocated from a memory pool of CUDA */
	bool is_several; /* sum of several sites: held_max is unknown */
	/* What its path leaves out when it is shown: sections of the run such as `(between steps)`,
	 * and steps, if it has allocations of both. */
	bool omits_sections, omits_steps;
};

struct memory_counts {
	/* Releases of addresses without an allocation: allocated before the trace, or by a call
	 * that is not traced. */
	uint64_t unknown_frees;
	/* Addresses allocated again while held: the release was not seen, and is counted at that
	 * time. */
	uint64_t replaced;
	uint64_t null_frees, failed_frees;
	uint64_t tensors, ooms; /* records */
	uint64_t failed_allocations;
	uint64_t unknown_tensor_frees;
	/* Times that the sum of tensors was not the allocator's total. */
	uint64_t tensor_differences;
};

/* What was free inside PyTorch's segments (allocations of device memory in which there are tensors)
 * when memory ran out. */
struct memory_gaps {
	uint64_t free_bytes, largest;
	uint32_t gaps, segments;
	bool known; /* false: there were too many blocks for another look */
};

/* PyTorch's allocator ran out of memory, although it had already released the memory it caches. */
struct memory_oom {
	uint64_t time_ns, requested_bytes, allocated, reserved;
	uint64_t held;             /* device memory allocated by records */
	int64_t outside_allocator; /* as in struct memory_pool */
	uint32_t device, node, tid, stack;
	uint32_t first_open, open; /* index in profile.oom_ranges; how many ranges were open */
	/* The places of the other threads: index in profile.oom_threads, and how many. */
	uint32_t first_thread, threads;
	/* The calls of CUDA that failed since the device's last tensor: index in
	 * memory_owners.failed of the first, and how many. 0: PyTorch did not call CUDA. */
	uint32_t first_failed, failed;
	struct memory_gaps gaps;
};

/* A CUDA allocation that failed for want of memory. */
struct failed_allocation {
	uint64_t time_ns, requested_bytes;
	/* What the program had allocated of this kind then; of device memory: of all kinds of it
	 * on this device. */
	uint64_t held;
	uint32_t kind, device, node, api, tid, stack; /* node: of the tree; api: a name id */
	uint32_t first_open, open;                    /* as in struct memory_oom */
	uint32_t first_thread, threads;               /* as in struct memory_oom */
	bool succeeded_later; /* as much was allocated later, as an allocator that retries does */
	/* What the thread freed afterwards, up to its next allocation. */
	uint64_t released_bytes, releases;
	uint64_t begin_ns;    /* of the call */
	uint64_t repeated_ns; /* when as much was allocated later */
	/* What the driver reported after the call; total_bytes 0: it was not queried. */
	uint64_t free_bytes, total_bytes;
};

/* What the driver reported after the first allocation on a device. */
struct device_memory {
	uint64_t free_bytes, total_bytes, held; /* held: by records */
	uint32_t device;
};

/* A sample of a GPU's memory (DEVICE_MEMORY), with what the trace had allocated then. */
struct device_sample {
	uint64_t at_ns, free_bytes, total_bytes;
	/* What this process used, with its contexts. 0: not known. */
	uint64_t process_bytes;
	/* Of process_bytes, what the trace had not allocated; of this sample or the last one
	 * before it that knew. 0: not known. */
	uint64_t context_bytes, context_at_ns;
	uint64_t latest_context_bytes, latest_context_ns; /* of the last sample that knew */
	uint64_t tensors, reserved;                       /* as PyTorch's allocator reported them */
	uint64_t *held;                                   /* by site */
	uint32_t held_count;                              /* sites; later ones held nothing */
	uint32_t device, reason;                          /* reason: enum trace_memory_sample */
	uint64_t samples;                                 /* of this GPU in all */
};

struct memory_owners {
	struct memory_level *levels;
	uint32_t level_count;
	struct memory_site *sites;
	uint32_t site_count;
	struct memory_site *merged; /* made by report/analysis/allocation_sites.h; NULL: not made */
	uint32_t merged_count;
	struct memory_oom *ooms;
	uint32_t oom_count;
	struct failed_allocation *failed;       /* the first MEMORY_OOMS_MAX */
	uint32_t failed_count, unrepeated_from; /* all before this one succeeded later */
	struct device_memory *devices;          /* by time of the first allocation */
	uint32_t device_count;
	struct memory_counts counts;
	/* The number of marks of the end, and the time of the last one. When the first record was
	 * made. 0: there is none. */
	uint64_t end_serial, end_ns, first_ns;
	uint64_t active_serial;        /* the number of marks of activity */
	bool resumed;                  /* memory_owners_resume was called */
	struct device_sample *fullest; /* of each GPU, the sample with the least free memory */
	uint32_t fullest_count;
	struct memory_mappings *mappings; /* of memory made by cuMemCreate */
	struct allocation_table *tables;  /* private */
};

/* What one record changed. */
struct memory_change {
	uint64_t address;       /* or the key of physical memory (memory_mappings.h) */
	uint64_t freed_address; /* of what was freed; differs from `address` for physical memory */
	uint32_t kind, device;  /* of the memory, as recorded when it was allocated */
	uint32_t node;          /* tree node that allocated it */
	/* both are set if an address was allocated again */
	uint64_t allocated_bytes, freed_bytes;
	uint32_t freed_node; /* tree node that had allocated what was freed */
	uint32_t freed_kind, freed_device;
	uint32_t site, freed_site; /* indexes of memory_owners.sites */
	uint64_t freed_since_ns;   /* when it had been allocated */
	bool known, failed;        /* known: something changed */
};

struct memory_owners *memory_owners_new(void);
void memory_owners_free(struct memory_owners *memory);

/* An ALLOC record made at tree node `node`. The call ended at `end_ns`. */
struct memory_change memory_owners_record_alloc(struct memory_owners *memory,
	const struct trace_memory *record, uint32_t node, uint64_t end_ns);
/* Physical memory of which no reference is left is not mapped any more. */
struct memory_change memory_owners_free_physical(struct memory_owners *memory, uint64_t key);
/* A FREE record. The call began at `begin_ns`. */
struct memory_change memory_owners_record_free(
	struct memory_owners *memory, const struct trace_memory *record, uint64_t begin_ns);

/* A FREE record of all memory of a context (TRACE_MEMORY_ALL). Frees one allocation per call.
 * `*at` must be 0 at the first call. Returns false if none is left. Tensors stay until the
 * allocator releases them. */
bool memory_owners_free_context(struct memory_owners *memory, const struct trace_memory *record,
	size_t *at, struct memory_change *change);

/* A TENSOR record made at tree node `node`. Sets `*change`, which must be zeroed. It is not
 * returned, because there are millions of them, and a copy of the struct takes a third of the
 * time. */
void memory_owners_record_tensor(struct memory_owners *memory, const struct trace_tensor *record,
	uint32_t node, uint64_t at_ns, struct memory_change *change);
/* A TENSOR_OOM record. Returns NULL after MEMORY_OOMS_MAX of them. */
struct memory_oom *memory_owners_oom(struct memory_owners *memory,
	const struct trace_tensor *record, uint32_t node, uint64_t at_ns);

/* An ALLOC record that failed for want of memory. Returns NULL after MEMORY_OOMS_MAX of them. */
struct failed_allocation *memory_owners_failed(struct memory_owners *memory,
	const struct trace_memory *record, uint32_t node, uint64_t at_ns);
/* A FREE record of thread `tid` that freed `bytes`: an allocator may release what it caches after
 * an allocation failed. */
void memory_owners_released(struct memory_owners *memory, uint32_t tid, uint64_t bytes);
/* A DEVICE_MEMORY record, at `at_ns`: keeps it if less was free than in all samples before. */
void memory_owners_sample(
	struct memory_owners *memory, const struct trace_device_memory *record, uint64_t at_ns);
/* A DEVICE_MEMORY record of thread `tid`. */
void memory_owners_device_memory(
	struct memory_owners *memory, const struct trace_device_memory *record, uint32_t tid);
/* Whether the call failed for want of memory: both CUDA's runtime and driver return 2. */
static inline bool memory_ran_out(const struct trace_memory *record)
{
	return record->call.result == 2;
}
/* The last allocation that failed, and as much was never allocated later. NULL: none. */
const struct failed_allocation *memory_owners_last_failed(const struct memory_owners *memory);

/* Records of tensors begin again after some were skipped (PPERF_SCHEDULE). The bytes held are
 * unknown until the next record sets them, which is not counted as a difference. From here on,
 * releases of unknown tensors are not counted. */
void memory_owners_resume(struct memory_owners *memory);

/* The tensors of `device`; NULL: none. */
const struct memory_level *memory_owners_tensors(
	const struct memory_owners *memory, uint32_t device);

/* Marks `at_ns` as the end so far: what was recorded up to now came before it. */
void memory_owners_mark_end(struct memory_owners *memory, uint64_t at_ns);
/* Marks that what was recorded up to now came before the shutdown. */
void memory_owners_mark_active(struct memory_owners *memory);

/* Sets what is at the peak, at the end and when memory last ran out. Called once, after the last
 * record. */
void memory_owners_finish(struct memory_owners *memory);

/* An allocation that no record releases. */
struct live_allocation {
	uint64_t address, bytes, since_ns;
	uint32_t site;
};
/* Calls `visit` for each of them, in no order. */
void memory_owners_each_live(const struct memory_owners *memory,
	void (*visit)(void *context, const struct live_allocation *allocation), void *context);

/* Whether memory of `kind` takes capacity of a GPU: device memory and arrays. Managed memory may
 * do so. */
bool memory_is_on_device(uint32_t kind);
/* Whether memory of `kind` is part of `reserved`. */
bool memory_is_device(uint32_t kind);
const char *memory_kind_name(uint32_t kind);

#endif
