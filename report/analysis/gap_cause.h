/* SPDX-License-Identifier: MIT
 *
 * Finds why a GPU was idle until an operation began. The gap is split at the call that launched
 * the operation: before it by what the calling thread did, after it by what the operation waited
 * for.
 *
 * Before the call, the first rule that applies to a moment:
 *
 * | cause           | rule                                                                   |
 * |-----------------|------------------------------------------------------------------------|
 * | unknown         | the launching call is not in the trace (this is for the whole gap)     |
 * | synchronisation | the thread was in a call that waits                                    |
 * | allocation      | it was in a call that allocates or frees memory                        |
 * | copy calls      | it was in a copy call, but not one within GPU memory                   |
 * | data loading    | meanwhile the thread fetched a batch (only idle_parts.h can tell)      |
 * | compilation     | meanwhile the thread compiled (only idle_parts.h can tell)             |
 * | first calls     | meanwhile the thread was in a first call that took much longer than    |
 * |                 | later ones (only idle_parts.h can tell). This is in place of           |
 * |                 | synchronisation, allocation, launch-bound and launch latency           |
 * | launch-bound    | the rest: the program was slower than the GPU                          |
 *
 * This part is split at the begin and at the return of each of these calls, of the last
 * GAP_CALLS_MAX of the thread. What follows the return is not the call's time.
 *
 * After the call began:
 *
 * | cause               | rule                                                               |
 * |---------------------|--------------------------------------------------------------------|
 * | copy calls          | until a copy call returns: it prepares memory of the host          |
 * | launch latency      | until any other launching call returns                             |
 * | gap between kernels | launched before the gap, and began at most START_MAX_NS into it    |
 * | event wait          | the rest, of work behind cudaStreamWaitEvent (stream_waits.h), if  |
 * |                     | the record of the event is in the trace                            |
 * | unexplained wait    | the same without that record: it may be another wait, see          |
 * |                     | enum gap_event                                                     |
 * | unknown             | the rest, next to a CUDA graph that may have nodes without records |
 * | unexplained wait    | the rest: the trace does not show what the operation waited for    |
 *
 * A rest of at most START_MAX_NS belongs to the launch (or the copy): a GPU needs some
 * microseconds to start work.
 */
#ifndef PPERF_REPORT_ANALYSIS_GAP_CAUSE_H
#define PPERF_REPORT_ANALYSIS_GAP_CAUSE_H

#include "report/analysis/activities.h"

/* A GPU starts ready work, or goes from one operation to the next, within microseconds. A longer
 * gap has another cause. */
#define START_MAX_NS 20000u
/* Blocking calls of a thread that are known at a time. A gap has a part for each, one before each,
 * and three after the last. */
#define GAP_CALLS_MAX 64u
#define GAP_PARTS_MAX (2 * GAP_CALLS_MAX + 3)

#define GAP_CAUSES(X)                      \
	X(LAUNCH, "launch-bound")          \
	X(DATA, "data loading")            \
	X(COMPILATION, "compilation")      \
	X(FIRST, "first calls")            \
	X(SYNC, "synchronisation")         \
	X(ALLOCATION, "allocation")        \
	X(COPY, "copy calls")              \
	X(LATENCY, "launch latency")       \
	X(KERNELS, "gap between kernels")  \
	X(EVENT, "event wait")             \
	X(UNEXPLAINED, "unexplained wait") \
	X(UNKNOWN, "unknown")

enum gap_cause {
#define X(cause, text) GAP_##cause,
	GAP_CAUSES(X)
#undef X
		GAP_CAUSE_COUNT
};

/* What work behind a wait for an event waits for. Where the event's record is not in the trace, it
 * may be the event, or earlier work of the stream that is not in the trace. The latter is more
 * likely if the GPU was idle when the wait was called: then all GPU work in the trace that the
 * event could be for was over. */
#define GAP_EVENTS(X)                        \
	X(NONE, "")                          \
	X(KNOWN, "event")                    \
	X(POSSIBLE, "event or earlier work") \
	X(UNLIKELY, "earlier work or event")

enum gap_event {
#define X(event, text) GAP_EVENT_##event,
	GAP_EVENTS(X)
#undef X
		GAP_EVENT_COUNT
};

struct gap {
	uint64_t begin_ns, end_ns; /* since the start of the trace */
	uint64_t last_correlation; /* of the GPU operation before the gap */
	bool after_unknown_nodes;  /* that operation is of a CUDA graph of unknown nodes */
};

/* A part of a gap, with one cause. */
struct gap_part {
	uint64_t begin_ns, end_ns;
	enum gap_cause cause;
	uint32_t blocked_by; /* text: the call, or the range, that caused it; 0: none */
	/* If that ran on the thread before the launch: the call-tree node of the range around the
	 * call, or of the range. 0: none. */
	uint32_t blocked_owner;
	/* text: the call that the launching thread was in for half or more of a wait; 0: none */
	uint32_t host_call;
	bool launched; /* the operation that ended the gap had been launched */
	uint8_t event; /* enum gap_event: what work behind cudaStreamWaitEvent waits for */
};

/* The last calls of each thread that can block it, and waits of streams: a bounded number. */
struct gap_calls;

struct gap_calls *gap_calls_new(const struct string_table *texts);
void gap_calls_free(struct gap_calls *calls);

/* Adds a call, or a record of CUPTI (ACTIVITY_SYNC). They must come in the order in which they
 * begin. */
void gap_calls_add(struct gap_calls *calls, const struct activity *call);
/* Splits `gap`. `work` is the operation that ended it. Stores the parts in the order of time, and
 * returns their number. They cover the gap. */
size_t gap_split(const struct gap_calls *calls, const struct activity *work, const struct gap *gap,
	struct gap_part parts[GAP_PARTS_MAX]);

/* Returns when work stops to be on its way to the GPU and begins to wait. `begin_ns`: its launch,
 * or the end of what it waited for last. `call_end_ns`: return of the launch. Never later than
 * `start_ns`, the start of the work. */
uint64_t gap_wait_begin(uint64_t begin_ns, uint64_t call_end_ns, uint64_t start_ns);

const char *gap_cause_name(enum gap_cause cause);
const char *gap_event_name(enum gap_event event);

#endif
