/* SPDX-License-Identifier: MIT
 * Declares what the files of the profile pass share while it runs.
 */
#ifndef PPERF_REPORT_PROFILE_PROFILE_STATE_H
#define PPERF_REPORT_PROFILE_PROFILE_STATE_H

#include "report/profile/profile.h"
#include "report/profile/gpu_launch.h"
#include "report/profile/module_group.h"

/* profile_thread.section_frame and profile_state.step_frame: there is no such frame. */
#define NO_SECTION_FRAME UINT32_MAX

/* A range that is open on a thread. */
struct open_range {
	uint32_t node, trace_node;
	uint64_t begin_ns; /* of the part that is counted */
	uint64_t child_ns; /* time in the ranges inside it that have closed */
};

/* More about an open range, while instances are tracked (profile_state.tracks_instances). A trace
 * of ranges alone needs none of it. */
struct open_range_details {
	struct instance *instance; /* NULL: not needed so far */
	char *label;               /* its text if the dictionary has none; owned */
	uint32_t label_bytes;
	uint32_t section; /* profile_state.section when it began */
	/* When it began, it was the frame of the current section, or enclosed that frame, or the
	 * section had no frame yet. Always false if the trace has no steps. */
	bool encloses_section;
	uint64_t idle_ns; /* idle time of the GPU before it began */
	struct instance_sums sums;
	/* Levels when it began, and the highest levels while it, or a range inside it, was the
	 * innermost. */
	int64_t reserved, reserved_peak;
	int64_t allocated, allocated_peak;
	long double level; /* of the metric, when it began */
};

/* The search for the end of the run (memory_end.c). */
struct memory_end {
	uint64_t steps_end_ns; /* of the last step; UINT64_MAX: the end is after it */
	/* When the program first did something after the last record of memory. 0: it did nothing.
	 */
	uint64_t active_ns;
	uint64_t first_ns;       /* of the first record of memory. 0: there was none. */
	bool frees_are_activity; /* outside of ranges, too */
};

/* What the end of the run so far is for memory, before a record of it. */
struct memory_marks {
	bool is_active; /* the program did something since the record before */
	bool is_end;    /* so that the end is at `end_ns` or later */
	uint64_t end_ns;
};

/* What the handling of tensors changes that may be put off (reader_defer), and may run in another
 * thread. So it is in cache lines of its own (xcalloc_cache_aligned). */
struct tensor_totals_by_owner {
	struct memory_owners *memory;
	const struct profile_observer *observer; /* NULL: none is reported to here */
	/* The counted bytes of tensors that were freed, by the node that allocated them, and in
	 * all. They are added to the nodes after the pass. */
	uint64_t *freed_bytes;
	size_t freed_room;
	uint64_t freed_total;
};

struct profile_thread {
	const struct trace_stream *of;
	struct open_range *frames;
	struct open_range_details *details; /* NULL: instances were never tracked */
	size_t room, details_room;
	uint32_t depth, stream, index;     /* index: in profile_state.threads */
	uint64_t self_ns;                  /* of the counted ranges that have closed */
	uint64_t pause_begin_ns, pause_ns; /* the last flush of its slot */
	bool has_ranges;                   /* a counted range has closed */
	/* Index of the section frame that step_sections.c inserted. NO_SECTION_FRAME: none. */
	uint32_t section_frame;
	/* Frames from this index on have no details (small_instances.h). */
	uint32_t small_from_depth;
	struct section_track *track; /* of step_sections.c */
};

struct open_async_range;
struct section_track;
struct step_sections;
struct counted_ranges;
struct idle_gaps;
struct small_instances;
struct sampled_index;

struct profile_state {
	struct sampled_index *sampled; /* sample_events.c; NULL: no thread seen yet */
	/* By trace node: its tree node (node_names_nodes) below the root in use. */
	const uint32_t *nodes;
	const uint32_t *modules;         /* by trace node: node_names_modules */
	struct profile_thread **threads; /* of the streams that have not ended */
	size_t thread_count, thread_room;
	struct step_sections *sections;        /* NULL: no steps were found */
	struct counted_ranges *counted_ranges; /* NULL: no ranges were only counted */
	/* The thread of the steps (if several: that of the last event). NULL: not seen yet or
	 * ended, or there are no steps. */
	struct profile_thread *sections_thread;
	/* Index of the frame of sections_thread that is the program's own range of the step.
	 * NO_SECTION_FRAME: the step is no such range. */
	uint32_t step_frame;
	/* End of the current section. 0: several threads have sections. */
	uint64_t section_end_ns;
	uint32_t section; /* number of the current section; 0: there are none */
	/* Number of steps of --steps that are open. Only if several threads have steps. */
	size_t chosen_open;
	bool tracks_instances;
	/* The metric needs instance_sums, or children are stored. */
	bool tracks_sums;
	bool tracks_target_only; /* only the target needs tracks_instances */
	/* The small instances inside the target. NULL: each of them has an instance. */
	struct small_instances *small_instances;
	/* Begin of options.target if instances are not tracked before it. UINT64_MAX: none. */
	uint64_t target_ns;
	bool imported; /* the trace was made of another tool's file */
	/* Lowest correlation id of a launch so far. UINT64_MAX: no launch yet. */
	uint64_t first_correlation;
	uint64_t before_any_launch; /* unmatched GPU records finished before the first launch */
	bool cupti_handed_over;     /* another client has CUPTI */
	bool counting;              /* false: outside the chosen steps or recording windows */
	bool warming_up;            /* in a recording window, before its first step that counts */
	bool has_step_kind;         /* the trace has ranges of kind step; else labels decide */
	/* The thread with an open step, at step_depth. NULL: none. */
	const struct profile_thread *step_thread;
	uint32_t step_depth;
	uint64_t step, now_ns, counting_begin_ns, counted_ns, busy_at_begin_ns, idle_at_begin_ns,
		unknown_at_begin_ns;
	struct memory_end memory_end;
	struct tensor_totals_by_owner *tensor_totals;
	int64_t reserved; /* current level of device memory */
	bool has_reserved;
	int64_t allocated;   /* current level of tensors */
	long double counter; /* METRIC_USER: current value */
	bool counter_known;  /* the counter has had a value */
	uint32_t *counters;  /* METRIC_USER: ids of the counter */
	size_t counter_count, counter_room;
	struct instances instances;
	struct gpu_launch *launches; /* by slot (correlation_join.h); mapped_grow */
	size_t launch_room;
	/* NULL: there is no timed GPU work, or owners of gaps are not needed. */
	struct idle_gaps *idle_gaps;
	struct graph_nodes *graph_nodes;
	/* Cache of graph nodes' parents (graph_events.c). NULL: no graph seen yet. */
	struct graph_parent *graph_parents;
	struct open_async_range **async_ranges; /* hash table by id */
	size_t async_slot_count, async_count;
	bool skipped_rest;   /* what came after the target was not handled */
	bool needs_timeline; /* timed GPU work was found without a timeline: make the pass again */
	/* Tensors were allocated before the trace, and ranges before the first record of a tensor
	 * began at 0: make the pass again, from that level. */
	bool needs_start_level;
	uint32_t *api_of; /* by text: index in profile.apis + 1; 0: none */
	size_t api_of_room, api_room;
};

/* Reads the next event like reader_next. Plain ranges before it are handled by the fast path and
 * added to `*events`. */
int profile_run_ranges(struct profile *profile, struct trace_event *event, uint64_t *events);
/* As reader_next_in_place. */
static inline int profile_next_event(struct profile *profile, struct trace_event *room,
	const struct trace_event **event, uint64_t *events)
{
	const struct profile_state *state = profile->state;

	const struct trace_reader *reader = profile->reader;

	/* samples follow each other */
	if (reader->next != reader->end && reader->next->kind == TRACE_SAMPLE)
		return reader_next_in_place(profile->reader, room, event);
	if (state->tracks_instances && !(state->small_instances && state->tracks_target_only))
		return reader_next_in_place(profile->reader, room, event);
	*event = room;
	return profile_run_ranges(profile, room, events);
}

/* Opens the range of a PUSH or EVENT_RESUMED event. */
void profile_open_range(struct profile *profile, const struct trace_event *event);
/* Closes the range of `event` at `end_ns`. */
void profile_close_range(struct profile *profile, const struct trace_event *event, uint64_t end_ns);
/* Handles EVENT_UNENDED: the end of the range was lost. Removes the range, and counts it only if
 * other ranges are inside it. */
void profile_drop_range(struct profile *profile, const struct trace_event *event);
/* Handles EVENT_LEFT_OPEN: the range was open at the end. Closes it, and marks its node. */
void profile_end_open_range(struct profile *profile, const struct trace_event *event);
/* Counts the range at `depth` up to `end_ns`. It stays on the range stack. */
void profile_count_until(
	struct profile *profile, struct profile_thread *thread, uint32_t depth, uint64_t end_ns);
/* Counts the range at `depth` up to `end_ns` and removes it from the range stack. Other ranges
 * may be inside it. */
void profile_remove_frame(
	struct profile *profile, struct profile_thread *thread, uint32_t depth, uint64_t end_ns);
/* Removes the range at `depth`, which is the innermost, without counting it. */
void profile_discard_frame(struct profile *profile, struct profile_thread *thread, uint32_t depth);
/* Counts the range from now on only: sets its initial levels and idle time again. */
void profile_restart_frame(
	struct profile *profile, struct open_range *frame, struct open_range_details *details);
/* Makes the instance of the range at `depth`, which begins now, if it is the target or inside
 * it. */
void profile_track_target_children(
	struct profile *profile, struct profile_thread *thread, uint32_t depth);
/* The callback instances.final: sets the value of `instance`, of which everything is known now, and
 * offers it as the worst of its node. Returns whether it took ownership. */
bool profile_instance_final(void *context, struct instance *instance);
/* Adds `instance`, which is final and has its value, to the critical tree. Its parent stores
 * children (profile_options.target). Returns whether it took ownership. */
bool profile_adopt_critical(struct profile *profile, struct instance *instance);
/* Returns the least value of the metric of a child that is shown by itself. */
long double profile_critical_min(const struct profile *profile);

/* Returns whether the range that `event` opens is a step. */
bool profile_is_step(const struct profile *profile, const struct trace_event *event);
/* Begins a step: its range opens on `thread`. */
void profile_step_range_begin(
	struct profile *profile, const struct trace_event *event, struct profile_thread *thread);
/* Ends the step if the range at `depth`, which closes, is the step's. */
void profile_step_range_end(
	struct profile *profile, const struct profile_thread *thread, uint32_t depth);
/* Counts all open ranges up to now, and stops counting. */
void profile_stop_counting(struct profile *profile);
/* Handles a WINDOW record, so that only what PPERF_SCHEDULE recorded is counted. */
void profile_recording_window(struct profile *profile, const struct trace_event *event);
/* Ends the warm-up of a recording window. */
void profile_warm_up_end(struct profile *profile);
/* Returns whether the figures are of parts of the trace only. */
bool profile_is_partial(const struct profile *profile);
/* Begins step `number`: starts counting for --steps, or stops it after the last step. */
void profile_step_begin(struct profile *profile, uint64_t number);
/* Ends step `number`. */
void profile_step_end(struct profile *profile, uint64_t number);

/* Returns the tree node in which `event` happened. Also sets now_ns and tracks instances. */
uint32_t profile_event_node(struct profile *profile, const struct trace_event *event);
/* Adds a CPU_SAMPLE or SAMPLE to its node and thread, and reports it to the observer. Handles
 * SAMPLED_THREAD and SAMPLE_PYTHON, too. */
void profile_sample_record(struct profile *profile, const struct trace_event *event);
/* Notes that `thread` is the stream of its kernel thread from now on. */
void sampled_index_thread(struct profile *profile, struct profile_thread *thread);
/* Notes that the stream of `thread` has ended. */
void sampled_index_thread_end(struct profile *profile, const struct profile_thread *thread);
void sampled_index_free(struct sampled_index *index); /* NULL is allowed */
/* Adds the samples of all places to their nodes and threads, after the last event. */
void profile_samples_finish(struct profile *profile);
/* Returns the thread, and sets `*depth` to the index of the frame there, that own what happens on
 * `thread` now. The owner is the innermost range of `thread`. If there is none, or if it began
 * before the current section, the owner is the section's frame. NULL: no owner. */
struct profile_thread *profile_find_owner(
	const struct profile *profile, struct profile_thread *thread, uint32_t *depth);
/* Adds `sums` to the owner on `thread` and to the section. */
void profile_add_tracked_sums(
	struct profile *profile, struct profile_thread *thread, const struct instance_sums *sums);
/* Initializes the details of the innermost range of `thread`, which has just opened. Instances are
 * tracked. `own_label`: the dictionary does not have its text. */
void profile_open_instance(struct profile *profile, const struct trace_event *event,
	struct profile_thread *thread, bool own_label);
/* Accounts for all of an instance except its GPU time. The range at `depth` is counted up to
 * `end_ns`, and instances are tracked. */
void profile_close_instance(
	struct profile *profile, struct profile_thread *thread, uint32_t depth, uint64_t end_ns);
/* Returns whether `frame` is profile_options.target. */
bool profile_is_target(const struct profile *profile, const struct profile_thread *thread,
	const struct open_range *frame);
/* Releases the instances of all open ranges, and stops tracking, because the target is complete. */
void profile_drop_instances(struct profile_state *state);
/* Returns the instance of the range at `depth`. Makes it and those around it if needed. */
struct instance *profile_instance_at(
	struct profile *profile, struct profile_thread *thread, uint32_t depth);
/* Registers a thread at its first event. The caller then calls step_sections_thread_begin. */
struct profile_thread *profile_add_thread(struct profile *profile, struct trace_stream *stream);
/* Begins a thread. Opens its section if it is the thread with the steps. Defined in
 * step_sections.c. */
void step_sections_thread_begin(struct profile *profile, struct profile_thread *thread);
/* Frees the thread of `stream`, which has ended. */
void profile_thread_end(struct profile *profile, struct trace_stream *stream);
/* Adds the thread's time in ranges to profile->threads, if it had ranges. */
void profile_keep_thread_time(struct profile *profile, const struct profile_thread *thread);
/* Starts to track instances. */
void profile_track_instances(struct profile *profile);
/* Starts to track instances until profile_drop_instances, unless they are tracked already. */
void profile_track_target(struct profile *profile);
/* Updates reserved_peak of each thread's innermost range, after profile_state.reserved has
 * changed. */
void profile_update_reserved_peaks(struct profile *profile);
/* Returns the current level of the metric; 0 if it is no level. */
long double profile_metric_level(const struct profile *profile);
/* Returns the node below `graph` for the work `gpu`, a record of that graph, by where its graph
 * node was captured. Returns `graph` itself if that is unknown. Sets `*method`. */
uint32_t profile_graph_parent(
	struct profile *profile, uint32_t graph, const struct trace_gpu *gpu, enum method *method);
/* Returns the node `(graph replays)` for a graph that was launched in no range and whose capture is
 * known. Else 0. */
uint32_t profile_graph_replay_node(
	struct profile *profile, uint32_t unattributed, uint32_t exec_id);
/* Returns the node below `root` for what belongs to no range. */
uint32_t profile_unattributed_node(struct profile *profile, uint32_t root);

/* An instance of a node, proposed as its worst. `own`: its text if the dictionary does not have
 * it. */
struct worst_candidate {
	long double value, before, after;
	uint64_t begin_ns, end_ns;
	uint32_t trace_node, stream, own_bytes;
	const char *own;
};
/* Stores a copy of `candidate` if it is the worst of `node` so far. */
void profile_offer_worst(
	struct profile *profile, uint32_t node, const struct worst_candidate *candidate);

/* The following functions handle one record each, or finish a kind of records. */

/* Chooses what the end of the run is for memory. Called before the first event. */
void profile_memory_begin(struct profile *profile);
/* Called before an ALLOC, FREE or TENSOR record is handled. Returns what is to be marked before
 * it. */
struct memory_marks profile_memory_event(struct profile *profile, const struct trace_event *event);
void profile_mark_memory(struct memory_owners *memory, const struct memory_marks *marks);
/* Marks the end after the last event. */
void profile_memory_finish(struct profile *profile);
/* Notes that the program did something other than free memory. */
static inline void profile_note_activity(struct profile *profile, uint64_t at_ns)
{
	struct memory_end *end = &profile->state->memory_end;

	if (!end->active_ns)
		end->active_ns = at_ns ? at_ns : 1;
}
static inline bool profile_event_frees_tensor(const struct trace_event *event)
{
	return event->kind == TRACE_TENSOR &&
	       ((const struct trace_tensor *)event->record)->bytes < 0;
}

void profile_call_record(struct profile *profile, const struct trace_event *event);
void profile_tensor_record(struct profile *profile, const struct trace_event *event);
/* Handles an ALLOC record that failed because memory was exhausted, at tree node `node`. The call
 * began at `begin_ns`. */
void profile_failed_allocation(
	struct profile *profile, const struct trace_event *event, uint32_t node, uint64_t begin_ns);
void profile_tensor_oom_record(struct profile *profile, const struct trace_event *event);
/* Chooses how the pass handles tensors. Called before the first event. */
void profile_tensors_begin(struct profile *profile);
void profile_tensors_finish(struct profile *profile);
void profile_gpu_record(struct profile *profile, const struct trace_event *event);
/* Called after the last event of the pass. */
void profile_gpu_finish(struct profile *profile);
/* Finishes the launches and records that the join evicts, and matches held records. */
void profile_apply_join_steps(struct profile *profile, const struct join_step *step);
/* Returns the launch in `slot`, to be overwritten. */
struct gpu_launch *profile_launch_in(struct profile_state *state, uint32_t slot);
/* Frees the launches, and releases their instances. */
void profile_drop_launches(struct profile_state *state);
/* Charges the idle time before the work `gpu` to `leaf`. 0: it is not counted. */
void idle_gaps_add(struct profile *profile, uint32_t leaf, const struct trace_gpu *gpu);
/* Charges the remaining gaps, after the last GPU work. */
void idle_gaps_finish(struct profile *profile);
void idle_gaps_free(struct idle_gaps *idle_gaps);
void profile_async_start(struct profile *profile, const struct trace_event *event);
void profile_async_end(struct profile *profile, const struct trace_event *event);
void profile_async_close_all(struct profile *profile);
void profile_mark(struct profile *profile, const struct trace_event *event);
void profile_counter_value(struct profile *profile, const struct trace_event *event);
/* Finds the ids of profile_options.counter. */
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

/* Returns whether the observer needs the metric's value of instances. */
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

static inline void profile_add_sums(
	struct profile *profile, struct profile_thread *thread, const struct instance_sums *sums)
{
	if (profile->state->tracks_sums)
		profile_add_tracked_sums(profile, thread, sums);
}

/* Puts what opens and happens from now on below the node `root`. Open ranges keep their nodes. */
static inline void profile_set_root(struct profile *profile, uint32_t root)
{
	profile->state->nodes = node_names_nodes(profile->names, root);
	profile->state->modules = node_names_modules(profile->names, root);
}

/* Returns the index in thread->frames of the trace's range at `depth`. An inserted section frame
 * shifts it by one. */
static inline uint32_t profile_frame_index(const struct profile_thread *thread, uint32_t depth)
{
	return depth + (depth >= thread->section_frame);
}

/* Whether the observer needs what each record of memory changed. */
static inline bool profile_observes_memory(const struct profile *profile)
{
	const struct profile_observer *observer = profile->options.observer;

	return observer && (observer->memory || observer->memory_record);
}
/* Whether it may be reported what tensors changed, with what is put off (reader_defer). */
static inline bool profile_observes_memory_later(const struct profile *profile)
{
	const struct profile_observer *observer = profile->options.observer;

	return observer && observer->memory && observer->memory_may_be_later &&
	       !observer->memory_record;
}
/* Reports a change that an ALLOC, FREE or TENSOR record made. */
void profile_observe_memory(const struct profile *profile, const struct trace_event *event,
	const struct memory_change *change);
/* Reports to the observer an event that changes nothing that is held. */
static inline void profile_observe_memory_mark(
	const struct profile *profile, const struct trace_event *event)
{
	const struct profile_observer *observer = profile->options.observer;

	if (__builtin_expect(observer && observer->memory_mark, 0))
		observer->memory_mark(observer->context, event);
}

/* Reports a record that the profile itself may not use (profile_observer.record). */
static inline void profile_observe_record(
	const struct profile *profile, const struct trace_event *event)
{
	const struct profile_observer *observer = profile->options.observer;

	if (observer && observer->record)
		observer->record(observer->context, event);
}

/* Reports to the observer a counted range that is over and whose child_ns is known. */
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

/* Reports a counted range as an instance whose value is not known. */
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

/* Reports an instance with its value if the metric is CPU or wall time. */
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

/* Counts the duration for the module instance if the node merges several (module_group.h). */
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

/* Adds the figures that every range has to its node and thread. */
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
