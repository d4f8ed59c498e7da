/* SPDX-License-Identifier: MIT
 *
 * Lists all GPU operations, CUDA calls and CUPTI records of a process by the time at which they
 * begin, each with the call-tree node that owns it. Views of gaps, queues, overlaps, waits and the
 * critical path are made from this list.
 *
 *	struct activities *activities = activities_read(process);
 *	const struct activity *one;
 *
 *	for (activities_rewind(activities); (one = activities_first(activities));
 *		activities_next(activities))
 *		...
 *	activities_free(activities);
 *
 * They come from an observer of the pass that makes the profile, or of one more pass like it. So
 * the owner of an activity is the one in the call tree: it follows from the correlation id, never
 * from times. An external sort puts GPU records that reach the trace late, or out of order, into
 * their place.
 *
 * - Memory: ACTIVITY_HELD entries; the rest is in a temporary file.
 * - Times: nanoseconds since the start of the trace, on the host's clock. GPU times are converted
 *   to it.
 * - Selection: --device leaves out the GPU operations of other devices. --steps and PPERF_SCHEDULE
 *   leave out nothing: `counts` marks the selected activities. activities_counted_intervals returns
 *   when they were.
 * - Threads: one.
 */
#ifndef PPERF_REPORT_ANALYSIS_ACTIVITIES_H
#define PPERF_REPORT_ANALYSIS_ACTIVITIES_H

#include "report/analysis/shared_pass.h"
#include "report/run/process.h"

#define ACTIVITY_HELD 32768u
#define ACTIVITY_NO_DEVICE UINT32_MAX
#define ACTIVITY_NO_KERNEL UINT32_MAX
#define ACTIVITY_NO_STEP UINT32_MAX

/* Activities that begin at the same time are sorted in this order. */
enum activity_kind {
	/* Calls on the host, from begin to return. A `captured` call made a graph node and ran
	 * nothing. */
	ACTIVITY_LAUNCH,       /* of a kernel */
	ACTIVITY_GRAPH_LAUNCH, /* all GPU work of the graph has the same correlation id */
	ACTIVITY_COPY_CALL,
	ACTIVITY_MEMSET_CALL,
	ACTIVITY_ALLOC,
	ACTIVITY_FREE,
	ACTIVITY_WAIT, /* the host waits for an event, a stream or a context (`sync` says which) */
	/* queued on a stream: signals when all earlier work of the stream is done */
	ACTIVITY_EVENT_RECORD,
	ACTIVITY_STREAM_WAIT, /* queued on a stream: later work of the stream waits for the event */
	ACTIVITY_OTHER_CALL,  /* any other call with a record in the trace */
	/* CUPTI's records of API calls. If the trace has the same call as a record of its own, that
	 * is an activity above, with the same correlation id. */
	ACTIVITY_API,
	/* CUPTI's synchronisation records. Streams and events have CUPTI's own ids; `sync` is the
	 * kind. Before CUDA 12.8, records of events have no times (`timed` is false). */
	ACTIVITY_SYNC,
	/* GPU operations. */
	ACTIVITY_KERNEL,
	ACTIVITY_COPY,
	ACTIVITY_MEMSET,
	ACTIVITY_KINDS
};

struct activity {
	/* end_ns >= begin_ns. If not timed, both are when the call began, or 0 without a call. */
	uint64_t begin_ns, end_ns;
	/* GPU operations: exact, in the GPU's own nanoseconds. Sums and differences on one device
	 * use these.
	 *
	 * | field         | GPU operation                | other activities   |
	 * |---------------|------------------------------|--------------------|
	 * | start_unix_ns | CLOCK_REALTIME; 0: not timed | 0                  |
	 * | duration_ns   | the GPU's own duration       | end_ns - begin_ns  | */
	uint64_t start_unix_ns, duration_ns;
	/* GPU operation: of the launching call, if has_call; others: as begin_ns and end_ns. */
	uint64_t call_begin_ns, call_end_ns;
	uint64_t correlation; /* CUPTI's, shared by a call and its GPU operations; 0: none */
	uint64_t bytes;       /* copied, set or allocated; 0: unknown, or none */
	/* KERNEL that communicates: its size (collective_sizes.h); 0: not known */
	uint64_t message_bytes, bus_bytes;
	uint64_t stream; /* GPU operation, SYNC: CUPTI's id; calls: the handle */
	/* EVENT_RECORD, STREAM_WAIT, WAIT for an event: the handle; SYNC: CUPTI's id */
	uint64_t event;
	/* 0, 1, ... in the order of the trace: orders activities that are otherwise equal. */
	uint64_t arrival;
	uint32_t node; /* leaf of the call tree; 0: does not count, or is a record of CUPTI */
	/* call-tree node of the range around the call, or the node "unattributed"; 0: as for
	 * `node` */
	uint32_t owner;
	uint32_t name; /* text: the function called, the kernel, the copy or memset; 0: unknown */
	uint32_t tid;  /* of the calling thread; 0: GPU operation without a known call */
	/* GPU operation: where it ran; calls: the thread's current device; or ACTIVITY_NO_DEVICE */
	uint32_t device;
	uint32_t other_device; /* COPY between two devices: the target; else ACTIVITY_NO_DEVICE */
	/* index of name and launch configuration in the profile's kernels; ACTIVITY_NO_KERNEL: no
	 * kernel, or it does not count */
	uint32_t kernel;
	/* KERNEL with message_bytes: the number of ranks; 0: not known */
	uint32_t message_ranks;
	/* index in process->steps of the step in which the call (without a call: the operation)
	 * began; or ACTIVITY_NO_STEP */
	uint32_t step;
	uint32_t result;     /* calls, API: 0 for success */
	uint32_t stack;      /* of the call, or of the launch of a GPU operation; 0: none */
	uint32_t trace_name; /* KERNEL: name id of the trace; else 0 */
	uint8_t kind;        /* enum activity_kind */
	uint8_t sync;        /* WAIT, SYNC: enum trace_sync_type */
	uint8_t copy_kind, source_kind,
		/* COPY; of COPY_CALL copy_kind only. Enums of the trace format; 0: unknown. */
		target_kind;
	uint8_t collective; /* KERNEL with message_bytes: enum sized_operation */
	bool timed;         /* false: the times are not known */
	bool has_call;      /* GPU operation: its call is in the trace */
	bool in_range;      /* called, or launched, in some range */
	bool captured;
	bool of_graph;      /* GPU operation: launched by a CUDA graph */
	bool nodes_unknown; /* of_graph, but without a graph node: others may not be recorded */
	bool communicates;  /* KERNEL: of the category communication */
	bool counts;        /* in the selected steps, device and recording windows */
};

/* A time interval in which activities count. */
struct counted_interval {
	uint64_t begin_ns, end_ns;
};

struct activities;

/* Reads the activities of a process whose profile is built. `node`, `owner` and `kernel` are
 * indices in process->profile; `name` is a text of process->texts. */
struct activities *activities_read(struct process *process);
/* As activities_read. In the same pass over the trace, or in one of their own if the activities are
 * kept, the callbacks of `also` are called. It must not have `closed`. */
struct activities *activities_read_with(
	struct process *process, const struct profile_observer *also);
/* As activities_read. The activities are complete after the pass. What else explains idle time
 * (host_ranges.h, first_calls.h) is not read. */
struct activities *activities_read_once_in(struct shared_pass *pass);
/* Reads them once for all later calls of activities_read, which then return the same list. For a
 * view that needs them several times, one after the other: there is one position in the list. They
 * are freed with the process, or by process_detach_all. */
void activities_keep(struct process *process);
/* As activities_keep. The activities are complete after the pass. */
void activities_keep_in(struct shared_pass *pass);
/* As activities_keep_in, in the pass that makes the profile. Does nothing in a trace without timed
 * GPU work. */
void activities_read_in(const struct options *options, struct shared_pass *pass);
/* As activities_keep_in, for readers that need no launches of kernels one by one. Leaves out those
 * that explain nothing: they are before the first wait of a stream for an event, and after the
 * first GPU operation. Half of the activities of a training program are such launches. */
void activities_keep_without_launches_in(struct shared_pass *pass);
/* Returns activities that were kept by activities_keep_in or activities_keep_without_launches_in;
 * else as activities_read. */
struct activities *activities_read_without_launches(struct process *process);
/* Returns how many launches that count were left out. */
uint64_t activities_left_out(const struct activities *activities);
void activities_free(struct activities *activities); /* NULL is allowed */

/* Goes back to the first activity. May be called any number of times. */
void activities_rewind(struct activities *activities);
/* As activities_rewind, for the last time: unless the activities are kept, the space of their
 * temporary file is freed while they are read. */
void activities_rewind_last(struct activities *activities);
/* Returns the current activity, or NULL after the last. It is valid until activities_next. Order:
 * begin_ns, then kind; GPU operations among each other by start_unix_ns; then arrival. */
const struct activity *activities_first(struct activities *activities);
void activities_next(struct activities *activities);

/* Receives the activities of a list, in order. */
struct activity_visitor {
	void *context;
	void (*add)(void *context, const struct activity *one); /* NULL: needs none of them */
	void (*end)(void *context);                             /* after the last; NULL: none */
};

/* Reads the list once, for `count` visitors. Each activity is passed to them in their order. */
void activities_visit(
	struct activities *activities, const struct activity_visitor *visitors, size_t count);

/* Stores the counted intervals, by time, in `*windows` and returns their number. 0: everything
 * counts. */
size_t activities_counted_intervals(
	const struct activities *activities, const struct counted_interval **windows);

/* Whether activities at `at_ns` count. Needed for CUPTI's own records, whose `counts` is always
 * set. */
bool activities_count_at(const struct activities *activities, uint64_t at_ns);

/* The name that the program gave to a stream by NVTX, by CUPTI's stream id. Empty: none. */
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

/* Returns true for a copy, or a call of one, from memory of a GPU to memory of a GPU. Its call does
 * not wait for it: it is like a launch. */
static inline bool activity_copies_on_device(const struct activity *activity)
{
	return (activity->kind == ACTIVITY_COPY || activity->kind == ACTIVITY_COPY_CALL) &&
	       ((activity->copy_kind >= TRACE_COPY_ATOA &&
			activity->copy_kind <= TRACE_COPY_DTOD) ||
		       activity->copy_kind == TRACE_COPY_PTOP);
}

/* Returns the kind of the host's memory that a copy reads or writes. TRACE_MEMORY_UNKNOWN: it is
 * not known, or no memory of the host. */
static inline uint8_t activity_host_memory(const struct activity *copy)
{
	return copy->copy_kind == TRACE_COPY_HTOD   ? copy->source_kind
	       : copy->copy_kind == TRACE_COPY_DTOH ? copy->target_kind
						    : TRACE_MEMORY_UNKNOWN;
}

/* Returns true if `work` is a kernel that counts and whose blocks fill its device (occupancy.h). */
bool activity_fills_device(const struct activity *work, const struct process *process);

#endif
