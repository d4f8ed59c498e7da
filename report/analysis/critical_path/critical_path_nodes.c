/* SPDX-License-Identifier: MIT
 * path_nodes.c: the calls and the work of a run as nodes, by begin: work finds its call, and shows on which stream of the
 * GPU the calls on that handle end up.
 */
#include "report/base/alloc.h"
#include "report/analysis/critical_path/critical_path_walk.h"
#include <string.h>

#define LOOK_BACK 64u /* calls that may have begun between a call and what CUPTI told of it */

static struct path_node *add(struct path *path, const struct activity *one)
{
	struct path_node *node = spool_add(&path->nodes);

	*node = (struct path_node){ .begin_ns = one->begin_ns,
		.end_ns = one->end_ns,
		.call = PATH_NONE,
		.lane = PATH_NONE,
		.after = PATH_NONE,
		.owner = one->owner,
		.name = one->name,
		.thread = PATH_NONE,
		.device = one->device,
		.kind = one->kind,
		.sync = one->sync,
		.counts = one->counts };
	return node;
}

static bool has(const struct path *path, uint32_t name, const char *part)
{
	const struct text text = text_of(path->process->texts, name);

	return memmem(text.bytes, text.length, part, strlen(part)) != NULL;
}

static void add_call(struct path *path, const struct activity *one)
{
	struct path_node *node = add(path, one);

	node->thread = lanes_number(&path->threads, 0, one->tid);
	node->call_begin_ns = one->correlation;
	node->stream = one->stream;
	node->event = one->event;
	node->works = !one->captured && !one->result;
	node->blocks = one->kind == ACTIVITY_FREE && has(path, one->name, "Free") && !has(path, one->name, "Async");
}

/* The first node that began then. */
static uint32_t first_at(const struct path *path, uint64_t begin_ns)
{
	size_t low = 0, high = path->nodes.count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (path_node(path, (uint32_t)middle)->begin_ns < begin_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return (uint32_t)low;
}

/* Of several at once, the one with that correlation. */
static uint32_t call_of(struct path *path, const struct activity *work)
{
	const uint32_t thread = lanes_number(&path->threads, 0, work->tid);
	uint32_t found = PATH_NONE;

	for (uint32_t i = first_at(path, work->call_begin_ns); i < path->nodes.count; i++) {
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

/* The handle that the call named is that stream; of two it is neither. */
static void learn(struct path *path, const struct path_node *call, uint32_t lane)
{
	const uint32_t handle = lanes_number(&path->handles, call->device, call->stream);

	grow(&path->lane_of_handle, &path->handle_room, (size_t)handle + 1, sizeof *path->lane_of_handle);
	grow(&path->handle_known, &path->handle_known_room, (size_t)handle + 1, 1);
	if (!path->handle_known[handle])
		path->lane_of_handle[handle] = lane;
	else if (path->lane_of_handle[handle] != lane)
		path->lane_of_handle[handle] = PATH_NONE;
	path->handle_known[handle] = 1;
}

static void add_work(struct path *path, const struct activity *one)
{
	const uint32_t lane = lanes_number(&path->lanes, one->device, one->stream);
	const uint32_t call = one->has_call ? call_of(path, one) : PATH_NONE;
	struct path_node *node = add(path, one);

	path->counts.works++;
	node->lane = lane;
	node->communicates = one->communicates;
	node->works = true;
	node->call = call;
	node->call_begin_ns = one->has_call ? one->call_begin_ns : 0;
	if (call == PATH_NONE)
		path->counts.without_call++;
	else if (path_node(path, call)->kind != ACTIVITY_GRAPH_LAUNCH) {
		learn(path, path_node(path, call), lane);
		samples_add(&path->launches, one->begin_ns - one->call_begin_ns, &path->budget);
	}
}

/* CUPTI has its own numbers of streams and events; a call that names no handle of its own has them from there. */
static void add_told(struct path *path, const struct activity *told)
{
	const size_t count = path->nodes.count;

	if (!told->timed)
		return;
	for (size_t back = 1; back <= LOOK_BACK && back <= count; back++) {
		struct path_node *node = path_node(path, (uint32_t)(count - back));

		if (path_is_work(node) || !node->sync || node->sync != told->sync || node->end_ns < told->end_ns)
			continue;
		if (!node->stream && told->stream != UINT32_MAX)
			node->lane = (uint32_t)told->stream;
		if (!node->event && told->event)
			node->event = told->event;
		return;
	}
}

/* A number of CUPTI's, which says nothing of the device. */
static void find_lanes(struct path *path)
{
	for (uint32_t i = 0; i < path->nodes.count; i++) {
		struct path_node *node = path_node(path, i);
		const uint32_t stream = node->lane;

		if (path_is_work(node) || stream == PATH_NONE)
			continue;
		node->lane = PATH_NONE;
		for (uint32_t lane = 0; lane < path->lanes.count; lane++)
			if (path->lanes.lanes[lane].stream == stream)
				node->lane = lane;
	}
}

void path_read_nodes(struct path *path)
{
	const struct activity *one;

	for (activities_rewind(path->activities); (one = activities_first(path->activities));
		activities_next(path->activities)) {
		if (activity_is_call(one) && one->timed)
			add_call(path, one);
		else if (activity_is_work(one) && one->timed)
			add_work(path, one);
		else if (activity_is_work(one))
			path->counts.untimed++;
		else if (one->kind == ACTIVITY_SYNC)
			add_told(path, one);
	}
	find_lanes(path);
	path->launch_ns = samples_percentile(&path->launches, 50);
}
