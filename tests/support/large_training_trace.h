/* SPDX-License-Identifier: MIT
 *
 * Writes a large trace of a training program, as PyTorch's callbacks, CUDA and CUPTI produce it.
 * Also gives the same events in memory, for a reference that does as little with them as possible.
 *
 * A step fetches a batch and copies it (1 copy, 1 memset), then runs 24 layers of 12 operators.
 * Forward runs on the main thread, in modules. Backward runs on the autograd thread, with one
 * all-reduce per layer on a CUDA stream of its own. An optimizer and a wait for the loss follow.
 * Each operator allocates tensors and launches kernels. GPU records come some thousand records
 * later. A step has some 6100 events, 912 of them launches, in about 160 KB.
 */
#ifndef PPERF_TESTS_SUPPORT_LARGE_TRAINING_TRACE_H
#define PPERF_TESTS_SUPPORT_LARGE_TRAINING_TRACE_H

#include <stddef.h>
#include <stdint.h>

#define LOAD_STEP_BYTES 162000u /* about */
#define LOAD_STEP_MOST 8192u    /* events; more than a step has */
#define LOAD_THREADS 2u
#define LOAD_STREAMS 32u /* ids of CUDA streams are below */

/* CALL: a launch, a copy or a memset. WAIT: a call without GPU work. TAKE, GIVE: a tensor is
 * allocated, freed. WORK: a GPU operation. */
enum load_kind { LOAD_PUSH, LOAD_POP, LOAD_CALL, LOAD_WAIT, LOAD_TAKE, LOAD_GIVE, LOAD_WORK };

struct load_event {
	uint64_t stamp; /* WORK: its start */
	uint64_t value; /* CALL, WAIT, WORK: duration; TAKE, GIVE: the address */
	/* id: the correlation id of CALL and WORK, the bytes of TAKE. name: of the range, the call
	 * or the kernel. */
	uint32_t id, name;
	uint8_t kind, thread, stream;
};

/* Writes the trace and returns its bytes. `events` is NULL or an array for steps * LOAD_STEP_MOST
 * events. `count` is set to their number. */
uint64_t load_write(const char *path, uint32_t steps, struct load_event *events, size_t *count);

#endif
