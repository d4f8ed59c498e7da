/* SPDX-License-Identifier: MIT */
#include "report/analysis/critical_path/critical_path_walk.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include <stdlib.h>

const char *path_kind_name(enum path_kind kind)
{
	static const char *const names[] = {
#define X(kind, name) name,
		PATH_KINDS(X)
#undef X
	};

	return names[kind];
}

/* A walk from the end to the start. */
struct path_walk {
	struct critical_path_graph *path;
	const struct critical_path_visitor *visitor;
	uint32_t current; /* point of the path */
};

enum path_kind path_kind_of_work(const struct path_node *work)
{
	return work->communicates              ? PATH_COMMUNICATION
	       : work->kind == ACTIVITY_KERNEL ? PATH_KERNEL
	       : work->kind == ACTIVITY_COPY   ? PATH_COPY
					       : PATH_MEMSET;
}

/* What the time between two points is. `*whose`: the node that owns it. */
static enum path_kind kind_between(
	const struct critical_path_graph *path, uint32_t from, uint32_t to, uint32_t *whose)
{
	const struct path_node *before = path_node(path, from / 2), *node = path_node(path, to / 2);

	*whose = to / 2;
	if (path_is_work(node)) {
		if (to & 1)
			return path_kind_of_work(node);
		return path_is_work(before) ? PATH_HANDOVER : PATH_LAUNCH;
	}
	if (to & 1) {
		const bool waited = (from & 1) && path_is_work(before);

		return waited || node->kind == ACTIVITY_WAIT ? PATH_SYNC : PATH_CALL;
	}
	if (from & 1)
		return PATH_HOST;
	*whose = from / 2;
	return before->kind == ACTIVITY_WAIT ? PATH_SYNC : PATH_CALL;
}

static void append_segment_after(const struct path_walk *walk, struct path_segment segment)
{
	if (segment.end_ns > segment.begin_ns && walk->visitor->segment)
		walk->visitor->segment(walk->visitor->context, &segment);
}

static void append_segment(const struct path_walk *walk, uint64_t begin_ns, uint64_t end_ns,
	uint32_t node, enum path_kind kind)
{
	append_segment_after(walk, (struct path_segment){ .begin_ns = begin_ns,
					   .end_ns = end_ns,
					   .node = node,
					   .before = node,
					   .kind = (uint8_t)kind });
}

/* Returns true if `before` is work of the same graph launch as `work`. */
static bool is_of_same_launch(const struct path_node *before, const struct path_node *work)
{
	return path_is_work(before) && work->call != PATH_NONE && before->call == work->call;
}

/* What work waited for, longer than a GPU takes to start. `from`: the point that it came after. */
static enum path_kind kind_of_wait(
	const struct critical_path_graph *path, uint32_t from, const struct path_node *work)
{
	const struct path_node *before = path_node(path, from / 2);

	if (work->after_event && !is_of_same_launch(before, work))
		return work->event_known ? PATH_EVENT : PATH_UNEXPLAINED;
	if (work->call == PATH_NONE || work->nodes_unknown ||
		(path_is_work(before) && before->nodes_unknown))
		return PATH_UNKNOWN;
	return PATH_UNEXPLAINED;
}

struct counted_interval path_part_of_other(const struct critical_path_graph *path,
	const struct path_node *node, uint64_t from_ns, uint64_t to_ns)
{
	const bool has_other = node->after != PATH_NONE && node->kind != ACTIVITY_GRAPH_LAUNCH;
	const struct path_node *other = has_other ? path_node(path, node->after) : NULL;

	if (!other || other->begin_ns >= to_ns || other->end_ns <= from_ns)
		return (struct counted_interval){ to_ns, to_ns };
	return (struct counted_interval){ max_u64(from_ns, other->begin_ns),
		min_u64(to_ns, other->end_ns) };
}

uint64_t path_wait_begin(
	const struct critical_path_graph *path, uint32_t from, const struct path_node *work)
{
	const uint64_t from_ns = path_point(path, from);
	const bool has_launch = work->call != PATH_NONE &&
				!is_of_same_launch(path_node(path, from / 2), work);

	return gap_wait_begin(from_ns, has_launch ? path_node(path, work->call)->end_ns : from_ns,
		work->begin_ns);
}

/* Returns until when work that came after the point `from` was launched by a call that copies: this
 * is the call's time. Returns from_ns for other work. */
static uint64_t copy_call_end(
	const struct critical_path_graph *path, uint32_t from, uint64_t from_ns, uint64_t wait_ns)
{
	const struct path_node *call = path_node(path, from / 2);

	return call->kind == ACTIVITY_COPY_CALL && !call->copies_on_device
		       ? max_u64(from_ns, min_u64(call->end_ns, wait_ns))
		       : from_ns;
}

/* Adds the time before work began in two segments: until the GPU could have started it, and the
 * wait after that. The wait is the time of the kernel that left no room for the work, if there is
 * one. Segments are added from the last to the first. */
static void append_start(
	const struct path_walk *walk, uint32_t from, uint32_t to, enum path_kind kind)
{
	const struct critical_path_graph *path = walk->path;
	const struct path_node *work = path_node(path, to / 2);
	const uint64_t from_ns = path_point(path, from), to_ns = path_point(path, to);
	const uint64_t wait_ns = path_wait_begin(path, from, work);
	const struct counted_interval other = path_part_of_other(path, work, wait_ns, to_ns);
	const uint64_t call_ns = copy_call_end(path, from, from_ns, wait_ns);

	if (other.end_ns > other.begin_ns) {
		append_segment(walk, other.begin_ns, to_ns, work->after,
			path_kind_of_work(path_node(path, work->after)));
		append_segment(walk, from_ns, other.begin_ns, to / 2, kind);
		return;
	}
	append_segment(walk, wait_ns, to_ns, to / 2, kind_of_wait(path, from, work));
	append_segment(walk, call_ns, wait_ns, to / 2, kind);
	append_segment(walk, from_ns, call_ns, from / 2, PATH_CALL);
}

/* Adds time in a call. While its copy runs, the time is that of the copy. */
static void append_call(const struct path_walk *walk, uint32_t from, uint32_t to, uint32_t number)
{
	const struct critical_path_graph *path = walk->path;
	const struct path_node *call = path_node(path, number);
	const uint64_t from_ns = path_point(path, from), to_ns = path_point(path, to);
	const struct counted_interval copy = path_part_of_other(path, call, from_ns, to_ns);

	append_segment(walk, copy.end_ns, to_ns, number, PATH_CALL);
	append_segment(walk, copy.begin_ns, copy.end_ns, call->after, PATH_COPY);
	append_segment(walk, from_ns, copy.begin_ns, number, PATH_CALL);
}

static void append_between(const struct path_walk *walk, uint32_t from, uint32_t to)
{
	uint32_t whose;
	const enum path_kind kind = kind_between(walk->path, from, to, &whose);

	if (kind == PATH_LAUNCH || kind == PATH_HANDOVER)
		append_start(walk, from, to, kind);
	else if (kind == PATH_CALL)
		append_call(walk, from, to, whose);
	else
		append_segment_after(
			walk, (struct path_segment){ .begin_ns = path_point(walk->path, from),
				      .end_ns = path_point(walk->path, to),
				      .node = whose,
				      .before = from / 2,
				      .kind = (uint8_t)kind });
}

/* The first point waited for nothing in the trace. Before it a thread was running, but no GPU
 * work is known. */
static void add_first(const struct path_walk *walk, uint32_t first)
{
	const bool is_work = path_is_work(path_node(walk->path, first / 2));

	append_segment(walk, walk->path->begin_ns, path_point(walk->path, first), first / 2,
		is_work ? PATH_UNKNOWN : PATH_HOST);
}

static void visit_group(struct path_walk *walk, const struct edge_group *group)
{
	if (group->to == walk->current) {
		append_between(walk, group->from[0], walk->current);
		walk->current = group->from[0];
		critical_path_graph_trim(walk->path);
	}
}

void critical_path_graph_walk(
	struct critical_path_graph *path, const struct critical_path_visitor *visitor)
{
	struct path_walk walk = { .path = path, .visitor = visitor, .current = path->last };
	struct edge_group group = edge_groups_last(path->edges);

	while (edge_groups_back(path->edges, &group))
		visit_group(&walk, &group);
	add_first(&walk, walk.current);
	edge_group_free(&group);
}

static struct critical_path_graph *new_graph(struct process *process, struct activities *activities)
{
	struct critical_path_graph *path = xcalloc(sizeof *path);

	path->process = process;
	path->last = PATH_NONE;
	path->nodes = (struct packed_array){ .size = sizeof(struct path_node),
		.class_at = offsetof(struct path_node, kind),
		.related = offsetof(struct path_node, end_ns),
		.related_to = offsetof(struct path_node, begin_ns),
		.what = "calls and GPU operations" };
	path->edges = edge_groups_new();
	path->activities = activities;
	return path;
}

struct critical_path_graph *critical_path_graph_new(struct process *process)
{
	return new_graph(process, activities_read(process));
}

void critical_path_graph_finish(struct critical_path_graph *path)
{
	critical_path_graph_read_edges(path);
	if (path->last == PATH_NONE)
		return;
	path->begin_ns = path_point(path, 0);
	path->end_ns = path_point(path, path->last);
}

struct critical_path_graph *critical_path_graph_read_from(
	struct process *process, struct activities *activities)
{
	struct critical_path_graph *path = new_graph(process, activities);
	const struct activity_visitor visitor = critical_path_graph_visitor(path);
	const struct activity *one;

	for (activities_rewind_last(path->activities); (one = activities_first(path->activities));
		activities_next(path->activities))
		visitor.add(visitor.context, one);
	visitor.end(visitor.context);
	critical_path_graph_finish(path);
	return path;
}

struct critical_path_graph *critical_path_graph_read(struct process *process)
{
	return critical_path_graph_read_from(process, activities_read(process));
}

bool path_node_computes(const struct path_node *node, void *context)
{
	(void)context;
	return node->kind == ACTIVITY_KERNEL && !node->communicates && node->counts;
}

void critical_path_graph_drop(struct critical_path_graph *path)
{
	packed_array_free(&path->nodes);
	edge_groups_free(path->edges);
	path->edges = NULL;
}

void critical_path_graph_free(struct critical_path_graph *path)
{
	critical_path_graph_drop(path);
	free(path->index);
	free(path->role_calls);
	stream_table_free(&path->streams);
	stream_table_free(&path->threads);
	stream_table_free(&path->handles);
	free(path->stream_of_handle);
	free(path->handle_known);
	free(path->stream_ends);
	percentiles_free(&path->launches);
	activities_free(path->activities);
	free(path);
}
