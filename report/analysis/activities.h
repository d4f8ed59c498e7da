/* SPDX-License-Identifier: MIT
 * activity.h: everything that happened on GPUs, and on the host for them, one entry each, in the order in which it
 * began, with who owns it. For views that ask what came after what: gaps, queues, overlaps, waits, critical paths.
 *
 *	struct activities *activities = activities_read(process);
 *	const struct activity *one;
 *
 *	for (activities_rewind(activities); (one = activities_first(activities)); activities_next(activities))
 *		...
 *	activities_free(activities);
 *
 * One more fold of the trace (its observer's hooks), so that an entry's owner is the tree's: by correlation id, never by
 * times. Then an external sort (sorter.h): ACTIVITY_HELD entries in memory, the rest in a temporary file; records of a
 * GPU that reach the trace late, or in no order, are in their place. Memory does not grow with the trace beyond that.
 *
 * Times are nanoseconds since the trace's start, of the host's clock; a GPU's are put on it (trace_reader.h).
 * --device: only that device's work. --steps and PPERF_SCHEDULE: all is there, `counts` says what was asked for, and
 * activities_windows when that was. Threads: one.
 */
#ifndef PPERF_REPORT_ANALYSIS_ACTIVITIES_H
#define PPERF_REPORT_ANALYSIS_ACTIVITIES_H

#include "report/run/process.h"

#define ACTIVITY_HELD 32768u
#define ACTIVITY_NO_DEVICE UINT32_MAX
#define ACTIVITY_NO_KERNEL UINT32_MAX
#define ACTIVITY_NO_STEP UINT32_MAX

/* What began first of two that began at once: as here. */
enum activity_kind {
	/* Calls, on the host: from begin to return. CAPTURED ones made a node of a graph, and nothing ran. */
	ACTIVITY_LAUNCH,       /* of a kernel */
	ACTIVITY_GRAPH_LAUNCH, /* its work has the same correlation, all of it */
	ACTIVITY_COPY_CALL,
	ACTIVITY_MEMSET_CALL,
	ACTIVITY_ALLOC,
	ACTIVITY_FREE,
	ACTIVITY_WAIT, /* the host waits: for an event, a stream, a context (`sync` says for which) */
	ACTIVITY_EVENT_RECORD, /* put into a stream: says when all before it there is done */
	ACTIVITY_STREAM_WAIT, /* put into a stream: what comes after it there waits for the event */
	ACTIVITY_OTHER_CALL,  /* any other that the trace has a record of */
	/* What CUPTI told of calls. The same call has an entry above with the same correlation, if the trace has that. */
	ACTIVITY_API,
	/* What CUPTI told of synchronisation, by its own ids of streams and events; `sync` says of which kind. Before CUDA 12.8
	 * it does not time records of events: not `timed`. */
	ACTIVITY_SYNC,
	/* Work, on a GPU. */
	ACTIVITY_KERNEL,
	ACTIVITY_COPY,
	ACTIVITY_MEMSET,
	ACTIVITY_KINDS
};

struct activity {
	uint64_t begin_ns,
		end_ns; /* never end before begin. Not timed: when its call began, or 0 */
	/* Work: in the GPU's own nanoseconds, exactly; sums and differences on one device are made of these. start_unix_ns:
	 * CLOCK_REALTIME, 0: not timed. Others: duration_ns is end_ns - begin_ns, start_unix_ns 0. */
	uint64_t start_unix_ns, duration_ns;
	uint64_t call_begin_ns,
		call_end_ns;  /* work: of the call that asked for it (has_call); others: as above */
	uint64_t correlation; /* CUPTI's; 0: none. The call and all its work have the same */
	uint64_t bytes;       /* copied, set, taken; 0: unknown, or none */
	uint64_t stream;      /* work, SYNC: CUPTI's id; calls: the handle */
	uint64_t event; /* RECORD, WAIT for an event, STREAM_WAIT: the handle; SYNC: CUPTI's id */
	uint64_t
		arrival; /* 0, 1, ... as the trace has them: which of two it is that are alike in all else */
	uint32_t node; /* of the tree: its own leaf; 0: it does not count, or CUPTI told of it */
	uint32_t
		owner; /* of the tree: the range it was asked for in; `unattributed`; 0: as `node` */
	uint32_t name; /* text: the function called; the kernel; the copy; 0: unknown */
	uint32_t tid;  /* of the thread that called; work without a known call: 0 */
	uint32_t
		device; /* work: where it ran; calls: the thread's current one; ACTIVITY_NO_DEVICE: unknown */
	uint32_t
		other_device; /* COPY from one device to another: to which; else ACTIVITY_NO_DEVICE */
	uint32_t
		kernel; /* index in the fold's kernels (name and shape of launch); ACTIVITY_NO_KERNEL: none, or uncounted */
	uint32_t
		step; /* index in the process's steps, in which its call began (without a call: it); ACTIVITY_NO_STEP */
	uint32_t result; /* calls, API: 0 worked */
	uint8_t kind;    /* enum activity_kind */
	uint8_t sync;    /* WAIT, SYNC: enum trace_sync_type */
	uint8_t copy_kind, source_kind,
		target_kind; /* COPY, COPY_CALL (copy_kind alone): trace_format.h's enums; 0 unknown */
	bool timed;          /* false: there are no times of it */
	bool has_call;       /* work: its call is in the trace */
	bool in_range;       /* it was asked for in some range, not in none */
	bool captured;
	bool of_graph;     /* work: launched by a graph */
	bool communicates; /* KERNEL: one of NCCL or RCCL (timeline.h) */
	bool counts;       /* of what was asked for */
};

/* From when to when things counted. */
struct counted_interval {
	uint64_t begin_ns, end_ns;
};

struct activities;

/* Of a process that was folded. `node`, `owner`, `name` and `kernel` are numbers of process->fold and process->texts. */
struct activities *activities_read(struct process *process);
void activities_free(struct activities *activities); /* NULL is fine */

/* To the first; as often as wanted. */
void activities_rewind(struct activities *activities);
/* The next one; NULL: no more. Lives until activities_next. By begin_ns, then by kind, then work by the GPU's own time,
 * then by arrival. */
const struct activity *activities_first(const struct activities *activities);
void activities_next(struct activities *activities);

uint64_t activities_count(const struct activities *activities);
/* Of these: work on a GPU; work without times. */
uint64_t activities_work(const struct activities *activities);
uint64_t activities_untimed(const struct activities *activities);

/* By time; how many. 0: everything counted. */
size_t activities_counted_intervals(
	const struct activities *activities, const struct counted_interval **windows);

/* Whether what happens at that moment counts: for what CUPTI told, which says nothing of it. */
bool activities_count_at(const struct activities *activities, uint64_t at_ns);

/* As the program named (NVTX) a stream of a device, by CUPTI's id. Empty: it did not. */
struct string_view activities_stream_name(
	const struct activities *activities, uint32_t device, uint64_t stream);

static inline bool activity_is_work(const struct activity *activity)
{
	return activity->kind >= ACTIVITY_KERNEL;
}

static inline bool activity_is_call(const struct activity *activity)
{
	return activity->kind < ACTIVITY_API;
}

#endif
