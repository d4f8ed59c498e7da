/* SPDX-License-Identifier: MIT
 *
 * Computes how long GPU work waited from its launching call to its start, for what, and how much
 * work was outstanding over time. Rows are by device, CUDA stream, node and kernel.
 */
#include "report/views/views.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/analysis/delay_parts.h"
#include "report/analysis/idle_parts.h"
#include "report/analysis/stream_table.h"
#include "report/base/external_sort.h"
#include "report/table/computed_row.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_IN_MEMORY 65536u

/* The delays of a group of GPU operations. */
struct queue_delay {
	struct percentiles samples;
	struct delay_parts parts; /* of total_ns */
	uint64_t operations, measured, untimed, early, total_ns, max_ns;
};

/* Changes of the state of a GPU operation. */
enum queue_change { WORK_ENDED, WORK_SUBMITTED, WORK_STARTED };

struct queue_event {
	uint64_t at_ns, number;
	uint32_t stream_index;
	uint32_t change; /* enum queue_change */
};

/* The work that was launched and has not ended, over time. */
struct backlog {
	uint64_t outstanding, running, most;
	uint64_t now_ns, span_ns, ahead_ns;
	long double product; /* outstanding work times ns */
	bool begun;          /* its first work has started; time before that is not in span_ns */
};

/* Idle time, split at the launch of the operation that ended each gap. */
struct queue_idle {
	uint64_t before_launch_ns, after_launch_ns, unknown_ns;
};

struct stream_queue {
	struct queue_delay delay;
	struct backlog backlog;
	struct queue_idle idle;
	uint64_t covered_ns; /* end of its work so far */
	uint64_t graph;      /* correlation id of the last graph that ran there */
	uint64_t last;       /* correlation id of its last work */
	bool begun;
};

struct device_queue {
	uint32_t device;
	struct queue_delay delay;
	struct backlog backlog;
	struct queue_idle idle;
};

struct queue_report {
	struct activities *activities;
	struct delay_splitter *splitter;
	struct external_sort *events;
	struct percentiles_budget budget;
	struct stream_table stream_table;
	struct stream_queue *streams; /* by number of the stream in `stream_table` */
	struct device_queue devices[TIMELINE_DEVICES];
	struct queue_delay *nodes, *kernels; /* by node; by string id of the name */
	size_t stream_room, device_count, node_room, kernel_room;
};

static struct device_queue *device_queue_of(struct queue_report *queue, uint32_t device)
{
	return device_slot(queue->devices, &queue->device_count, sizeof *queue->devices, device);
}

/* Returns true if the delay of `work` can be measured. Of a CUDA graph only the first work on each
 * stream waited for the launch. */
static bool has_delay(struct stream_queue *stream, const struct activity *work)
{
	if (!work->timed || !work->has_call)
		return false;
	if (!work->of_graph)
		return true;
	if (work->correlation == stream->graph)
		return false;
	stream->graph = work->correlation;
	return true;
}

/* `parts`: of its delay. NULL: the delay cannot be measured. */
static void count_delay(struct queue_report *queue, struct queue_delay *delay,
	const struct activity *work, const struct delay_parts *parts)
{
	const uint64_t waited = work->begin_ns > work->call_begin_ns
					? work->begin_ns - work->call_begin_ns
					: 0;

	delay->operations++;
	delay->untimed += !work->timed;
	if (!parts)
		return;
	/* Work clearly before its call: one of the clocks is wrong. */
	if (work->begin_ns + CLOCK_TOLERANCE_NS < work->call_begin_ns) {
		delay->early++;
		return;
	}
	delay->measured++;
	delay->total_ns += waited;
	delay_parts_sum(&delay->parts, parts);
	if (waited > delay->max_ns)
		delay->max_ns = waited;
	percentiles_add(&delay->samples, waited, &queue->budget);
}

static void add_queue_event(
	struct queue_report *queue, uint32_t stream_index, enum queue_change change, uint64_t at_ns)
{
	const uint64_t number = external_sort_count(queue->events);
	struct queue_event *event = external_sort_add(queue->events);

	*event = (struct queue_event){ .at_ns = at_ns,
		.number = number,
		.stream_index = stream_index,
		.change = (uint32_t)change };
}

static void add_work_events(
	struct queue_report *queue, uint32_t stream_index, const struct activity *work)
{
	const bool has_call = work->has_call && work->call_begin_ns < work->begin_ns;

	add_queue_event(queue, stream_index, WORK_SUBMITTED,
		has_call ? work->call_begin_ns : work->begin_ns);
	add_queue_event(queue, stream_index, WORK_STARTED, work->begin_ns);
	add_queue_event(queue, stream_index, WORK_ENDED, work->end_ns);
}

/* Splits the gap that `work` ended on its stream. The first operation of a stream ends a gap that
 * began with its launch. */
static void add_stream_gap(struct stream_queue *stream, const struct activity *work)
{
	const uint64_t asked_ns = min_u64(work->call_begin_ns, work->begin_ns),
		       begin_ns = stream->begun ? stream->covered_ns
						: max_u64(stream->covered_ns, asked_ns),
		       launch_ns = max_u64(begin_ns, asked_ns);
	const bool has_gap = (stream->begun || work->has_call) && work->begin_ns > begin_ns;
	const bool in_graph = work->nodes_unknown && work->correlation == stream->last &&
			      work->begin_ns - begin_ns > START_MAX_NS;

	if (has_gap && (!work->has_call || in_graph)) {
		stream->idle.unknown_ns += work->begin_ns - begin_ns;
	} else if (has_gap) {
		stream->idle.before_launch_ns += launch_ns - begin_ns;
		stream->idle.after_launch_ns += work->begin_ns - launch_ns;
	}
	stream->covered_ns = max_u64(stream->covered_ns, work->end_ns);
	stream->last = work->correlation;
	stream->begun = true;
}

/* Adds idle time of a device. The view `idle` shows the same parts. */
static void add_device_idle(void *context, const struct idle_part *part)
{
	struct queue_idle *idle = &device_queue_of(context, part->ended_by->device)->idle;

	if (part->part.cause == GAP_UNKNOWN)
		idle->unknown_ns += part->length_ns;
	else if (part->part.launched)
		idle->after_launch_ns += part->length_ns;
	else
		idle->before_launch_ns += part->length_ns;
}

static uint32_t stream_index_of(
	struct queue_report *queue, uint32_t device, const struct activity *work)
{
	const uint32_t index = stream_table_number(&queue->stream_table, device, work->stream);

	ARRAY_GROW(queue->streams, queue->stream_room, (size_t)index + 1);
	return index;
}

static void add_queued_work(
	struct queue_report *queue, const struct activity *work, const struct delay_parts *parts)
{
	struct device_queue *device = device_queue_of(queue, work->device);
	const uint32_t stream_index = stream_index_of(queue, device->device, work);

	ARRAY_GROW(queue->nodes, queue->node_room, (size_t)work->owner + 1);
	ARRAY_GROW(queue->kernels, queue->kernel_room, (size_t)work->name + 1);
	if (!has_delay(&queue->streams[stream_index], work))
		parts = NULL;
	count_delay(queue, &queue->streams[stream_index].delay, work, parts);
	count_delay(queue, &device->delay, work, parts);
	count_delay(queue, &queue->nodes[work->owner], work, parts);
	count_delay(queue, &queue->kernels[work->name], work, parts);
	if (!work->timed)
		return;
	add_stream_gap(&queue->streams[stream_index], work);
	add_work_events(queue, stream_index, work);
}

/* Orders by time. Events with the same time keep the order in which they were added, so that an
 * operation is submitted, starts and ends in this order. */
COMPARE_BY_TWO(by_event_time, struct queue_event, at_ns, number)

static void advance_to(struct backlog *backlog, uint64_t at_ns)
{
	const uint64_t passed = at_ns - backlog->now_ns;

	backlog->now_ns = at_ns;
	if (!backlog->begun)
		return;
	backlog->span_ns += passed;
	backlog->product += (long double)backlog->outstanding * passed;
	if (backlog->running && backlog->outstanding > backlog->running)
		backlog->ahead_ns += passed;
}

static void apply_event(struct backlog *backlog, const struct queue_event *event)
{
	advance_to(backlog, event->at_ns);
	switch (event->change) {
	case WORK_SUBMITTED:
		if (++backlog->outstanding > backlog->most)
			backlog->most = backlog->outstanding;
		break;
	case WORK_STARTED:
		backlog->running++;
		backlog->begun = true;
		break;
	default:
		backlog->running--;
		backlog->outstanding--;
	}
}

/* Notes work that is not selected: what is selected may have waited for it, so that time is no gap
 * of its stream. */
static void note_other_work(struct queue_report *queue, const struct activity *work)
{
	const uint32_t index = stream_index_of(queue, work->device, work);
	struct stream_queue *stream = &queue->streams[index];

	if (!stream->begun)
		stream->covered_ns = max_u64(stream->covered_ns, work->end_ns);
}

static void read_activity(struct queue_report *queue, const struct activity *one)
{
	struct delay_parts parts = { .stream_ns = 0 };

	if (activity_is_call(one))
		delay_splitter_add_call(queue->splitter, one);
	if (!activity_is_work(one))
		return;
	if (one->timed)
		parts = delay_splitter_add_work(queue->splitter, one);
	if (one->counts)
		add_queued_work(queue, one, &parts);
	else if (one->timed)
		note_other_work(queue, one);
}

static void read_queue(struct queue_report *queue)
{
	const struct activity *one;
	const struct queue_event *event;

	for (activities_rewind(queue->activities); (one = activities_first(queue->activities));
		activities_next(queue->activities))
		read_activity(queue, one);
	for (external_sort_rewind(queue->events); (event = external_sort_peek(queue->events));
		external_sort_next(queue->events)) {
		apply_event(&queue->streams[event->stream_index].backlog, event);
		apply_event(&device_queue_of(
				    queue, queue->stream_table.entries[event->stream_index].device)
				     ->backlog,
			event);
	}
}

static void set_delay_cells(struct computed_row *computed, struct queue_delay *delay)
{
	computed_row_set_unsigned(computed, "calls", delay->operations);
	computed_row_set_unsigned(computed, "delays", delay->measured);
	computed_row_set_unsigned(computed, "early", delay->early);
	computed_row_set_unsigned(computed, "untimed", delay->untimed);
	if (!delay->measured)
		return;
	computed_row_set_unsigned(computed, "delay_total_ns", delay->total_ns);
	computed_row_set_unsigned(computed, "delay_p50_ns", percentiles_get(&delay->samples, 500));
	computed_row_set_unsigned(computed, "delay_p95_ns", percentiles_get(&delay->samples, 950));
	computed_row_set_unsigned(computed, "delay_max_ns", delay->max_ns);
	computed_row_set_unsigned(computed, "delay_stream_ns", delay->parts.stream_ns);
	computed_row_set_unsigned(computed, "delay_start_ns", delay->parts.start_ns);
	computed_row_set_unsigned(computed, "delay_event_ns", delay->parts.event_ns);
	computed_row_set_unsigned(computed, "delay_others_ns", delay->parts.others_ns);
	computed_row_set_unsigned(computed, "delay_unknown_ns", delay->parts.unknown_ns);
}

static void set_backlog_cells(
	struct computed_row *computed, const struct backlog *backlog, const struct queue_idle *idle)
{
	if (!backlog->begun)
		return;
	computed_row_set_unsigned(computed, "outstanding_max", backlog->most);
	if (backlog->span_ns)
		computed_row_set_real(computed, "outstanding_mean",
			(double)(backlog->product / backlog->span_ns));
	computed_row_set_unsigned(computed, "queue_empty_ns", idle->before_launch_ns);
	computed_row_set_unsigned(computed, "queue_asked_ns", idle->after_launch_ns);
	computed_row_set_unsigned(computed, "queue_unknown_ns", idle->unknown_ns);
	computed_row_set_unsigned(computed, "queue_ahead_ns", backlog->ahead_ns);
}

static struct computed_row *stream_queue_row(struct process *process,
	const struct queue_report *queue, const struct device_stream *stream,
	struct stream_queue *waiting)
{
	struct computed_row *computed = computed_row_new(process, 0, "stream");
	char label[256];

	computed_row_set_name(computed, label,
		stream_table_label(stream, queue->activities, label, sizeof label));
	computed_row_set_unsigned(computed, "device", stream->device);
	if (stream->stream != STREAM_TABLE_REST)
		computed_row_set_unsigned(computed, "stream", stream->stream);
	set_delay_cells(computed, &waiting->delay);
	set_backlog_cells(computed, &waiting->backlog, &waiting->idle);
	return computed;
}

static void add_device_queue(const struct options *options, struct process *process,
	struct rows *rows, struct queue_report *queue, struct device_queue *device)
{
	struct computed_row *computed = computed_row_new(process, 0, "device");
	const uint32_t parent = (uint32_t)rows->count;

	computed_row_format_name(computed, "device %u", device->device);
	computed_row_set_unsigned(computed, "device", device->device);
	set_delay_cells(computed, &device->delay);
	set_backlog_cells(computed, &device->backlog, &device->idle);
	rows_add(rows, &computed->row);
	for (uint32_t i = 0; i < queue->stream_table.count; i++) {
		const struct device_stream *stream = &queue->stream_table.entries[i];

		if (stream->device != device->device || !queue->streams[i].delay.operations)
			continue;
		computed = stream_queue_row(process, queue, stream, &queue->streams[i]);
		computed_row_add(rows, computed, parent);
	}
	rows_finish_level(options, process, rows, parent + 1, 1, view_top(options));
}

static void add_queue_nodes(const struct options *options, struct process *process,
	struct rows *rows, const struct queue_report *queue)
{
	const uint32_t parent = computed_row_add_heading(process, rows, "call paths", "places");

	for (uint32_t node = 0; node < queue->node_room; node++) {
		struct computed_row *computed;

		if (!queue->nodes[node].operations)
			continue;
		computed = computed_row_new(process, node, "place");
		set_delay_cells(computed, &queue->nodes[node]);
		computed_row_add(rows, computed, parent);
	}
	rows_finish_level(options, process, rows, parent + 1, 1, view_top(options));
}

static void add_queue_kernels(const struct options *options, struct process *process,
	struct rows *rows, const struct queue_report *queue)
{
	const uint32_t parent = computed_row_add_heading(
		process, rows, "kernels and copies", "kernels");

	for (uint32_t name = 0; name < queue->kernel_room; name++) {
		const struct string_view text = string_table_get(process->texts, name);
		struct computed_row *computed;

		if (!queue->kernels[name].operations)
			continue;
		computed = computed_row_new(process, 0, "work");
		computed_row_set_name(computed, text.bytes, text.length);
		set_delay_cells(computed, &queue->kernels[name]);
		computed_row_add(rows, computed, parent);
	}
	rows_finish_level(options, process, rows, parent + 1, 1, view_top(options));
}

static void queue_report_free(struct queue_report *queue)
{
	for (uint32_t i = 0; i < queue->stream_table.count; i++)
		percentiles_free(&queue->streams[i].delay.samples);
	for (size_t i = 0; i < queue->device_count; i++)
		percentiles_free(&queue->devices[i].delay.samples);
	for (size_t i = 0; i < queue->node_room; i++)
		percentiles_free(&queue->nodes[i].samples);
	for (size_t i = 0; i < queue->kernel_room; i++)
		percentiles_free(&queue->kernels[i].samples);
	free(queue->streams);
	free(queue->nodes);
	free(queue->kernels);
	stream_table_free(&queue->stream_table);
	external_sort_free(queue->events);
	delay_splitter_free(queue->splitter);
	activities_free(queue->activities);
	free(queue);
}

void arrange_queue(const struct options *options, struct process *process, struct rows *rows)
{
	struct queue_report *queue = xcalloc(sizeof *queue);

	queue->activities = activities_read(process);
	queue->splitter = delay_splitter_new(process);
	queue->events = external_sort_new(
		sizeof(struct queue_event), EVENTS_IN_MEMORY, by_event_time, "GPU launches");
	read_queue(queue);
	if (queue->device_count)
		idle_parts_visit(process, queue->activities, add_device_idle, queue);
	qsort(queue->devices, queue->device_count, sizeof *queue->devices, compare_u32);
	for (size_t i = 0; i < queue->device_count; i++)
		add_device_queue(options, process, rows, queue, &queue->devices[i]);
	if (queue->device_count) {
		add_queue_nodes(options, process, rows, queue);
		add_queue_kernels(options, process, rows, queue);
	}
	queue_report_free(queue);
}
