/* SPDX-License-Identifier: MIT */
#include "report/analysis/idle_parts.h"
#include "report/analysis/first_calls.h"
#include "report/analysis/host_ranges.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/gpu/device_timeline.h"
#include <stdlib.h>

struct part_device {
	uint32_t device;
	/* end of the work so far, in Unix time and in trace time, and the correlation id of the
	 * last to end */
	uint64_t covered_unix, covered_ns, last_correlation;
	bool begun, after_unknown_nodes;
};

struct part_reading {
	const struct process *process;
	const struct activities *activities;
	const struct host_ranges *host;
	const struct first_calls *first;
	struct gap_calls *calls;
	/* the parts of the current gap, with their lengths */
	struct idle_part *parts;
	size_t part_count, part_room;
	struct part_device devices[TIMELINE_DEVICES];
	size_t device_count;
	void (*visit)(void *context, const struct idle_part *part);
	void *context;
};

static uint64_t known_ns(const struct part_reading *reading, uint32_t device,
	enum handover_axis axis, uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns
		       ? to_ns - from_ns -
				 timeline_unknown_within(reading->process->profile->timeline,
					 device, axis, from_ns, to_ns)
		       : 0;
}

/* Returns the length of a part inside the intervals that count, which begin and end on the host's
 * clock. */
static uint64_t counted_length(
	const struct part_reading *reading, uint32_t device, const struct gap_part *part)
{
	const struct counted_interval *intervals;
	const size_t count = activities_counted_intervals(reading->activities, &intervals);
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += known_ns(reading, device, HANDOVER_TRACE_TIME,
			max_u64(intervals[i].begin_ns, part->begin_ns),
			min_u64(intervals[i].end_ns, part->end_ns));
	return sum;
}

/* Returns a time of the gap that `work` ended, in the GPU's own nanoseconds, in which sums are
 * exact. The gap begins and ends exactly where its neighbours do. */
static uint64_t unix_time(const struct part_device *device, const struct activity *work,
	const struct gap *gap, uint64_t at_ns)
{
	const uint64_t before_end_ns = gap->end_ns - at_ns;

	if (at_ns <= gap->begin_ns || work->start_unix_ns - device->covered_unix < before_end_ns)
		return device->covered_unix;
	return work->start_unix_ns - before_end_ns;
}

static uint64_t part_length(const struct part_reading *reading, const struct part_device *device,
	const struct activity *work, const struct gap *gap, const struct gap_part *part)
{
	const struct profile_options *options = &reading->process->profile->options;

	if (options->steps || options->windows)
		return counted_length(reading, device->device, part);
	return known_ns(reading, device->device, HANDOVER_REALTIME,
		unix_time(device, work, gap, part->begin_ns),
		part->end_ns == gap->end_ns ? work->start_unix_ns
					    : unix_time(device, work, gap, part->end_ns));
}

static void add_one_part(struct part_reading *reading, const struct gap_part *part)
{
	ARRAY_GROW(reading->parts, reading->part_room, reading->part_count + 1);
	reading->parts[reading->part_count++] = (struct idle_part){ .part = *part };
}

/* Returns true for causes that are a different one in a first call. */
static bool is_first_call_cause(enum gap_cause cause)
{
	return cause == GAP_LAUNCH || cause == GAP_LATENCY || cause == GAP_ALLOCATION ||
	       cause == GAP_SYNC;
}

/* Adds a part. What of it is in slow first calls of the launching thread becomes parts of its own.
 */
static void add_part(struct part_reading *reading, const struct gap_part *part, uint32_t tid)
{
	const struct first_call_span *span;
	struct gap_part rest = *part, first = *part;

	while (is_first_call_cause(part->cause) && rest.begin_ns < rest.end_ns &&
		(span = first_calls_span(reading->first, tid, rest.begin_ns, rest.end_ns))) {
		first.begin_ns = max_u64(rest.begin_ns, span->begin_ns);
		first.end_ns = min_u64(rest.end_ns, span->end_ns);
		first.cause = GAP_FIRST;
		rest.end_ns = first.begin_ns;
		if (rest.end_ns > rest.begin_ns)
			add_one_part(reading, &rest);
		add_one_part(reading, &first);
		rest.begin_ns = first.end_ns;
		rest.end_ns = part->end_ns;
	}
	if (rest.begin_ns < rest.end_ns || part->begin_ns == part->end_ns)
		add_one_part(reading, &rest);
}

/* Adds a launch-bound part. The time in which the launching thread fetched data or compiled becomes
 * parts of its own. */
static void add_launch_part(struct part_reading *reading, const struct gap_part *part, uint32_t tid)
{
	const struct tree *tree = reading->process->profile->tree;
	const struct host_range *range;
	struct gap_part rest = *part, host = *part;

	while (rest.begin_ns < rest.end_ns &&
		(range = host_ranges_first(reading->host, tid, rest.begin_ns, rest.end_ns))) {
		host.begin_ns = max_u64(rest.begin_ns, range->begin_ns);
		host.end_ns = min_u64(rest.end_ns, range->end_ns);
		host.cause = range->kind == HOST_RANGE_DATA ? GAP_DATA : GAP_COMPILATION;
		host.blocked_owner = range->node;
		host.blocked_by = tree->nodes[range->node].name;
		rest.end_ns = host.begin_ns;
		if (rest.end_ns > rest.begin_ns)
			add_part(reading, &rest, tid);
		add_one_part(reading, &host);
		rest.begin_ns = host.end_ns;
		rest.end_ns = part->end_ns;
	}
	if (rest.begin_ns < rest.end_ns)
		add_part(reading, &rest, tid);
}

static void read_parts(
	struct part_reading *reading, const struct activity *work, const struct gap *gap)
{
	struct gap_part parts[GAP_PARTS_MAX];
	const size_t count = gap_split(reading->calls, work, gap, parts);

	reading->part_count = 0;
	for (size_t i = 0; i < count; i++)
		if (parts[i].cause == GAP_LAUNCH && reading->host->count)
			add_launch_part(reading, &parts[i], work->tid);
		else
			add_part(reading, &parts[i], work->tid);
}

static void visit_gap(
	struct part_reading *reading, const struct part_device *device, const struct activity *work)
{
	const struct gap gap = { .begin_ns = min_u64(device->covered_ns, work->begin_ns),
		.end_ns = work->begin_ns,
		.last_correlation = device->last_correlation,
		.after_unknown_nodes = device->after_unknown_nodes };
	uint64_t gap_ns = 0;
	size_t last = 0;

	read_parts(reading, work, &gap);
	for (size_t i = 0; i < reading->part_count; i++) {
		struct idle_part *part = &reading->parts[i];

		part->ended_by = work;
		part->length_ns = part_length(reading, device, work, &gap, &part->part);
		gap_ns += part->length_ns;
		if (part->length_ns)
			last = i;
	}
	if (reading->part_count)
		reading->parts[last].gap_ns = gap_ns;
	for (size_t i = 0; i < reading->part_count; i++)
		if (reading->parts[i].length_ns)
			reading->visit(reading->context, &reading->parts[i]);
}

static void add_part_work(struct part_reading *reading, const struct activity *work)
{
	struct part_device *device = device_slot(
		reading->devices, &reading->device_count, sizeof *reading->devices, work->device);
	const uint64_t end_unix = work->start_unix_ns + work->duration_ns;

	if (device->begun && work->start_unix_ns > device->covered_unix)
		visit_gap(reading, device, work);
	if (!device->begun || end_unix >= device->covered_unix) {
		device->covered_unix = end_unix;
		device->last_correlation = work->correlation;
		device->after_unknown_nodes = work->nodes_unknown;
	}
	device->covered_ns = max_u64(device->covered_ns, work->end_ns);
	device->begun = true;
}

static void read_part_activity(void *context, const struct activity *one)
{
	struct part_reading *reading = context;

	if (activity_is_call(one) || one->kind == ACTIVITY_SYNC)
		gap_calls_add(reading->calls, one);
	else if (activity_is_work(one) && one->timed)
		add_part_work(reading, one);
}

static void end_part_reading(void *context)
{
	struct part_reading *reading = context;

	gap_calls_free(reading->calls);
	free(reading->parts);
	free(reading);
}

struct activity_visitor idle_parts_begin(struct process *process, struct activities *activities,
	void (*visit)(void *context, const struct idle_part *part), void *context)
{
	struct part_reading *reading = xcalloc(sizeof *reading);

	reading->process = process;
	reading->activities = activities;
	reading->visit = visit;
	reading->context = context;
	reading->host = host_ranges_of(process);
	reading->first = first_calls_of(process);
	reading->calls = gap_calls_new(process->texts);
	return (struct activity_visitor){
		.context = reading, .add = read_part_activity, .end = end_part_reading
	};
}

void idle_parts_visit(struct process *process, struct activities *activities,
	void (*visit)(void *context, const struct idle_part *part), void *context)
{
	const struct activity_visitor parts = idle_parts_begin(process, activities, visit, context);

	activities_visit(activities, &parts, 1);
}
