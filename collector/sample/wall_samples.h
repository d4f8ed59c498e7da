/* SPDX-License-Identifier: MIT
 * Samples the whole time of a thread (PPERF_SAMPLE_CLOCK=wall): on a core, waiting for one, or
 * blocked in the kernel. The weights of the three states add up to the time since the thread was
 * first seen.
 *
 * A thread that has not run since it was looked at is still at the same place. So a sample of
 * blocked time is written when the thread has run again, or after a second.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_WALL_SAMPLES_H
#define PPERF_COLLECTOR_SAMPLE_WALL_SAMPLES_H

#include "collector/sample/samples.h"

/* Adds the frames of the sample's thread to the sample. `is_running`: it has run since the last
 * look. */
typedef void sample_frame_reader(struct sample *sample, bool is_running);

/* Looks at a thread, whose clock has just been read. Writes what is at least `least_ns`; with
 * `must` also the blocked time so far. `now_ns`: CLOCK_MONOTONIC. Between stream_enter and
 * stream_leave, as wall_samples_end. */
void wall_samples_look(struct sampled_thread *thread, uint64_t now_ns, uint64_t least_ns, bool must,
	sample_frame_reader *read_frames);

/* Writes the blocked time of a thread that has ended or is not to be sampled now. */
void wall_samples_end(struct sampled_thread *thread, uint64_t now_ns);

#endif
