/* SPDX-License-Identifier: MIT
 * Makes the edges of the graph: visits the points by time, and finds what each waited for.
 */
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/analysis/critical_path/critical_path_walk.h"
#include "report/analysis/critical_path/cuda_events.h"
#include "report/base/heap.h"
#include "report/gpu/device_timeline.h"
#include <stdlib.h>

/* Threads take turns. A backward pass blocks the thread that called it, while autograd's threads,
 * which do nothing else, run it. So any call of the one since the last call of the other is what
 * that waited for (find_thread_roles).
 *
 * Of other threads it is not known who waits for whom. If one made this many calls since the last
 * call of a thread, the next call of that thread is assumed to have waited for the last of them.
 * Threads that work at the same time do not have such series. Of several threads, the one counts
 * that made its series last: not one that only polls events now and then. */
#define TURN_CALLS 16u

/* A thread at the current point. */
struct edge_thread {
	/* All node + 1: the innermost open call; the last outer call that is over; the last
	 * inner call that is over. */
	uint32_t open, last, inner;
	uint32_t series[TURN_CALLS]; /* its last outer calls, in turn: all node + 1; 0: none */
	uint64_t calls;              /* how many outer calls it has made */
	struct event_record *wait;   /* what its waiting call waits for */
};

/* What a thread does in a training program. */
enum thread_role {
	ROLE_OTHER,
	ROLE_CALLER,   /* of the backward passes: has most calls outside of them */
	ROLE_AUTOGRAD, /* of all its calls in ranges, each is in a backward pass */
};

/* A node that has begun, with its end at that time. If a wait makes its end earlier (end_running),
 * it is over when its turn comes. */
struct node_end {
	uint64_t end_ns;
	uint32_t node;
	bool is_work;
};

/* Whether `a` ends before `b`. At equal times work ends first, then inner calls before outer
 * ones. */
static inline bool ends_before(const struct node_end *a, const struct node_end *b)
{
	if (a->end_ns != b->end_ns)
		return a->end_ns < b->end_ns;
	if (a->is_work != b->is_work)
		return a->is_work;
	return a->is_work ? a->node < b->node : a->node > b->node;
}

DEFINE_HEAP(node_ends, struct node_end, ends_before)

struct edge_builder {
	struct critical_path_graph *path;
	struct cuda_events *events;
	struct edge_thread *threads;
	uint32_t *running;     /* by stream index: node + 1 */
	struct node_end *ends; /* heap; the first to end on top */
	size_t thread_room, running_room, end_count, end_room;
	bool *is_default;     /* by stream index: the default stream of its context */
	uint8_t *roles;       /* by thread: enum thread_role */
	uint8_t *over;        /* by node, one bit each: it has ended */
	uint32_t turn_thread; /* that made the last call */
	uint32_t now;         /* the point that edges lead to */
	uint64_t now_ns;      /* its time */
	bool begins_work;     /* it is the begin of work */
	uint64_t latest_ns;   /* of the points that the work waits for: the latest */
};

static bool is_over(const struct edge_builder *builder, uint32_t node)
{
	return builder->over[node / 8] >> (node % 8) & 1;
}

static void set_over(struct edge_builder *builder, uint32_t node)
{
	builder->over[node / 8] |= (uint8_t)(1u << (node % 8));
}

static uint32_t stream_of_call(const struct critical_path_graph *path, const struct path_node *call)
{
	struct stream_table *handles = (struct stream_table *)(uintptr_t)&path->handles;
	uint32_t handle;

	if (call->stream_index != PATH_NONE)
		return call->stream_index;
	if (!handles->count)
		return PATH_NONE;
	handle = stream_table_number(handles, call->device, call->stream);
	return handle < path->handle_room && path->handle_known[handle]
		       ? path->stream_of_handle[handle]
		       : PATH_NONE;
}

/* Makes edges lead to a point from now on. */
static void set_now(struct edge_builder *builder, uint32_t point, const struct path_node *node)
{
	builder->now = point;
	builder->now_ns = point & 1 ? node->end_ns : node->begin_ns;
	builder->begins_work = !(point & 1) && path_is_work(node);
}

/* Adds an edge from a point to the point that is set. */
static void add_edge_from(struct edge_builder *builder, uint32_t point)
{
	const uint64_t at_ns = path_point(builder->path, point),
		       delay_ns = builder->begins_work && !(point & 1)
					  ? min_u64(builder->path->launch_ns,
						    builder->now_ns - at_ns)
					  : 0;

	edge_groups_add(builder->path->edges, point, builder->now, at_ns + delay_ns);
	builder->latest_ns = max_u64(builder->latest_ns, at_ns);
}

static void add_event_edge(void *context, uint32_t node)
{
	struct edge_builder *builder = context;

	if (node != PATH_NONE)
		add_edge_from(builder, 2 * node + 1);
	else
		builder->path->counts.stream_waits_unknown++;
}

/* Whether one of two streams is the default one. */
static bool waits_by_default(const struct edge_builder *builder, uint32_t one, uint32_t other)
{
	return builder->is_default && (builder->is_default[one] || builder->is_default[other]);
}

/* Whether `work` may have waited for the last work of stream `stream_index`: one of the two is
 * the default stream, or `work` waited for an event. That work was launched earlier and ended just
 * before. */
static bool may_hold_up(
	const struct edge_builder *builder, const struct path_node *work, uint32_t stream_index)
{
	const uint32_t last = cuda_events_last_run(builder->events, stream_index);
	const struct path_node *other = last != PATH_NONE ? path_node(builder->path, last) : NULL;

	return other && stream_index != work->stream_index && other->device == work->device &&
	       (work->after_event || waits_by_default(builder, stream_index, work->stream_index)) &&
	       other->end_ns > builder->latest_ns && other->end_ns <= work->begin_ns &&
	       work->begin_ns - other->end_ns <= START_MAX_NS &&
	       path_launch_ns(builder->path, other) &&
	       path_launch_ns(builder->path, other) < path_launch_ns(builder->path, work);
}

/* Adds an edge to work if no known edge explains why it began so late. `call_ns`: begin of its
 * launch; 0: not known. */
static void add_inferred_edge(
	struct edge_builder *builder, const struct path_node *work, uint64_t call_ns)
{
	uint32_t found = PATH_NONE, found_stream = 0;

	if (builder->latest_ns < call_ns)
		builder->latest_ns = call_ns;
	if ((!builder->is_default && !work->after_event) || work->begin_ns < builder->latest_ns ||
		work->begin_ns - builder->latest_ns <= START_MAX_NS)
		return;
	for (uint32_t stream_index = 0; stream_index < builder->path->streams.count;
		stream_index++) {
		if (!may_hold_up(builder, work, stream_index))
			continue;
		found = cuda_events_last_run(builder->events, stream_index);
		found_stream = stream_index;
		builder->latest_ns = path_node(builder->path, found)->end_ns;
	}
	if (found == PATH_NONE)
		return;
	add_edge_from(builder, 2 * found + 1);
	builder->path->counts.default_waits += waits_by_default(
		builder, found_stream, work->stream_index);
}

/* Adds edges from the GPU work before `work` on its stream: the work that ran last, and the work
 * that was added last. */
static void add_stream_order_edges(struct edge_builder *builder, const struct path_node *work)
{
	const uint32_t before = cuda_events_last(builder->events, work->stream_index),
		       there = cuda_events_last_run(builder->events, work->stream_index);

	if (there != PATH_NONE)
		add_edge_from(builder, 2 * there + 1);
	if (before != there && before != PATH_NONE)
		add_edge_from(builder, 2 * before + 1);
}

/* Returns the kernel that left no room on the GPU for `work`, which waited from `from_ns` on.
 * PATH_NONE: there is none, or work of another stream ended just before `work` began, for which it
 * may have waited. */
static uint32_t kernel_without_room(
	const struct edge_builder *builder, const struct path_node *work, uint64_t from_ns)
{
	const struct critical_path_graph *path = builder->path;
	uint32_t found = PATH_NONE;

	for (uint32_t stream = 0; stream < path->streams.count; stream++) {
		const uint32_t last = cuda_events_last_run(builder->events, stream),
			       running = stream < builder->running_room ? builder->running[stream]
									: 0;
		const struct path_node *other = running ? path_node(path, running - 1) : NULL;

		if (stream == work->stream_index ||
			path->streams.entries[stream].device != work->device)
			continue;
		if (last != PATH_NONE &&
			work->begin_ns - path_node(path, last)->end_ns <= START_MAX_NS)
			return PATH_NONE;
		if (other && !is_over(builder, running - 1) && other->fills &&
			other->begin_ns <= from_ns + START_MAX_NS && other->end_ns > work->begin_ns)
			found = running - 1;
	}
	return found;
}

/* Finds why work waits that all its edges let begin earlier. `call`: NULL: not known. */
static void note_room(struct edge_builder *builder, uint32_t number, const struct path_node *work,
	const struct path_node *call)
{
	const uint64_t call_end_ns = call ? call->end_ns : work->begin_ns,
		       from_ns = gap_wait_begin(builder->latest_ns, call_end_ns, work->begin_ns);

	const uint32_t kernel = from_ns < work->begin_ns
					? kernel_without_room(builder, work, from_ns)
					: PATH_NONE;

	if (kernel != PATH_NONE)
		path_node_edit(builder->path, number)->after = kernel;
}

/* A copy begins while its call runs. Of several copies of a call, the first counts. */
static void note_copy_of_call(struct edge_builder *builder, uint32_t number)
{
	const struct path_node *work = path_node(builder->path, number);

	if (work->kind == ACTIVITY_COPY && path_node(builder->path, work->call)->after == PATH_NONE)
		path_node_edit(builder->path, work->call)->after = number;
}

static void begin_work(struct edge_builder *builder, uint32_t number, const struct path_node *work)
{
	const bool has_call = work->call != PATH_NONE;
	const struct path_node *call = has_call ? path_node(builder->path, work->call) : NULL;
	const uint64_t call_ns = call ? call->begin_ns : work->call_begin_ns;

	builder->latest_ns = 0;
	add_stream_order_edges(builder, work);
	cuda_events_work_begin(builder->events, work->stream_index,
		call_ns ? call_ns : work->begin_ns, add_event_edge, builder);
	if (call && call->kind == ACTIVITY_GRAPH_LAUNCH && call->after != PATH_NONE)
		add_edge_from(builder, 2 * call->after + 1);
	add_inferred_edge(builder, work, call_ns);
	if (call)
		add_edge_from(builder, 2 * work->call);
	note_room(builder, number, work, call);
	if (call && call->kind == ACTIVITY_COPY_CALL && !is_over(builder, work->call) &&
		!work->copies_on_device)
		note_copy_of_call(builder, number);
	ARRAY_GROW(builder->running, builder->running_room, (size_t)work->stream_index + 1);
	builder->running[work->stream_index] = number + 1;
}

/* Later work of the CUDA stream in which the graph was launched waits for all of the graph, on
 * any stream. */
static void end_of_graph(struct edge_builder *builder, uint32_t call, uint32_t work)
{
	const uint32_t stream_index = stream_of_call(builder->path, path_node(builder->path, call));

	path_node_edit(builder->path, call)->after = work;
	if (stream_index != PATH_NONE)
		cuda_events_work_end(builder->events, stream_index, work, false);
}

static void end_work(struct edge_builder *builder, uint32_t number, const struct path_node *work)
{
	const struct path_node *call = work->call != PATH_NONE
					       ? path_node(builder->path, work->call)
					       : NULL;

	add_edge_from(builder, 2 * number);
	cuda_events_work_end(builder->events, work->stream_index, number, true);
	if (!call)
		return;
	if (call->kind == ACTIVITY_GRAPH_LAUNCH)
		end_of_graph(builder, work->call, number);
	else if (!is_over(builder, work->call) && work->kind == ACTIVITY_COPY)
		path_node_edit(builder->path, work->call)->after = number;
}

static void apply_call_effect(
	struct edge_builder *builder, struct edge_thread *thread, const struct path_node *call)
{
	uint32_t stream_index;

	if (!call->took_effect ||
		(call->kind != ACTIVITY_EVENT_RECORD && call->kind != ACTIVITY_STREAM_WAIT &&
			call->kind != ACTIVITY_WAIT))
		return;
	stream_index = stream_of_call(builder->path, call);
	switch (call->kind) {
	case ACTIVITY_EVENT_RECORD:
		cuda_events_record(builder->events, call->event, stream_index, call->begin_ns);
		break;
	case ACTIVITY_STREAM_WAIT:
		builder->path->counts.stream_waits++;
		if (stream_index == PATH_NONE)
			builder->path->counts.stream_waits_unknown++;
		else
			cuda_events_wait(
				builder->events, call->event, stream_index, call->begin_ns);
		break;
	case ACTIVITY_WAIT:
		event_record_release(thread->wait);
		thread->wait = call->sync == TRACE_SYNC_EVENT
				       ? cuda_events_find(builder->events, call->event)
			       : call->sync == TRACE_SYNC_STREAM
				       ? cuda_events_stream_now(
						 builder->events, stream_index, call->begin_ns)
				       : NULL;
		break;
	}
}

/* Returns the thread other than `thread` that last made TURN_CALLS calls after the call `since`
 * (node + 1; 0: ever). PATH_NONE: none did. */
static uint32_t thread_before(const struct edge_builder *builder, uint32_t thread, uint32_t since)
{
	uint32_t found = PATH_NONE, latest = since;

	for (uint32_t other = 0; other < builder->thread_room; other++) {
		const struct edge_thread *one = &builder->threads[other];
		const uint32_t first = one->series[one->calls % TURN_CALLS];

		if (other == thread || first <= latest)
			continue;
		latest = first;
		found = other;
	}
	return found;
}

/* Returns the thread that made the last call after the call `since` (node + 1; 0: ever), of those
 * that `thread` takes turns with in backward passes. PATH_NONE: none did. */
static uint32_t backward_partner(
	const struct edge_builder *builder, uint32_t thread, uint32_t since)
{
	const enum thread_role partner = builder->roles[thread] == ROLE_CALLER     ? ROLE_AUTOGRAD
					 : builder->roles[thread] == ROLE_AUTOGRAD ? ROLE_CALLER
										   : ROLE_OTHER;
	uint32_t found = PATH_NONE, latest = since;

	for (uint32_t other = 0; partner && other < builder->path->threads.count; other++)
		if (builder->roles[other] == partner && builder->threads[other].last > latest) {
			latest = builder->threads[other].last;
			found = other;
		}
	return found;
}

/* Adds an edge from the last call of another thread, if it is this thread's turn after that. */
static void note_thread_turn(struct edge_builder *builder, uint32_t thread, uint32_t number)
{
	struct edge_thread *own = &builder->threads[thread];
	uint32_t before = PATH_NONE;

	own->series[own->calls++ % TURN_CALLS] = number + 1;
	if (thread != builder->turn_thread)
		before = backward_partner(builder, thread, own->last);
	if (thread != builder->turn_thread && before == PATH_NONE)
		before = thread_before(builder, thread, own->last);
	builder->turn_thread = thread;
	if (before != PATH_NONE && builder->threads[before].last)
		add_edge_from(builder, 2 * (builder->threads[before].last - 1) + 1);
}

/* Puts a call below the call around it. It ends no later than that one. */
static void nest_call(struct edge_builder *builder, uint32_t number, uint32_t outer)
{
	struct path_node *call = path_node_edit(builder->path, number);

	call->call = outer;
	add_edge_from(builder, 2 * outer);
	call->end_ns = min_u64(call->end_ns, path_node(builder->path, outer)->end_ns);
}

static void begin_call_point(
	struct edge_builder *builder, uint32_t number, const struct path_node *call)
{
	struct edge_thread *thread;

	ARRAY_GROW(builder->threads, builder->thread_room, (size_t)call->thread + 1);
	thread = &builder->threads[call->thread];
	if (thread->open) {
		nest_call(builder, number, thread->open - 1);
	} else {
		if (thread->last)
			add_edge_from(builder, 2 * (thread->last - 1) + 1);
		note_thread_turn(builder, call->thread, number);
	}
	thread->open = number + 1;
	apply_call_effect(builder, thread, call);
}

static void end_point(struct edge_builder *builder, uint32_t number);

/* Two clocks differ a little. Work that is waited for, and seems to end just after the wait,
 * ends with it. */
static void end_running(
	struct edge_builder *builder, const struct path_node *wait, uint32_t stream_index)
{
	const uint32_t number = stream_index < builder->running_room &&
						builder->running[stream_index]
					? builder->running[stream_index] - 1
					: PATH_NONE;
	const struct path_node *work = number != PATH_NONE ? path_node(builder->path, number)
							   : NULL;

	if (!work || is_over(builder, number) || work->end_ns > wait->end_ns + CLOCK_TOLERANCE_NS ||
		path_launch_ns(builder->path, work) > wait->begin_ns)
		return;
	path_node_edit(builder->path, number)->end_ns = wait->end_ns;
	end_point(builder, number);
}

/* The last work of the stream, if `wait` is for its device and began after the work was
 * launched. */
static uint32_t last_work_of_stream(
	const struct edge_builder *builder, const struct path_node *wait, uint32_t stream_index)
{
	const uint32_t last = cuda_events_last(builder->events, stream_index);
	const struct path_node *work = last != PATH_NONE ? path_node(builder->path, last) : NULL;

	if (!work || (wait->device != ACTIVITY_NO_DEVICE && work->device != wait->device) ||
		path_launch_ns(builder->path, work) > wait->begin_ns)
		return PATH_NONE;
	return last;
}

static uint32_t last_work_of_device(
	const struct edge_builder *builder, const struct path_node *wait)
{
	uint32_t found = PATH_NONE;

	for (uint32_t stream_index = 0; stream_index < builder->path->streams.count;
		stream_index++) {
		const uint32_t last = last_work_of_stream(builder, wait, stream_index);

		if (last != PATH_NONE &&
			(found == PATH_NONE || path_node(builder->path, last)->end_ns >
						       path_node(builder->path, found)->end_ns))
			found = last;
	}
	return found;
}

/* A wait for all of a device: each of its streams could have been the last. `but` has its edge
 * already. */
static void add_device_edge(
	struct edge_builder *builder, const struct path_node *wait, uint32_t but)
{
	for (uint32_t stream_index = 0; stream_index < builder->path->streams.count;
		stream_index++) {
		const uint32_t last = last_work_of_stream(builder, wait, stream_index);

		if (last != PATH_NONE && last != but)
			add_edge_from(builder, 2 * last + 1);
	}
}

/* A wait for something unknown counts as one for the last work that ended during it. */
static uint32_t last_ended_inside(const struct edge_builder *builder, const struct path_node *wait)
{
	const uint32_t last = last_work_of_device(builder, wait);

	return last != PATH_NONE && path_node(builder->path, last)->end_ns > wait->begin_ns
		       ? last
		       : PATH_NONE;
}

/* The copy of `call`, if it has ended in the call. */
static uint32_t copy_that_ended(const struct edge_builder *builder, const struct path_node *call)
{
	return call->kind != ACTIVITY_GRAPH_LAUNCH && call->after != PATH_NONE &&
			       is_over(builder, call->after)
		       ? call->after
		       : PATH_NONE;
}

/* The copy of `call` that began in it and still runs, if it was late: with pageable memory, the
 * call cannot feed the copy before the stream is free. */
static uint32_t copy_that_began(const struct edge_builder *builder, const struct path_node *call)
{
	const struct path_node *copy = call->kind == ACTIVITY_COPY_CALL && call->after != PATH_NONE
					       ? path_node(builder->path, call->after)
					       : NULL;

	return copy && !is_over(builder, call->after) && !copy->is_pinned &&
			       copy->begin_ns - call->begin_ns > START_MAX_NS
		       ? call->after
		       : PATH_NONE;
}

/* The work that the call waited for. May end work, so call it before making edges to the end of
 * `call`. */
static uint32_t awaited_work(struct edge_builder *builder, const struct edge_thread *thread,
	const struct path_node *call)
{
	uint32_t work;

	if (call->blocks)
		return last_ended_inside(builder, call);
	if (call->kind != ACTIVITY_WAIT || !call->took_effect)
		return copy_that_ended(builder, call);
	if (call->sync == TRACE_SYNC_CONTEXT) {
		for (uint32_t stream_index = 0; stream_index < builder->path->streams.count;
			stream_index++)
			if (call->device == ACTIVITY_NO_DEVICE ||
				call->device == builder->path->streams.entries[stream_index].device)
				end_running(builder, call, stream_index);
		return last_work_of_device(builder, call);
	}
	work = thread->wait ? cuda_events_done(builder->events, thread->wait) : PATH_NONE;
	return work == PATH_NONE ? last_ended_inside(builder, call) : work;
}

static void finish_wait(struct edge_builder *builder, struct edge_thread *thread, bool is_known)
{
	builder->path->counts.waits++;
	builder->path->counts.waits_unknown += !is_known;
	event_record_release(thread->wait);
	thread->wait = NULL;
}

/* Adds the edges from what a call waited for to its end, `point`. */
static void add_wait_edges(struct edge_builder *builder, struct edge_thread *thread, uint32_t point,
	const struct path_node *call, bool waits)
{
	const uint32_t stream_index = waits && call->sync == TRACE_SYNC_STREAM
					      ? stream_of_call(builder->path, call)
					      : PATH_NONE;
	uint32_t work;

	if (stream_index != PATH_NONE)
		end_running(builder, call, stream_index);
	work = awaited_work(builder, thread, call);
	set_now(builder, point, call);
	if (work != PATH_NONE)
		add_edge_from(builder, 2 * work + 1);
	else if (copy_that_began(builder, call) != PATH_NONE)
		add_edge_from(builder, 2 * call->after);
	if (waits && call->sync == TRACE_SYNC_CONTEXT)
		add_device_edge(builder, call, work);
	if (waits)
		finish_wait(builder, thread, work != PATH_NONE);
}

static void end_call_point(
	struct edge_builder *builder, uint32_t number, const struct path_node *call)
{
	struct edge_thread *thread = &builder->threads[call->thread];

	add_wait_edges(builder, thread, 2 * number + 1, call,
		call->kind == ACTIVITY_WAIT && call->took_effect);
	if (thread->inner && path_node(builder->path, thread->inner - 1)->call == number)
		add_edge_from(builder, 2 * (thread->inner - 1) + 1);
	add_edge_from(builder, 2 * number);
	if (call->call == PATH_NONE)
		thread->last = number + 1;
	else
		thread->inner = number + 1;
	thread->open = call->call + 1; /* 0: none */
}

static void note_span_of_work(struct critical_path_graph *path, const struct path_node *work)
{
	path->work_begin_ns = min_u64(path->work_begin_ns, work->begin_ns);
	path->work_end_ns = max_u64(path->work_end_ns, work->end_ns);
}

static void end_point(struct edge_builder *builder, uint32_t number)
{
	const struct path_node *node;

	if (is_over(builder, number))
		return;
	node = path_node(builder->path, number);
	if (path_is_work(node)) {
		set_now(builder, 2 * number + 1, node);
		note_span_of_work(builder->path, node);
		end_work(builder, number, node);
	} else {
		end_call_point(builder, number, node);
	}
	set_over(builder, number);
	builder->path->last = 2 * number + 1;
}

static void end_points_until(struct edge_builder *builder, uint64_t at_ns)
{
	while (builder->end_count && builder->ends[0].end_ns <= at_ns) {
		const uint32_t number = builder->ends[0].node;

		builder->end_count--;
		node_ends_down(
			builder->ends, builder->end_count, builder->ends[builder->end_count]);
		end_point(builder, number);
	}
}

/* Adds the edges to the begin of a node. */
static void begin_point(struct edge_builder *builder, uint32_t number)
{
	const struct path_node *node = path_node(builder->path, number);

	end_points_until(builder, node->begin_ns);
	set_now(builder, 2 * number, node);
	if (path_is_work(node))
		begin_work(builder, number, node);
	else
		begin_call_point(builder, number, node);
	if (node->end_ns == node->begin_ns) {
		end_point(builder, number);
		return;
	}
	ARRAY_GROW(builder->ends, builder->end_room, builder->end_count + 1);
	node_ends_up(builder->ends, builder->end_count++,
		(struct node_end){
			.end_ns = node->end_ns, .node = number, .is_work = path_is_work(node) });
}

/* Returns an array by stream index: whether the stream is the default one of its context. The
 * caller frees it. Returns NULL if there are fewer than two streams, or none is known to be a
 * default one. A CONTEXT record with `stream` UINT32_MAX is a context; its null_stream UINT32_MAX:
 * unknown. */
static bool *find_default_streams(struct critical_path_graph *path)
{
	const struct trace_context *context;
	bool *is_default = NULL;

	for (uint32_t i = 0; path->streams.count > 1 &&
			     (context = reader_dictionary(path->process->reader, TRACE_CONTEXT, i));
		i++)
		for (uint32_t stream_index = 0;
			context->stream == UINT32_MAX && context->null_stream != UINT32_MAX &&
			stream_index < path->streams.count;
			stream_index++) {
			if (path->streams.entries[stream_index].device != context->device ||
				path->streams.entries[stream_index].stream != context->null_stream)
				continue;
			if (!is_default)
				is_default = xcalloc(path->streams.count * sizeof *is_default);
			is_default[stream_index] = true;
		}
	return is_default;
}

/* Returns an array by thread: enum thread_role. The caller frees it. */
static uint8_t *find_thread_roles(struct critical_path_graph *path)
{
	const size_t threads = path->threads.count + 1u;
	uint8_t *roles = xcalloc(threads);
	uint32_t caller = 0;

	ARRAY_GROW(path->role_calls, path->role_room, threads);
	for (uint32_t thread = 0; thread < path->threads.count; thread++) {
		const uint64_t *calls = path->role_calls[thread].count;

		caller = calls[0] > path->role_calls[caller].count[0] ? thread : caller;
		if (calls[1] && !calls[0])
			roles[thread] = ROLE_AUTOGRAD;
	}
	if (path->role_calls[caller].count[0])
		roles[caller] = ROLE_CALLER;
	return roles;
}

static void free_edge_builder(struct edge_builder *builder)
{
	for (size_t i = 0; i < builder->thread_room; i++)
		event_record_release(builder->threads[i].wait);
	cuda_events_free(builder->events);
	free(builder->threads);
	free(builder->running);
	free(builder->roles);
	free(builder->is_default);
	free(builder->ends);
	free(builder->over);
}

void critical_path_graph_read_edges(struct critical_path_graph *path)
{
	struct edge_builder builder = { .path = path, .events = cuda_events_new() };

	builder.is_default = find_default_streams(path);
	builder.roles = find_thread_roles(path);
	builder.over = xcalloc(path->nodes.count / 8 + 1);
	path->work_begin_ns = UINT64_MAX;
	for (uint32_t i = 0; i < path->nodes.count; i++, critical_path_graph_trim(path))
		begin_point(&builder, i);
	end_points_until(&builder, UINT64_MAX);
	free_edge_builder(&builder);
}
