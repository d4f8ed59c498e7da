/* SPDX-License-Identifier: MIT
 * fold_state.h: what the parts of the fold share while it runs: fold.c, fold_plain.c, fold_ranges.c and fold_instances.c (ranges),
 * fold_calls.c (what the CPU asked for), fold_gpu.c (what the GPU did), fold_spans.c (start/end ranges, marks, counters).
 * Nobody else includes it.
 */
#ifndef PPERF_REPORT_PROFILE_PROFILE_STATE_H
#define PPERF_REPORT_PROFILE_PROFILE_STATE_H

#include "report/profile/profile.h"
#include "report/profile/module_group.h"

#define NOT_INSERTED UINT32_MAX

/* A range that is open. */
struct frame {
	uint32_t node, place;
	uint64_t begin_ns; /* of the part that counts */
	uint64_t child_ns; /* in ranges inside it that have closed */
};

/* More of it, from the first record on that needs it (fold_state.rich): a trace of ranges alone does without. */
struct frame_more {
	struct instance *instance; /* NULL: not of interest so far */
	char *label;               /* the text if the dictionary has none; owned */
	uint32_t label_bytes;
	uint32_t section; /* fold_state.section when it began */
	bool outside;     /* it is a section, or a step, or lies around them */
	uint64_t idle_ns;
	struct instance_flows flows;
	int64_t reserved, peak; /* when it began; the highest while it was the innermost, or those inside it were */
	int64_t allocated, allocated_peak;
	long double level;      /* of the metric asked for, when it began */
};

struct thread {
	const struct trace_stream *of;
	struct frame *frames;
	struct frame_more *more; /* NULL unless rich */
	size_t room, more_room;
	uint32_t depth, stream, index; /* index: in fold_state.threads */
	uint64_t self_ns;  /* of the ranges that have closed and count */
	uint64_t pause_begin_ns, pause_ns; /* when its slot was last sealed */
	bool had_range;    /* one of them */
	uint32_t inserted; /* which of the frames is a section, and no range of the trace; NOT_INSERTED: none */
	uint32_t gathered; /* fold_state.gather: from this one on frames have no more */
};

struct open_span;
struct sections;
struct counted;
struct gaps;
struct gather;

struct fold_state {
	const uint32_t *nodes;   /* by place: names_nodes_below; of the part of the tree that is being filled */
	const uint32_t *members; /* by place: names_members_below */
	struct thread **threads; /* those with a stream that goes on */
	size_t thread_count, thread_room;
	struct sections *sections; /* NULL: no steps were found */
	struct counted *counted;   /* NULL: nothing was only counted */
	struct thread *section_thread; /* of the steps; NULL: it is not there (yet), or there are none */
	uint32_t section_own;      /* where in its row the range is that is the step itself; NOT_INSERTED: there is none */
	uint64_t edge_ns;          /* when the present one is over */
	uint32_t section;          /* the number of the present one, 0 where there are none */
	bool rich;
	bool adds_flows; /* somebody asks for what adds up in instances: the metric, or who keeps children */
	bool rich_for_target; /* and nobody else needs that */
	struct gather *gather; /* what is in the target, as far as it is small; NULL: each has an instance */
	uint64_t target_ns;   /* when options.target begins, as long as nothing is rich before; UINT64_MAX: there is none */
	bool away;     /* CUPTI is another client's */
	bool counting; /* false: outside of the steps asked for */
	bool warming; /* in a window, before its first step that counts */
	bool step_kinds;                  /* the trace has ranges of kind step; else labels tell */
	const struct thread *step_thread; /* in a step now; at step_depth */
	uint32_t step_depth;
	uint64_t step, now_ns, window_begin_ns, window_ns, window_busy, window_idle, window_unknown;
	int64_t reserved; /* the level now */
	bool has_reserved;
	int64_t allocated; /* the tensors' */
	long double counter; /* METRIC_USER: its value now */
	uint32_t *counters;  /* and its ids */
	size_t counter_count, counter_room;
	struct instances instances;
	struct join *join;
	struct gaps *gaps; /* NULL: no work was timed, or nobody asks who ended them */
	struct graph_nodes *graph_nodes;
	struct graph_seat *graph_seats; /* where nodes of graphs stand (fold_graph.c); NULL: no graph was met yet */
	struct open_span **spans; /* hash table by id */
	size_t span_slots, span_count;
	bool restart;     /* GPU work was met, and the timeline is not there yet */
	uint32_t *api_of; /* by text: the index in fold.apis + 1 */
	size_t api_of_room, api_room;
};

/* The next event, as reader_next; plain ranges before it are done, and added to `events`. */
int fold_next(struct fold *fold, struct trace_event *event, uint64_t *events);

/* Ranges. close_at: accounts for the range at that depth up to end_ns; it stays on the stack. rebase: it counts from
 * now on only. */
void fold_open(struct fold *fold, const struct trace_event *event);
void fold_close(struct fold *fold, const struct trace_event *event, uint64_t end_ns);
void fold_drop(struct fold *fold, const struct trace_event *event);
void fold_left_open(struct fold *fold, const struct trace_event *event);
void fold_close_at(struct fold *fold, struct thread *thread, uint32_t depth, uint64_t end_ns);
/* The same, and it leaves the stack, from between others if need be. forget: it leaves without a trace, the innermost. */
void fold_close_frame(struct fold *fold, struct thread *thread, uint32_t depth, uint64_t end_ns);
void fold_forget(struct fold *fold, struct thread *thread, uint32_t depth);
void fold_rebase(struct fold *fold, struct frame *frame, struct frame_more *more);
void fold_keep_wanted(struct fold *fold, struct thread *thread, uint32_t depth);
bool fold_instance_is_final(void *context, struct instance *instance);
/* fold_options.target: one that has a parent is final, with its value. Returns whether it was taken over. */
bool fold_critical_take(struct fold *fold, struct instance *instance);
/* What is shown by itself has at least so much of the metric. */
long double fold_critical_least(const struct fold *fold);

/* Steps: what to do when a range opens that is one, and when one closes. */
bool fold_is_step(const struct fold *fold, const struct trace_event *event);
void fold_step_begins(struct fold *fold, const struct trace_event *event, struct thread *thread);
void fold_step_ends(struct fold *fold, const struct thread *thread, uint32_t depth);
void fold_window_ends(struct fold *fold);
/* A WINDOW record: things count while PPERF_SCHEDULE had them recorded. */
void fold_window(struct fold *fold, const struct trace_event *event);
/* Its warm-up is over. */
void fold_window_warm(struct fold *fold);
/* Whether figures are of parts of the trace only. */
bool fold_is_partial(const struct fold *fold);
/* A step of that number comes; the last one that came is over. */
void fold_step_comes(struct fold *fold, uint64_t number);
void fold_step_over(struct fold *fold);

/* The node at which a record happened. */
uint32_t fold_place(struct fold *fold, const struct trace_event *event);
/* Whose instance it is part of, a thread and where in its row: the innermost range there, or, if that began before the
 * present section or there is none, the section. NULL: nobody's. */
struct thread *fold_owner(const struct fold *fold, struct thread *thread, uint32_t *depth);
/* It counts for that one, and for the section. */
void fold_put_flows(struct fold *fold, struct thread *thread, const struct instance_flows *flows);
/* Where fold_state.rich: the innermost range of a thread opened, and is told of what is in it from now on; one that counts
 * is over. own_label: the dictionary has no text of it. */
void fold_open_instance(struct fold *fold, const struct trace_event *event, struct thread *thread, bool own_label);
void fold_close_instance(struct fold *fold, struct thread *thread, uint32_t depth, uint64_t end_ns);
/* fold_options.target: whether that is it; it is known: what is open has nothing more to tell. */
bool fold_is_target(const struct fold *fold, const struct thread *thread, const struct frame *frame);
void fold_impoverish(struct fold_state *state);
/* The instance of a thread's range at that depth, and those around it. */
struct instance *fold_instance(struct fold *fold, struct thread *thread, uint32_t depth);
/* A thread's first event; the caller passes the thread to sections_meet. */
struct thread *fold_thread_begins(struct fold *fold, struct trace_stream *stream);
/* step_sections.c: a thread begins. */
void sections_meet(struct fold *fold, struct thread *thread);
/* Its last one. */
void fold_thread_ends(struct fold *fold, struct trace_stream *stream);
/* Adds the thread's time in ranges to fold->threads, if it had any. */
void fold_keep_time(struct fold *fold, const struct thread *thread);
/* For good; for as long as the target is open. */
void fold_enrich(struct fold *fold);
void fold_enrich_target(struct fold *fold);
/* reserved has changed: the peaks of what is open. */
void fold_level_changed(struct fold *fold);
/* The level asked for, now. */
long double fold_level(const struct fold *fold);
/* Below the tree's node of a graph, the node of what was captured as `gpu`, a record of that graph; the graph itself if
 * nothing lies between them. method: set. */
uint32_t fold_graph_place(struct fold *fold, uint32_t graph, const struct trace_gpu *gpu, enum method *method);
/* The node of a graph that was launched in no range, if it is known in which ranges it was captured; else 0. */
uint32_t fold_graph_replays(struct fold *fold, uint32_t unattributed, uint32_t exec_id);
/* The node of what belongs to no range, below `root`. */
uint32_t fold_unattributed(struct fold *fold, uint32_t root);

/* An instance of `node`, if it is the worst so far. own: its text if the dictionary has none. */
struct fold_candidate {
	long double value, before, after;
	uint64_t begin_ns, end_ns;
	uint32_t place, stream, own_bytes;
	const char *own;
};
void fold_offer_worst(struct fold *fold, uint32_t node, const struct fold_candidate *candidate);

/* Records. */
void fold_call(struct fold *fold, const struct trace_event *event);
void fold_tensor(struct fold *fold, const struct trace_event *event);
void fold_tensor_oom(struct fold *fold, const struct trace_event *event);
void fold_tensors_end(struct fold *fold);
void fold_gpu(struct fold *fold, const struct trace_event *event);
void fold_gpu_end(struct fold *fold);
void fold_gpu_gone(struct fold *fold, bool all);
/* Work of a GPU, with its leaf in the tree (0: it does not count): the idle time before it is charged to that. end: no
 * more comes. */
void fold_gaps_add(struct fold *fold, uint32_t leaf, const struct trace_gpu *gpu);
void fold_gaps_end(struct fold *fold);
void fold_gaps_free(struct gaps *gaps);
void fold_gpu_try_held(struct fold *fold, uint64_t correlation);
void fold_span_start(struct fold *fold, const struct trace_event *event);
void fold_span_end(struct fold *fold, const struct trace_event *event);
void fold_spans_close(struct fold *fold);
void fold_mark(struct fold *fold, const struct trace_event *event);
void fold_metric(struct fold *fold, const struct trace_event *event);
void fold_counter_find(struct fold *fold);

static inline struct thread *fold_thread(struct fold *fold, const struct trace_event *event)
{
	struct thread *thread = event->stream->user;

	if (__builtin_expect(thread != NULL, 1))
		return thread;
	thread = fold_thread_begins(fold, event->stream);
	sections_meet(fold, thread);
	return thread;
}

/* An observer wants what instances have of the metric. */
static inline bool fold_tells_values(const struct fold_options *options)
{
	return options->observer && (options->observer->instance || options->observer->ended);
}

static inline void fold_become_rich(struct fold *fold)
{
	if (__builtin_expect(!fold->state->rich || fold->state->rich_for_target, 0))
		fold_enrich(fold);
}

static inline void fold_add_flows(struct fold *fold, struct thread *thread, const struct instance_flows *flows)
{
	if (fold->state->adds_flows)
		fold_put_flows(fold, thread, flows);
}

/* Launches and records that wait for each other: what has waited for too long, where they are too many. */
static inline void fold_gpu_go_on(struct fold *fold)
{
	if (__builtin_expect(join_is_full(fold->state->join), 0))
		fold_gpu_gone(fold, false);
}

/* What opens and happens from now on stands below that node of the tree; what is open stays where it is. */
static inline void fold_go_below(struct fold *fold, uint32_t root)
{
	fold->state->nodes = names_nodes_below(fold->names, root);
	fold->state->members = names_members_below(fold->names, root);
}

/* Where in its thread's row of frames the range of an event is. */
static inline uint32_t fold_frame(const struct thread *thread, uint32_t depth)
{
	return depth + (depth >= thread->inserted);
}

/* A range that counts is over; child_ns is known. */
static inline void fold_tell_part(const struct fold *fold, const struct thread *thread, const struct frame *frame, uint64_t end_ns)
{
	const struct fold_observer *observer = fold->options.observer;

	if (observer && observer->part)
		observer->part(observer->context, &(struct fold_part){ .thread = thread->of,
							  .node = frame->node,
							  .place = frame->place,
							  .begin_ns = frame->begin_ns,
							  .total_ns = end_ns - frame->begin_ns,
							  .self_ns = end_ns - frame->begin_ns - frame->child_ns });
}

/* The same, as an instance whose value is not known. */
static inline void fold_tell_closed(const struct fold *fold, const struct thread *thread, const struct frame *frame, uint64_t end_ns)
{
	const struct fold_observer *observer = fold->options.observer;

	if (observer && observer->closed && (!observer->closed_of || (frame->node < observer->closed_count && observer->closed_of[frame->node])))
		observer->closed(observer->context, &(struct fold_seen_instance){ .node = frame->node,
							    .stream = thread->stream,
							    .place = frame->place,
							    .begin_ns = frame->begin_ns,
							    .end_ns = end_ns });
}

/* The same, with its value, where that is its time. */
void fold_tell_timed(const struct fold *fold, const struct thread *thread, const struct frame *frame, uint64_t end_ns);

static inline void fold_observe(const struct fold *fold, uint32_t leaf, uint64_t at_ns, uint64_t duration_ns)
{
	const struct fold_observer *observer = fold->options.observer;

	if (__builtin_expect(observer != NULL && observer->leaf, 0))
		observer->leaf(observer->context, leaf,
			node_kind_class(fold->tree->nodes[leaf].kind) == NODE_WORK, at_ns, duration_ns);
}

/* A folded module counts for its member, too. */
static inline void fold_count_member(struct fold *fold, const struct frame *frame, uint64_t duration)
{
	const uint32_t number = fold->state->members[frame->place];
	struct member *member;

	if (!number)
		return;
	member = &names_members(fold->names)->all[number];
	if (member->node == frame->node) {
		member->calls++;
		member->cpu_ns += duration;
		if (duration > member->longest_ns)
			member->longest_ns = duration;
	}
}

/* The figures that every range has. */
static inline void fold_count_range(struct fold *fold, struct thread *thread, const struct frame *frame, uint64_t end_ns)
{
	struct node *node = &fold->tree->nodes[frame->node];
	const uint64_t duration = end_ns - frame->begin_ns;

	node->calls++;
	node->total_ns += duration;
	node->self_ns += duration - frame->child_ns;
	thread->self_ns += duration - frame->child_ns;
	thread->had_range = true;
	if (duration < node->min_ns)
		node->min_ns = duration;
	if (duration >= node->max_ns) {
		node->max_ns = duration;
		node->longest_begin_ns = frame->begin_ns;
		node->longest_place = frame->place;
		node->longest_stream = thread->stream;
	}
	if (!fold->options.no_spread)
		samples_add(&node->samples, duration, &fold->tree->budget);
}

#endif
