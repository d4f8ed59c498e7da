/* SPDX-License-Identifier: MIT
 * schedule.h: PPERF_SCHEDULE: which steps of a program are recorded, and what its steps are while it runs.
 *
 * As torch.profiler's schedule: after skip_first steps, cycles of `wait` steps that are not recorded, `warmup` steps that are, and are left out of averages,
 * and `active` steps that are recorded and count; `repeat` cycles, 0: for ever.
 *
 * A step is, by what is seen of the program (the first of these that is there decides, and begins to count anew):
 *	ranges named as PPERF_STEP_MARKER says, or that and a number; where that is set, nothing else is looked at
 *	ProfilerStep#N
 *	what ends with Optimizer.step#...; where batches come from a DataLoader, what goes on to the next batch after it
 *	a call of the outermost module in which no gradients are prepared, up to the next one
 *
 * Threads: any; who is told of two edges at once believes one.
 */
#ifndef PPERF_COLLECTOR_STREAM_SCHEDULE_H
#define PPERF_COLLECTOR_STREAM_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct schedule {
	uint32_t skip_first, wait, warmup, active, repeat;
};

/* `wait:1,warmup:1,active:3,repeat:1,skip_first:0`; what is not given is 0, `active` must be. false: that is no schedule. */
bool schedule_parse(const char *text, struct schedule *schedule);

struct schedule_phase {
	bool recorded;
	uint32_t cycle;  /* from 0 */
	uint32_t warmup; /* of this and the steps behind it, so many are warm-up */
};
struct schedule_phase schedule_phase(const struct schedule *schedule, uint64_t step);

/* By the constructor. schedule NULL: everything is recorded. marker: PPERF_STEP_MARKER or NULL. Both are copied. turned: told each time after recording began
 * or stopped; may be NULL. */
void schedule_configure(const struct schedule *schedule, const char *marker,
	void (*recording_changed)(bool recorded));

/* In a forked child. */
void schedule_forked(void);

extern bool schedule_wanted;     /* there is one: the functions below want to be told */
extern bool schedule_has_marker; /* and a marker */

/* A range is about to begin, or a range of that key has ended, both outside of the collector. begins: true if it may be a step; its end must be told, with a
 * key that no other open range has: schedule_is_open says it. */
bool schedule_range_begins(const char *text);
void schedule_range_opened(uint64_t key);
void schedule_range_ended(uint64_t key);

/* The outermost module is about to be called; nodes: how many autograd nodes the thread has made so far. */
void schedule_model_begins(uint64_t nodes);

/* Resumes or pauses recording and writes the WINDOW record on this thread; the arguments are members of struct trace_window.
 * One thread at a time, not within stream_enter. Called by the schedule itself, and by tests. */
void recording_resume(uint64_t step, uint32_t cycle_number, uint32_t warmup);
void recording_pause(uint64_t step, uint32_t cycle_number);
/* Writes the record of the next step of a recording window. */
void recording_next_step(uint64_t step, uint32_t cycle_number);

/* The key of a range of NVTX that was pushed on this thread. */
uint64_t schedule_key(uint32_t domain, int level);

#endif
