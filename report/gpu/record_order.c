/* SPDX-License-Identifier: MIT */
#include "report/gpu/record_order.h"

#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/external_sort.h"
#include "report/trace/record_check.h"

#include <stdlib.h>
#include <string.h>

struct record_order {
	struct external_sort *sort;
};

COMPARE_BY_THREE(compare_gpu_entries, struct gpu_record, time_ns, stream, arrival)

/* Sets the start and the duration of `entry`. */
static void set_entry_times(
	struct trace_reader *reader, struct gpu_record *entry, const struct trace_event *event)
{
	uint64_t start_ns = 0, end_ns = 0, begin, end;

	switch (event->kind) {
	case TRACE_GPU_MEMORY:
		start_ns = end_ns = entry->record.memory.time_ns;
		break;
	/* All of these have their times at the same offset. */
	case TRACE_GPU_SYNC:
	case TRACE_API:
	case TRACE_OVERHEAD:
	case TRACE_KERNEL:
	case TRACE_GPU_COPY:
	case TRACE_GPU_SET:
		start_ns = entry->record.kernel.gpu.start_ns;
		end_ns = entry->record.kernel.gpu.end_ns;
		break;
	}
	entry->timed = reader_gpu_times(reader, start_ns, end_ns, &begin, &end);
	entry->time_ns = entry->timed ? begin : event->time_ns;
	entry->duration_ns = end - begin;
}

static void add_gpu_entry(
	struct record_order *order, struct trace_reader *reader, const struct trace_event *event)
{
	const uint64_t arrival = external_sort_count(order->sort);
	const struct trace_head *head = event->record;
	struct gpu_record *entry = external_sort_add(order->sort);

	entry->arrival = arrival;
	entry->stream = event->stream->stream;
	entry->tid = event->stream->tid;
	entry->kind = event->kind;
	entry->node = event->node;
	memcpy(&entry->record, head,
		head->size < sizeof entry->record ? head->size : sizeof entry->record);
	set_entry_times(reader, entry, event);
}

struct record_order *record_order_read(struct trace_reader *reader)
{
	struct record_order *order = xcalloc(sizeof *order);
	struct trace_event event;
	int status;

	order->sort = external_sort_new(sizeof(struct gpu_record), RECORD_ORDER_IN_MEMORY,
		compare_gpu_entries, "GPU records");
	while ((status = reader_next(reader, &event)) > 0)
		if (kind_is_gpu(event.kind) && event.record)
			add_gpu_entry(order, reader, &event);
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(reader));
	reader_rewind(reader);
	external_sort_rewind(order->sort);
	return order;
}

const struct gpu_record *record_order_peek(const struct record_order *order)
{
	return external_sort_peek(order->sort);
}

void record_order_next(struct record_order *order)
{
	external_sort_next(order->sort);
}

void record_order_free(struct record_order *order)
{
	external_sort_free(order->sort);
	free(order);
}
