/* SPDX-License-Identifier: MIT
 * Finds the steps of the program while it runs, and decides which of them are recorded
 * (PPERF_SCHEDULE).
 *
 * The schedule means what torch.profiler's does. The first `skip_first` steps are not recorded.
 * Then come `repeat` cycles (0: without end) of these steps:
 *
 *   `wait`     not recorded
 *   `warmup`   recorded, but left out of averages
 *   `active`   recorded and counted
 *
 * Steps are found by the first of these kinds that the program has. If a kind further up appears
 * later, the count starts again at 0.
 *
 *   1. ranges of any source named as PPERF_STEP_MARKER says, perhaps with a number; if it is set,
 *      nothing else counts
 *   2. PyTorch's ranges ProfilerStep#N
 *   3. PyTorch's ranges Optimizer.step#...: the step ends with the range, or with a DataLoader at
 *      the next batch
 *   4. calls of the outermost module without new autograd nodes since the call before
 *
 * Threads: any. If two threads report a step boundary at once, one of them is ignored.
 */
#ifndef PPERF_COLLECTOR_STREAM_SCHEDULE_H
#define PPERF_COLLECTOR_STREAM_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct schedule {
	uint32_t skip_first, wait, warmup, active, repeat;
};

/* Parses a schedule such as `wait:1,warmup:1,active:3,repeat:1,skip_first:0`. Members that are
 * missing are 0; `active` must be positive. Returns false if `text` is no schedule. */
bool schedule_parse(const char *text, struct schedule *schedule);

struct schedule_phase {
	bool recorded;
	uint32_t cycle;  /* from 0 */
	uint32_t warmup; /* warm-up steps left, this step included */
};
struct schedule_phase schedule_phase(const struct schedule *schedule, uint64_t step);

/* Called by the constructor. `schedule` NULL: everything is recorded. `marker`: PPERF_STEP_MARKER
 * or NULL. Both are copied. `recording_changed`: called after recording was paused or resumed; may
 * be NULL. */
void schedule_configure(const struct schedule *schedule, const char *marker,
	void (*recording_changed)(bool recorded));

/* Called in a forked child: unlocks the schedule. */
void schedule_forked(void);

/* Called by the constructor, after schedule_configure: calls `on_step` whenever a step begins, with
 * its number, on the thread that begins it. One thread at a time. */
void schedule_observe_steps(void (*on_step)(uint64_t step));

extern bool schedule_wanted;     /* there is a schedule: call the functions below */
extern bool schedule_has_marker; /* PPERF_STEP_MARKER is set, too: NVTX ranges may be steps */

/* The three calls that report a range that begins or ends. They are made outside of stream_enter.
 * schedule_range_begins is called first; it returns true if the range may be a step. Then
 * schedule_range_opened gives it a key that no other open range has, and schedule_range_ended
 * reports the end of the range with this key. */
bool schedule_range_begins(const char *text);
void schedule_range_opened(uint64_t key);
void schedule_range_ended(uint64_t key);

/* Called before the outermost module is called. `nodes`: autograd nodes that the thread has made so
 * far. */
void schedule_model_begins(uint64_t nodes);

/* Resume or pause recording and write the WINDOW record on this thread. The arguments are members
 * of struct trace_window. One thread at a time, not within stream_enter. Called by the schedule
 * itself and by tests. */
void schedule_resume(uint64_t step, uint32_t cycle_number, uint32_t warmup);
void schedule_pause(uint64_t step, uint32_t cycle_number);
/* Writes the WINDOW record of the next step of a recording window. */
void schedule_next_step(uint64_t step, uint32_t cycle_number);

/* Returns the key of an NVTX range that was pushed on this thread. */
uint64_t schedule_key(uint32_t domain, int level);

#endif
