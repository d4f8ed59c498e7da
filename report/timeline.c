/* SPDX-License-Identifier: MIT */
#include "report/timeline.h"
#include "report/fatal.h"
#include "report/trace_reader.h"
#include <stdlib.h>

struct interval {
	uint64_t start, end;
};

/* The union of intervals that come roughly by their start. */
struct sweep {
	struct interval *heap; /* the earliest start first */
	size_t count, room;
	uint64_t busy, covered; /* of all taken from the heap: their union, and its end */
	bool begun;
};

struct timeline {
	struct trace_reader *reader;
	int64_t device;
	struct timeline_device devices[TIMELINE_DEVICES];
	struct sweep sweeps[TIMELINE_DEVICES];
	struct interval spans[TIMELINE_DEVICES]; /* first and last moment since the trace's start */
	size_t count, waiting;                   /* devices; intervals in all heaps */
	uint64_t late;
	bool ended;
};

static void heap_up(struct sweep *sweep, struct interval interval)
{
	size_t i;

	grow(&sweep->heap, &sweep->room, sweep->count + 1, sizeof *sweep->heap);
	for (i = sweep->count++; i > 0 && sweep->heap[(i - 1) / 2].start > interval.start; i = (i - 1) / 2)
		sweep->heap[i] = sweep->heap[(i - 1) / 2];
	sweep->heap[i] = interval;
}

static struct interval heap_take(struct sweep *sweep)
{
	const struct interval first = sweep->heap[0], last = sweep->heap[--sweep->count];
	size_t i = 0, child;

	while ((child = i * 2 + 1) < sweep->count) {
		child += child + 1 < sweep->count && sweep->heap[child + 1].start < sweep->heap[child].start;
		if (sweep->heap[child].start >= last.start)
			break;
		sweep->heap[i] = sweep->heap[child];
		i = child;
	}
	sweep->heap[i] = last;
	return first;
}

/* The earliest interval into the union. */
static void advance(struct timeline *timeline, struct sweep *sweep)
{
	const struct interval interval = heap_take(sweep);

	timeline->waiting--;
	if (!sweep->begun || interval.start >= sweep->covered) {
		sweep->busy += interval.end - interval.start;
		sweep->covered = interval.end;
	} else if (interval.end > sweep->covered) {
		sweep->busy += interval.end - sweep->covered;
		sweep->covered = interval.end;
	}
	sweep->begun = true;
}

static size_t device_index(struct timeline *timeline, uint32_t device)
{
	size_t i = 0;

	while (i < timeline->count && timeline->devices[i].device != device)
		i++;
	if (i == TIMELINE_DEVICES)
		return TIMELINE_DEVICES - 1;
	if (i == timeline->count)
		timeline->devices[timeline->count++].device = device;
	return i;
}

/* The next record of timed work; false: there are no more. */
static bool next_work(struct timeline *timeline, const struct trace_gpu **gpu)
{
	struct trace_event event;
	int status;

	while ((status = reader_next(timeline->reader, &event)) > 0) {
		if (event.kind != TRACE_KERNEL && event.kind != TRACE_GPU_COPY && event.kind != TRACE_GPU_SET)
			continue;
		*gpu = event.record;
		if ((timeline->device < 0 || (*gpu)->device == timeline->device) &&
			((*gpu)->start_ns || (*gpu)->end_ns))
			return true;
	}
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(timeline->reader));
	return false;
}

static void put(struct timeline *timeline, struct sweep *sweep, struct interval interval)
{
	if (interval.end < interval.start)
		interval.end = interval.start;
	if (sweep->begun && interval.start < sweep->covered && interval.end <= sweep->covered)
		timeline->late += interval.end > interval.start;
	heap_up(sweep, interval);
	timeline->waiting++;
}

/* Totals, in CUPTI's own nanoseconds. */
static void survey(struct timeline *timeline)
{
	const struct trace_gpu *gpu;

	while (next_work(timeline, &gpu)) {
		const size_t index = device_index(timeline, gpu->device);
		struct timeline_device *device = &timeline->devices[index];
		const uint64_t end = gpu->end_ns > gpu->start_ns ? gpu->end_ns : gpu->start_ns;

		if (!device->records || gpu->start_ns < device->first_ns)
			device->first_ns = gpu->start_ns;
		if (end > device->last_ns)
			device->last_ns = end;
		device->records++;
		device->sum_ns += end - gpu->start_ns;
		put(timeline, &timeline->sweeps[index], (struct interval){ gpu->start_ns, end });
		if (timeline->sweeps[index].count > TIMELINE_AHEAD)
			advance(timeline, &timeline->sweeps[index]);
	}
	for (size_t i = 0; i < timeline->count; i++) {
		while (timeline->sweeps[i].count)
			advance(timeline, &timeline->sweeps[i]);
		timeline->devices[i].busy_ns = timeline->sweeps[i].busy;
		timeline->sweeps[i].busy = timeline->sweeps[i].covered = 0;
		timeline->sweeps[i].begun = false;
	}
}

static int by_device(const void *a, const void *b)
{
	const struct timeline_device *left = a, *right = b;

	return (left->device > right->device) - (left->device < right->device);
}

struct timeline *timeline_open(const char *path, int64_t device)
{
	struct timeline *timeline = need(sizeof *timeline);
	char error[READER_ERROR_BYTES];

	timeline->device = device;
	timeline->reader = reader_open(path, error);
	if (!timeline->reader)
		fatal(STATUS_UNREADABLE, "%s", error);
	survey(timeline);
	if (timeline->count == 0) {
		timeline_close(timeline);
		return NULL;
	}
	qsort(timeline->devices, timeline->count, sizeof *timeline->devices, by_device);
	reader_rewind(timeline->reader);
	return timeline;
}

void timeline_close(struct timeline *timeline)
{
	if (!timeline)
		return;
	for (size_t i = 0; i < TIMELINE_DEVICES; i++)
		free(timeline->sweeps[i].heap);
	reader_close(timeline->reader);
	free(timeline);
}

size_t timeline_devices(const struct timeline *timeline, const struct timeline_device **devices)
{
	*devices = timeline ? timeline->devices : NULL;
	return timeline ? timeline->count : 0;
}

uint64_t timeline_late(const struct timeline *timeline)
{
	return timeline ? timeline->late : 0;
}

/* Reads on until enough is waiting that nothing which began before now_ns can be missing. */
static void read_ahead(struct timeline *timeline)
{
	const struct trace_gpu *gpu;

	while (!timeline->ended && timeline->waiting < TIMELINE_AHEAD) {
		struct interval interval;
		size_t index;

		if (!next_work(timeline, &gpu)) {
			timeline->ended = true;
			break;
		}
		index = device_index(timeline, gpu->device);
		reader_gpu_times(timeline->reader, gpu->start_ns, gpu->end_ns, &interval.start, &interval.end);
		if (timeline->spans[index].end == 0) {
			timeline->spans[index].start = reader_realtime(
				timeline->reader, timeline->devices[index].first_ns);
			timeline->spans[index].end = reader_realtime(
				timeline->reader, timeline->devices[index].last_ns);
		}
		put(timeline, &timeline->sweeps[index], interval);
	}
}

static uint64_t busy_until(const struct sweep *sweep, uint64_t now_ns)
{
	return sweep->covered > now_ns ? sweep->busy - (sweep->covered - now_ns) : sweep->busy;
}

static void go_to(struct timeline *timeline, uint64_t now_ns)
{
	for (size_t i = 0; i < timeline->count; i++) {
		read_ahead(timeline);
		while (timeline->sweeps[i].count && timeline->sweeps[i].heap[0].start < now_ns) {
			advance(timeline, &timeline->sweeps[i]);
			read_ahead(timeline);
		}
	}
}

uint64_t timeline_idle(struct timeline *timeline, uint64_t now_ns)
{
	uint64_t idle = 0;

	go_to(timeline, now_ns);
	for (size_t i = 0; i < timeline->count; i++) {
		const struct interval *span = &timeline->spans[i];
		const uint64_t until = now_ns < span->end ? now_ns : span->end,
			       busy = busy_until(&timeline->sweeps[i], until);

		if (until > span->start && until - span->start > busy)
			idle += until - span->start - busy;
	}
	return idle;
}

uint64_t timeline_busy(struct timeline *timeline, uint64_t now_ns)
{
	uint64_t busy = 0;

	go_to(timeline, now_ns);
	for (size_t i = 0; i < timeline->count; i++)
		busy += busy_until(&timeline->sweeps[i], now_ns);
	return busy;
}
