/* SPDX-License-Identifier: MIT
 * Remembers which memory is held, and restates it from time to time (PPERF_RING). The records of
 * its allocations may be overwritten by then. trace_format.h describes what is restated.
 *
 * While a thread records an allocation or release, it holds the lock, so that what is restated is
 * what the records before it add up to:
 *
 *	if (held_memory_wanted) {
 *		held_memory_lock(&guard);
 *		(write the record; its stamp is taken now)
 *		held_memory_add(&block);
 *		held_memory_unlock(&guard);
 *	}
 *
 * No signal handler runs inside. Nothing that may wait for the dynamic linker may be called inside.
 */
#ifndef PPERF_COLLECTOR_STREAM_HELD_MEMORY_H
#define PPERF_COLLECTOR_STREAM_HELD_MEMORY_H

#include "collector/process/signal_guard.h"
#include "collector/trace_format.h"

/* Beyond this number of blocks, further ones are counted in header.ring.unlisted. */
#define HELD_BLOCKS_MAX (1u << 20)

struct held_block {
	uint64_t address, bytes, stream;
	uint64_t begin; /* stamp of its allocation */
	uint32_t node, stack, device;
	uint32_t api;   /* 0: a block of PyTorch's allocator */
	uint32_t flags; /* of struct trace_memory */
	uint16_t late_frees;
	uint8_t memory_kind, space; /* space: enum held_space */
};
/* What an address identifies. 0 is no space: a free entry. */
enum held_space { HELD_TENSOR = 1, HELD_ARRAY, HELD_MEMORY };

extern bool held_memory_wanted; /* there is a ring */

/* Allocates the state, if there is a ring. Called by stream_configure. */
void held_memory_setup(void);

void held_memory_lock(struct signal_guard *guard);
/* Also restates what is held, if it is time to. */
void held_memory_unlock(const struct signal_guard *guard);

/* Add or remove a block. `begin`: stamp at which the call that frees it began. Under the lock. */
void held_memory_add(const struct held_block *block);
void held_memory_remove(enum held_space space, uint64_t address, uint64_t begin);
/* Removes the CUDA allocations of a context; `context` 0: of all contexts of the device. Memory
 * made by cuMemCreate stays. Under the lock. */
void held_memory_remove_context(uint32_t device, uint32_t context);
/* PPERF_RING_KEEP=oom: held_memory_ran_out stops the ring. */
void held_memory_stop_at_oom(void);
/* Called when memory ran out. `of_call`: a CUDA call failed, which is no end where an allocator
 * above it may try again. Under the lock. */
void held_memory_ran_out(uint64_t bytes, bool of_call);
/* Stores the totals of PyTorch's allocator, as in struct trace_tensor. Under the lock. */
void held_memory_set_level(uint32_t device, uint64_t allocated, uint64_t reserved);

/* Restates what is held in the stream of this thread, if it is time to and this thread does not
 * hold the lock. Called by the stream after a seal, within its signal guard. Returns true if
 * records were written. */
struct stream;
bool held_memory_restate_if_due(struct stream *s);

/* Counts restatements of a device, so that the writer of TENSOR_NEXT can find out that one came
 * between two records. */
uint32_t held_memory_restatements(void);

#endif
