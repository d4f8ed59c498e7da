/* SPDX-License-Identifier: MIT
 * arrange_streams.c: each device, and below it its streams: what ran there, who put it there, and whether it ran beside
 * anything else.
 */
#include "report/views/views.h"
#include "report/analysis/event_sweep.h"
#include "report/base/alloc.h"
#include "report/analysis/stream_table.h"
#include "report/table/computed_row.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_TOLD 4

struct caller {
	uint32_t tid;
	uint64_t works;
};

/* What a stream, or a device, did. */
struct use {
	struct stretch busy;
	uint64_t shared_ns, shared_since_ns; /* busy beside others; the device's `several` when it began to be busy */
	uint64_t sum_ns, kernels, copies, sets, untimed, bytes, first_ns, last_ns;
	struct caller *callers;
	size_t caller_count, caller_room;
	uint64_t start_unix, end_unix;
};

/* A device while time goes on. */
struct device_use {
	struct use use;
	struct stretch several; /* at least two of its streams are at work */
	uint32_t device, at_work; /* at_work: so many of its streams */
};

struct streams {
	struct activities *activities;
	struct lanes lanes;
	struct use *uses; /* by lane */
	struct device_use devices[TIMELINE_DEVICES];
	size_t room, device_count;
};

static struct device_use *device_of(struct streams *streams, uint32_t device, uint32_t *index)
{
	size_t at = 0;

	while (at < streams->device_count && streams->devices[at].device != device)
		at++;
	if (at == TIMELINE_DEVICES)
		at--;
	else if (at == streams->device_count)
		streams->devices[streams->device_count++].device = device;
	*index = (uint32_t)at;
	return &streams->devices[at];
}

static struct use *use_of(
	struct streams *streams, const struct device_use *device, const struct activity *work, uint32_t *lane)
{
	*lane = lanes_number(&streams->lanes, device->device, work->stream);
	grow(&streams->uses, &streams->room, (size_t)*lane + 1, sizeof *streams->uses);
	return &streams->uses[*lane];
}

static void count_caller(struct use *use, const struct activity *work)
{
	size_t at = 0;

	if (!work->has_call)
		return;
	while (at < use->caller_count && use->callers[at].tid != work->tid)
		at++;
	if (at == use->caller_count) {
		grow(&use->callers, &use->caller_room, ++use->caller_count, sizeof *use->callers);
		use->callers[at].tid = work->tid;
	}
	use->callers[at].works++;
	/* who does most is found first */
	if (at && use->callers[at].works > use->callers[at - 1].works) {
		const struct caller more = use->callers[at];

		use->callers[at] = use->callers[at - 1];
		use->callers[at - 1] = more;
	}
}

static void count_work(struct use *use, const struct activity *work)
{
	use->kernels += work->kind == ACTIVITY_KERNEL;
	use->copies += work->kind == ACTIVITY_COPY;
	use->sets += work->kind == ACTIVITY_SET;
	use->bytes += work->bytes;
	use->sum_ns += work->duration_ns;
	use->untimed += !work->timed;
	count_caller(use, work);
	if (!work->timed)
		return;
	if (!use->start_unix || work->begin_ns < use->first_ns)
		use->first_ns = work->begin_ns;
	if (work->end_ns > use->last_ns)
		use->last_ns = work->end_ns;
	if (!use->start_unix)
		use->start_unix = work->start_unix_ns;
	if (work->start_unix_ns + work->duration_ns > use->end_unix)
		use->end_unix = work->start_unix_ns + work->duration_ns;
}

static void begins(void *context, const struct activity *work, uint64_t at_ns, struct edge_mark *mark)
{
	struct streams *streams = context;
	struct device_use *device = device_of(streams, work->device, &mark->second);
	struct use *use = use_of(streams, device, work, &mark->first);

	count_work(use, work);
	count_work(&device->use, work);
	stretch_begin(&device->use.busy, at_ns);
	if (!use->busy.active) {
		if (device->at_work++) /* the second is one, the third another */
			stretch_begin(&device->several, at_ns);
		use->shared_since_ns = stretch_total(&device->several, at_ns);
	}
	stretch_begin(&use->busy, at_ns);
}

static void ends(void *context, const struct edge_mark *mark, uint64_t at_ns)
{
	struct streams *streams = context;
	struct device_use *device = &streams->devices[mark->second];
	struct use *use = &streams->uses[mark->first];

	stretch_end(&device->use.busy, at_ns);
	if (!stretch_end(&use->busy, at_ns))
		return;
	use->shared_ns += stretch_total(&device->several, at_ns) - use->shared_since_ns;
	if (--device->at_work)
		stretch_end(&device->several, at_ns);
}

/* Without times: it is counted. */
static void other(void *context, const struct activity *one)
{
	struct streams *streams = context;
	struct device_use *device;
	uint32_t ignored;

	if (!activity_is_work(one) || !one->counts)
		return;
	device = device_of(streams, one->device, &ignored);
	count_work(&device->use, one);
	count_work(use_of(streams, device, one, &ignored), one);
}

static void tell_callers(struct tally *tally, const struct use *use)
{
	char text[THREADS_TOLD * 12 + 16] = "";
	size_t used = 0;

	for (size_t i = 0; i < use->caller_count && i < THREADS_TOLD; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%u", i ? ", " : "", use->callers[i].tid);
	if (use->caller_count > THREADS_TOLD)
		snprintf(text + used, sizeof text - used, ", ...");
	if (!use->caller_count)
		return;
	tally_unsigned(tally, "threads", use->caller_count);
	tally_words(tally, "thread_ids", text);
}

static struct tally *tell(struct process *process, const struct use *use, uint64_t span_ns)
{
	struct tally *tally = tally_new(process, 0);

	tally_unsigned(tally, "calls", use->kernels + use->copies + use->sets);
	tally_unsigned(tally, "kernels", use->kernels);
	tally_unsigned(tally, "copies", use->copies);
	tally_unsigned(tally, "sets", use->sets);
	tally_unsigned(tally, "bytes", use->bytes);
	tally_unsigned(tally, "untimed", use->untimed);
	tell_callers(tally, use);
	if (!use->start_unix) { /* nothing there has a time */
		tally_unknown(tally, "busy_ns");
		return tally;
	}
	tally_unsigned(tally, "gpu_total_ns", use->sum_ns);
	tally_share(tally, "share", use->sum_ns, process->gpu_ns);
	tally_unsigned(tally, "busy_ns", use->busy.total_ns);
	tally_share(tally, "busy_share", use->busy.total_ns, span_ns);
	tally_unsigned(tally, "concurrent_ns", use->shared_ns);
	tally_unsigned(tally, "start_ns", use->first_ns);
	tally_unsigned(tally, "last_ns", use->last_ns);
	return tally;
}

static void add_lanes(const struct options *options, struct process *process, struct rows *rows,
	const struct streams *streams, const struct device_use *device, uint32_t parent)
{
	for (uint32_t i = 0; i < streams->lanes.count; i++) {
		const struct lane *lane = &streams->lanes.lanes[i];
		struct tally *tally;
		char label[256];

		if (lane->device != device->device)
			continue;
		tally = tell(process, &streams->uses[i], device->use.end_unix - device->use.start_unix);
		tally_name(tally, label, lane_label(lane, streams->activities, label, sizeof label));
		tally_words(tally, "kind", "stream");
		tally_unsigned(tally, "device", lane->device);
		if (lane->stream != LANES_REST)
			tally_unsigned(tally, "stream", lane->stream);
		tally_add(rows, tally, parent);
	}
	rows_end(options, process, rows, parent + 1, 1, view_top(options));
}

static int by_device(const void *a, const void *b)
{
	const struct device_use *left = a, *right = b;

	return (left->device > right->device) - (left->device < right->device);
}

static void add_device(
	const struct options *options, struct process *process, struct rows *rows, struct streams *streams, size_t index)
{
	struct device_use *device = &streams->devices[index];
	struct tally *tally;
	uint64_t lanes = 0;

	for (uint32_t i = 0; i < streams->lanes.count; i++)
		lanes += streams->lanes.lanes[i].device == device->device;
	device->use.shared_ns = device->several.total_ns;
	tally = tell(process, &device->use, device->use.end_unix - device->use.start_unix);
	tally_name_format(tally, "device %u", device->device);
	tally_words(tally, "kind", "device");
	tally_unsigned(tally, "device", device->device);
	tally_unsigned(tally, "streams", lanes);
	rows_add(rows, &tally->row);
	add_lanes(options, process, rows, streams, device, (uint32_t)rows->count - 1);
}

static void arrange(const struct options *options, struct process *process, struct rows *rows)
{
	struct streams *streams = need(sizeof *streams);
	const struct edges_visitor visitor = { .context = streams, .begins = begins, .ends = ends, .other = other };

	streams->activities = activities_read(process);
	edges_visit(streams->activities, &visitor, false);
	qsort(streams->devices, streams->device_count, sizeof *streams->devices, by_device);
	for (size_t i = 0; i < streams->device_count; i++)
		add_device(options, process, rows, streams, i);
	for (uint32_t i = 0; i < streams->lanes.count; i++)
		free(streams->uses[i].callers);
	for (size_t i = 0; i < streams->device_count; i++)
		free(streams->devices[i].use.callers);
	free(streams->uses);
	lanes_free(&streams->lanes);
	activities_free(streams->activities);
	free(streams);
}

void arrange_streams(const struct options *options, struct processes *processes, struct rows *rows)
{
	for (size_t i = 0; i < processes->shown; i++)
		arrange(options, &processes->all[i], rows);
}
