/* SPDX-License-Identifier: MIT
 * Links an autograd node to the operator that created it. PyTorch gives both the same pair of
 * numbers: the logical thread, and a count of that thread's autograd nodes. Nested operators
 * share a pair, and the one that started last created the node.
 *
 * Each thread records its operators in its own ring, which holds its last TORCH_SEQUENCES
 * numbers. Every thread may read it. The ring of an ended thread is kept until
 * TORCH_SEQUENCE_ENDED further threads have ended. A forked child keeps all rings.
 *
 * Threads: any. Recording makes system calls only at a thread's first operator. No function
 * takes a lock. errno is preserved.
 */
#ifndef PPERF_PRELOAD_TORCH_AUTOGRAD_SEQUENCE_H
#define PPERF_PRELOAD_TORCH_AUTOGRAD_SEQUENCE_H

#include <stdint.h>

#define TORCH_SEQUENCES (1u << 17)
#define TORCH_SEQUENCE_ENDED 128u
#define TORCH_SEQUENCE_MAX ((UINT64_C(1) << 44) - 1) /* greater numbers are not recorded */

/* Sets the function that returns the calling thread's logical number (from 1). Later calls are
 * ignored. Must be called before anything is recorded. */
void torch_sequence_configure(uint64_t (*current_thread)(void));

/* Records that an operator started in `node` (not 0). The operator may create the calling
 * thread's autograd node number `sequence`. */
void torch_sequence_record(uint64_t sequence, uint32_t node);

/* Returns the node in which the last operator with these numbers started. Returns 0 if it is
 * unknown or was overwritten. */
uint32_t torch_sequence_node(uint64_t thread, uint64_t sequence);

#endif
