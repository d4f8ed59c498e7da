/* SPDX-License-Identifier: MIT
 * path.h: the longest chain of a run: what had to be over before what could begin, from the end back to the start.
 *
 *	struct path *path = path_read(process);
 *
 *	for (size_t i = 0; i < path->segments.count; i++)
 *		... path_segment(path, i) ...
 *	path_free(path);
 *
 * A graph of moments: the begin and the end of each call and of each work. A moment comes after others, for these reasons:
 *
 *	begin of a call		after the end of the call before it on its thread, or the begin of the one around it; and after
 *				the last call of another thread, if that made 16 in a row just before: threads take turns
 *	end of a call		after its begin; of one that waits: after the end of the work that it waited for; of a copy that
 *				ended in its own call: after that; of cudaFree: after the last work that ended in it
 *	begin of work		after the begin of the call that asked for it, the end of the work that ended last before it on
 *				its stream (of a graph: or in the graph: its inner order is not known), and the end of what the
 *				events stand for that its stream was told to wait for
 *	end of work		after its begin
 *
 * A launch takes as long as 5 % of all launches do, at least: from then on the work is ready as far as its call goes. The
 * latest of these holds it up (of equal ones the GPU's own order, then events, then the launch); what is left up to
 * the moment itself takes its time whatever came before. Any other could have come later by the time in between: that is
 * what slack is made of. The chain goes from the last moment of all to the one that held it up, and so on; its segments
 * are disjoint and together the whole time from the first moment to the last.
 *
 * The default stream of a context waits for its other streams and they for it, but for those that were made with
 * cudaStreamNonBlocking, and which these are is in no trace. So it is seen by what happened: work that for no reason above
 * begins within HANDOVER_MOST_NS of the end of another stream's, which was asked for before, one of the two streams being the
 * default one, waited for that. What could have held it up as well, and did not, is not known to have: its slack is too large.
 *
 * What is not known: that one thread waits for another, but for turns. A wait for nobody knows which stream or event is taken to be for the last work that ended during it. Work
 * without times is not in the graph.
 *
 * Memory: the graph lies in mapped temporary files (spool.h), about 200 bytes an event; beyond it only what was asked for
 * and is not done is held, threads, streams and events. Threads: one.
 */
#ifndef PPERF_REPORT_ANALYSIS_CRITICAL_PATH_CRITICAL_PATH_WALK_H
#define PPERF_REPORT_ANALYSIS_CRITICAL_PATH_CRITICAL_PATH_WALK_H

#include "report/analysis/activities.h"
#include "report/analysis/stream_table.h"
#include "report/base/mapped_array.h"

#define PATH_NONE UINT32_MAX

/* A GPU goes from one work to the next within microseconds. What took longer waited for something that is not in the
 * graph. */
#define HANDOVER_MAX_NS 20000u

/* What time on the chain is: name, help. */
#define PATH_KINDS(X)                                                                                          \
	X(KERNEL, "kernels")                                                                                   \
	X(COMMUNICATION, "communication")                                                                      \
	X(COPY, "copies")                                                                                      \
	X(MEMSET, "memsets")                                                                                   \
	X(HOST, "host")     /* between calls */                                                                \
	X(CALL, "calls")    /* in calls that wait for nothing */                                               \
	X(LAUNCH, "launch") /* from the begin of the call to the begin of the work */                          \
	X(HANDOVER,                                                                                            \
		"gap between kernels") /* from the end of the work before it, or of an event's: up to 20 us */ \
	X(SYNC, "synchronisation") /* in calls that wait: after the work; all of it if none is known */        \
	X(UNKNOWN, "unknown")

enum path_kind {
#define X(kind, name) PATH_##kind,
	PATH_KINDS(X)
#undef X
		PATH_KIND_COUNT
};

struct path_node {
	uint64_t begin_ns,
		end_ns; /* as in the graph: work that seems to end just after a wait for it has ended then */
	uint64_t call_begin_ns; /* work: of its call; 0: not known. Calls: correlation */
	uint64_t stream, event; /* calls: handles */
	uint32_t
		call; /* work: the node of its call; calls: that of the call around it. PATH_NONE */
	uint32_t
		stream_index; /* work: number in lanes; calls: what CUPTI said of the stream, or PATH_NONE */
	uint32_t
		after; /* calls: the copy that ended in them; of a graph: the last of its work that ended; PATH_NONE */
	uint32_t owner, name, thread, device;
	uint8_t kind, sync;               /* as the activity's */
	bool counts, communicates, works; /* works: it did not fail, and was not captured */
	bool blocks; /* a call that gives memory back, after all work of the device */
	bool over;
};

/* A moment: of node m / 2, its end if m is odd. */
struct path_edge {
	uint32_t from, to;
};

struct path_segment {
	uint64_t begin_ns, end_ns;
	uint32_t node; /* of whom; HOST: it comes before this call, on its thread */
	uint8_t kind;  /* enum path_kind */
};

/* How much of what the graph is made of is known. */
struct path_counts {
	uint64_t works, untimed, without_call;
	uint64_t waits, waits_unknown;               /* of the host; whose end nothing explains */
	uint64_t stream_waits, stream_waits_unknown; /* of a stream for an event */
	uint64_t default_waits;                      /* of or for a default stream, inferred */
};

struct critical_path_graph {
	struct process *process;
	struct activities *activities;
	struct mapped_array nodes; /* struct path_node, by begin */
	struct mapped_array
		edges; /* struct path_edge: those to one moment together, by the time of it */
	struct mapped_array
		slacks; /* uint64_t, by moment: by how much it could come later and the end would be the same */
	struct mapped_array segments; /* struct path_segment, the last one first */
	struct stream_table streams, threads, handles;
	uint32_t *stream_of_handle; /* by number in handles; PATH_NONE: not known, or of several */
	uint8_t *handle_known;
	size_t handle_room, handle_known_room;
	struct path_counts counts;
	uint64_t begin_ns, end_ns;
	struct percentiles
		launches; /* from the begins of calls to those of their work, without graphs */
	struct percentiles_budget budget;
	uint64_t launch_ns; /* what a launch takes at least: 5 % of them were not longer */
	uint32_t last;      /* moment; PATH_NONE: there is nothing */
};

struct critical_path_graph *critical_path_graph_read(struct process *process);
void critical_path_graph_free(struct critical_path_graph *path);

const char *path_kind_name(enum path_kind kind);

/* If all work of which `chosen` is true took no time, and calls of which it is true returned as soon as what they wait for
 * was over: by how much, at most, the last moment of all would come sooner. */
uint64_t critical_path_graph_gain(const struct critical_path_graph *path,
	bool (*selected)(const struct path_node *node, void *context), void *context);

static inline struct path_node *path_node(const struct critical_path_graph *path, uint32_t node)
{
	return (struct path_node *)path->nodes.entries + node;
}

static inline uint64_t path_moment(const struct critical_path_graph *path, uint32_t moment)
{
	const struct path_node *node = path_node(path, moment / 2);

	return moment & 1 ? node->end_ns : node->begin_ns;
}

static inline bool path_is_work(const struct path_node *node)
{
	return node->kind >= ACTIVITY_KERNEL;
}

/* The slack of a call or work: how much longer it could take. */
static inline uint64_t path_slack(const struct critical_path_graph *path, uint32_t node)
{
	return ((const uint64_t *)path->slacks.entries)[2 * (size_t)node + 1];
}

/* In the order of time. */
static inline const struct path_segment *path_segment(
	const struct critical_path_graph *path, size_t number)
{
	return (const struct path_segment *)path->segments.entries +
	       (path->segments.count - 1 - number);
}

/* For path.c: the nodes, then the edges. */
void critical_path_graph_read_nodes(struct critical_path_graph *path);
void critical_path_graph_read_edges(struct critical_path_graph *path);

#endif
