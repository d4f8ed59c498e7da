/* SPDX-License-Identifier: MIT
 * Writes SAMPLE and SAMPLED_THREAD records to the stream of the sampler's thread.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_SAMPLES_H
#define PPERF_COLLECTOR_SAMPLE_SAMPLES_H

#include "collector/sample/sampled_threads.h"
#include "collector/trace_format.h"

/* A sample before it is written. */
struct sample {
	struct sampled_thread *thread;
	uint64_t taken;     /* when, in ticks of the trace's clock; not after now */
	uint64_t weight_ns; /* the time that it represents */
	enum trace_sample_state state;
	uint8_t flags;           /* enum trace_sample_flag */
	uint32_t node;           /* with TRACE_SAMPLE_HAS_NODE */
	uint32_t native, python; /* ids of frame_tree.h; 0: none */
	uint64_t pc;             /* 0: not known */
};

/* Reads in which range the thread is, now. Sets taken, node and flags. If that is an operator, the
 * thread will read its Python frames when it ends (collector/stream/frame_request.h). */
void sample_read_node(struct sample *sample);

/* Requests the same for the operator in which the thread is now, for a sample that was taken a
 * moment ago. */
void sample_request_frames(const struct sampled_thread *thread);

/* Writes a sample, or several if its weight is too large for one. What cannot be written is
 * counted. Between stream_enter and stream_leave, as all functions below. */
void sample_write(const struct sample *sample);

/* Writes a SAMPLED_THREAD record: the thread has used `cpu_ns` of CPU time, and all samples up to
 * here are in the trace. `resumed`: no sample represents the CPU time since its record before. */
void sample_write_thread(struct sampled_thread *thread, uint64_t cpu_ns, bool resumed);

/* Writes that the sampler's thread has used CPU time of `ticks` since the last such record. */
void sample_write_self(uint64_t ticks);

#endif
