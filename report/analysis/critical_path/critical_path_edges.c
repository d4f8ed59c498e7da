/* SPDX-License-Identifier: MIT
 * path_edges.c: what came after what: one moment after the other, with what each waited for.
 */
#include "report/base/alloc.h"
#include "report/analysis/critical_path/critical_path_walk.h"
#include "report/analysis/critical_path/cuda_events.h"
#include "report/gpu/device_timeline.h"
#include <stdlib.h>

/* Threads that take turns: after so many calls of one thread in a row, another one is taken to have waited for the last of
 * them. As autograd's thread and the one that called backward do; threads at work at once have no such rows. */
#define TURN_CALLS 16u

/* A thread while time goes on. */
struct path_thread {
	uint32_t open, last, inner;  /* node + 1: the innermost call that is open; the last that is over; the last inside another */
	struct path_record *wait;    /* what the call that waits waits for */
};

struct path_time {
	struct path *path;
	struct path_events *events;
	struct path_thread *threads;
	uint32_t *running; /* by lane: node + 1 */
	uint32_t *ends;    /* a heap of nodes that have begun, what ends first on top */
	size_t thread_room, running_room, end_count, end_room;
	bool *is_default; /* by lane: the default stream of its context */
	uint32_t turn_thread, turn_calls; /* whose calls were the last ones, in a row; how many */
	uint32_t now; /* the moment that edges lead to */
	uint64_t latest_ns; /* of the moments that work waits for: the last one */
};

/* Ends before the other; of equal ones work first, then what is inside. */
static bool ends_before(const struct path *path, uint32_t left, uint32_t right)
{
	const struct path_node *a = path_node(path, left), *b = path_node(path, right);

	if (a->end_ns != b->end_ns)
		return a->end_ns < b->end_ns;
	if (path_is_work(a) != path_is_work(b))
		return path_is_work(a);
	return path_is_work(a) ? left < right : left > right;
}

static void push_end(struct path_time *time, uint32_t node)
{
	size_t at;

	grow(&time->ends, &time->end_room, time->end_count + 1, sizeof *time->ends);
	for (at = time->end_count++; at && ends_before(time->path, node, time->ends[(at - 1) / 2]); at = (at - 1) / 2)
		time->ends[at] = time->ends[(at - 1) / 2];
	time->ends[at] = node;
}

static uint32_t pop_end(struct path_time *time)
{
	const uint32_t first = time->ends[0], last = time->ends[--time->end_count];
	size_t at = 0, child;

	for (; (child = at * 2 + 1) < time->end_count; at = child) {
		child += child + 1 < time->end_count &&
			 ends_before(time->path, time->ends[child + 1], time->ends[child]);
		if (!ends_before(time->path, time->ends[child], last))
			break;
		time->ends[at] = time->ends[child];
	}
	time->ends[at] = last;
	return first;
}

static uint32_t lane_of(const struct path *path, const struct path_node *call)
{
	struct lanes *handles = (struct lanes *)(uintptr_t)&path->handles;
	uint32_t handle;

	if (call->lane != PATH_NONE)
		return call->lane;
	if (!handles->count)
		return PATH_NONE;
	handle = lanes_number(handles, call->device, call->stream);
	return handle < path->handle_room && path->handle_known[handle] ? path->lane_of_handle[handle] : PATH_NONE;
}

static void after(struct path_time *time, uint32_t moment)
{
	struct path_edge *edge = spool_add(&time->path->edges);

	*edge = (struct path_edge){ .from = moment, .to = time->now };
	if (path_moment(time->path, moment) > time->latest_ns)
		time->latest_ns = path_moment(time->path, moment);
}

static void after_work(void *context, uint32_t node)
{
	struct path_time *time = context;

	if (node != PATH_NONE)
		after(time, 2 * node + 1);
	else
		time->path->counts.stream_waits_unknown++;
}

/* The last work of another stream that, if one of the two is the default stream, this one may have waited for: it ended just
 * before, and was asked for earlier. */
static bool may_hold_up(const struct path_time *time, const struct path_node *work, uint32_t lane)
{
	const uint32_t last = path_events_last_there(time->events, lane);
	const struct path_node *other = last != PATH_NONE ? path_node(time->path, last) : NULL;

	return other && lane != work->lane && other->device == work->device && (time->is_default[lane] || time->is_default[work->lane]) &&
	       other->end_ns > time->latest_ns && other->end_ns <= work->begin_ns && work->begin_ns - other->end_ns <= HANDOVER_MOST_NS &&
	       other->call_begin_ns && work->call_begin_ns && other->call_begin_ns < work->call_begin_ns;
}

/* Nothing that is known of held it up for so long. */
static void after_default_stream(struct path_time *time, const struct path_node *work)
{
	const uint64_t call_ns = work->call_begin_ns;
	uint32_t found = PATH_NONE;

	if (time->latest_ns < call_ns)
		time->latest_ns = call_ns;
	if (!time->is_default || work->begin_ns < time->latest_ns || work->begin_ns - time->latest_ns <= HANDOVER_MOST_NS)
		return;
	for (uint32_t lane = 0; lane < time->path->lanes.count; lane++) {
		if (!may_hold_up(time, work, lane))
			continue;
		found = path_events_last_there(time->events, lane);
		time->latest_ns = path_node(time->path, found)->end_ns;
	}
	if (found == PATH_NONE)
		return;
	after(time, 2 * found + 1);
	time->path->counts.default_waits++;
}

static void begin_work(struct path_time *time, uint32_t number)
{
	const struct path_node *work = path_node(time->path, number);
	const struct path_node *call = work->call != PATH_NONE ? path_node(time->path, work->call) : NULL;
	const uint32_t before = path_events_last(time->events, work->lane),
		       there = path_events_last_there(time->events, work->lane);

	time->latest_ns = 0;
	if (there != PATH_NONE)
		after(time, 2 * there + 1);
	if (before != there && before != PATH_NONE)
		after(time, 2 * before + 1);
	path_events_begin(
		time->events, work->lane, work->call_begin_ns ? work->call_begin_ns : work->begin_ns, after_work, time);
	if (call && call->kind == ACTIVITY_GRAPH_LAUNCH && call->after != PATH_NONE)
		after(time, 2 * call->after + 1);
	after_default_stream(time, work);
	if (call)
		after(time, 2 * work->call);
	grow(&time->running, &time->running_room, (size_t)work->lane + 1, sizeof *time->running);
	time->running[work->lane] = number + 1;
}

/* What comes into the stream that the graph was launched in waits for all of it, wherever it ran. */
static void end_of_graph(struct path_time *time, struct path_node *call, uint32_t work)
{
	const uint32_t lane = lane_of(time->path, call);

	call->after = work;
	if (lane != PATH_NONE)
		path_events_end(time->events, lane, work, false);
}

static void end_work(struct path_time *time, uint32_t number)
{
	const struct path_node *work = path_node(time->path, number);
	struct path_node *call = work->call != PATH_NONE ? path_node(time->path, work->call) : NULL;

	after(time, 2 * number);
	path_events_end(time->events, work->lane, number, true);
	if (!call)
		return;
	if (call->kind == ACTIVITY_GRAPH_LAUNCH)
		end_of_graph(time, call, number);
	else if (!call->over && work->kind == ACTIVITY_COPY)
		call->after = number;
}

static void begin_effect(struct path_time *time, struct path_thread *thread, const struct path_node *call)
{
	const uint32_t lane = lane_of(time->path, call);

	if (!call->works)
		return;
	switch (call->kind) {
	case ACTIVITY_EVENT_RECORD:
		path_events_record(time->events, call->event, lane, call->begin_ns);
		break;
	case ACTIVITY_STREAM_WAIT:
		time->path->counts.stream_waits++;
		if (lane == PATH_NONE)
			time->path->counts.stream_waits_unknown++;
		else
			path_events_wait(time->events, call->event, lane, call->begin_ns);
		break;
	case ACTIVITY_WAIT:
		path_record_release(thread->wait);
		thread->wait = call->sync == TRACE_SYNC_EVENT    ? path_events_of(time->events, call->event)
			       : call->sync == TRACE_SYNC_STREAM ? path_events_here(time->events, lane, call->begin_ns)
								 : NULL;
		break;
	default:
		break;
	}
}

static void take_turn(struct path_time *time, uint32_t thread)
{
	const struct path_thread *other = &time->threads[time->turn_thread];

	if (thread == time->turn_thread) {
		time->turn_calls++;
		return;
	}
	if (time->turn_calls >= TURN_CALLS && !other->open && other->last)
		after(time, 2 * (other->last - 1) + 1);
	time->turn_thread = thread;
	time->turn_calls = 1;
}

static void begin_call(struct path_time *time, uint32_t number)
{
	struct path_node *call = path_node(time->path, number);
	struct path_thread *thread;

	grow(&time->threads, &time->thread_room, (size_t)call->thread + 1, sizeof *time->threads);
	thread = &time->threads[call->thread];
	if (thread->open) {
		const struct path_node *around = path_node(time->path, thread->open - 1);

		call->call = thread->open - 1;
		after(time, 2 * call->call);
		if (call->end_ns > around->end_ns)
			call->end_ns = around->end_ns;
	} else {
		if (thread->last)
			after(time, 2 * (thread->last - 1) + 1);
		take_turn(time, call->thread);
	}
	thread->open = number + 1;
	begin_effect(time, thread, call);
}

static void end(struct path_time *time, uint32_t number);

/* Two clocks are not quite one: work that is being waited for and seems to end just after the wait has ended. */
static void end_running(struct path_time *time, const struct path_node *wait, uint32_t lane)
{
	const uint32_t number = lane < time->running_room && time->running[lane] ? time->running[lane] - 1 : PATH_NONE;
	struct path_node *work = number != PATH_NONE ? path_node(time->path, number) : NULL;
	const uint32_t now = time->now;

	if (!work || work->over || work->end_ns > wait->end_ns + CLOCKS_APART_NS ||
		(work->call_begin_ns && work->call_begin_ns > wait->begin_ns))
		return;
	work->end_ns = wait->end_ns;
	end(time, number);
	time->now = now;
}

/* The last work of the stream, if the wait is for its device and came after it was asked for. */
static uint32_t last_of_lane(const struct path_time *time, const struct path_node *wait, uint32_t lane)
{
	const uint32_t last = path_events_last(time->events, lane);
	const struct path_node *work = last != PATH_NONE ? path_node(time->path, last) : NULL;

	if (!work || (wait->device != ACTIVITY_NO_DEVICE && work->device != wait->device) ||
		(work->call_begin_ns && work->call_begin_ns > wait->begin_ns))
		return PATH_NONE;
	return last;
}

static uint32_t last_of_device(const struct path_time *time, const struct path_node *wait)
{
	uint32_t found = PATH_NONE;

	for (uint32_t lane = 0; lane < time->path->lanes.count; lane++) {
		const uint32_t last = last_of_lane(time, wait, lane);

		if (last != PATH_NONE &&
			(found == PATH_NONE || path_node(time->path, last)->end_ns > path_node(time->path, found)->end_ns))
			found = last;
	}
	return found;
}

/* A wait for all of a device: each of its streams could have been the last. */
static void after_device(struct path_time *time, const struct path_node *wait, uint32_t but)
{
	for (uint32_t lane = 0; lane < time->path->lanes.count; lane++) {
		const uint32_t last = last_of_lane(time, wait, lane);

		if (last != PATH_NONE && last != but)
			after(time, 2 * last + 1);
	}
}

/* A wait for nobody knows what came back after something: the last work that ended meanwhile. */
static uint32_t last_inside(const struct path_time *time, const struct path_node *wait)
{
	const uint32_t last = last_of_device(time, wait);

	return last != PATH_NONE && path_node(time->path, last)->end_ns > wait->begin_ns ? last : PATH_NONE;
}

/* The work that the call waited for. Called before edges to its end are made: it may end work. */
static uint32_t waited_for(struct path_time *time, const struct path_thread *thread, const struct path_node *call)
{
	uint32_t work;

	if (call->blocks)
		return last_inside(time, call);
	if (call->kind != ACTIVITY_WAIT || !call->works)
		return call->kind == ACTIVITY_GRAPH_LAUNCH ? PATH_NONE : call->after;
	if (call->sync == TRACE_SYNC_CONTEXT) {
		for (uint32_t lane = 0; lane < time->path->lanes.count; lane++)
			if (call->device == ACTIVITY_NO_DEVICE || call->device == time->path->lanes.lanes[lane].device)
				end_running(time, call, lane);
		return last_of_device(time, call);
	}
	work = thread->wait ? path_events_done(time->events, thread->wait) : PATH_NONE;
	return work == PATH_NONE ? last_inside(time, call) : work;
}

static void end_call(struct path_time *time, uint32_t number)
{
	struct path_node *call = path_node(time->path, number);
	struct path_thread *thread = &time->threads[call->thread];
	const uint32_t lane = lane_of(time->path, call);
	uint32_t work;

	if (call->kind == ACTIVITY_WAIT && call->works && call->sync == TRACE_SYNC_STREAM && lane != PATH_NONE)
		end_running(time, call, lane);
	work = waited_for(time, thread, call);
	if (work != PATH_NONE)
		after(time, 2 * work + 1);
	if (call->kind == ACTIVITY_WAIT && call->works && call->sync == TRACE_SYNC_CONTEXT)
		after_device(time, call, work);
	if (thread->inner && path_node(time->path, thread->inner - 1)->call == number)
		after(time, 2 * (thread->inner - 1) + 1);
	after(time, 2 * number);
	if (call->kind == ACTIVITY_WAIT && call->works) {
		time->path->counts.waits++;
		time->path->counts.waits_unknown += work == PATH_NONE;
		path_record_release(thread->wait);
		thread->wait = NULL;
	}
	if (call->call == PATH_NONE)
		thread->last = number + 1;
	else
		thread->inner = number + 1;
	thread->open = call->call + 1; /* none: 0 */
}

static void end(struct path_time *time, uint32_t number)
{
	struct path_node *node = path_node(time->path, number);

	if (node->over)
		return;
	time->now = 2 * number + 1;
	if (path_is_work(node))
		end_work(time, number);
	else
		end_call(time, number);
	path_node(time->path, number)->over = true;
	time->path->last = 2 * number + 1;
}

static void end_until(struct path_time *time, uint64_t at_ns)
{
	while (time->end_count && path_node(time->path, time->ends[0])->end_ns <= at_ns)
		end(time, pop_end(time));
}

/* NULL: there is nothing beside it, or the trace does not say which that is. */
static bool *default_lanes(struct path *path)
{
	const struct trace_context *context;
	bool *is_default = NULL;

	for (uint32_t i = 0; path->lanes.count > 1 && (context = reader_dictionary(path->process->reader, TRACE_CONTEXT, i)); i++)
		for (uint32_t lane = 0; context->stream == UINT32_MAX && context->null_stream != UINT32_MAX && lane < path->lanes.count; lane++) {
			if (path->lanes.lanes[lane].device != context->device || path->lanes.lanes[lane].stream != context->null_stream)
				continue;
			if (!is_default)
				is_default = need(path->lanes.count * sizeof *is_default);
			is_default[lane] = true;
		}
	return is_default;
}

void path_read_edges(struct path *path)
{
	struct path_time time = { .path = path, .events = path_events_new(), .is_default = default_lanes(path) };

	for (uint32_t i = 0; i < path->nodes.count; i++) {
		end_until(&time, path_node(path, i)->begin_ns);
		time.now = 2 * i;
		if (path_is_work(path_node(path, i)))
			begin_work(&time, i);
		else
			begin_call(&time, i);
		if (path_node(path, i)->end_ns == path_node(path, i)->begin_ns)
			end(&time, i);
		else
			push_end(&time, i);
	}
	end_until(&time, UINT64_MAX);
	for (size_t i = 0; i < time.thread_room; i++)
		path_record_release(time.threads[i].wait);
	path_events_free(time.events);
	free(time.threads);
	free(time.running);
	free(time.is_default);
	free(time.ends);
}
