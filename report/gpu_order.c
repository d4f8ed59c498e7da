/* SPDX-License-Identifier: MIT
 * gpu_order.c: see gpu_order.h. Sorted runs go to the file, then the runs are merged.
 */
#include "report/gpu_order.h"

#include "report/fatal.h"
#include "report/trace_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN_AHEAD 64u /* entries of a run that are in memory while merging */

struct run {
	long offset;      /* in the file, of what is not yet in memory */
	size_t left;      /* entries there */
	size_t at, count; /* of `entries` */
	struct gpu_entry *entries;
};

struct gpu_order {
	struct gpu_entry *held; /* the run being collected; at the end the last one */
	size_t held_count, held_room;
	uint64_t arrivals;
	FILE *file;                 /* NULL: everything fits */
	struct run *runs;           /* a heap, the run with the least first entry on top */
	size_t run_count, run_room; /* runs that are not used up */
	size_t run_total;
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

static void add_run(struct gpu_order *order, struct run run)
{
	grow(&order->runs, &order->run_room, order->run_count + 1, sizeof *order->runs);
	order->runs[order->run_count++] = run;
}

static void spill(struct gpu_order *order)
{
	struct run run = { 0, order->held_count, 0, 0, NULL };

	if (!order->file && !(order->file = tmpfile()))
		fatal(STATUS_UNREADABLE,
			"no temporary file to sort the GPU's records in; set TMPDIR to a folder with room:");
	qsort(order->held, order->held_count, sizeof *order->held, compare);
	run.offset = ftell(order->file);
	if (run.offset < 0 ||
		fwrite(order->held, sizeof *order->held, order->held_count, order->file) != order->held_count)
		fatal(STATUS_UNREADABLE, "the temporary file for the GPU's records cannot be written:");
	add_run(order, run);
	order->held_count = 0;
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
	const struct trace_head *head = event->record;
	struct gpu_entry *entry;

	if (order->held_count == GPU_ORDER_HELD)
		spill(order);
	grow(&order->held, &order->held_room, order->held_count + 1, sizeof *order->held);
	entry = &order->held[order->held_count++];
	memset(entry, 0, sizeof *entry);
	entry->arrival = order->arrivals++;
	entry->stream = event->stream->stream;
	entry->tid = event->stream->tid;
	entry->kind = event->kind;
	entry->node = event->node;
	memcpy(&entry->record, head, head->size < sizeof entry->record ? head->size : sizeof entry->record);
	set_times(reader, entry, event);
}

static const struct gpu_entry *first_of(const struct run *run)
{
	return &run->entries[run->at];
}

static void sift_down(struct gpu_order *order, size_t at)
{
	struct run *runs = order->runs;

	for (size_t child; (child = 2 * at + 1) < order->run_count; at = child) {
		struct run swapped = runs[at];

		if (child + 1 < order->run_count && compare(first_of(&runs[child + 1]), first_of(&runs[child])) < 0)
			child++;
		if (compare(first_of(&runs[at]), first_of(&runs[child])) <= 0)
			return;
		runs[at] = runs[child];
		runs[child] = swapped;
	}
}

/* More of a run into memory; its part in memory was used up. */
static void refill(struct gpu_order *order, struct run *run)
{
	size_t count = run->left < RUN_AHEAD ? run->left : RUN_AHEAD;

	run->at = 0;
	run->count = count;
	run->left -= count;
	if (count == 0)
		return;
	if (fseek(order->file, run->offset, SEEK_SET) ||
		fread(run->entries, sizeof *run->entries, count, order->file) != count)
		fatal(STATUS_UNREADABLE, "the temporary file with the GPU's records cannot be read back:");
	run->offset += (long)(count * sizeof *run->entries);
}

static void begin_merge(struct gpu_order *order)
{
	for (size_t i = 0; i < order->run_count; i++) {
		order->runs[i].entries = need(RUN_AHEAD * sizeof *order->runs[i].entries);
		refill(order, &order->runs[i]);
	}
	if (order->held_count) {
		qsort(order->held, order->held_count, sizeof *order->held, compare);
		add_run(order, (struct run){ 0, 0, 0, order->held_count, order->held });
		order->held = NULL;
	}
	order->run_total = order->run_count;
	for (size_t i = order->run_count / 2; i-- > 0;)
		sift_down(order, i);
}

struct gpu_order *gpu_order_read(struct trace_reader *reader)
{
	struct gpu_order *order = need(sizeof *order);
	struct trace_event event;
	int status;

	while ((status = reader_next(reader, &event)) > 0)
		if (kind_is_gpu(event.kind) && event.record)
			collect(order, reader, &event);
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(reader));
	reader_rewind(reader);
	begin_merge(order);
	return order;
}

const struct gpu_entry *gpu_order_first(const struct gpu_order *order)
{
	return order->run_count ? first_of(&order->runs[0]) : NULL;
}

void gpu_order_next(struct gpu_order *order)
{
	struct run *run = &order->runs[0];

	if (++run->at == run->count)
		refill(order, run);
	if (run->count == 0) { /* kept behind the others, to be freed at the end */
		struct run over = *run;

		*run = order->runs[--order->run_count];
		order->runs[order->run_count] = over;
	}
	sift_down(order, 0);
}

void gpu_order_free(struct gpu_order *order)
{
	for (size_t i = 0; i < order->run_total; i++)
		free(order->runs[i].entries);
	free(order->runs);
	free(order->held);
	if (order->file)
		fclose(order->file);
	free(order);
}
