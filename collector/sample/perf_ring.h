/* SPDX-License-Identifier: MIT
 * Samples threads by perf_event_open: the kernel copies the registers and the top of the stack of a
 * thread into a ring each time that the thread has used a period of CPU time outside of the kernel.
 * No thread is interrupted by a signal. This is the only file that knows perf_event.
 *
 * A ring keeps its event open, so no descriptor is held for it: the event's is closed at once. One
 * descriptor is held for all rings, to wait for samples, if the thread has descriptors of its own
 * (private_files.h). A forked child has no rings. One thread uses all functions.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_PERF_RING_H
#define PPERF_COLLECTOR_SAMPLE_PERF_RING_H

#include "collector/sample/unwind.h"

#include <stdbool.h>
#include <stdint.h>

struct perf_ring;

struct perf_sample {
	uint64_t taken_ns;         /* CLOCK_MONOTONIC */
	uint64_t lost;             /* samples for which the ring had no room, before this one */
	bool is_sample;            /* false: only `lost` is set */
	bool has_registers;        /* `start` is set */
	struct unwind_start start; /* its stack is valid until the next perf_ring_read() */
	uint64_t next;             /* for perf_ring_read() */
};

/* Prepares for a sample each `period_ns` of CPU time. Tries it with `stack_bytes` of the stack on
 * the calling thread: opens an event, and waits until a sample with registers and stack has
 * arrived. Returns 0 or an errno: ENODATA if no sample arrives. */
int perf_rings_begin(uint64_t period_ns, uint32_t stack_bytes);

/* Changes the period of the rings that are opened from now on. */
void perf_rings_set_period(uint64_t period_ns);

/* Returns the kernel's name for an error of perf_rings_begin() or perf_ring_open(), such as
 * "EACCES". */
const char *perf_ring_error_name(int error);

/* Opens a ring for a thread of this process. Its samples have up to `stack_bytes` of the stack (a
 * multiple of 8). Returns 0 or an errno: ENOBUFS if the user's processes may lock no more
 * memory. */
int perf_ring_open(struct perf_ring **ring, uint32_t tid, uint32_t stack_bytes);
void perf_ring_close(struct perf_ring *ring);

/* Reads the next sample. `sample`: what the call before has set; zeros at the first call of a
 * group, which goes on until false is returned: there is no further sample. */
bool perf_ring_read(struct perf_ring *ring, struct perf_sample *sample);

/* Opens the descriptor to wait with. Returns false if there is none. Called by each thread that
 * uses rings, before it opens some. */
bool perf_rings_can_wait(void);

/* Waits until a sample may have arrived in some ring, but at most `limit_ms`. Returns false if it
 * cannot wait. */
bool perf_rings_wait(unsigned limit_ms);

#endif
