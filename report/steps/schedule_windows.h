/* SPDX-License-Identifier: MIT
 * Finds the recording windows of PPERF_SCHEDULE in a trace, and the steps at which they began and
 * ended. A trace of which PPERF_RING has overwritten the begin has one window, which is the rest.
 *
 * Steps found in the trace (find_steps.h) get the numbers that they had in the program. The warm-up
 * steps are those of the schedule, and no others. If the steps found do not match the steps that
 * the program counted, the program's own step boundaries are used.
 *
 * Memory: 48 bytes per window, 16 per recorded step.
 */
#ifndef PPERF_REPORT_STEPS_SCHEDULE_WINDOWS_H
#define PPERF_REPORT_STEPS_SCHEDULE_WINDOWS_H

#include "report/steps/find_steps.h"

struct recording_window {
	uint64_t begin_ns, end_ns; /* end_ns: end of the trace if the window did not end */
	uint64_t first;            /* number of its first step */
	/* edge: index of its first recorded step; steps: number of steps that began in it */
	size_t first_recorded_step, steps;
	uint32_t warmup; /* number of warm-up steps at its begin */
	bool ended;
};

struct recorded_step {
	uint64_t at_ns; /* begin of a step */
	uint32_t stream;
};

struct recording_windows {
	struct recording_window *windows; /* in time order */
	struct recorded_step *recorded_steps;
	size_t count, room, recorded_step_count, recorded_step_room;
	struct trace_text schedule; /* as in the trace */
	uint64_t steps;             /* steps that ended in the program, recorded or not */
	uint64_t ns;                /* total length of all windows */
	struct trace_skip skipped[TRACE_SKIP_KINDS];
	/* Cost of the skipped events. Of each kind only some were measured, and their mean is
	 * used for all. */
	uint64_t cost_ns;
	bool unmeasured; /* no event of some kind was measured */
	bool ring;       /* PPERF_RING: the members about steps and skipped events are 0 */
};

/* Reads the windows from the whole trace. Returns NULL without reading if everything was
 * recorded. */
struct recording_windows *recording_windows_read(struct trace_reader *reader);
void recording_windows_free(struct recording_windows *windows);

/* Returns the steps of a trace with windows. `found`: the result of steps_find, which is changed
 * and returned, or NULL. If `windows` is NULL, returns `found` unchanged. */
struct steps *recording_windows_steps(const struct recording_windows *windows, struct steps *found);

/* Returns the name of a kind of skipped events, such as "ranges". Valid until the next call. */
const char *recording_windows_skip_name(enum trace_skip_kind kind);
const char *recording_windows_skip_text(enum trace_skip_kind kind);

#endif
