/* SPDX-License-Identifier: MIT */
#include "report/analysis/delay_parts.h"
#include "report/analysis/gap_cause.h"
#include "report/analysis/stream_table.h"
#include "report/analysis/stream_waits.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <stdlib.h>

#define INTERVALS 65536u /* of a device */

/* An interval in which a device ran work, and its busy time up to the end of it. */
struct busy_interval {
	uint64_t begin_ns, end_ns, sum_ns;
};

struct device_work {
	uint32_t device;
	struct busy_interval *intervals; /* ring buffer */
	uint64_t count;
};

struct delay_splitter {
	struct stream_waits *waits;
	struct stream_table streams;
	uint64_t *stream_ends; /* by number of the stream: end of its work so far */
	size_t stream_room;
	struct device_work devices[TIMELINE_DEVICES];
	size_t device_count;
};

struct delay_splitter *delay_splitter_new(void)
{
	struct delay_splitter *splitter = xcalloc(sizeof *splitter);

	splitter->waits = stream_waits_new();
	return splitter;
}

void delay_splitter_free(struct delay_splitter *splitter)
{
	for (size_t i = 0; i < splitter->device_count; i++)
		free(splitter->devices[i].intervals);
	stream_waits_free(splitter->waits);
	stream_table_free(&splitter->streams);
	free(splitter->stream_ends);
	free(splitter);
}

void delay_splitter_add_call(struct delay_splitter *splitter, const struct activity *call)
{
	stream_waits_add(splitter->waits, call);
}

static struct device_work *device_work_of(struct delay_splitter *splitter, uint32_t number)
{
	struct device_work *device = device_slot(
		splitter->devices, &splitter->device_count, sizeof *splitter->devices, number);

	if (!device->intervals)
		device->intervals = xcalloc(INTERVALS * sizeof *device->intervals);
	return device;
}

static struct busy_interval *nth_interval(const struct device_work *device, uint64_t number)
{
	return &device->intervals[number % INTERVALS];
}

/* Adds work that begins no earlier than all work before it. */
static void add_interval(struct device_work *device, uint64_t begin_ns, uint64_t end_ns)
{
	struct busy_interval *last = device->count ? nth_interval(device, device->count - 1) : NULL;

	if (last && begin_ns <= last->end_ns) {
		last->sum_ns += end_ns > last->end_ns ? end_ns - last->end_ns : 0;
		last->end_ns = max_u64(last->end_ns, end_ns);
		return;
	}
	*nth_interval(device, device->count++) = (struct busy_interval){ .begin_ns = begin_ns,
		.end_ns = end_ns,
		.sum_ns = (last ? last->sum_ns : 0) + end_ns - begin_ns };
}

/* Returns the busy time of all work so far before `at_ns`. */
static uint64_t busy_until(const struct device_work *device, uint64_t at_ns)
{
	uint64_t low = device->count > INTERVALS ? device->count - INTERVALS : 0,
		 high = device->count;
	const struct busy_interval *interval;

	if (low == high)
		return 0;
	/* the last interval that begins before at_ns, else the oldest known one */
	while (high - low > 1) {
		const uint64_t middle = low + (high - low) / 2;

		if (nth_interval(device, middle)->begin_ns < at_ns)
			low = middle;
		else
			high = middle;
	}
	interval = nth_interval(device, low);
	at_ns = min_u64(max_u64(at_ns, interval->begin_ns), interval->end_ns);
	return interval->sum_ns - (interval->end_ns - at_ns);
}

/* Divides what is neither the stream's nor the call's time. */
static void split_rest(const struct delay_splitter *splitter, const struct device_work *device,
	const struct activity *work, uint64_t from_ns, struct delay_parts *parts)
{
	const uint64_t rest_ns = work->begin_ns - from_ns;
	struct stream_wait wait;

	if (rest_ns > START_MAX_NS && stream_waits_before(splitter->waits, work, &wait)) {
		parts->event_ns = rest_ns;
		return;
	}
	parts->others_ns = busy_until(device, work->begin_ns) - busy_until(device, from_ns);
	if (rest_ns - parts->others_ns > START_MAX_NS)
		parts->unknown_ns = rest_ns - parts->others_ns;
	else
		parts->start_ns += rest_ns - parts->others_ns;
}

struct delay_parts delay_splitter_add_work(
	struct delay_splitter *splitter, const struct activity *work)
{
	struct device_work *device = device_work_of(splitter, work->device);
	const uint32_t stream = stream_table_number(&splitter->streams, work->device, work->stream);
	struct delay_parts parts = { .stream_ns = 0 };
	uint64_t from_ns = work->call_begin_ns, next_ns;

	array_grow_zeroed(&splitter->stream_ends, &splitter->stream_room, (size_t)stream + 1,
		sizeof *splitter->stream_ends);
	if (work->has_call && from_ns < work->begin_ns) {
		next_ns = min_u64(max_u64(from_ns, splitter->stream_ends[stream]), work->begin_ns);
		parts.stream_ns = next_ns - from_ns;
		from_ns = min_u64(max_u64(next_ns, work->call_end_ns), work->begin_ns);
		parts.start_ns = from_ns - next_ns;
		split_rest(splitter, device, work, from_ns, &parts);
	}
	splitter->stream_ends[stream] = max_u64(splitter->stream_ends[stream], work->end_ns);
	add_interval(device, work->begin_ns, max_u64(work->begin_ns, work->end_ns));
	return parts;
}

void delay_parts_sum(struct delay_parts *to, const struct delay_parts *parts)
{
	to->stream_ns += parts->stream_ns;
	to->start_ns += parts->start_ns;
	to->event_ns += parts->event_ns;
	to->others_ns += parts->others_ns;
	to->unknown_ns += parts->unknown_ns;
}
