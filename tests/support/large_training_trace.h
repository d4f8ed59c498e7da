/* SPDX-License-Identifier: MIT
 * large_training_trace.h: a large trace of a program that trains, as PyTorch's callbacks, CUDA and
 * CUPTI write it; and the same events in memory, for who wants to do with them the least that can
 * be done.
 *
 * A step: a batch is fetched and copied (1 copy, 1 set), then 24 layers of 12 operators, forward on
 * the main thread in modules, backward on the thread of autograd (an all-reduce a layer, on a
 * stream of its own), an optimizer, and a wait for the loss. Each operator takes tensors and
 * launches. What the GPU did comes some thousand records later. A step has some 6100 events, 912 of
 * them launches, in about 160 KB.
 */
#ifndef PPERF_TESTS_SUPPORT_LARGE_TRAINING_TRACE_H
#define PPERF_TESTS_SUPPORT_LARGE_TRAINING_TRACE_H

#include <stddef.h>
#include <stdint.h>

#define LOAD_STEP_BYTES 162000u /* about */
#define LOAD_STEP_MOST 8192u    /* events; more than a step has */
#define LOAD_THREADS 2u
#define LOAD_STREAMS 32u /* ids of CUDA streams are below */

/* CALL: a launch, a copy, a set; WAIT: a call that nothing comes of. WORK: of the GPU. */
enum load_kind { LOAD_PUSH, LOAD_POP, LOAD_CALL, LOAD_WAIT, LOAD_ALLOC, LOAD_FREE, LOAD_WORK };

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
