/* SPDX-License-Identifier: MIT
 * fold_state.h: what the parts of the fold share while it runs: fold.c, fold_plain.c, fold_ranges.c and fold_instances.c (ranges),
 * fold_calls.c (what the CPU asked for), fold_gpu.c (what the GPU did), fold_spans.c (start/end ranges, marks, counters).
 * Nobody else includes it.
 */
#ifndef PPERF_REPORT_PROFILE_PROFILE_STATE_H
#define PPERF_REPORT_PROFILE_PROFILE_STATE_H

#include "report/profile/profile.h"
#include "report/profile/module_group.h"

#define NO_SECTION_FRAME UINT32_MAX

/* A range that is open. */
struct open_range {
	uint32_t node, trace_node;
	uint64_t begin_ns; /* of the part that counts */
	uint64_t child_ns; /* in ranges inside it that have closed */
};

/* More of it, from the first record on that needs it (fold_state.rich): a trace of ranges alone does without. */
struct open_range_details {
	struct instance *instance; /* NULL: not of interest so far */
	char *label;               /* the text if the dictionary has none; owned */
	uint32_t label_bytes;
	uint32_t section; /* fold_state.section when it began */
	bool outside;     /* it is a section, or a step, or lies around them */
	uint64_t idle_ns;
	struct instance_flows flows;
	int64_t reserved,
		peak; /* when it began; the highest while it was the innermost, or those inside it were */
	int64_t allocated, allocated_peak;
	long double level; /* of the metric asked for, when it began */
};

struct profile_thread {
	const struct trace_stream *of;
	struct open_range *frames;
	struct open_range_details *more; /* NULL unless rich */
	size_t room, details_room;
	uint32_t depth, stream, index;     /* index: in fold_state.threads */
	uint64_t self_ns;                  /* of the ranges that have closed and count */
	uint64_t pause_begin_ns, pause_ns; /* when its slot was last sealed */
	bool has_ranges;                   /* one of them */
	uint32_t
		section_frame; /* which of the frames is a section, and no range of the trace; NOT_INSERTED: none */
	uint32_t small_from_depth; /* fold_state.gather: from this one on frames have no more */
};

struct open_async_range;
struct step_sections;
struct counted_ranges;
struct idle_gaps;
struct small_instances;

struct profile_state {
	const uint32_t *
		nodes; /* by place: names_nodes_below; of the part of the tree that is being filled */
	const uint32_t *modules;         /* by place: names_members_below */
	struct profile_thread **threads; /* those with a stream that goes on */
	size_t thread_count, thread_room;
	struct step_sections *sections;        /* NULL: no steps were found */
	struct counted_ranges *counted_ranges; /* NULL: nothing was only counted */
	struct profile_thread
		*sections_thread; /* of the steps; NULL: it is not there (yet), or there are none */
	uint32_t
		step_frame; /* where in its row the range is that is the step itself; NOT_INSERTED: there is none */
	uint64_t section_end_ns; /* when the present one is over */
	uint32_t section;        /* the number of the present one, 0 where there are none */
	bool tracks_instances;
	bool tracks_flows; /* somebody asks for what adds up in instances: the metric, or who keeps children */
	bool tracks_target_only; /* and nobody else needs that */
	struct small_instances *
		small_instances; /* what is in the target, as far as it is small; NULL: each has an instance */
	uint64_t
		target_ns; /* when options.target begins, as long as nothing is rich before; UINT64_MAX: there is none */
	bool cupti_handed_over; /* CUPTI is another client's */
	bool counting;          /* false: outside of the steps asked for */
	bool warming_up;        /* in a window, before its first step that counts */
	bool has_step_kind;     /* the trace has ranges of kind step; else labels tell */
	const struct profile_thread *step_thread; /* in a step now; at step_depth */
	uint32_t step_depth;
	uint64_t step, now_ns, counting_begin_ns, counted_ns, busy_at_begin_ns, idle_at_begin_ns,
		unknown_at_begin_ns;
	int64_t reserved; /* the level now */
	bool has_reserved;
	int64_t allocated;   /* the tensors' */
	long double counter; /* METRIC_USER: its value now */
	uint32_t *counters;  /* and its ids */
	size_t counter_count, counter_room;
	struct instances instances;
	struct correlation_join *join;
	struct idle_gaps *idle_gaps; /* NULL: no work was timed, or nobody asks who ended them */
	struct graph_nodes *graph_nodes;
	struct graph_parent *
		graph_parents; /* where nodes of graphs stand (fold_graph.c); NULL: no graph was met yet */
	struct open_async_range **async_ranges; /* hash table by id */
	size_t async_slot_count, async_count;
	bool restart;     /* GPU work was met, and the timeline is not there yet */
	uint32_t *api_of; /* by text: the index in fold.apis + 1 */
	size_t api_of_room, api_room;
};

/* The next event, as reader_next; plain ranges before it are done, and added to `events`. */
int profile_next_event(struct profile *profile, struct trace_event *event, uint64_t *events);

/* Ranges. close_at: accounts for the range at that depth up to end_ns; it stays on the stack. rebase: it counts from
 * now on only. */
void profile_open_range(struct profile *profile, const struct trace_event *event);
void profile_close_range(struct profile *profile, const struct trace_event *event, uint64_t end_ns);
void profile_drop_range(struct profile *profile, const struct trace_event *event);
void profile_end_open_range(struct profile *profile, const struct trace_event *event);
void profile_count_until(
	struct profile *profile, struct profile_thread *thread, uint32_t depth, uint64_t end_ns);
/* The same, and it leaves the stack, from between others if need be. forget: it leaves without a trace, the innermost. */
void profile_remove_frame(
	struct profile *profile, struct profile_thread *thread, uint32_t depth, uint64_t end_ns);
void profile_discard_frame(struct profile *profile, struct profile_thread *thread, uint32_t depth);
void profile_restart_frame(
	struct profile *profile, struct open_range *frame, struct open_range_details *more);
void profile_track_target_children(
	struct profile *profile, struct profile_thread *thread, uint32_t depth);
bool profile_instance_final(void *context, struct instance *instance);
/* fold_options.target: one that has a parent is final, with its value. Returns whether it was taken over. */
bool profile_adopt_critical(struct profile *profile, struct instance *instance);
/* What is shown by itself has at least so much of the metric. */
long double profile_critical_min(const struct profile *profile);

/* Steps: what to do when a range opens that is one, and when one closes. */
bool profile_is_step(const struct profile *profile, const struct trace_event *event);
void profile_step_range_begin(
	struct profile *profile, const struct trace_event *event, struct profile_thread *thread);
void profile_step_range_end(
	struct profile *profile, const struct profile_thread *thread, uint32_t depth);
void profile_stop_counting(struct profile *profile);
/* A WINDOW record: things count while PPERF_SCHEDULE had them recorded. */
void profile_recording_window(struct profile *profile, const struct trace_event *event);
/* Its warm-up is over. */
void profile_warm_up_end(struct profile *profile);
/* Whether figures are of parts of the trace only. */
bool profile_is_partial(const struct profile *profile);
/* A step of that number comes; the last one that came is over. */
void profile_step_begin(struct profile *profile, uint64_t number);
void profile_step_end(struct profile *profile);

/* The node at which a record happened. */
uint32_t profile_event_node(struct profile *profile, const struct trace_event *event);
/* Whose instance it is part of, a thread and where in its row: the innermost range there, or, if that began before the
 * present section or there is none, the section. NULL: nobody's. */
struct profile_thread *profile_find_owner(
	const struct profile *profile, struct profile_thread *thread, uint32_t *depth);
/* It counts for that one, and for the section. */
void profile_add_tracked_flows(
	struct profile *profile, struct profile_thread *thread, const struct instance_flows *flows);
/* Where fold_state.rich: the innermost range of a thread opened, and is told of what is in it from now on; one that counts
 * is over. own_label: the dictionary has no text of it. */
void profile_open_instance(struct profile *profile, const struct trace_event *event,
	struct profile_thread *thread, bool own_label);
void profile_close_instance(
	struct profile *profile, struct profile_thread *thread, uint32_t depth, uint64_t end_ns);
/* fold_options.target: whether that is it; it is known: what is open has nothing more to tell. */
bool profile_is_target(const struct profile *profile, const struct profile_thread *thread,
	const struct open_range *frame);
void profile_drop_instances(struct profile_state *state);
/* The instance of a thread's range at that depth, and those around it. */
struct instance *profile_instance_at(
	struct profile *profile, struct profile_thread *thread, uint32_t depth);
/* A thread's first event; the caller passes the thread to sections_meet. */
struct profile_thread *profile_add_thread(struct profile *profile, struct trace_stream *stream);
/* step_sections.c: a thread begins. */
void step_sections_thread_begin(struct profile *profile, struct profile_thread *thread);
/* Its last one. */
void fold_thread_ends(struct profile *profile, struct trace_stream *stream);
/* Adds the thread's time in ranges to fold->threads, if it had any. */
void fold_keep_time(struct profile *profile, const struct profile_thread *thread);
/* For good; for as long as the target is open. */
void profile_track_instances(struct profile *profile);
void profile_track_target(struct profile *profile);
/* reserved has changed: the peaks of what is open. */
void profile_update_peaks(struct profile *profile);
/* The level asked for, now. */
long double profile_metric_level(const struct profile *profile);
/* Below the tree's node of a graph, the node of what was captured as `gpu`, a record of that graph; the graph itself if
 * nothing lies between them. method: set. */
uint32_t profile_graph_parent(
	struct profile *profile, uint32_t graph, const struct trace_gpu *gpu, enum method *method);
/* The node of a graph that was launched in no range, if it is known in which ranges it was captured; else 0. */
uint32_t profile_graph_replay_node(
	struct profile *profile, uint32_t unattributed, uint32_t exec_id);
/* The node of what belongs to no range, below `root`. */
uint32_t profile_unattributed_node(struct profile *profile, uint32_t root);

/* An instance of `node`, if it is the worst so far. own: its text if the dictionary has none. */
struct worst_candidate {
	long double value, before, after;
	uint64_t begin_ns, end_ns;
	uint32_t trace_node, stream, own_bytes;
	const char *own;
};
void profile_offer_worst(
	struct profile *profile, uint32_t node, const struct worst_candidate *candidate);

/* Records. */
void profile_call_record(struct profile *profile, const struct trace_event *event);
void profile_tensor_record(struct profile *profile, const struct trace_event *event);
void profile_tensor_oom_record(struct profile *profile, const struct trace_event *event);
void profile_tensors_finish(struct profile *profile);
void profile_gpu_record(struct profile *profile, const struct trace_event *event);
void profile_gpu_finish(struct profile *profile);
void profile_gpu_evict(struct profile *profile, bool all);
/* Work of a GPU, with its leaf in the tree (0: it does not count): the idle time before it is charged to that. end: no
 * more comes. */
void idle_gaps_add(struct profile *profile, uint32_t leaf, const struct trace_gpu *gpu);
void idle_gaps_finish(struct profile *profile);
void idle_gaps_free(struct idle_gaps *idle_gaps);
void profile_gpu_match_held(struct profile *profile, uint64_t correlation);
void profile_async_start(struct profile *profile, const struct trace_event *event);
void profile_async_end(struct profile *profile, const struct trace_event *event);
void profile_async_close_all(struct profile *profile);
void profile_mark(struct profile *profile, const struct trace_event *event);
void profile_counter_value(struct profile *profile, const struct trace_event *event);
void profile_find_counter(struct profile *profile);

static inline struct profile_thread *profile_thread_of(
	struct profile *profile, const struct trace_event *event)
{
	struct profile_thread *thread = event->stream->user;

	if (__builtin_expect(thread != NULL, 1))
		return thread;
	thread = profile_add_thread(profile, event->stream);
	step_sections_thread_begin(profile, thread);
	return thread;
}

/* An observer wants what instances have of the metric. */
static inline bool profile_observes_values(const struct profile_options *options)
{
	return options->observer && (options->observer->instance || options->observer->ended);
}

static inline void profile_require_instances(struct profile *profile)
{
	if (__builtin_expect(
		    !profile->state->tracks_instances || profile->state->tracks_target_only, 0))
		profile_track_instances(profile);
}

static inline void profile_add_flows(
	struct profile *profile, struct profile_thread *thread, const struct instance_flows *flows)
{
	if (profile->state->tracks_flows)
		profile_add_tracked_flows(profile, thread, flows);
}

/* Launches and records that wait for each other: what has waited for too long, where they are too many. */
static inline void profile_gpu_limit_pending(struct profile *profile)
{
	if (__builtin_expect(join_is_full(profile->state->join), 0))
		profile_gpu_evict(profile, false);
}

/* What opens and happens from now on stands below that node of the tree; what is open stays where it is. */
static inline void profile_set_root(struct profile *profile, uint32_t root)
{
	profile->state->nodes = node_names_nodes(profile->names, root);
	profile->state->modules = node_names_modules(profile->names, root);
}

/* Where in its thread's row of frames the range of an event is. */
static inline uint32_t profile_frame_index(const struct profile_thread *thread, uint32_t depth)
{
	return depth + (depth >= thread->section_frame);
}

/* A range that counts is over; child_ns is known. */
static inline void profile_observe_segment(const struct profile *profile,
	const struct profile_thread *thread, const struct open_range *frame, uint64_t end_ns)
{
	const struct profile_observer *observer = profile->options.observer;

	if (observer && observer->segment)
		observer->segment(observer->context,
			&(struct observed_segment){ .thread = thread->of,
				.node = frame->node,
				.trace_node = frame->trace_node,
				.begin_ns = frame->begin_ns,
				.total_ns = end_ns - frame->begin_ns,
				.self_ns = end_ns - frame->begin_ns - frame->child_ns });
}

/* The same, as an instance whose value is not known. */
static inline void profile_observe_closed(const struct profile *profile,
	const struct profile_thread *thread, const struct open_range *frame, uint64_t end_ns)
{
	const struct profile_observer *observer = profile->options.observer;

	if (observer && observer->closed &&
		(!observer->closed_nodes || (frame->node < observer->closed_node_count &&
						    observer->closed_nodes[frame->node])))
		observer->closed(
			observer->context, &(struct observed_instance){ .node = frame->node,
						   .stream = thread->stream,
						   .trace_node = frame->trace_node,
						   .begin_ns = frame->begin_ns,
						   .end_ns = end_ns });
}

/* The same, with its value, where that is its time. */
void profile_observe_timed(const struct profile *profile, const struct profile_thread *thread,
	const struct open_range *frame, uint64_t end_ns);

static inline void profile_observe_leaf(
	const struct profile *profile, uint32_t leaf, uint64_t at_ns, uint64_t duration_ns)
{
	const struct profile_observer *observer = profile->options.observer;

	if (__builtin_expect(observer != NULL && observer->leaf, 0))
		observer->leaf(observer->context, leaf,
			node_kind_class(profile->tree->nodes[leaf].kind) == NODE_WORK, at_ns,
			duration_ns);
}

/* A folded module counts for its member, too. */
static inline void profile_count_module(
	struct profile *profile, const struct open_range *frame, uint64_t duration)
{
	const uint32_t number = profile->state->modules[frame->trace_node];
	struct module_instance *module;

	if (!number)
		return;
	module = &node_names_module_group(profile->names)->all[number];
	if (module->node == frame->node) {
		module->calls++;
		module->cpu_ns += duration;
		if (duration > module->longest_ns)
			module->longest_ns = duration;
	}
}

/* The figures that every range has. */
static inline void profile_count_range(struct profile *profile, struct profile_thread *thread,
	const struct open_range *frame, uint64_t end_ns)
{
	struct node *node = &profile->tree->nodes[frame->node];
	const uint64_t duration = end_ns - frame->begin_ns;

	node->calls++;
	node->total_ns += duration;
	node->self_ns += duration - frame->child_ns;
	thread->self_ns += duration - frame->child_ns;
	thread->has_ranges = true;
	if (duration < node->min_ns)
		node->min_ns = duration;
	if (duration >= node->max_ns) {
		node->max_ns = duration;
		node->longest_begin_ns = frame->begin_ns;
		node->longest_trace_node = frame->trace_node;
		node->longest_stream = thread->stream;
	}
	if (!profile->options.no_percentiles)
		percentiles_add(&node->samples, duration, &profile->tree->budget);
}

#endif
