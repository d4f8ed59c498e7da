/* SPDX-License-Identifier: MIT
 *
 * Finds how long memory lived, by the call path that allocated it, in one more pass over the trace,
 * which other analyses may share.
 *
 * Time is divided into the part before the first step and the steps. A step ends where the next one
 * is looked at: what happens between two steps belongs to the later one. Without steps, the time
 * from the first record of memory to the end is divided into LIFETIME_PARTS equal parts, which take
 * the place of the steps. The end is that of struct memory_owners. Nothing after it counts.
 *
 * Memory that PyTorch's caching allocator holds is known by its tensors, so its own allocations of
 * device memory do not count as growing.
 *
 * Memory: about 150 bytes for an allocation site, and 32 for a block that is held at the end.
 */
#ifndef PPERF_REPORT_ANALYSIS_MEMORY_LIFETIMES_H
#define PPERF_REPORT_ANALYSIS_MEMORY_LIFETIMES_H

#include "report/analysis/memory_growth.h"
#include "report/analysis/shared_pass.h"

#define LIFETIME_PARTS 5u
#define LIFETIME_OCTAVES 64u

/* The class of a block: when it was freed, counted from the step that allocated it. */
enum memory_lifetime {
	MEMORY_TEMPORARY,   /* freed in the same step */
	MEMORY_ACROSS_1,    /* freed one step later */
	MEMORY_ACROSS_2,    /* freed two steps later */
	MEMORY_ACROSS_MORE, /* freed more steps later */
	MEMORY_GROWING,     /* held at the end, and its call path grows */
	/* allocated before the first step and not freed before it, or held at the end and allocated
	 * in the first third of the steps */
	MEMORY_ONCE,
	MEMORY_AT_END, /* held at the end, and allocated in later steps */
	MEMORY_LIFETIMES,
};

struct lifetime_sum {
	uint64_t blocks, bytes;
};

/* The call path, the kind of memory and the device of allocation sites. Sites with stacks of Python
 * also have the program's innermost line in common. */
struct memory_path {
	uint32_t kind, device; /* as in struct memory_level */
	uint32_t node, stack;  /* of the site that left most at the end */
	uint32_t line;         /* text: the program's innermost line of Python; 0: unknown */
	/* Nodes of the trace: where the first block was allocated; the module around all blocks. 0:
	 * there is no such module, or there are several. */
	uint32_t trace_node, module;
	uint32_t api;      /* name in the trace of the CUDA call; 0: none */
	bool omits_steps;  /* blocks were allocated both in steps and outside of them */
	bool of_allocator; /* device memory that PyTorch's allocator allocated */
	struct lifetime_sum lived[MEMORY_LIFETIMES];
	uint64_t once_freed_bytes; /* of MEMORY_ONCE: freed before the end */
	uint64_t across_max;       /* the most steps that a block of MEMORY_ACROSS_MORE outlived */
	uint64_t replaced_bytes;
	struct memory_growth growth;
};

/* A kind of memory on a device. */
struct memory_held {
	uint32_t kind, device;
	struct lifetime_sum lived[MEMORY_LIFETIMES];
	uint64_t once_freed_bytes, across_max;
	struct memory_growth
		growth; /* of all paths together, without those of PyTorch's allocator */
	/* Without steps: blocks that were freed, by the logarithm to base 2 of their age in ns. */
	struct lifetime_sum octaves[LIFETIME_OCTAVES];
};

struct memory_lifetimes {
	struct memory_path *paths;
	size_t path_count;
	struct memory_held *held;
	size_t held_count;
	uint32_t *path_of_site; /* by index in memory->sites of the profile */
	size_t site_count;
	uint64_t *ends; /* of the steps or parts, ascending */
	size_t count;
	uint64_t begin_ns; /* of the first step; 0 without steps */
	uint64_t end_ns;
	bool has_steps;
	bool is_partial; /* not everything was recorded, so what was freed is not known */
};

/* Returns the lifetimes of a process, made at the first call and attached to the process. */
const struct memory_lifetimes *memory_lifetimes_of(struct process *process);
/* Reads the lifetimes in a pass that other analyses share, for later calls of
 * memory_lifetimes_of. */
void memory_lifetimes_read_in(struct shared_pass *pass);

/* Returns the class of a block of a site of the profile. `freed_ns`: UINT64_MAX if it was never
 * freed. `*across`: how many steps later it was freed. */
enum memory_lifetime memory_lifetimes_class(const struct memory_lifetimes *lifetimes, uint32_t site,
	uint64_t since_ns, uint64_t freed_ns, uint64_t *across);

/* Returns the blocks of all classes: all that was allocated up to the end. */
struct lifetime_sum memory_held_total(const struct memory_held *held);

/* Writes what the class is called, such as `across 3 to 7 steps`. `across_max`: of the path. */
void memory_lifetime_name(
	enum memory_lifetime class, uint64_t across_max, bool has_steps, char *out, size_t room);

#endif
