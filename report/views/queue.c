/* SPDX-License-Identifier: MIT
 * arrange_queue.c: how long work waited between the call that asked for it and its begin on the GPU, and how much was
 * asked for and not done yet while time went on: of each device and stream, place and kernel.
 */
#include "report/views/views.h"
#include "report/base/alloc.h"
#include "report/analysis/stream_table.h"
#include "report/base/external_sort.h"
#include "report/table/computed_row.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOMENTS_HELD 65536u

/* The delays of some work. */
struct delay {
	struct samples samples;
	uint64_t works, known, untimed, early, total_ns, max_ns;
};

/* What becomes of a work. */
enum change { WORK_ENDED, WORK_ASKED, WORK_BEGAN };

struct moment {
	uint64_t at_ns, number;
	uint32_t lane;
	uint32_t change; /* enum change */
};

/* What was asked for and has not ended, while time goes on. */
struct backlog {
	uint64_t outstanding, running, most;
	uint64_t now_ns, span_ns, empty_ns, asked_ns, ahead_ns;
	long double product; /* outstanding times ns */
	bool begun;          /* its first work has: what was before is no part of its span */
};

struct stream_queue {
	struct delay delay;
	struct backlog backlog;
	uint64_t graph; /* correlation of the last one that worked there */
};

struct device_queue {
	struct delay delay;
	struct backlog backlog;
	uint32_t device;
};

struct queue {
	struct activities *activities;
	struct sorter *moments;
	struct samples_budget budget;
	struct lanes lanes;
	struct stream_queue *streams; /* by lane */
	struct device_queue devices[TIMELINE_DEVICES];
	struct delay *places, *kernels; /* by node; by text */
	size_t stream_room, device_count, place_room, kernel_room;
};

static struct device_queue *device_of(struct queue *queue, uint32_t device)
{
	size_t at = 0;

	while (at < queue->device_count && queue->devices[at].device != device)
		at++;
	if (at == TIMELINE_DEVICES)
		at--;
	else if (at == queue->device_count)
		queue->devices[queue->device_count++].device = device;
	return &queue->devices[at];
}

/* Its delay says something: of a graph only the first work on each stream waited for the launch. */
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

static void add_delay(struct queue *queue, struct delay *delay, const struct activity *work, bool known)
{
	const uint64_t waited = work->begin_ns > work->call_begin_ns ? work->begin_ns - work->call_begin_ns : 0;

	delay->works++;
	delay->untimed += !work->timed;
	if (!known)
		return;
	if (work->begin_ns + CLOCKS_APART_NS < work->call_begin_ns) { /* one of the clocks is wrong */
		delay->early++;
		return;
	}
	delay->known++;
	delay->total_ns += waited;
	if (waited > delay->max_ns)
		delay->max_ns = waited;
	samples_add(&delay->samples, waited, &queue->budget);
}

static void add_moment(struct queue *queue, uint32_t lane, enum change change, uint64_t at_ns)
{
	const uint64_t number = sorter_count(queue->moments);
	struct moment *moment = sorter_add(queue->moments);

	*moment = (struct moment){ .at_ns = at_ns, .number = number, .lane = lane, .change = (uint32_t)change };
}

static void take(struct queue *queue, const struct activity *work)
{
	struct device_queue *device = device_of(queue, work->device);
	const uint32_t lane = lanes_number(&queue->lanes, device->device, work->stream);
	bool known;

	grow(&queue->streams, &queue->stream_room, (size_t)lane + 1, sizeof *queue->streams);
	grow(&queue->places, &queue->place_room, (size_t)work->owner + 1, sizeof *queue->places);
	grow(&queue->kernels, &queue->kernel_room, (size_t)work->name + 1, sizeof *queue->kernels);
	known = has_delay(&queue->streams[lane], work);
	add_delay(queue, &queue->streams[lane].delay, work, known);
	add_delay(queue, &device->delay, work, known);
	add_delay(queue, &queue->places[work->owner], work, known);
	add_delay(queue, &queue->kernels[work->name], work, known);
	if (!work->timed)
		return;
	add_moment(queue, lane, WORK_ASKED,
		work->has_call && work->call_begin_ns < work->begin_ns ? work->call_begin_ns : work->begin_ns);
	add_moment(queue, lane, WORK_BEGAN, work->begin_ns);
	add_moment(queue, lane, WORK_ENDED, work->end_ns);
}

/* What becomes of one work comes in that order at one moment, too. */
static int by_time(const void *left, const void *right)
{
	const struct moment *a = left, *b = right;

	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

static void go_to(struct backlog *backlog, uint64_t at_ns)
{
	const uint64_t passed = at_ns - backlog->now_ns;

	backlog->now_ns = at_ns;
	if (!backlog->begun)
		return;
	backlog->span_ns += passed;
	backlog->product += (long double)backlog->outstanding * passed;
	if (!backlog->outstanding)
		backlog->empty_ns += passed;
	else if (!backlog->running)
		backlog->asked_ns += passed;
	else if (backlog->outstanding > backlog->running)
		backlog->ahead_ns += passed;
}

static void change(struct backlog *backlog, const struct moment *moment)
{
	go_to(backlog, moment->at_ns);
	switch (moment->change) {
	case WORK_ASKED:
		if (++backlog->outstanding > backlog->most)
			backlog->most = backlog->outstanding;
		break;
	case WORK_BEGAN:
		backlog->running++;
		backlog->begun = true;
		break;
	default:
		backlog->running--;
		backlog->outstanding--;
	}
}

static void run(struct queue *queue)
{
	const struct activity *one;
	const struct moment *moment;

	for (activities_rewind(queue->activities); (one = activities_first(queue->activities));
		activities_next(queue->activities))
		if (activity_is_work(one) && one->counts)
			take(queue, one);
	for (sorter_rewind(queue->moments); (moment = sorter_first(queue->moments)); sorter_next(queue->moments)) {
		change(&queue->streams[moment->lane].backlog, moment);
		change(&device_of(queue, queue->lanes.lanes[moment->lane].device)->backlog, moment);
	}
}

static void tell_delay(struct tally *tally, struct delay *delay)
{
	tally_unsigned(tally, "calls", delay->works);
	tally_unsigned(tally, "delays", delay->known);
	tally_unsigned(tally, "early", delay->early);
	tally_unsigned(tally, "untimed", delay->untimed);
	if (!delay->known)
		return;
	tally_unsigned(tally, "delay_total_ns", delay->total_ns);
	tally_unsigned(tally, "delay_p50_ns", samples_percentile(&delay->samples, 500));
	tally_unsigned(tally, "delay_p95_ns", samples_percentile(&delay->samples, 950));
	tally_unsigned(tally, "delay_max_ns", delay->max_ns);
}

static void tell_backlog(struct tally *tally, const struct backlog *backlog)
{
	if (!backlog->begun)
		return;
	tally_unsigned(tally, "outstanding_max", backlog->most);
	if (backlog->span_ns)
		tally_real(tally, "outstanding_mean", (double)(backlog->product / backlog->span_ns));
	tally_unsigned(tally, "queue_empty_ns", backlog->empty_ns);
	tally_unsigned(tally, "queue_asked_ns", backlog->asked_ns);
	tally_unsigned(tally, "queue_ahead_ns", backlog->ahead_ns);
}

static void add_device(const struct options *options, struct process *process, struct rows *rows, struct queue *queue,
	struct device_queue *device)
{
	struct tally *tally = tally_new(process, 0);
	const uint32_t parent = (uint32_t)rows->count;

	tally_name_format(tally, "device %u", device->device);
	tally_words(tally, "kind", "device");
	tally_unsigned(tally, "device", device->device);
	tell_delay(tally, &device->delay);
	tell_backlog(tally, &device->backlog);
	rows_add(rows, &tally->row);
	for (uint32_t i = 0; i < queue->lanes.count; i++) {
		const struct lane *lane = &queue->lanes.lanes[i];
		char label[256];

		if (lane->device != device->device)
			continue;
		tally = tally_new(process, 0);
		tally_name(tally, label, lane_label(lane, queue->activities, label, sizeof label));
		tally_words(tally, "kind", "stream");
		tally_unsigned(tally, "device", lane->device);
		if (lane->stream != LANES_REST)
			tally_unsigned(tally, "stream", lane->stream);
		tell_delay(tally, &queue->streams[i].delay);
		tell_backlog(tally, &queue->streams[i].backlog);
		tally_add(rows, tally, parent);
	}
	rows_end(options, process, rows, parent + 1, 1, view_top(options));
}

static void add_places(
	const struct options *options, struct process *process, struct rows *rows, const struct queue *queue)
{
	const uint32_t parent = tally_head(process, rows, "places", "places");

	for (uint32_t node = 0; node < queue->place_room; node++) {
		struct tally *tally;

		if (!queue->places[node].works)
			continue;
		tally = tally_new(process, node);
		tally_words(tally, "kind", "place");
		tell_delay(tally, &queue->places[node]);
		tally_add(rows, tally, parent);
	}
	rows_end(options, process, rows, parent + 1, 1, view_top(options));
}

static void add_kernels(
	const struct options *options, struct process *process, struct rows *rows, const struct queue *queue)
{
	const uint32_t parent = tally_head(process, rows, "kernels and copies", "kernels");

	for (uint32_t name = 0; name < queue->kernel_room; name++) {
		const struct text text = text_of(process->texts, name);
		struct tally *tally;

		if (!queue->kernels[name].works)
			continue;
		tally = tally_new(process, 0);
		tally_name(tally, text.bytes, text.length);
		tally_words(tally, "kind", "work");
		tell_delay(tally, &queue->kernels[name]);
		tally_add(rows, tally, parent);
	}
	rows_end(options, process, rows, parent + 1, 1, view_top(options));
}

static int by_device(const void *a, const void *b)
{
	const struct device_queue *left = a, *right = b;

	return (left->device > right->device) - (left->device < right->device);
}

static void let_go(struct queue *queue)
{
	for (uint32_t i = 0; i < queue->lanes.count; i++)
		samples_free(&queue->streams[i].delay.samples);
	for (size_t i = 0; i < queue->device_count; i++)
		samples_free(&queue->devices[i].delay.samples);
	for (size_t i = 0; i < queue->place_room; i++)
		samples_free(&queue->places[i].samples);
	for (size_t i = 0; i < queue->kernel_room; i++)
		samples_free(&queue->kernels[i].samples);
	free(queue->streams);
	free(queue->places);
	free(queue->kernels);
	lanes_free(&queue->lanes);
	sorter_free(queue->moments);
	activities_free(queue->activities);
	free(queue);
}

static void arrange(const struct options *options, struct process *process, struct rows *rows)
{
	struct queue *queue = need(sizeof *queue);

	queue->activities = activities_read(process);
	queue->moments = sorter_new(sizeof(struct moment), MOMENTS_HELD, by_time, "what was asked of the GPU");
	run(queue);
	qsort(queue->devices, queue->device_count, sizeof *queue->devices, by_device);
	for (size_t i = 0; i < queue->device_count; i++)
		add_device(options, process, rows, queue, &queue->devices[i]);
	if (queue->device_count) {
		add_places(options, process, rows, queue);
		add_kernels(options, process, rows, queue);
	}
	let_go(queue);
}

void arrange_queue(const struct options *options, struct processes *processes, struct rows *rows)
{
	for (size_t i = 0; i < processes->shown; i++)
		arrange(options, &processes->all[i], rows);
}
