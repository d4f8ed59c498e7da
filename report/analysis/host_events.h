/* SPDX-License-Identifier: MIT
 *
 * Keeps what threads did while a GPU was idle for long: the ranges, calls and CPU samples in such
 * intervals, in the order in which a pass over the trace reports them. So host_in_gaps.h need not
 * read the trace again.
 *
 *	host_events_keep_in(&pass);
 *	shared_pass_run(&pass);
 *	events = host_events_of(process);
 *	if (events && host_events_cover(events, begin_ns, end_ns))
 *		host_events_visit(events, add_event, context);
 *
 * Memory: 16 bytes for each such interval, and that of spill_list.h for the events. Threads: one.
 */
#ifndef PPERF_REPORT_ANALYSIS_HOST_EVENTS_H
#define PPERF_REPORT_ANALYSIS_HOST_EVENTS_H

#include "report/analysis/shared_pass.h"

/* A GPU that is idle for less is not examined. */
#define HOST_EVENTS_IDLE_NS UINT64_C(900000)

enum host_event_kind { HOST_EVENT_RANGE, HOST_EVENT_CALL, HOST_EVENT_SAMPLE };

/* A range or a call that has ended, or a sample, whose begin and end are its time. */
struct host_event {
	uint64_t begin_ns, end_ns;
	uint32_t stream, node;     /* node: 0: a sample in no range */
	uint32_t function, module; /* of a sample: names of the trace */
	uint32_t kind;             /* enum host_event_kind */
	uint32_t in_call;          /* a sample in a call of which the record has not come: 1 */
};

struct host_events;

/* Sets the callbacks for ranges, calls and samples. `add` receives each event with `context`. */
struct host_event_sink {
	void *context;
	void (*add)(void *context, const struct host_event *event);
};
struct profile_observer host_event_observer(
	struct host_event_sink *sink, void (*restart)(void *context));

/* Adds what keeps the events to a pass, unless they are kept, or GPUs are not known to be idle. */
void host_events_keep_in(struct shared_pass *pass);
/* Returns the events that a pass has kept. NULL: none has. */
struct host_events *host_events_of(const struct process *process);
/* Returns true if all events in an interval are kept. */
bool host_events_cover(const struct host_events *events, uint64_t begin_ns, uint64_t end_ns);
/* Passes all kept events to the sink, in the order of the pass. */
void host_events_visit(struct host_events *events, const struct host_event_sink *sink);

#endif
