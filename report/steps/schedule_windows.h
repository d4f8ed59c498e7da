/* SPDX-License-Identifier: MIT
 * windows.h: the parts of a program that PPERF_SCHEDULE had recorded, and the steps that it was told by.
 *
 * Steps that were found in the trace (steps.h) get the numbers that they had in the program, and those that the schedule
 * calls warm-up are that and no others. Where what was found differs from what the program counted, its own edges count.
 *
 * Memory: 48 bytes a window, 16 a step recorded.
 */
#ifndef PPERF_REPORT_STEPS_SCHEDULE_WINDOWS_H
#define PPERF_REPORT_STEPS_SCHEDULE_WINDOWS_H

#include "report/steps/find_steps.h"

struct recording_window {
	uint64_t begin_ns, end_ns; /* end_ns: of the trace where it did not end */
	uint64_t first;            /* number of its first step */
	size_t edge, steps;        /* of edges: its first one; so many steps have begun in it */
	uint32_t warmup;           /* of its first steps, so many */
	bool ended;
};

struct recorded_step {
	uint64_t at_ns; /* a step begins */
	uint32_t stream;
};

struct recording_windows {
	struct recording_window *windows; /* by time */
	struct recorded_step *recorded_steps;
	size_t count, room, recorded_step_count, recorded_step_room;
	struct trace_text schedule; /* as the trace has it */
	uint64_t steps;             /* that ended in the program, recorded or not */
	uint64_t ns;                /* in windows, together */
	struct trace_skip skipped[TRACE_SKIP_KINDS];
	uint64_t
		cost_ns; /* of looking at what was skipped: as much each as those that were measured took, of their sort */
	bool unmeasured; /* of some sort none was */
};

/* NULL: everything was recorded. Reads the trace through if not. */
struct recording_windows *recording_windows_read(struct trace_reader *reader);
void recording_windows_free(struct recording_windows *windows);

/* The steps of such a trace. found: those of steps_find, which are changed, or NULL; they are also the result where `windows` is NULL. */
struct steps *recording_windows_steps(const struct recording_windows *windows, struct steps *found);

/* The name of what was skipped: `ranges`. */
const char *recording_windows_skip_name(enum trace_skip_kind kind);
const char *recording_windows_skip_text(enum trace_skip_kind kind);

#endif
