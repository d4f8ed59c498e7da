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

/* The edges to one point: a part of the array of edges. */
struct edge_group {
	const struct path_edge *edges;
	size_t count;
	uint32_t held_up_by; /* the latest predecessor */
	uint64_t latest_ns;
};

/* Returns the earliest time of point `to` that its dependency on point `from` allows. */
static uint64_t ready_time(const struct critical_path_graph *path, uint32_t from, uint32_t to)
{
	const uint64_t at_ns = path_point(path, from), to_ns = path_point(path, to);
	const bool launches = !(to & 1) && path_is_work(path_node(path, to / 2)) &&
			      !path_is_work(path_node(path, from / 2));

	return launches && path->launch_ns < to_ns - at_ns ? at_ns + path->launch_ns
	       : launches                                  ? to_ns
							   : at_ns;
}

static struct edge_group group_of(
	const struct critical_path_graph *path, const struct path_edge *edges, size_t count)
{
	struct edge_group group = { .edges = edges, .count = count, .held_up_by = edges[0].from };

	group.latest_ns = ready_time(path, group.held_up_by, edges[0].to);
	for (size_t i = 1; i < count; i++) {
		const uint64_t at_ns = ready_time(path, edges[i].from, edges[i].to);

		if (at_ns > group.latest_ns) {
			group.held_up_by = edges[i].from;
			group.latest_ns = at_ns;
		}
	}
	return group;
}

/* The group that ends before edge `end`. */
static struct edge_group group_before(const struct critical_path_graph *path, size_t end)
{
	const struct path_edge *edges = path->edges.entries;
	size_t first = end - 1;

	while (first && edges[first - 1].to == edges[end - 1].to)
		first--;
	return group_of(path, edges + first, end - first);
}

/* The group that begins at edge `begin`. */
static struct edge_group group_from(const struct critical_path_graph *path, size_t begin)
{
	const struct path_edge *edges = path->edges.entries;
	size_t end = begin + 1;

	while (end < path->edges.count && edges[end].to == edges[begin].to)
		end++;
	return group_of(path, edges + begin, end - begin);
}

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

static struct path_segment *append_segment(struct critical_path_graph *path, uint64_t begin_ns,
	uint64_t end_ns, uint32_t node, enum path_kind kind)
{
	struct path_segment *segment;

	if (end_ns <= begin_ns)
		return NULL;
	segment = mapped_array_push(&path->segments);
	*segment = (struct path_segment){ .begin_ns = begin_ns,
		.end_ns = end_ns,
		.node = node,
		.before = node,
		.kind = (uint8_t)kind };
	return segment;
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

/* Returns the part of an interval that is the time of the work node->after: of an interval in a
 * call the time of its copy, of a wait that of the kernel that left no room for the work. Empty:
 * none. */
static struct counted_interval part_of_other(const struct critical_path_graph *path,
	const struct path_node *node, uint64_t from_ns, uint64_t to_ns)
{
	const bool has_other = node->after != PATH_NONE && node->kind != ACTIVITY_GRAPH_LAUNCH;
	const struct path_node *other = has_other ? path_node(path, node->after) : NULL;

	if (!other || other->begin_ns >= to_ns || other->end_ns <= from_ns)
		return (struct counted_interval){ to_ns, to_ns };
	return (struct counted_interval){ max_u64(from_ns, other->begin_ns),
		min_u64(to_ns, other->end_ns) };
}

/* Returns when work that came after the point `from` began to wait: from then on the GPU could have
 * started it. */
static uint64_t wait_begin(
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
	struct critical_path_graph *path, uint32_t from, uint32_t to, enum path_kind kind)
{
	const struct path_node *work = path_node(path, to / 2);
	const uint64_t from_ns = path_point(path, from), to_ns = path_point(path, to);
	const uint64_t wait_ns = wait_begin(path, from, work);
	const struct counted_interval other = part_of_other(path, work, wait_ns, to_ns);
	const uint64_t call_ns = copy_call_end(path, from, from_ns, wait_ns);

	if (other.end_ns > other.begin_ns) {
		append_segment(path, other.begin_ns, to_ns, work->after,
			path_kind_of_work(path_node(path, work->after)));
		append_segment(path, from_ns, other.begin_ns, to / 2, kind);
		return;
	}
	append_segment(path, wait_ns, to_ns, to / 2, kind_of_wait(path, from, work));
	append_segment(path, call_ns, wait_ns, to / 2, kind);
	append_segment(path, from_ns, call_ns, from / 2, PATH_CALL);
}

/* Adds time in a call. While its copy runs, the time is that of the copy. */
static void append_call(
	struct critical_path_graph *path, uint32_t from, uint32_t to, uint32_t number)
{
	const struct path_node *call = path_node(path, number);
	const uint64_t from_ns = path_point(path, from), to_ns = path_point(path, to);
	const struct counted_interval copy = part_of_other(path, call, from_ns, to_ns);

	append_segment(path, copy.end_ns, to_ns, number, PATH_CALL);
	append_segment(path, copy.begin_ns, copy.end_ns, call->after, PATH_COPY);
	append_segment(path, from_ns, copy.begin_ns, number, PATH_CALL);
}

static void append_between(struct critical_path_graph *path, uint32_t from, uint32_t to)
{
	uint32_t whose;
	const enum path_kind kind = kind_between(path, from, to, &whose);
	struct path_segment *segment;

	if (kind == PATH_LAUNCH || kind == PATH_HANDOVER) {
		append_start(path, from, to, kind);
		return;
	}
	if (kind == PATH_CALL) {
		append_call(path, from, to, whose);
		return;
	}
	segment = append_segment(path, path_point(path, from), path_point(path, to), whose, kind);
	if (segment)
		segment->before = from / 2;
}

/* A predecessor can come later by the slack of the point, plus its distance to the latest
 * predecessor. */
static void propagate_slack(struct critical_path_graph *path, const struct edge_group *group)
{
	uint64_t *slacks = path->slacks.entries;
	const uint64_t slack = slacks[group->edges[0].to];

	for (size_t i = 0; i < group->count; i++) {
		const uint32_t from = group->edges[i].from;
		const uint64_t more = slack + (group->latest_ns -
						      ready_time(path, from, group->edges[i].to));

		if (more < slacks[from])
			slacks[from] = more;
	}
}

/* Work that had no room would have begun later had the kernel beside it taken longer. */
static void limit_slack_of_other(struct critical_path_graph *path, uint32_t to)
{
	const struct path_node *work = path_node(path, to / 2);
	uint64_t *slacks = path->slacks.entries;

	if ((to & 1) || !path_is_work(work) || work->after == PATH_NONE)
		return;
	for (size_t point = 2 * (size_t)work->after; point <= 2 * (size_t)work->after + 1; point++)
		slacks[point] = min_u64(slacks[point], slacks[to]);
}

/* The first point waited for nothing in the trace. Before it a thread was running, but no GPU
 * work is known. */
static void add_first(struct critical_path_graph *path, uint32_t first)
{
	const bool is_work = path_is_work(path_node(path, first / 2));

	append_segment(path, path->begin_ns, path_point(path, first), first / 2,
		is_work ? PATH_UNKNOWN : PATH_HOST);
}

/* Sets the slack of each moment to the time until the end, which propagate_slack reduces. */
static void start_slacks(struct critical_path_graph *path)
{
	uint64_t *slacks;

	mapped_array_resize(&path->slacks, path->nodes.count * 2);
	slacks = path->slacks.entries;
	for (size_t point = 0; point < path->slacks.count; point++) {
		critical_path_graph_visit(path, point);
		slacks[point] = path->end_ns - path_point(path, (uint32_t)point);
	}
}

static void walk_back(struct critical_path_graph *path)
{
	uint32_t current = path->last;
	size_t visited = 0;

	start_slacks(path);
	for (size_t end = path->edges.count; end;) {
		const struct edge_group group = group_before(path, end);

		critical_path_graph_visit(path, visited++);
		end -= group.count;
		propagate_slack(path, &group);
		limit_slack_of_other(path, group.edges[0].to);
		if (group.edges[0].to != current)
			continue;
		append_between(path, group.held_up_by, current);
		current = group.held_up_by;
	}
	add_first(path, current);
}

static struct mapped_array path_array(size_t size, const char *what)
{
	return (struct mapped_array){ .size = size, .what = what };
}

struct critical_path_graph *critical_path_graph_read(struct process *process)
{
	struct critical_path_graph *path = xcalloc(sizeof *path);

	path->process = process;
	path->last = PATH_NONE;
	path->nodes = path_array(sizeof(struct path_node), "calls and GPU operations");
	path->edges = path_array(sizeof(struct path_edge), "dependencies");
	path->slacks = path_array(sizeof(uint64_t), "slack");
	path->segments = path_array(sizeof(struct path_segment), "the critical path");
	path->activities = activities_read(process);
	critical_path_graph_read_nodes(path);
	critical_path_graph_read_edges(path);
	if (path->last == PATH_NONE)
		return path;
	path->begin_ns = path_point(path, 0);
	path->end_ns = path_point(path, path->last);
	walk_back(path);
	return path;
}

/* Returns when the latest of a group's causes is ready, if they end at `times`. */
static uint64_t latest_ready_time(const struct critical_path_graph *path,
	const struct edge_group *group, const uint64_t *times)
{
	uint64_t latest_ns = 0;

	for (size_t i = 0; i < group->count; i++) {
		const struct path_edge *edge = &group->edges[i];
		const uint64_t delay_ns = ready_time(path, edge->from, edge->to) -
					  path_point(path, edge->from);

		latest_ns = max_u64(latest_ns, times[edge->from] + delay_ns);
	}
	return latest_ns;
}

/* Returns how long point `to` would take after its latest predecessor if what `selected` accepts
 * took `left` of its time. */
static uint64_t own_time_without(const struct critical_path_graph *path, double left,
	bool (*selected)(const struct path_node *node, void *context), void *context,
	const struct edge_group *group)
{
	const uint32_t to = group->edges[0].to;
	const struct path_node *node = path_node(path, to / 2);
	const uint64_t to_ns = path_point(path, to), own_ns = to_ns - group->latest_ns;
	struct counted_interval other;

	if ((to & 1) && selected(node, context))
		return (uint64_t)((double)own_ns * left);
	if (path_is_work(node) == (to & 1))
		return own_ns;
	other = part_of_other(path, node,
		to & 1 ? group->latest_ns
		       : max_u64(group->latest_ns, wait_begin(path, group->held_up_by, node)),
		to_ns);
	if (other.end_ns == other.begin_ns || !selected(path_node(path, node->after), context))
		return own_ns;
	return own_ns - (uint64_t)((double)(other.end_ns - other.begin_ns) * (1 - left));
}

/* Computes when each point would come if what `selected` accepts took `left` of its time. */
static uint64_t end_time_without(const struct critical_path_graph *path, double left,
	bool (*selected)(const struct path_node *node, void *context), void *context,
	uint64_t *times)
{
	uint64_t last_ns = 0;
	size_t visited = 0;

	for (size_t begin = 0; begin < path->edges.count;) {
		const struct edge_group group = group_from(path, begin);
		const uint32_t to = group.edges[0].to;
		const uint64_t at_ns = latest_ready_time(path, &group, times) +
				       own_time_without(path, left, selected, context, &group);

		critical_path_graph_visit(path, visited++);
		times[to] = at_ns;
		last_ns = max_u64(last_ns, at_ns);
		begin += group.count;
	}
	return last_ns;
}

bool path_node_computes(const struct path_node *node, void *context)
{
	(void)context;
	return node->kind == ACTIVITY_KERNEL && !node->communicates && node->counts;
}

uint64_t critical_path_graph_gain(const struct critical_path_graph *path, double left,
	bool (*selected)(const struct path_node *node, void *context), void *context)
{
	struct mapped_array times = { .size = sizeof(uint64_t), .what = "latest times" };
	uint64_t end_ns;

	mapped_array_resize(&times, path->nodes.count * 2);
	for (size_t point = 0; point < times.count; point++)
		((uint64_t *)times.entries)[point] = path_point(path, (uint32_t)point);
	end_ns = end_time_without(path, left, selected, context, times.entries);
	mapped_array_free(&times);
	return path->end_ns > end_ns ? path->end_ns - end_ns : 0;
}

void critical_path_graph_free(struct critical_path_graph *path)
{
	mapped_array_free(&path->nodes);
	mapped_array_free(&path->edges);
	mapped_array_free(&path->slacks);
	mapped_array_free(&path->segments);
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
