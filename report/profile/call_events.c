/* SPDX-License-Identifier: MIT
 * fold_calls.c: what the CPU asked of CUDA: launches, copies, sets, waits, memory. Each call is also a leaf below the
 * range it was made in.
 */
#include "report/profile/profile_state.h"
#include "report/text/format_number.h"

struct call {
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

static const char *plain_name(uint32_t kind)
{
	switch (kind) {
	case TRACE_LAUNCH:
		return "(launch)";
	case TRACE_GRAPH_LAUNCH:
		return "(graph launch)";
	case TRACE_COPY:
		return "(copy)";
	case TRACE_SET:
		return "(memset)";
	case TRACE_ALLOC:
		return "(allocation)";
	case TRACE_FREE:
		return "(release)";
	default:
		return "(wait)";
	}
}

static uint32_t leaf(struct fold *fold, const struct trace_event *event, const struct call *call)
{
	const char *plain = plain_name(event->kind);
	uint32_t name = names_text(fold->names, call->record->api);

	if (!name)
		name = text_id(fold->texts, plain, __builtin_strlen(plain));
	return tree_child(fold->tree, call->node, name, 0, leaf_kind(event));
}

static uint32_t graph_node(struct fold *fold, uint32_t owner, const struct trace_graph_launch *record)
{
	char name[32] = "graph";
	size_t length = 5;

	if (record->exec_id) {
		name[length++] = ' ';
		length += number_unsigned(name + length, record->exec_id, 1, 0);
	}
	return tree_child(fold->tree, owner, text_id(fold->texts, name, length), 0, NODE_GRAPH);
}

/* Whose GPU time is known only once the last record of it is there: somebody must want to know. */
static bool instances_wait(const struct fold *fold)
{
	const struct fold_observer *observer = fold->options.observer;

	return fold->options.metric == METRIC_GPU && (!observer || fold->options.target || observer->instance || observer->ended);
}

/* The instance that waits for the GPU's record. Where children are kept, a graph is one itself, and what it runs lies
 * in it. */
static struct instance *waiting_instance(
	struct fold *fold, const struct trace_event *event, const struct call *call, uint32_t graph)
{
	uint32_t depth;
	struct thread *thread = fold_owner(fold, event->stream->user, &depth);
	struct instance *instance;

	if (!instances_wait(fold) || !thread)
		return NULL;
	if (fold->options.target && (!thread->more[depth].instance || !thread->more[depth].instance->keep))
		return NULL;
	instance = fold_instance(fold, thread, depth);
	if (fold->options.target && graph) {
		instance = instance_new(&fold->state->instances, instance, graph, call->begin_ns);
		instance->keep = true;
		return instance;
	}
	instance_hold(instance);
	return instance;
}

/* Launched in no range, it has those that it was captured in. */
static void expect_graph(struct fold *fold, struct launch *launch, const struct trace_graph_launch *record)
{
	const uint32_t replays = launch->in_range ? 0 : fold_graph_replays(fold, launch->node, record->exec_id);

	if (replays) {
		launch->node = replays;
		launch->in_range = true;
	}
	launch->graph_node = graph_node(fold, launch->node, record);
	fold->tree->nodes[launch->graph_node].calls += launch->counts;
}

/* A call whose work a GPU record will tell of. */
static void expect_work(struct fold *fold, const struct trace_event *event, const struct call *call)
{
	struct launch launch = { .correlation = call->record->correlation,
		.begin_ns = call->begin_ns,
		.end_ns = call->begin_ns + call->duration_ns,
		.tid = event->stream->tid,
		.node = call->node,
		.member = fold->state->members[event->node],
		.counts = fold->state->counting,
		.in_range = event->node != 0,
		.place = event->node,
		.stack = call->record->stack };

	if (!call->worked || !launch.correlation)
		return;
	if (event->kind == TRACE_GRAPH_LAUNCH)
		expect_graph(fold, &launch, event->record);
	if (launch.counts)
		launch.instance = waiting_instance(fold, event, call, launch.graph_node);
	join_add(fold->state->join, &launch);
	fold_gpu_try_held(fold, launch.correlation);
	fold_gpu_go_on(fold);
}

/* Device memory only: what reserved is made of. */
static void flow(
	struct fold *fold, const struct trace_event *event, const struct call *call, const struct memory_change *change)
{
	struct fold_totals *totals = &fold->totals;
	const bool taken = change->taken && memory_is_device(change->kind),
		   given = change->given && memory_is_device(change->given_kind);

	if (totals->level_device == UINT32_MAX && taken)
		totals->level_device = change->device;
	if (given && change->given_device == totals->level_device)
		fold->state->reserved = number_difference(fold->state->reserved, (int64_t)change->given);
	if (taken && change->device == totals->level_device)
		fold->state->reserved = number_sum(fold->state->reserved, (int64_t)change->taken);
	if (taken || given) {
		fold->state->has_reserved = true;
		fold_level_changed(fold);
		if (fold->options.observer && fold->options.observer->level)
			fold->options.observer->level(fold->options.observer->context, event->time_ns, fold->state->allocated,
				fold->state->reserved);
	}
	if (fold->state->reserved > totals->reserved_peak) {
		totals->reserved_peak = fold->state->reserved;
		totals->reserved_peak_at_ns = event->time_ns;
	}
	if (!fold->state->counting)
		return;
	if (given) {
		tree_memory(fold->tree, change->given_node)->free_self += change->given;
		totals->free_bytes += change->given;
	}
	if (taken) {
		tree_memory(fold->tree, call->node)->alloc_self += change->taken;
		totals->alloc_bytes += change->taken;
		fold_add_flows(fold, event->stream->user, &(struct instance_flows){ .alloc_bytes = change->taken });
	}
}

/* Of a whole context. */
static struct memory_change release_all(struct fold *fold, const struct trace_event *event, const struct call *call)
{
	struct memory_change change;
	size_t at = 0;

	while (memory_release_next(fold->memory, event->record, &at, &change))
		flow(fold, event, call, &change);
	return (struct memory_change){ .failed = call->record->result != 0 };
}

static struct memory_change change_of(struct fold *fold, const struct trace_event *event, const struct call *call)
{
	const struct trace_memory *record = event->record;

	if (event->kind == TRACE_ALLOC)
		return memory_alloc(fold->memory, record, call->node, event->time_ns);
	return record->flags & TRACE_MEMORY_ALL ? release_all(fold, event, call) : memory_release(fold->memory, record, call->begin_ns);
}

static void move_memory(struct fold *fold, const struct trace_event *event, const struct call *call, uint32_t leaf_node)
{
	const bool allocates = event->kind == TRACE_ALLOC;
	const struct memory_change change = change_of(fold, event, call);
	const uint32_t nodes[] = { call->node, leaf_node };

	flow(fold, event, call, &change);
	for (unsigned i = 0; fold->state->counting && i < 2; i++) {
		struct node_memory *memory = tree_memory(fold->tree, nodes[i]);

		memory->failed += change.failed;
		memory->allocs += allocates && !change.failed;
		memory->frees += !allocates && !change.failed;
	}
	if (fold->state->counting && change.taken && memory_is_device(change.kind))
		tree_memory(fold->tree, leaf_node)->alloc_self += change.taken;
}

static void count_call(struct fold *fold, uint32_t kind, const struct call *call)
{
	struct fold_counts *counts = &fold->counts;

	counts->captured += call->record->result == 0 && (call->record->head.flags & TRACE_CALL_CAPTURED) != 0;
	counts->failed_calls += call->record->result != 0;
	counts->syncs += kind == TRACE_SYNC && ((const struct trace_sync *)(const void *)call->record)->type;
	if (!call->worked)
		return;
	counts->yielded_calls += fold->state->away &&
				 (kind == TRACE_LAUNCH || kind == TRACE_GRAPH_LAUNCH || kind == TRACE_COPY || kind == TRACE_SET);
	counts->launches += kind == TRACE_LAUNCH;
	counts->graph_launches += kind == TRACE_GRAPH_LAUNCH;
	counts->copies_called += kind == TRACE_COPY;
	counts->sets_called += kind == TRACE_SET;
}

static void tell(struct fold *fold, const struct trace_event *event, const struct call *call, uint32_t leaf_node)
{
	const struct fold_observer *observer = fold->options.observer;
	const struct fold_seen_call seen = { .event = event,
		.begin_ns = call->begin_ns,
		.duration_ns = call->duration_ns,
		.node = leaf_node,
		.owner = leaf_node ? call->node : 0,
		.name = names_text(fold->names, call->record->api),
		.counts = fold->state->counting };

	observer->call(observer->context, &seen);
}

/* A call is written when it has returned; where there was no room its slot was sealed first, and that is no part of it. */
static uint64_t without_pause(const struct trace_event *event, uint64_t begin_ns, uint64_t duration_ns)
{
	const struct thread *thread = event->stream->user;

	return thread && begin_ns <= thread->pause_begin_ns && thread->pause_ns <= duration_ns ? duration_ns - thread->pause_ns : duration_ns;
}

void fold_call(struct fold *fold, const struct trace_event *event)
{
	struct call call = { .record = event->record };
	uint32_t leaf_node = 0;

	call.node = fold_place(fold, event);
	call.duration_ns = reader_duration(fold->reader, call.record->stamp, call.record->duration);
	call.begin_ns = event->time_ns > call.duration_ns ? event->time_ns - call.duration_ns : 0;
	call.duration_ns = without_pause(event, call.begin_ns, call.duration_ns);
	call.worked = call.record->result == 0 && !(call.record->head.flags & TRACE_CALL_CAPTURED);
	count_call(fold, event->kind, &call);
	if (fold->state->counting) {
		leaf_node = leaf(fold, event, &call);
		tree_count(fold->tree, leaf_node, call.duration_ns);
		fold_observe(fold, leaf_node, call.begin_ns, call.duration_ns);
		fold->tree->nodes[call.node].call_ns += call.duration_ns;
		fold_add_flows(fold, event->stream->user, &(struct instance_flows){ .calls = 1 });
	}
	if (__builtin_expect(fold->options.observer && fold->options.observer->call, 0))
		tell(fold, event, &call, leaf_node);
	if (event->kind == TRACE_ALLOC || event->kind == TRACE_FREE)
		move_memory(fold, event, &call, leaf_node);
	else if (event->kind != TRACE_SYNC)
		expect_work(fold, event, &call);
}
