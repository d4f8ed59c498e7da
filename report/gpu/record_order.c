/* SPDX-License-Identifier: MIT */
#include "report/gpu/record_order.h"

#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/external_sort.h"
#include "report/trace/record_check.h"

#include <stdlib.h>
#include <string.h>

struct gpu_order {
	struct sorter *sorter;
};

static int compare(const void *left, const void *right)
{
	const struct gpu_entry *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	return (a->arrival > b->arrival) - (a->arrival < b->arrival);
}

/* When it began and how long it took. */
static void set_times(struct trace_reader *reader, struct gpu_entry *entry, const struct trace_event *event)
{
	uint64_t start_ns = 0, end_ns = 0, begin, end;

	switch (event->kind) {
	case TRACE_GPU_MEMORY:
		start_ns = end_ns = entry->record.memory.time_ns;
		break;
	case TRACE_GPU_SYNC:
	case TRACE_API:
	case TRACE_OVERHEAD:
	case TRACE_KERNEL:
	case TRACE_GPU_COPY:
	case TRACE_GPU_SET: /* all of them have their times there */
		start_ns = entry->record.kernel.gpu.start_ns;
		end_ns = entry->record.kernel.gpu.end_ns;
		break;
	}
	entry->timed = reader_gpu_times(reader, start_ns, end_ns, &begin, &end);
	entry->time_ns = entry->timed ? begin : event->time_ns;
	entry->duration_ns = end - begin;
}

static void collect(struct gpu_order *order, struct trace_reader *reader, const struct trace_event *event)
{
	const uint64_t arrival = sorter_count(order->sorter);
	const struct trace_head *head = event->record;
	struct gpu_entry *entry = sorter_add(order->sorter);

	entry->arrival = arrival;
	entry->stream = event->stream->stream;
	entry->tid = event->stream->tid;
	entry->kind = event->kind;
	entry->node = event->node;
	memcpy(&entry->record, head, head->size < sizeof entry->record ? head->size : sizeof entry->record);
	set_times(reader, entry, event);
}

struct gpu_order *gpu_order_read(struct trace_reader *reader)
{
	struct gpu_order *order = need(sizeof *order);
	struct trace_event event;
	int status;

	order->sorter = sorter_new(sizeof(struct gpu_entry), GPU_ORDER_HELD, compare, "the GPU's records");
	while ((status = reader_next(reader, &event)) > 0)
		if (kind_is_gpu(event.kind) && event.record)
			collect(order, reader, &event);
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(reader));
	reader_rewind(reader);
	sorter_rewind(order->sorter);
	return order;
}

const struct gpu_entry *gpu_order_first(const struct gpu_order *order)
{
	return sorter_first(order->sorter);
}

void gpu_order_next(struct gpu_order *order)
{
	sorter_next(order->sorter);
}

void gpu_order_free(struct gpu_order *order)
{
	sorter_free(order->sorter);
	free(order);
}
