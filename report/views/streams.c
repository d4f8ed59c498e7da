/* SPDX-License-Identifier: MIT
 *
 * Arranges each device and, below it, its CUDA streams. Their rows say what ran there, which
 * threads launched it, and how long other streams were busy at the same time.
 */
#include "report/views/views.h"
#include "report/base/compare.h"
#include "report/analysis/event_sweep.h"
#include "report/base/alloc.h"
#include "report/analysis/stream_table.h"
#include "report/table/computed_row.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_SHOWN 4

struct stream_caller {
	uint32_t tid;
	uint64_t operations;
};

/* What a CUDA stream or a device did. */
struct stream_use {
	struct active_time busy;
	/* shared_ns: time in which other streams were busy too. shared_since_ns: the device's
	 * `several` time when the stream became busy. */
	uint64_t shared_ns, shared_since_ns;
	uint64_t sum_ns, kernels, copies, memsets, untimed, bytes, first_ns, last_ns;
	struct stream_caller *callers;
	size_t caller_count, caller_room;
	uint64_t start_unix, end_unix;
};

/* A device during the event sweep. */
struct device_use {
	uint32_t device, at_work; /* at_work: number of its streams that are busy */
	struct stream_use use;
	struct active_time several; /* time in which at least two of its streams are busy */
};

struct streams_report {
	struct activities *activities;
	struct stream_table stream_table;
	struct stream_use *uses; /* by number of the stream in `stream_table` */
	struct device_use devices[TIMELINE_DEVICES];
	size_t room, device_count;
};

static struct device_use *device_use_of(
	struct streams_report *streams, uint32_t device, uint32_t *index)
{
	struct device_use *found = device_slot(
		streams->devices, &streams->device_count, sizeof *streams->devices, device);

	*index = (uint32_t)(found - streams->devices);
	return found;
}

static struct stream_use *stream_use_of(struct streams_report *streams,
	const struct device_use *device, const struct activity *work, uint32_t *stream_index)
{
	*stream_index = stream_table_number(&streams->stream_table, device->device, work->stream);
	ARRAY_GROW(streams->uses, streams->room, (size_t)*stream_index + 1);
	return &streams->uses[*stream_index];
}

static void count_caller(struct stream_use *use, const struct activity *work)
{
	size_t at = 0;

	if (!work->has_call)
		return;
	while (at < use->caller_count && use->callers[at].tid != work->tid)
		at++;
	if (at == use->caller_count) {
		ARRAY_GROW(use->callers, use->caller_room, ++use->caller_count);
		use->callers[at].tid = work->tid;
	}
	use->callers[at].operations++;
	/* Keep threads with more launches first, so that the search finds them early. */
	if (at && use->callers[at].operations > use->callers[at - 1].operations) {
		const struct stream_caller more = use->callers[at];

		use->callers[at] = use->callers[at - 1];
		use->callers[at - 1] = more;
	}
}

static void add_work_to_use(struct stream_use *use, const struct activity *work)
{
	use->kernels += work->kind == ACTIVITY_KERNEL;
	use->copies += work->kind == ACTIVITY_COPY;
	use->memsets += work->kind == ACTIVITY_MEMSET;
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

static void begin_stream_work(
	void *context, const struct activity *work, uint64_t at_ns, struct sweep_mark *mark)
{
	struct streams_report *streams = context;
	struct device_use *device = device_use_of(streams, work->device, &mark->second);
	struct stream_use *use = stream_use_of(streams, device, work, &mark->first);

	add_work_to_use(use, work);
	add_work_to_use(&device->use, work);
	active_time_begin(&device->use.busy, at_ns);
	if (!use->busy.active) {
		/* The second stream starts `several`; further ones are added to it. */
		if (device->at_work++)
			active_time_begin(&device->several, at_ns);
		use->shared_since_ns = active_time_total(&device->several, at_ns);
	}
	active_time_begin(&use->busy, at_ns);
}

static void end_stream_work(void *context, const struct sweep_mark *mark, uint64_t at_ns)
{
	struct streams_report *streams = context;
	struct device_use *device = &streams->devices[mark->second];
	struct stream_use *use = &streams->uses[mark->first];

	active_time_end(&device->use.busy, at_ns);
	if (!active_time_end(&use->busy, at_ns))
		return;
	use->shared_ns += active_time_total(&device->several, at_ns) - use->shared_since_ns;
	if (--device->at_work)
		active_time_end(&device->several, at_ns);
}

/* Counts GPU work without times. The event sweep passes it here, beside other activities. */
static void count_untimed_work(void *context, const struct activity *one)
{
	struct streams_report *streams = context;
	struct device_use *device;
	uint32_t ignored;

	if (!activity_is_work(one) || !one->counts)
		return;
	device = device_use_of(streams, one->device, &ignored);
	add_work_to_use(&device->use, one);
	add_work_to_use(stream_use_of(streams, device, one, &ignored), one);
}

static void set_caller_cells(struct computed_row *computed, const struct stream_use *use)
{
	char text[THREADS_SHOWN * 12 + 16] = "";
	size_t used = 0;

	for (size_t i = 0; i < use->caller_count && i < THREADS_SHOWN; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%u", i ? ", " : "",
			use->callers[i].tid);
	if (use->caller_count > THREADS_SHOWN)
		snprintf(text + used, sizeof text - used, ", ...");
	if (!use->caller_count)
		return;
	computed_row_set_unsigned(computed, "threads", use->caller_count);
	computed_row_set_string(computed, "thread_ids", text);
}

static void set_use_time_cells(struct computed_row *computed, const struct process *process,
	const struct stream_use *use, uint64_t span_ns)
{
	if (!use->start_unix) { /* nothing there has a time */
		computed_row_set_unknown(computed, "busy_ns");
		return;
	}
	computed_row_set_unsigned(computed, "gpu_total_ns", use->sum_ns);
	computed_row_set_share(computed, "share", use->sum_ns, process->gpu_ns);
	computed_row_set_unsigned(computed, "busy_ns", use->busy.total_ns);
	computed_row_set_share(computed, "busy_share", use->busy.total_ns, span_ns);
	computed_row_set_unsigned(computed, "concurrent_ns", use->shared_ns);
	computed_row_set_unsigned(computed, "start_ns", use->first_ns);
	computed_row_set_unsigned(computed, "last_ns", use->last_ns);
}

static struct computed_row *use_row(
	struct process *process, const char *kind, const struct stream_use *use, uint64_t span_ns)
{
	struct computed_row *computed = computed_row_new(process, 0, kind);

	computed_row_set_unsigned(computed, "calls", use->kernels + use->copies + use->memsets);
	computed_row_set_unsigned(computed, "kernels", use->kernels);
	computed_row_set_unsigned(computed, "copies", use->copies);
	computed_row_set_unsigned(computed, "sets", use->memsets);
	computed_row_set_unsigned(computed, "bytes", use->bytes);
	computed_row_set_unsigned(computed, "untimed", use->untimed);
	set_caller_cells(computed, use);
	set_use_time_cells(computed, process, use, span_ns);
	return computed;
}

static struct computed_row *stream_row(struct process *process,
	const struct streams_report *streams, uint32_t index, uint64_t span_ns)
{
	const struct device_stream *stream = &streams->stream_table.entries[index];
	struct computed_row *computed = use_row(process, "stream", &streams->uses[index], span_ns);
	char label[256];

	computed_row_set_name(computed, label,
		stream_table_label(stream, streams->activities, label, sizeof label));
	computed_row_set_unsigned(computed, "device", stream->device);
	if (stream->stream != STREAM_TABLE_REST)
		computed_row_set_unsigned(computed, "stream", stream->stream);
	return computed;
}

static void add_stream_rows(const struct options *options, struct process *process,
	struct rows *rows, const struct streams_report *streams, const struct device_use *device,
	uint32_t parent)
{
	const uint64_t span_ns = device->use.end_unix - device->use.start_unix;

	for (uint32_t i = 0; i < streams->stream_table.count; i++)
		if (streams->stream_table.entries[i].device == device->device)
			computed_row_add(rows, stream_row(process, streams, i, span_ns), parent);
	rows_finish_level(options, process, rows, parent + 1, 1, view_top(options));
}

static void add_streams_device(const struct options *options, struct process *process,
	struct rows *rows, struct streams_report *streams, size_t index)
{
	struct device_use *device = &streams->devices[index];
	struct computed_row *computed;
	uint64_t stream_count = 0;

	for (uint32_t i = 0; i < streams->stream_table.count; i++)
		stream_count += streams->stream_table.entries[i].device == device->device;
	device->use.shared_ns = device->several.total_ns;
	computed = use_row(
		process, "device", &device->use, device->use.end_unix - device->use.start_unix);
	computed_row_format_name(computed, "device %u", device->device);
	computed_row_set_unsigned(computed, "device", device->device);
	computed_row_set_unsigned(computed, "streams", stream_count);
	rows_add(rows, &computed->row);
	add_stream_rows(options, process, rows, streams, device, (uint32_t)rows->count - 1);
}

void arrange_streams(const struct options *options, struct process *process, struct rows *rows)
{
	struct streams_report *streams = xcalloc(sizeof *streams);
	const struct event_sweep_visitor visitor = { .context = streams,
		.begins = begin_stream_work,
		.ends = end_stream_work,
		.other = count_untimed_work };

	streams->activities = activities_read(process);
	event_sweep_run(streams->activities, &visitor, false);
	qsort(streams->devices, streams->device_count, sizeof *streams->devices, compare_u32);
	for (size_t i = 0; i < streams->device_count; i++)
		add_streams_device(options, process, rows, streams, i);
	for (uint32_t i = 0; i < streams->stream_table.count; i++)
		free(streams->uses[i].callers);
	for (size_t i = 0; i < streams->device_count; i++)
		free(streams->devices[i].use.callers);
	free(streams->uses);
	stream_table_free(&streams->stream_table);
	activities_free(streams->activities);
	free(streams);
}
