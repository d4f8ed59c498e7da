/* SPDX-License-Identifier: MIT
 * Makes the nodes of the graph: calls and GPU work, by begin. Work finds its call, and shows
 * which GPU stream the call's handle is.
 */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/analysis/critical_path/critical_path_walk.h"
#include "report/analysis/stream_waits.h"
#include <string.h>

#define LOOK_AHEAD 8u /* nodes that are examined before the others are searched */
#define LOOK_BACK 64u /* calls that may begin between a call and CUPTI's record of it */

static struct path_node *add_path_node(struct critical_path_graph *path, const struct activity *one)
{
	struct path_node *node = packed_array_push(&path->nodes);

	if (!((path->nodes.count - 1) % PATH_INDEX_NODES))
		*ARRAY_ADD(path->index, path->index_room, path->index_count) = one->begin_ns;
	*node = (struct path_node){ .begin_ns = one->begin_ns,
		.end_ns = one->end_ns,
		.call = PATH_NONE,
		.stream_index = PATH_NONE,
		.after = PATH_NONE,
		.owner = one->owner,
		.name = one->name,
		.thread = PATH_NONE,
		.device = one->device,
		.kind = one->kind,
		.sync = one->sync,
		.counts = one->counts,
		.copies_on_device = activity_copies_on_device(one),
		.is_pinned = activity_host_memory(one) == TRACE_MEMORY_PINNED };
	return node;
}

static bool node_name_contains(
	const struct critical_path_graph *path, uint32_t name, const char *part)
{
	const struct string_view text = string_table_get(path->process->texts, name);

	return memmem(text.bytes, text.length, part, strlen(part)) != NULL;
}

/* Returns 1 for a node in a backward pass, 0 for another range, -1 for no range of the program. */
static int is_in_backward(const struct tree *tree, uint32_t node)
{
	const uint8_t kind = tree->nodes[node].kind;

	if (!node || kind == NODE_UNATTRIBUTED || kind == NODE_SECTION)
		return -1;
	while (node && tree->nodes[node].kind != NODE_BACKWARD && !tree->nodes[node].ran_elsewhere)
		node = tree->nodes[node].parent;
	return node != 0;
}

/* Counts a call of its thread, for the role of that. */
static void count_call_of_role(struct critical_path_graph *path, const struct path_node *call)
{
	const int in_backward = is_in_backward(path->process->profile->tree, call->owner);

	ARRAY_GROW(path->role_calls, path->role_room, (size_t)call->thread + 1);
	if (in_backward >= 0)
		path->role_calls[call->thread].count[in_backward]++;
}

static void add_call_node(struct critical_path_graph *path, const struct activity *one)
{
	struct path_node *node = add_path_node(path, one);

	node->thread = stream_table_number(&path->threads, 0, one->tid);
	node->call_begin_ns = one->correlation;
	node->stream = one->stream;
	node->event = one->event;
	node->took_effect = !one->captured && !one->result;
	count_call_of_role(path, node);
	node->blocks = one->kind == ACTIVITY_FREE && node_name_contains(path, one->name, "Free") &&
		       !node_name_contains(path, one->name, "Async");
}

/* As first_node_at, if that is one of the nodes after the one found last. PATH_NONE: it is not. */
static uint32_t first_node_after_last(const struct critical_path_graph *path, uint64_t begin_ns)
{
	const uint32_t count = (uint32_t)path->nodes.count;
	uint32_t node = path->found;

	if (node >= count || path_node(path, node)->begin_ns >= begin_ns)
		return PATH_NONE;
	for (unsigned ahead = 0; ahead < LOOK_AHEAD; ahead++)
		if (++node == count || path_node(path, node)->begin_ns >= begin_ns)
			return node;
	return PATH_NONE;
}

/* As first_node_at. Examines one part of the nodes. */
static uint32_t search_first_node(const struct critical_path_graph *path, uint64_t begin_ns)
{
	size_t low = 0, high = path->index_count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (path->index[middle] < begin_ns)
			low = middle + 1;
		else
			high = middle;
	}
	high = low * PATH_INDEX_NODES;
	low = low ? high - PATH_INDEX_NODES : 0;
	if (high > path->nodes.count)
		high = path->nodes.count;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (path_node(path, (uint32_t)middle)->begin_ns < begin_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return (uint32_t)low;
}

/* The first node that begins at or after `begin_ns`. The calls that launched the work of a stream
 * come in order. */
static uint32_t first_node_at(struct critical_path_graph *path, uint64_t begin_ns)
{
	const uint32_t near = first_node_after_last(path, begin_ns);

	path->found = near == PATH_NONE ? search_first_node(path, begin_ns) : near;
	return path->found;
}

/* The call that launched `work`. If several began at that time, prefers the correlation id. */
static uint32_t find_launching_call(struct critical_path_graph *path, const struct activity *work)
{
	const uint32_t thread = stream_table_number(&path->threads, 0, work->tid);
	uint32_t found = PATH_NONE;

	for (uint32_t i = first_node_at(path, work->call_begin_ns); i < path->nodes.count; i++) {
		const struct path_node *node = path_node(path, i);

		if (node->begin_ns != work->call_begin_ns)
			break;
		if (path_is_work(node) || node->thread != thread)
			continue;
		if (node->call_begin_ns == work->correlation)
			return i;
		if (found == PATH_NONE)
			found = i;
	}
	return found;
}

/* The handle of `call` is this stream. A handle with two streams is neither. */
static void note_handle_stream(
	struct critical_path_graph *path, const struct path_node *call, uint32_t stream_index)
{
	const uint32_t handle = stream_table_number(&path->handles, call->device, call->stream);

	ARRAY_GROW(path->stream_of_handle, path->handle_room, (size_t)handle + 1);
	array_grow_zeroed(&path->handle_known, &path->handle_known_room, (size_t)handle + 1, 1);
	if (!path->handle_known[handle])
		path->stream_of_handle[handle] = stream_index;
	else if (path->stream_of_handle[handle] != stream_index)
		path->stream_of_handle[handle] = PATH_NONE;
	path->handle_known[handle] = 1;
}

/* Notes how long a launch took, if it was the launch that the work waited for: not work before it
 * on its stream, or an event. */
static void note_launch(
	struct critical_path_graph *path, const struct path_node *work, const struct activity *one)
{
	uint64_t *end_ns;

	ARRAY_GROW(path->stream_ends, path->stream_ends_room, (size_t)work->stream_index + 1);
	end_ns = &path->stream_ends[work->stream_index];
	if (work->call != PATH_NONE && path_node(path, work->call)->kind != ACTIVITY_GRAPH_LAUNCH &&
		!work->after_event && *end_ns <= one->call_begin_ns &&
		one->begin_ns <= one->call_end_ns + START_MAX_NS)
		percentiles_add(&path->launches, one->begin_ns - one->call_begin_ns, &path->budget);
	*end_ns = max_u64(*end_ns, one->end_ns);
}

static void add_work_node(struct critical_path_graph *path, const struct stream_waits *waits,
	const struct activity *one)
{
	const uint32_t stream_index = stream_table_number(&path->streams, one->device, one->stream);
	const uint32_t call = one->has_call ? find_launching_call(path, one) : PATH_NONE;
	struct path_node *node = add_path_node(path, one);
	struct stream_wait wait;

	path->counts.operations++;
	node->stream_index = stream_index;
	node->communicates = one->communicates;
	node->took_effect = true;
	node->call = call;
	node->after_event = stream_waits_before(waits, one, &wait);
	node->event_known = node->after_event && wait.recorded;
	node->nodes_unknown = one->nodes_unknown;
	node->fills = activity_fills_device(one, path->process);
	node->call_begin_ns = one->has_call && call == PATH_NONE ? one->call_begin_ns : 0;
	if (call != PATH_NONE && path_node(path, call)->kind != ACTIVITY_GRAPH_LAUNCH)
		note_handle_stream(path, path_node(path, call), stream_index);
	note_launch(path, node, one);
}

static bool is_of_another_call(const struct path_node *call, const struct activity *record)
{
	return call->call_begin_ns && record->correlation &&
	       call->call_begin_ns != record->correlation;
}

/* To be converted by find_handle_streams. */
static void set_cupti_stream(
	struct critical_path_graph *path, struct path_node *call, uint32_t stream)
{
	call->stream_index = stream;
	path->has_cupti_streams = true;
}

/* CUPTI numbers streams and events by itself. A call that names no handle gets its ids from
 * CUPTI's record of the same correlation id. Queries, which have records too, are no calls here. */
static void add_cupti_call(struct critical_path_graph *path, const struct activity *record)
{
	const size_t count = path->nodes.count;

	if (!record->timed)
		return;
	for (size_t back = 1; back <= LOOK_BACK && back <= count; back++) {
		struct path_node *node = path_node_edit(path, (uint32_t)(count - back));

		if (path_is_work(node) || !node->sync || node->sync != record->sync ||
			node->end_ns < record->end_ns || is_of_another_call(node, record))
			continue;
		if (!node->stream && record->stream != UINT32_MAX)
			set_cupti_stream(path, node, (uint32_t)record->stream);
		if (!node->event && record->event)
			node->event = record->event;
		return;
	}
}

/* Converts CUPTI's stream ids, which do not name a device, to stream indexes. */
static void find_handle_streams(struct critical_path_graph *path)
{
	for (uint32_t i = 0; path->has_cupti_streams && i < path->nodes.count; i++) {
		const uint32_t stream = path_node(path, i)->stream_index;
		struct path_node *node;

		critical_path_graph_trim(path);
		if (path_is_work(path_node(path, i)) || stream == PATH_NONE)
			continue;
		node = path_node_edit(path, i);
		node->stream_index = PATH_NONE;
		for (uint32_t stream_index = 0; stream_index < path->streams.count; stream_index++)
			if (path->streams.entries[stream_index].stream == stream)
				node->stream_index = stream_index;
	}
}

static void add_to_path(void *context, const struct activity *one)
{
	struct critical_path_graph *path = context;

	if (activity_is_call(one))
		stream_waits_add(path->waits, one);
	if (activity_is_call(one) && one->timed)
		add_call_node(path, one);
	else if (activity_is_work(one) && one->timed)
		add_work_node(path, path->waits, one);
	else if (activity_is_work(one))
		path->counts.untimed++;
	else if (one->kind == ACTIVITY_SYNC)
		add_cupti_call(path, one);
}

static void finish_nodes(void *context)
{
	struct critical_path_graph *path = context;

	stream_waits_free(path->waits);
	path->waits = NULL;
	find_handle_streams(path);
	path->launch_ns = percentiles_get(&path->launches, 50);
}

struct activity_visitor critical_path_graph_visitor(struct critical_path_graph *path)
{
	path->waits = stream_waits_new();
	return (struct activity_visitor){
		.context = path, .add = add_to_path, .end = finish_nodes
	};
}
