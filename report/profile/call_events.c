/* SPDX-License-Identifier: MIT
 * Handles CUDA calls of the CPU: launches, copies, memsets, waits, memory. Each call is also a
 * leaf below the range in which it was made.
 */
#include "report/profile/profile_state.h"
#include "report/text/format_number.h"

struct timed_call {
	const struct trace_call *record;
	uint32_t node;
	uint64_t begin_ns, duration_ns;
	bool worked; /* it succeeded and was not captured into a graph */
};

static enum node_kind leaf_kind(const struct trace_event *event)
{
	const struct trace_sync *sync = event->record;

	if (event->kind == TRACE_ALLOC || event->kind == TRACE_FREE)
		return NODE_ALLOC;
	if (event->kind == TRACE_SYNC && sync->type && sync->type != TRACE_EVENT_RECORD &&
		sync->type != TRACE_SYNC_STREAM_WAIT)
		return NODE_SYNC;
	return NODE_API;
}

static const char *default_call_name(uint32_t kind)
{
	static const char *const names[TRACE_KINDS] = { [TRACE_LAUNCH] = "(launch)",
		[TRACE_GRAPH_LAUNCH] = "(graph launch)",
		[TRACE_COPY] = "(copy)",
		[TRACE_SET] = "(memset)",
		[TRACE_ALLOC] = "(allocation)",
		[TRACE_FREE] = "(release)",
		[TRACE_MAPPING] = "(mapping)",
		[TRACE_SYNC] = "(wait)" };

	return names[kind];
}

static uint32_t call_leaf(
	struct profile *profile, const struct trace_event *event, const struct timed_call *call)
{
	const char *plain = default_call_name(event->kind);
	uint32_t name = node_names_text(profile->names, call->record->api);

	if (!name)
		name = string_table_intern(profile->texts, plain, __builtin_strlen(plain));
	return tree_child(profile->tree, call->node, name, 0, leaf_kind(event));
}

static uint32_t graph_node(
	struct profile *profile, uint32_t owner, const struct trace_graph_launch *record)
{
	char name[32] = "graph";
	size_t length = 5;

	if (record->exec_id) {
		name[length++] = ' ';
		length += format_unsigned(name + length, record->exec_id, 1, 0);
	}
	return tree_child(profile->tree, owner, string_table_intern(profile->texts, name, length),
		0, NODE_GRAPH);
}

/* Whether instances must wait for their GPU records: their GPU time is needed. */
static bool instances_need_gpu_time(const struct profile *profile)
{
	const struct profile_observer *observer = profile->options.observer;

	return profile->options.metric == METRIC_GPU &&
	       (!observer || profile->options.observer_joins || profile->options.target ||
		       observer->instance || observer->ended);
}

/* The instance that waits for the GPU record of `call`. If children are kept, a graph is an
 * instance of its own, and the work it runs is inside it. */
static struct instance *waiting_instance(struct profile *profile, const struct trace_event *event,
	const struct timed_call *call, uint32_t graph)
{
	uint32_t depth;
	struct profile_thread *thread = profile_find_owner(profile, event->stream->user, &depth);
	struct instance *instance;

	if (!instances_need_gpu_time(profile) || !thread)
		return NULL;
	if (profile->options.target &&
		(!thread->details[depth].instance || !thread->details[depth].instance->keep))
		return NULL;
	instance = profile_instance_at(profile, thread, depth);
	if (profile->options.target && graph) {
		instance = instance_new(
			&profile->state->instances, instance, graph, call->begin_ns);
		instance->keep = true;
		return instance;
	}
	instance_retain(instance);
	return instance;
}

/* Sets the node of the launched graph, and returns it. A graph that was launched in no range
 * belongs to the ranges of its capture. */
static uint32_t prepare_graph_launch(
	struct profile *profile, struct gpu_launch *launch, const struct trace_graph_launch *record)
{
	const uint32_t replays = launch->in_range ? 0
						  : profile_graph_replay_node(
							    profile, launch->node, record->exec_id);

	if (replays) {
		launch->node = replays;
		launch->in_range = true;
	}
	launch->graph_node = graph_node(profile, launch->node, record);
	profile->tree->nodes[launch->graph_node].calls += launch->counts;
	return launch->graph_node;
}

/* Whether the call moves 0 bytes, so that no GPU record is expected. Imported traces have no
 * bytes of calls. */
static bool is_empty_copy(const struct profile *profile, const struct trace_event *event)
{
	const struct trace_copy *copy = event->record;

	return (event->kind == TRACE_COPY || event->kind == TRACE_SET) && !copy->bytes &&
	       !profile->state->imported;
}

/* Registers a call whose work a GPU record will report. */
static void add_pending_launch(
	struct profile *profile, const struct trace_event *event, const struct timed_call *call)
{
	struct profile_state *state = profile->state;
	struct gpu_launch *launch;
	uint32_t graph = 0;

	if (!call_awaits_record(call->record))
		return;
	launch = profile_launch_in(state, event->slot);
	/* set one by one: a whole struct is made on the stack first, and copied from there */
	launch->begin_ns = call->begin_ns;
	launch->end_ns = call->begin_ns + call->duration_ns;
	launch->instance = NULL;
	launch->first_ns = 0;
	launch->node = call->node;
	launch->module = state->modules[event->node];
	launch->graph_node = 0;
	launch->tid = event->stream->tid;
	launch->trace_node = event->node;
	launch->stack = call->record->stack;
	launch->counts = state->counting;
	launch->in_range = event->node != 0;
	launch->empty = is_empty_copy(profile, event);
	launch->has_record = false;
	if (call->record->correlation < state->first_correlation)
		state->first_correlation = call->record->correlation;
	if (event->kind == TRACE_GRAPH_LAUNCH)
		graph = prepare_graph_launch(profile, launch, event->record);
	if (state->counting)
		launch->instance = waiting_instance(profile, event, call, graph);
	if (event->steps)
		profile_apply_join_steps(profile, reader_join_steps(profile->reader, event));
}

/* Updates `reserved`, which is made of device memory only. */
static void add_memory_change(struct profile *profile, const struct trace_event *event,
	const struct timed_call *call, const struct memory_change *change)
{
	struct profile_totals *totals = &profile->totals;
	const bool allocates_device = change->allocated_bytes && memory_is_device(change->kind),
		   frees_device = change->freed_bytes && memory_is_device(change->freed_kind);

	if (totals->level_device == UINT32_MAX && allocates_device)
		totals->level_device = change->device;
	if (frees_device && change->freed_device == totals->level_device)
		profile->state->reserved = saturating_subtract(
			profile->state->reserved, (int64_t)change->freed_bytes);
	if (allocates_device && change->device == totals->level_device)
		profile->state->reserved = saturating_add(
			profile->state->reserved, (int64_t)change->allocated_bytes);
	if (allocates_device || frees_device) {
		profile->state->has_reserved = true;
		profile_update_reserved_peaks(profile);
		if (profile->options.observer && profile->options.observer->level)
			profile->options.observer->level(profile->options.observer->context,
				event->time_ns, profile->state->allocated,
				profile->state->reserved);
	}
	if (profile->state->reserved > totals->reserved_peak)
		totals->reserved_peak = profile->state->reserved;
	if (!profile->state->counting)
		return;
	if (frees_device) {
		tree_memory(profile->tree, change->freed_node)->free_self += change->freed_bytes;
		totals->free_bytes += change->freed_bytes;
	}
	if (allocates_device) {
		tree_memory(profile->tree, call->node)->alloc_self += change->allocated_bytes;
		totals->alloc_bytes += change->allocated_bytes;
		profile_add_sums(profile, event->stream->user,
			&(struct instance_sums){ .alloc_bytes = change->allocated_bytes });
	}
}

/* The memory of a whole context. */
static struct memory_change free_context_memory(
	struct profile *profile, const struct trace_event *event, const struct timed_call *call)
{
	struct memory_change change;
	size_t at = 0;

	while (memory_owners_free_context(profile->memory, event->record, &at, &change)) {
		add_memory_change(profile, event, call, &change);
		profile_observe_memory(profile, event, &change);
	}
	return (struct memory_change){ .failed = call->record->result != 0 };
}

static struct memory_change apply_memory_record(
	struct profile *profile, const struct trace_event *event, const struct timed_call *call)
{
	const struct trace_memory *record = event->record;

	if (event->kind == TRACE_ALLOC)
		return memory_owners_record_alloc(
			profile->memory, record, call->node, event->time_ns);
	return record->flags & TRACE_MEMORY_ALL
		       ? free_context_memory(profile, event, call)
		       : memory_owners_record_free(profile->memory, record, call->begin_ns);
}

static void add_memory_call(struct profile *profile, const struct trace_event *event,
	const struct timed_call *call, uint32_t leaf_node)
{
	const bool allocates = event->kind == TRACE_ALLOC;
	const uint32_t nodes[] = { call->node, leaf_node };
	const struct memory_marks marks = profile_memory_event(profile, event);
	struct memory_change change;

	reader_run_deferred(profile->reader);
	profile_mark_memory(profile->memory, &marks);
	change = apply_memory_record(profile, event, call);
	add_memory_change(profile, event, call, &change);
	profile_observe_memory(profile, event, &change);
	if (allocates && change.failed)
		profile_observe_memory_mark(profile, event);
	if (allocates && memory_ran_out(event->record))
		profile_failed_allocation(profile, event, call->node, call->begin_ns);
	if (!allocates && !change.failed)
		memory_owners_released(profile->memory, event->stream->tid, change.freed_bytes);
	for (unsigned i = 0; profile->state->counting && i < 2; i++) {
		struct node_memory *memory = tree_memory(profile->tree, nodes[i]);

		memory->failed += change.failed;
		memory->allocs += allocates && !change.failed;
		memory->frees += !allocates && !change.failed;
	}
	if (profile->state->counting && change.allocated_bytes && memory_is_device(change.kind))
		tree_memory(profile->tree, leaf_node)->alloc_self += change.allocated_bytes;
}

/* Reports to the observer a mapping that begins or ends. */
static void observe_mapping(const struct profile *profile, const struct trace_event *event,
	const struct memory_mapping *mapping, bool ends)
{
	const struct profile_observer *observer = profile->options.observer;

	if (observer && observer->mapping)
		observer->mapping(observer->context,
			&(struct observed_mapping){
				.event = event, .mapping = mapping, .ends = ends });
}

/* Ends the mappings in the range of a MAP or UNMAP. Memory of which no reference was left is free
 * then. */
static void end_mappings(
	struct profile *profile, const struct trace_event *event, const struct timed_call *call)
{
	struct memory_mapping ended;
	uint64_t freed_key;

	while (memory_mappings_end_next(
		profile->memory->mappings, event->record, &ended, &freed_key)) {
		observe_mapping(profile, event, &ended, true);
		if (freed_key) {
			const struct memory_change change = memory_owners_free_physical(
				profile->memory, freed_key);

			add_memory_change(profile, event, call, &change);
			profile_observe_memory(profile, event, &change);
		}
	}
}

static void add_mapping_call(
	struct profile *profile, const struct trace_event *event, const struct timed_call *call)
{
	const struct trace_mapping *record = event->record;
	struct memory_mapping made;

	if (record->call.result != 0)
		return;
	reader_run_deferred(profile->reader);
	if (record->action == TRACE_MAPPING_UNMAP || record->action == TRACE_MAPPING_MAP)
		end_mappings(profile, event, call);
	if (memory_mappings_record(profile->memory->mappings, record, &made))
		observe_mapping(profile, event, &made, false);
}

static void count_call(struct profile *profile, uint32_t kind, const struct timed_call *call)
{
	struct profile_counts *counts = &profile->counts;

	counts->captured += call->record->result == 0 &&
			    (call->record->head.flags & TRACE_CALL_CAPTURED) != 0;
	counts->failed_calls += call->record->result != 0;
	counts->syncs += kind == TRACE_SYNC &&
			 ((const struct trace_sync *)(const void *)call->record)->type;
	if (!call->worked)
		return;
	counts->empty_calls += (call->record->head.flags & TRACE_CALL_EMPTY) != 0;
	counts->before_gpu += (call->record->head.flags & TRACE_CALL_BEFORE_GPU) != 0;
	counts->after_gpu += (call->record->head.flags & TRACE_CALL_AFTER_GPU) != 0;
	counts->range_profiled += (call->record->head.flags & TRACE_CALL_PROFILED) != 0;
	counts->yielded_calls += profile->state->cupti_handed_over &&
				 (kind == TRACE_LAUNCH || kind == TRACE_GRAPH_LAUNCH ||
					 kind == TRACE_COPY || kind == TRACE_SET);
	counts->launches += kind == TRACE_LAUNCH;
	counts->graph_launches += kind == TRACE_GRAPH_LAUNCH;
	counts->copies_called += kind == TRACE_COPY;
	counts->sets_called += kind == TRACE_SET;
}

static void observe_call(struct profile *profile, const struct trace_event *event,
	const struct timed_call *call, uint32_t leaf_node)
{
	const struct profile_observer *observer = profile->options.observer;
	const struct observed_call seen = { .event = event,
		.begin_ns = call->begin_ns,
		.duration_ns = call->duration_ns,
		.node = leaf_node,
		.owner = leaf_node ? call->node : 0,
		.name = node_names_text(profile->names, call->record->api),
		.counts = profile->state->counting };

	observer->call(observer->context, &seen);
}

/* A call is recorded when it has returned. If its slot was full, it was flushed first, and that
 * time is not part of the call. */
static uint64_t exclude_flush_pause(
	const struct trace_event *event, uint64_t begin_ns, uint64_t duration_ns)
{
	const struct profile_thread *thread = event->stream->user;

	return thread && begin_ns <= thread->pause_begin_ns && thread->pause_ns <= duration_ns
		       ? duration_ns - thread->pause_ns
		       : duration_ns;
}

void profile_call_record(struct profile *profile, const struct trace_event *event)
{
	struct timed_call call = { .record = event->record };
	uint32_t leaf_node = 0;

	call.node = profile_event_node(profile, event);
	call.duration_ns = reader_duration(
		profile->reader, call.record->stamp, call.record->duration);
	call.begin_ns = event->time_ns > call.duration_ns ? event->time_ns - call.duration_ns : 0;
	call.duration_ns = exclude_flush_pause(event, call.begin_ns, call.duration_ns);
	call.worked = call.record->result == 0 && !(call.record->head.flags & TRACE_CALL_CAPTURED);
	count_call(profile, event->kind, &call);
	if (profile->state->counting) {
		leaf_node = call_leaf(profile, event, &call);
		tree_count(profile->tree, leaf_node, call.duration_ns);
		profile_observe_leaf(profile, leaf_node, call.begin_ns, call.duration_ns);
		profile->tree->nodes[call.node].call_ns += call.duration_ns;
		profile_add_sums(
			profile, event->stream->user, &(struct instance_sums){ .calls = 1 });
	}
	if (__builtin_expect(profile->options.observer && profile->options.observer->call, 0))
		observe_call(profile, event, &call, leaf_node);
	if (event->kind == TRACE_ALLOC || event->kind == TRACE_FREE) {
		add_memory_call(profile, event, &call, leaf_node);
	} else if (event->kind == TRACE_MAPPING) {
		add_mapping_call(profile, event, &call);
	} else if (event->kind != TRACE_SYNC) {
		profile_note_activity(profile, event->time_ns);
		add_pending_launch(profile, event, &call);
	}
}
