/* SPDX-License-Identifier: MIT
 * Computes the critical path of a run: the longest chain of dependencies, from the end to the
 * start.
 *
 *	struct critical_path_graph *path = critical_path_graph_read(process);
 *
 *	if (path->last != PATH_NONE)
 *		critical_path_graph_walk(path, &visitor);
 *	critical_path_graph_free(path);
 *
 * The points of the graph are the begin and the end of each call and of each GPU operation.
 * Edges say what a point comes after:
 *
 *   begin of a call  The end of the call before it on its thread, or the begin of the call around
 *                    it. And the last call of another thread, if it is this one's turn after
 *                    that: between the thread that calls backward and autograd's threads after
 *                    any call of the other, between others if that made 16 calls meanwhile.
 *   end of a call    Its begin. If it waits: the end of the work that it waited for. For a copy
 *                    that ended in its own call: that end. For a copy that began late in its own
 *                    call, not from or to pinned memory: that begin, for which the call waited.
 *                    For cudaFree: the last work that ended in it.
 *   begin of work    The begin of the call that launched it. The end of the work that ended last
 *                    before it on its CUDA stream (of a graph: or in the graph, whose inner order
 *                    is not known). The work of the events that its CUDA stream had to wait for.
 *   end of work      Its begin.
 *
 * A launch counts as taking at least the 5th percentile of those launches whose stream was empty
 * when they were called: the time of the others is that of the work before theirs. Without such
 * launches, it counts as taking no time. From then on the work is ready as far as its call is
 * concerned. The latest of a point's predecessors holds it up. Of equal ones this is the GPU's own
 * order, then events, then the launch. The time from the latest predecessor to the point itself is
 * spent whatever came before. Each other predecessor could have come later by its distance to the
 * latest one. This is what slack is computed from. The path leads from the last point of all to the
 * one that held it up, and so on. Its segments are disjoint, and cover the time from the first
 * point to the last.
 *
 * The default stream of a context waits for its other streams, and they wait for it. Streams
 * made with cudaStreamNonBlocking do not, and a trace does not say which these are. So this is
 * inferred for work that begins later than its other edges explain. It waited for the work of
 * another stream if
 *
 *   - one of the two streams is the default one, or the work was launched behind a wait of its
 *     stream for an event (stream_waits.h), which the trace may not name,
 *   - the other stream's work was launched earlier, and
 *   - it ended at most START_MAX_NS before.
 *
 * Work that could have held it up as well, but did not, gets no edge, so its slack is too large.
 *
 * Work that waits may have no room on the GPU: if no work of another stream ended at most
 * START_MAX_NS before it begins, and a kernel of another stream with enough blocks to fill the
 * device ran all through the wait and still runs. It then starts as the last blocks of that kernel
 * leave room. The wait is the time of that kernel, without an edge, as the kernel ends later.
 *
 * Not known is whether one thread waits for another, except for turns. A wait for an unknown
 * stream or event counts as a wait for the last work that ended during it. Work without times is
 * not in the graph.
 *
 * Memory: the graph is packed in temporary files (packed_array.h, edge_groups.h), about 12 bytes
 * per call or GPU operation. Only requested work that has not ended, threads, streams and events
 * are in memory, and a bit per node. Not thread-safe.
 */
#ifndef PPERF_REPORT_ANALYSIS_CRITICAL_PATH_CRITICAL_PATH_WALK_H
#define PPERF_REPORT_ANALYSIS_CRITICAL_PATH_CRITICAL_PATH_WALK_H

#include "report/analysis/activities.h"
#include "report/analysis/critical_path/edge_groups.h"
#include "report/analysis/gap_cause.h"
#include "report/analysis/stream_table.h"
#include "report/base/packed_array.h"

#define PATH_NONE UINT32_MAX
/* Nodes between two entries of the index by time. */
#define PATH_INDEX_NODES 256u
/* Gains that are computed in one pass over the graph. */
#define PATH_GAINS_MAX 64u

/* What the time of a segment is: kind, text.
 *
 *	HOST      between calls
 *	CALL      in a call that waits for nothing
 *	COPY_CALL the same, of a call that copies. No segment has this kind: the view splits CALL.
 *	          While the copy of the call runs, the time is that of the copy, even if the copy
 *	          ends after the call: with pageable memory the call feeds the copy.
 *	LAUNCH    from the begin of the call to the begin of the GPU work, or to the return of the
 *	          call if the work began more than START_MAX_NS after it. Time in a call that copies
 *	          is CALL: with pageable memory the call copies before the GPU does.
 *	HANDOVER  after the end of the work or event before it, at most START_MAX_NS
 *	EVENT     the rest of either, of work behind cudaStreamWaitEvent if the record of the event
 *	          is in the trace
 *	UNEXPLAINED  the rest of either: the work waited for something that is not in the graph
 *	          Of EVENT and UNEXPLAINED, what is behind cudaStreamWaitEvent is the time of a
 *	          kernel that left no room for the work, if there is one.
 *	SYNC      in a waiting call, after the end of the work; all of it if no work is known
 *	UNKNOWN   the launch, or nodes of a CUDA graph, are not in the trace
 *
 * The same rules give idle time its causes (gap_cause.h).
 */
#define PATH_KINDS(X)                      \
	X(KERNEL, "kernels")               \
	X(COMMUNICATION, "communication")  \
	X(COPY, "copies")                  \
	X(MEMSET, "memsets")               \
	X(HOST, "host")                    \
	X(CALL, "calls")                   \
	X(COPY_CALL, "copy calls")         \
	X(LAUNCH, "launch latency")        \
	X(HANDOVER, "gap between kernels") \
	X(EVENT, "event wait")             \
	X(UNEXPLAINED, "unexplained wait") \
	X(SYNC, "synchronisation")         \
	X(UNKNOWN, "unknown")

enum path_kind {
#define X(kind, name) PATH_##kind,
	PATH_KINDS(X)
#undef X
		PATH_KIND_COUNT
};

struct path_node {
	/* As in the graph: if work seems to end just after a wait for it, its end is that of the
	 * wait. */
	uint64_t begin_ns, end_ns;
	/* work whose call has no node: begin of the call, 0: not known (path_launch_ns); calls:
	 * correlation id */
	uint64_t call_begin_ns;
	uint64_t stream, event; /* calls: handles */
	/* Work: the node of its call. Calls: the node of the call around it. PATH_NONE: none. */
	uint32_t call;
	/* Index in `streams`. Calls: found by CUPTI's stream id; PATH_NONE: not known. */
	uint32_t stream_index;
	/* Calls: the copy that began or ended in it; of a graph: the last of its work that ended.
	 * Work: the kernel that left no room for it while it waited. PATH_NONE: none. */
	uint32_t after;
	uint32_t owner, name, thread, device;
	uint8_t kind, sync;                     /* as in struct activity */
	bool counts, communicates, took_effect; /* works: it succeeded and was not captured */
	bool copies_on_device; /* copies and their calls: see activity_copies_on_device */
	bool is_pinned;        /* copies: from or to pinned memory of the host */
	bool blocks;           /* a call that frees memory, after all work of the device */
	/* works: launched behind a wait of its stream for an event; of a graph whose nodes may be
	 * missing in the trace */
	bool after_event, nodes_unknown;
	bool event_known; /* after_event: the call that recorded the event is in the trace */
	bool fills;       /* kernels: has as many blocks as fit on the device at once, or more */
};

struct path_segment {
	uint64_t begin_ns, end_ns;
	uint32_t node; /* owner of the time; HOST: before this call, on its thread */
	/* HOST: the call before, which may be of another thread. That thread may have been at work
	 * for a part of the time. */
	uint32_t before;
	uint8_t kind; /* enum path_kind */
};

/* The calls of a thread in ranges: outside of backward passes, and in them. */
struct role_calls {
	uint64_t count[2];
};

/* How much is known of what the graph is made of. */
struct path_counts {
	uint64_t operations, untimed;
	uint64_t waits, waits_unknown;               /* of the host; without a known reason */
	uint64_t stream_waits, stream_waits_unknown; /* of a CUDA stream for an event */
	uint64_t default_waits;                      /* of or for a default stream, inferred */
};

struct critical_path_graph {
	struct process *process;
	struct activities *activities;
	struct packed_array nodes; /* struct path_node, by begin */
	/* By time of the point that they lead to. Point p is of node p / 2: its end if p is odd,
	 * else its begin. */
	struct edge_groups *edges;
	uint64_t *index; /* begin of each node whose number is a multiple of PATH_INDEX_NODES */
	size_t index_count, index_room;
	uint32_t found;                /* by time: the node found last, while the nodes are made */
	struct role_calls *role_calls; /* by thread */
	size_t role_room;
	bool has_cupti_streams; /* some calls have CUPTI's stream ids, until they are converted */
	struct stream_table streams, threads, handles;
	uint32_t *stream_of_handle; /* by number in handles; PATH_NONE: unknown, or several */
	uint8_t *handle_known;
	size_t handle_room, handle_known_room;
	struct stream_waits *waits; /* while the nodes are made */
	struct path_counts counts;
	uint64_t begin_ns, end_ns;
	/* From the first GPU operation to the last; without any, UINT64_MAX to 0. */
	uint64_t work_begin_ns, work_end_ns;
	/* From the begin of calls to the begin of their work, without graphs and work that waited.
	 */
	struct percentiles launches;
	struct percentiles_budget budget;
	uint64_t *stream_ends; /* by stream index: when its work so far ended */
	size_t stream_ends_room;
	uint64_t launch_ns; /* least duration of a launch: the 5th percentile */
	uint32_t last;      /* point; PATH_NONE: there is nothing */
};

/* Receives what is found on a walk from the end to the start. */
struct critical_path_visitor {
	void *context;
	/* The segments of the path, the last one first. */
	void (*segment)(void *context, const struct path_segment *segment);
};

struct critical_path_graph *critical_path_graph_read(struct process *process);
/* Makes it of `activities`, which it reads for the last time. They are freed with the graph. */
struct critical_path_graph *critical_path_graph_read_from(
	struct process *process, struct activities *activities);
/* Make it of activities that other analyses read, too: the visitor makes the nodes, then
 * critical_path_graph_finish the rest. */
struct critical_path_graph *critical_path_graph_new(struct process *process);
struct activity_visitor critical_path_graph_visitor(struct critical_path_graph *path);
void critical_path_graph_finish(struct critical_path_graph *path);
void critical_path_graph_free(struct critical_path_graph *path);
/* Frees the nodes and edges: the graph is then good for its counts, times and activities only. */
void critical_path_graph_drop(struct critical_path_graph *path);

/* Walks the path. May be called several times. */
void critical_path_graph_walk(
	struct critical_path_graph *path, const struct critical_path_visitor *visitor);

const char *path_kind_name(enum path_kind kind);
/* Returns what the time of GPU work itself is: PATH_KERNEL to PATH_MEMSET. */
enum path_kind path_kind_of_work(const struct path_node *work);

/* Returns by how much, at most, the last point would come earlier if what `selected` accepts took
 * only `left` (0 to 1) of its time. With 0, accepted work takes no time, and accepted calls return
 * as soon as what they wait for is over. */
uint64_t critical_path_graph_gain(struct critical_path_graph *path, double left,
	bool (*selected)(const struct path_node *node, void *context), void *context);

/* What is left out for each of several gains. */
struct path_selection {
	unsigned count; /* at most PATH_GAINS_MAX */
	/* Returns a mask: bit i if selection i accepts the node. */
	uint64_t (*mask)(const struct path_node *node, void *context);
	/* Receives the slack of each call or work: how much longer it could take. The last node
	 * first. NULL: not needed. */
	void (*slack)(void *context, const struct path_node *node, uint64_t slack_ns);
	void *context;
};

/* As critical_path_graph_gain, for several selections in one pass, which finds the slacks, too:
 * sets `gains[i]`. */
void critical_path_graph_gains(struct critical_path_graph *path, double left,
	const struct path_selection *selection, uint64_t *gains);

/* For critical_path_graph_gain: accepts kernels that compute. */
bool path_node_computes(const struct path_node *node, void *context);

/* To be called by loops over nodes. Pointers to nodes are then invalid. */
static inline void critical_path_graph_trim(struct critical_path_graph *path)
{
	packed_array_trim(&path->nodes);
}

/* The node, for reading. Valid until critical_path_graph_trim. */
static inline const struct path_node *path_node(
	const struct critical_path_graph *path, uint32_t node)
{
	return packed_array_at((struct packed_array *)(uintptr_t)&path->nodes, node);
}

static inline struct path_node *path_node_edit(struct critical_path_graph *path, uint32_t node)
{
	return packed_array_edit(&path->nodes, node);
}

static inline uint64_t path_point(const struct critical_path_graph *path, uint32_t point)
{
	const struct path_node *node = path_node(path, point / 2);

	return point & 1 ? node->end_ns : node->begin_ns;
}

/* Returns the begin of the call that launched `work`. 0: not known. */
static inline uint64_t path_launch_ns(
	const struct critical_path_graph *path, const struct path_node *work)
{
	return work->call != PATH_NONE ? path_node(path, work->call)->begin_ns
				       : work->call_begin_ns;
}

static inline bool path_is_work(const struct path_node *node)
{
	return node->kind >= ACTIVITY_KERNEL;
}

/* Returns how long after point `from` its dependency lets point `to` be: for the begin of work
 * after the begin of the call that launched it, what a launch takes. */
static inline uint64_t path_delay(
	const struct critical_path_graph *path, uint32_t from, uint32_t to)
{
	uint64_t between_ns;

	if ((from | to) & 1 || !path_is_work(path_node(path, to / 2)))
		return 0;
	between_ns = path_point(path, to) - path_point(path, from);
	return path->launch_ns < between_ns ? path->launch_ns : between_ns;
}

/* Returns the earliest time of point `to` that its dependency on point `from` allows. */
static inline uint64_t path_ready_time(
	const struct critical_path_graph *path, uint32_t from, uint32_t to)
{
	return path_point(path, from) + path_delay(path, from, to);
}

/* The id of the thread of a call. */
static inline uint32_t critical_path_graph_tid(
	const struct critical_path_graph *path, uint32_t node)
{
	return (uint32_t)path->threads.entries[path_node(path, node)->thread].stream;
}

/* These are used in this folder only.
 *
 * Returns the part of an interval that is the time of the work node->after: of an interval in a
 * call the time of its copy, of a wait that of the kernel that left no room for the work. Empty:
 * none. */
struct counted_interval path_part_of_other(const struct critical_path_graph *path,
	const struct path_node *node, uint64_t from_ns, uint64_t to_ns);
/* Returns when work that came after the point `from` began to wait: from then on the GPU could have
 * started it. */
uint64_t path_wait_begin(
	const struct critical_path_graph *path, uint32_t from, const struct path_node *work);
/* Used by critical_path_graph_finish only: makes the edges, after the nodes. */
void critical_path_graph_read_edges(struct critical_path_graph *path);

#endif
