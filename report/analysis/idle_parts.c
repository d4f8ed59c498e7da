/* SPDX-License-Identifier: MIT */
#include "report/analysis/idle_parts.h"
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
	struct gap_calls *calls;
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

static void visit_gap(
	struct part_reading *reading, const struct part_device *device, const struct activity *work)
{
	const struct gap gap = { .begin_ns = min_u64(device->covered_ns, work->begin_ns),
		.end_ns = work->begin_ns,
		.last_correlation = device->last_correlation,
		.after_unknown_nodes = device->after_unknown_nodes };
	struct gap_part parts[GAP_PARTS_MAX];
	const size_t count = gap_split(reading->calls, work, &gap, parts);
	uint64_t lengths[GAP_PARTS_MAX], gap_ns = 0;
	size_t last = 0;

	for (size_t i = 0; i < count; i++) {
		lengths[i] = part_length(reading, device, work, &gap, &parts[i]);
		gap_ns += lengths[i];
		if (lengths[i])
			last = i;
	}
	for (size_t i = 0; i < count; i++)
		if (lengths[i])
			reading->visit(reading->context, &(struct idle_part){ .part = parts[i],
								 .length_ns = lengths[i],
								 .gap_ns = i == last ? gap_ns : 0,
								 .ended_by = work });
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

void idle_parts_visit(const struct process *process, struct activities *activities,
	void (*visit)(void *context, const struct idle_part *part), void *context)
{
	struct part_reading *reading = xcalloc(sizeof *reading);
	const struct activity *one;

	reading->process = process;
	reading->activities = activities;
	reading->visit = visit;
	reading->context = context;
	reading->calls = gap_calls_new(process->texts);
	for (activities_rewind(activities); (one = activities_first(activities));
		activities_next(activities))
		if (activity_is_call(one))
			gap_calls_add(reading->calls, one);
		else if (activity_is_work(one) && one->timed)
			add_part_work(reading, one);
	gap_calls_free(reading->calls);
	free(reading);
}
