/* SPDX-License-Identifier: MIT
 * large_training_trace.h: Writes a large trace of a training program, as PyTorch's callbacks, CUDA
 * and CUPTI record it, and returns the same events in memory for a reference computation.
 *
 * A step: a batch is fetched and copied (1 copy, 1 memset), then 24 layers of 12 operators, forward on
 * the main thread in modules, backward on the thread of autograd (an all-reduce a layer, on a
 * CUDA stream of its own), an optimizer, and a wait for the loss. Each operator allocates tensors
 * and launches kernels. GPU records follow some thousand records later. A step has about 6100
 * events, 912 of them launches, in about 160 KB.
 */
#ifndef PPERF_TESTS_SUPPORT_LARGE_TRAINING_TRACE_H
#define PPERF_TESTS_SUPPORT_LARGE_TRAINING_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_STEP_BYTES 162000u /* about */
#define LOAD_STEP_MOST 8192u    /* events; more than a step has */
#define LOAD_THREADS 2u
#define LOAD_STREAMS 32u /* ids of CUDA streams are below */

/* CALL: a launch, a copy, a memset. WAIT: a call without GPU work. WORK: GPU work. */
enum load_kind { LOAD_PUSH, LOAD_POP, LOAD_CALL, LOAD_WAIT, LOAD_ALLOC, LOAD_FREE, LOAD_WORK };

struct load_event {
	uint64_t stamp; /* WORK: its begin */
	uint64_t value; /* CALL, WAIT, WORK: duration; ALLOC, FREE: the address */
	uint32_t id;    /* CALL, WORK: the correlation id; ALLOC: bytes */
	uint32_t name;  /* of the range, the call or the kernel */
	uint8_t kind, thread, stream;
};

/* Writes the trace and returns its size in bytes. `events`: NULL, or an array of
 * steps * LOAD_STEP_MOST elements. `*count` becomes the number of events. */
uint64_t load_write(const char *path, uint32_t steps, struct load_event *events, size_t *count);

#define LOAD_LAYERS 24u /* collectives a step */
#define LOAD_GROUPS 3u  /* communicators that a rank may have */
#define LOAD_STEP_NS UINT64_C(8000000)

/* One rank of a job. Times are nanoseconds of a clock that all ranks share; the rank's own clock is
 * `unix_ns` ahead of it and gains `ppm` microseconds a second. */
struct load_rank {
	uint32_t number, pid, world_size; /* world_size: 0: the trace does not have it */
	uint64_t run_id, unix_ns;
	double ppm;
	/* Additional time in the data loader, in three of four steps. */
	uint64_t delay_ns;
	/* Of each collective, by step and layer: its group, begin and end. */
	const uint8_t *groups;
	const uint64_t *begins, *ends;
	const char *group_names[LOAD_GROUPS]; /* NULL: the trace does not name it */
	/* The job hangs in this step, and is killed: `absent` is in its data loader, the others
	 * have launched all collectives of the step and wait. UINT32_MAX: it ends. */
	uint32_t hang_step;
	bool absent;
};

/* Writes the trace of a rank, and returns its size in bytes. */
uint64_t load_write_rank(const char *path, uint32_t steps, const struct load_rank *rank);

#endif
