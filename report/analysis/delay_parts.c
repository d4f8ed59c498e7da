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

/* The last work of a CUDA stream, and when the work before it had ended. */
struct stream_work {
	uint64_t begin_ns, end_ns, before_ns;
	bool fills; /* the device, with its blocks */
};

struct delay_splitter {
	const struct process *process;
	struct stream_waits *waits;
	struct stream_table streams;
	struct stream_work *stream_works; /* by number of the stream */
	size_t stream_room;
	struct device_work devices[TIMELINE_DEVICES];
	size_t device_count;
};

struct delay_splitter *delay_splitter_new(const struct process *process)
{
	struct delay_splitter *splitter = xcalloc(sizeof *splitter);

	splitter->process = process;
	splitter->waits = stream_waits_new();
	return splitter;
}

void delay_splitter_free(struct delay_splitter *splitter)
{
	for (size_t i = 0; i < splitter->device_count; i++)
		free(splitter->devices[i].intervals);
	stream_waits_free(splitter->waits);
	stream_table_free(&splitter->streams);
	free(splitter->stream_works);
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

static bool ended_just_before(uint64_t end_ns, uint64_t at_ns)
{
	return end_ns && end_ns <= at_ns && at_ns - end_ns <= START_MAX_NS;
}

/* Whether a kernel of another stream left no room on the device for `work`, which waited from
 * `from_ns` on. */
static bool had_no_room(
	const struct delay_splitter *splitter, const struct activity *work, uint64_t from_ns)
{
	bool found = false;

	for (uint32_t i = 0; i < splitter->streams.count && i < splitter->stream_room; i++) {
		const struct stream_work *other = &splitter->stream_works[i];

		if (splitter->streams.entries[i].device != work->device ||
			splitter->streams.entries[i].stream == work->stream)
			continue;
		if (ended_just_before(other->end_ns, work->begin_ns) ||
			ended_just_before(other->before_ns, work->begin_ns))
			return false;
		found |= other->fills && other->begin_ns <= from_ns + START_MAX_NS &&
			 other->end_ns > work->begin_ns;
	}
	return found;
}

/* Divides what is neither the stream's nor the call's time. */
static void split_rest(const struct delay_splitter *splitter, const struct device_work *device,
	const struct activity *work, uint64_t from_ns, struct delay_parts *parts)
{
	const uint64_t rest_ns = work->begin_ns - from_ns;
	struct stream_wait wait;

	if (rest_ns > START_MAX_NS && stream_waits_before(splitter->waits, work, &wait) &&
		!had_no_room(splitter, work, from_ns)) {
		*(wait.recorded ? &parts->event_ns : &parts->unknown_ns) = rest_ns;
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
	struct stream_work *last;

	array_grow_zeroed(&splitter->stream_works, &splitter->stream_room, (size_t)stream + 1,
		sizeof *splitter->stream_works);
	last = &splitter->stream_works[stream];
	if (work->has_call && from_ns < work->begin_ns) {
		next_ns = min_u64(max_u64(from_ns, last->end_ns), work->begin_ns);
		parts.stream_ns = next_ns - from_ns;
		from_ns = min_u64(max_u64(next_ns, work->call_end_ns), work->begin_ns);
		parts.start_ns = from_ns - next_ns;
		split_rest(splitter, device, work, from_ns, &parts);
	}
	*last = (struct stream_work){ .begin_ns = work->begin_ns,
		.end_ns = max_u64(last->end_ns, work->end_ns),
		.before_ns = last->end_ns,
		.fills = activity_fills_device(work, splitter->process) };
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
