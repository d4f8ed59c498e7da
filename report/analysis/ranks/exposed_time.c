/* SPDX-License-Identifier: MIT */
#include "report/analysis/ranks/exposed_time.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/search.h"
#include "report/gpu/device_timeline.h"
#include <stdlib.h>

/* Intervals are united when there are so many, and twice as many each time. */
#define UNITE_FIRST 65536u
#define NAMES_MAX (1u << 20) /* names of kernels whose kind is kept */

struct busy_interval {
	uint64_t start_ns, end_ns;
	uint64_t before_ns; /* total length of the intervals before it, once they are united */
};

struct busy_device {
	uint32_t device;
	struct busy_interval *all;
	size_t count, room, unite_at;
};

struct exposed_time {
	struct trace_reader *reader;
	const struct categories *categories;
	struct busy_device devices[TIMELINE_DEVICES];
	size_t device_count;
	/* By name: 0: not known yet, 1: computation, 2: communication. */
	uint8_t *kinds;
	size_t kind_room;
};

struct exposed_time *exposed_time_new(
	struct trace_reader *reader, const struct categories *categories)
{
	struct exposed_time *exposed = xcalloc(sizeof *exposed);

	exposed->reader = reader;
	exposed->categories = categories;
	return exposed;
}

void exposed_time_clear(struct exposed_time *exposed)
{
	for (size_t i = 0; i < exposed->device_count; i++)
		exposed->devices[i].count = exposed->devices[i].unite_at = 0;
}

void exposed_time_free(struct exposed_time *exposed)
{
	if (!exposed)
		return;
	for (size_t i = 0; i < exposed->device_count; i++)
		free(exposed->devices[i].all);
	free(exposed->kinds);
	free(exposed);
}

COMPARE_BY_TWO(by_start, struct busy_interval, start_ns, end_ns)

static void unite(struct busy_device *device)
{
	size_t kept = 0;

	if (device->count)
		qsort(device->all, device->count, sizeof *device->all, by_start);
	for (size_t i = 0; i < device->count; i++) {
		const struct busy_interval next = device->all[i];
		struct busy_interval *last = kept ? &device->all[kept - 1] : NULL;

		if (last && next.start_ns <= last->end_ns)
			last->end_ns = max_u64(last->end_ns, next.end_ns);
		else
			device->all[kept++] = next;
	}
	device->count = kept;
	if (kept)
		device->all[0].before_ns = 0;
	for (size_t i = 1; i < kept; i++)
		device->all[i].before_ns = device->all[i - 1].before_ns +
					   (device->all[i - 1].end_ns -
						   device->all[i - 1].start_ns);
	device->unite_at = kept * 2 > UNITE_FIRST ? kept * 2 : UNITE_FIRST;
}

static void add_interval(struct busy_device *device, uint64_t start_ns, uint64_t end_ns)
{
	struct busy_interval *last = device->count ? &device->all[device->count - 1] : NULL;

	if (last && start_ns >= last->start_ns && start_ns <= last->end_ns) {
		last->end_ns = max_u64(last->end_ns, end_ns);
		return;
	}
	*ARRAY_ADD(device->all, device->room,
		device->count) = (struct busy_interval){ .start_ns = start_ns, .end_ns = end_ns };
	if (device->count > UNITE_FIRST && device->count >= device->unite_at)
		unite(device);
}

static bool is_communication(struct exposed_time *exposed, uint32_t name)
{
	if (name >= NAMES_MAX)
		return categories_is_communication(
			exposed->categories, reader_name(exposed->reader, name));
	ARRAY_GROW(exposed->kinds, exposed->kind_room, (size_t)name + 1);
	if (!exposed->kinds[name])
		exposed->kinds[name] = categories_is_communication(exposed->categories,
					       reader_name(exposed->reader, name))
					       ? 2
					       : 1;
	return exposed->kinds[name] == 2;
}

void exposed_time_add(struct exposed_time *exposed, const struct trace_gpu *gpu)
{
	if ((gpu->head.kind != TRACE_KERNEL && gpu->head.kind != TRACE_GPU_SET) ||
		gpu->end_ns <= gpu->start_ns)
		return;
	if (gpu->head.kind == TRACE_KERNEL &&
		is_communication(exposed, ((const struct trace_kernel *)gpu)->name))
		return;
	add_interval(device_slot(exposed->devices, &exposed->device_count, sizeof *exposed->devices,
			     gpu->device),
		gpu->start_ns, gpu->end_ns);
}

DEFINE_COUNT_WHILE(intervals_begun, struct busy_interval, item->start_ns <= limit)

/* Returns how long the device computed before `at_ns`. */
static uint64_t busy_before(const struct busy_device *device, uint64_t at_ns)
{
	const size_t count = intervals_begun(device->all, device->count, at_ns);
	const struct busy_interval *last = count ? &device->all[count - 1] : NULL;

	return last ? last->before_ns + (min_u64(at_ns, last->end_ns) - last->start_ns) : 0;
}

/* A collective in the order of its device and its start. */
struct ordered_collective {
	uint32_t device;
	int64_t start_ns;
	size_t index;
};

COMPARE_BY_THREE(by_device, struct ordered_collective, device, start_ns, index)

static void set_exposed(
	const struct busy_device *device, struct collective *collective, uint64_t *covered_ns)
{
	const uint64_t start = max_u64((uint64_t)collective->start_ns, *covered_ns),
		       end = max_u64((uint64_t)collective->end_ns, start);

	collective->exposed_ns = end - start -
				 (busy_before(device, end) - busy_before(device, start));
	*covered_ns = end;
}

void exposed_time_set(struct exposed_time *exposed, struct collectives *collectives)
{
	struct ordered_collective *order = xcalloc((collectives->count + 1) * sizeof *order);
	uint64_t covered_ns = 0;

	for (size_t i = 0; i < exposed->device_count; i++)
		unite(&exposed->devices[i]);
	for (size_t i = 0; i < collectives->count; i++)
		order[i] = (struct ordered_collective){
			collectives->communicators[collectives->all[i].communicator].device,
			collectives->all[i].start_ns, i
		};
	qsort(order, collectives->count, sizeof *order, by_device);
	for (size_t i = 0; i < collectives->count; i++) {
		if (!i || order[i].device != order[i - 1].device)
			covered_ns = 0;
		set_exposed(device_slot(exposed->devices, &exposed->device_count,
				    sizeof *exposed->devices, order[i].device),
			&collectives->all[order[i].index], &covered_ns);
	}
	free(order);
}
