/* SPDX-License-Identifier: MIT
 * torch_sequence.h: which place an autograd node came from. PyTorch gives the operator that makes a node, and later the node's own run, the same pair of
 * numbers: its logical thread, and a count of that thread's nodes. Nested operators share a pair; the one that started last made the node.
 *
 * Each thread notes its operators in a ring of its own, which holds the last TORCH_SEQUENCES of its numbers and which every thread reads. The ring of a
 * thread that has ended stays until TORCH_SEQUENCE_ENDED others have ended after it. A forked child keeps what was noted.
 *
 * Threads: any. Noting takes no lock and makes no system call but at a thread's first; looking up takes none. errno is kept.
 */
#ifndef PPERF_PRELOAD_TORCH_AUTOGRAD_SEQUENCE_H
#define PPERF_PRELOAD_TORCH_AUTOGRAD_SEQUENCE_H

#include <stdint.h>

#define TORCH_SEQUENCES (1u << 17)
#define TORCH_SEQUENCE_ENDED 128u
#define TORCH_SEQUENCE_MAX ((UINT64_C(1) << 44) - 1) /* no greater number is noted */

/* Who says a thread's logical number; from 1. Once, before anything is noted. */
void torch_sequence_configure(uint64_t (*current_thread)(void));

/* An operator that may make the calling thread's node number `sequence` starts in `node` (not 0). */
void torch_sequence_record(uint64_t sequence, uint32_t node);

/* Where the last operator with these numbers started. 0: none is known, or too long ago. */
uint32_t torch_sequence_node(uint64_t thread, uint64_t sequence);

#endif
