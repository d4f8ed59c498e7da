/* SPDX-License-Identifier: MIT
 *
 * Amounts that add up over the call tree: what belongs to each node itself, without the nodes below
 * it. Flame graphs and exports are made of these. The sum over all nodes is the total that the text
 * views print.
 */
#ifndef PPERF_REPORT_ANALYSIS_TREE_AMOUNTS_H
#define PPERF_REPORT_ANALYSIS_TREE_AMOUNTS_H

#include "report/profile/profile.h"

/* amount, key, unit, title, what it is. RESERVED and HELD are of the first device with memory. */
#define TREE_AMOUNTS(X)                                                                          \
	X(GPU, "gpu", "nanoseconds", "GPU time", "time of kernels, copies and memsets")          \
	X(IDLE, "idle", "nanoseconds", "GPU idle",                                               \
		"idle time of the GPU before the work that the node launched")                   \
	X(CPU, "cpu", "nanoseconds", "CPU time", "time of all threads in ranges and CUDA calls") \
	X(SAMPLED, "sampled", "nanoseconds", "CPU time by samples",                              \
		"CPU time of all threads, by samples")                                           \
	X(SAMPLED_WALL, "sampled_wall", "nanoseconds", "Time by samples",                        \
		"of threads that used a core, waited for one, or were blocked")                  \
	X(CALLS, "calls", "count", "Calls", "ranges entered, CUDA calls, GPU operations")        \
	X(TENSORS, "tensors", "bytes", "Tensors allocated", "memory that tensors were given")    \
	X(HELD, "allocated_peak", "bytes", "Tensors at their peak",                              \
		"held when all tensors held most")                                               \
	X(ALLOC, "alloc", "bytes", "Device memory allocated", "by CUDA calls")                   \
	X(RESERVED, "reserved_peak", "bytes", "Device memory at its peak",                       \
		"held when the program held most device memory")

enum tree_amount {
#define X(amount, key, unit, title, help) AMOUNT_##amount,
	TREE_AMOUNTS(X)
#undef X
		AMOUNT_COUNT
};

struct tree_amount_facts {
	const char *key, *unit, *title, *help;
};

/* By enum tree_amount. */
extern const struct tree_amount_facts tree_amounts[AMOUNT_COUNT];

/* AMOUNT_COUNT if there is no amount `key`. */
enum tree_amount tree_amount_find(const char *key);

/* Returns the amount of each node of the call tree, by node; the caller frees the array. Node 0 has
 * what was held at a peak and allocated in no record. `*sum`: of all. Idle time is known only if
 * the profile charges it (options.charges_idle). */
uint64_t *tree_amounts_of(const struct profile *profile, enum tree_amount amount, uint64_t *sum);
/* What node 0 is called. */
const char *tree_amount_unrecorded(const struct profile *profile);

#endif
