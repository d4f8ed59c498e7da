/* SPDX-License-Identifier: MIT */
#include "report/analysis/host_events.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/search.h"
#include "report/base/spill_list.h"
#include "report/gpu/device_timeline.h"
#include <stdlib.h>

/* Two conversions of the GPU's clock may differ by this. */
#define MARGIN_NS UINT64_C(10000)

struct idle_interval {
	uint64_t begin_ns, end_ns;
};

struct host_events {
	struct spill_list *list;    /* struct host_event */
	struct idle_interval *idle; /* by time; they do not overlap */
	size_t idle_count, idle_room;
	size_t near;                 /* index in `idle` of the interval that was found last */
	struct host_event_sink sink; /* of the pass that keeps events */
};

static void observe_range(void *context, const struct observed_instance *instance)
{
	const struct host_event_sink *sink = context;

	if (instance->trace_node)
		sink->add(sink->context, &(struct host_event){ .begin_ns = instance->begin_ns,
						 .end_ns = instance->end_ns,
						 .stream = instance->stream,
						 .node = instance->node,
						 .kind = HOST_EVENT_RANGE });
}

static void observe_call(void *context, const struct observed_call *call)
{
	const struct host_event_sink *sink = context;

	if (call->node && call->event->stream)
		sink->add(sink->context, &(struct host_event){ .begin_ns = call->begin_ns,
						 .end_ns = call->begin_ns + call->duration_ns,
						 .stream = call->event->stream->stream,
						 .node = call->node,
						 .kind = HOST_EVENT_CALL });
}

static void observe_sample(void *context, const struct observed_sample *observed)
{
	const struct host_event_sink *sink = context;
	const struct trace_cpu_sample *sample = observed->event->record;

	sink->add(sink->context,
		&(struct host_event){ .begin_ns = observed->event->time_ns,
			.end_ns = observed->event->time_ns,
			.stream = observed->event->stream->stream,
			.node = observed->node,
			.function = sample->function,
			.module = sample->module,
			.kind = HOST_EVENT_SAMPLE,
			.in_call = (sample->head.flags & TRACE_SAMPLE_IN_CALL) != 0 });
}

struct profile_observer host_event_observer(
	struct host_event_sink *sink, void (*restart)(void *context))
{
	return (struct profile_observer){ .context = sink,
		.restart = restart,
		.closed = observe_range,
		.call = observe_call,
		.sample = observe_sample };
}

static struct spill_list *new_event_list(void)
{
	return spill_list_new(sizeof(struct host_event), "what threads do while GPUs are idle");
}

static void restart_host_events(void *context)
{
	struct host_events *events = ((struct host_event_sink *)context)->context;

	spill_list_free(events->list);
	events->list = new_event_list();
	events->near = 0;
}

/* Moves `near` to the first interval that ends at or after `at_ns`. Events come nearly by time. */
static void find_interval(struct host_events *events, uint64_t at_ns)
{
	while (events->near && events->idle[events->near - 1].end_ns >= at_ns)
		events->near--;
	while (events->near < events->idle_count && events->idle[events->near].end_ns < at_ns)
		events->near++;
}

static void keep_host_event(void *context, const struct host_event *event)
{
	struct host_events *events = context;

	find_interval(events, event->begin_ns);
	if (events->near < events->idle_count &&
		events->idle[events->near].begin_ns <= event->end_ns)
		*(struct host_event *)spill_list_push(events->list) = *event;
}

static void add_idle_interval(void *context, uint32_t device, uint64_t from_ns, uint64_t to_ns)
{
	struct host_events *events = context;

	(void)device;
	if (to_ns - from_ns < HOST_EVENTS_IDLE_NS)
		return;
	*ARRAY_ADD(events->idle, events->idle_room, events->idle_count) = (struct idle_interval){
		.begin_ns = from_ns > MARGIN_NS ? from_ns - MARGIN_NS : 0,
		.end_ns = to_ns + MARGIN_NS
	};
}

COMPARE_BY_TWO(by_idle_time, struct idle_interval, begin_ns, end_ns)

/* Lists when a device was idle for long, in the order of time. */
static void find_idle_intervals(struct host_events *events, struct timeline *timeline)
{
	size_t count = 0;

	timeline_rewind(timeline);
	timeline_on_gap(timeline, add_idle_interval, events);
	timeline_busy(timeline, UINT64_MAX);
	timeline_rewind(timeline);
	if (events->idle_count)
		qsort(events->idle, events->idle_count, sizeof *events->idle, by_idle_time);
	for (size_t i = 0; i < events->idle_count; i++)
		if (count && events->idle[i].begin_ns <= events->idle[count - 1].end_ns)
			events->idle[count - 1].end_ns = max_u64(
				events->idle[count - 1].end_ns, events->idle[i].end_ns);
		else
			events->idle[count++] = events->idle[i];
	events->idle_count = count;
}

static const char host_events_key; /* the key of process_attach() */

static void release_host_events(void *data)
{
	struct host_events *events = data;

	spill_list_free(events->list);
	free(events->idle);
	free(events);
}

void host_events_keep_in(struct shared_pass *pass)
{
	struct process *process = pass->process;
	const struct profile_options *options = &process->profile->options;
	struct host_events *events;
	struct profile_observer observer;

	if (host_events_of(process) || !process->profile->timeline || options->steps ||
		options->windows)
		return;
	events = xcalloc(sizeof *events);
	find_idle_intervals(events, process->profile->timeline);
	events->list = new_event_list();
	events->sink = (struct host_event_sink){ events, keep_host_event };
	process_attach(process, &host_events_key, events, release_host_events);
	observer = host_event_observer(&events->sink, restart_host_events);
	if (events->idle_count)
		shared_pass_add(pass, &observer, NULL);
}

struct host_events *host_events_of(const struct process *process)
{
	return process_attached(process, &host_events_key);
}

DEFINE_COUNT_WHILE(intervals_before, struct idle_interval, item->end_ns <= limit)

bool host_events_cover(const struct host_events *events, uint64_t begin_ns, uint64_t end_ns)
{
	const size_t at = intervals_before(events->idle, events->idle_count, begin_ns);

	return at < events->idle_count && events->idle[at].begin_ns <= begin_ns &&
	       events->idle[at].end_ns >= end_ns;
}

void host_events_visit(struct host_events *events, const struct host_event_sink *sink)
{
	const struct host_event *event;

	for (spill_list_rewind(events->list); (event = spill_list_next(events->list));)
		sink->add(sink->context, event);
}
