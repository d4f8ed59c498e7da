/* SPDX-License-Identifier: MIT
 * Writes GPU work in the order of its start, in batches. The batch record gets the time at which
 * all of its work and the calls that issued it have ended.
 */
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"
#include "report/gpu/work_categories.h"
#include <stdlib.h>

#define BATCH_RECORDS 256u

COMPARE_ROWS_BY(compare_gpu_rows, struct imported_gpu, start)

static const struct {
	const char *word;
	uint32_t kind;
} copy_words[] = { { "HtoD", TRACE_COPY_HTOD }, { "DtoH", TRACE_COPY_DTOH },
	{ "HtoA", TRACE_COPY_HTOA }, { "AtoH", TRACE_COPY_ATOH }, { "AtoA", TRACE_COPY_ATOA },
	{ "AtoD", TRACE_COPY_ATOD }, { "DtoA", TRACE_COPY_DTOA }, { "DtoD", TRACE_COPY_DTOD },
	{ "HtoH", TRACE_COPY_HTOH }, { "PtoP", TRACE_COPY_PTOP },
	{ "HostToDevice", TRACE_COPY_HTOD }, { "DeviceToHost", TRACE_COPY_DTOH },
	{ "DeviceToDevice", TRACE_COPY_DTOD }, { "HostToHost", TRACE_COPY_HTOH } };

uint32_t convert_copy_kind(struct string_view name)
{
	for (size_t i = 0; i < sizeof copy_words / sizeof *copy_words; i++) {
		const char *word = copy_words[i].word;

		if (memmem(name.bytes, name.length, word, strlen(word)))
			return copy_words[i].kind;
	}
	return TRACE_COPY_UNKNOWN;
}

/* Returns the kind of memory that a name such as "Memcpy HtoD (Pageable -> Device)" gives for the
 * source of a copy or, with `of_target`, for its target. */
static uint32_t memory_kind_of_name(struct string_view name, bool of_target)
{
	static const char *const words[] = { [TRACE_MEMORY_PAGEABLE] = "Pageable",
		[TRACE_MEMORY_PINNED] = "Pinned",
		[TRACE_MEMORY_DEVICE] = "Device",
		[TRACE_MEMORY_ARRAY] = "Array",
		[TRACE_MEMORY_MANAGED] = "Managed",
		[TRACE_MEMORY_DEVICE_STATIC] = "Device Static",
		[TRACE_MEMORY_MANAGED_STATIC] = "Managed Static" };
	const char *open = memchr(name.bytes, '(', name.length), *end = name.bytes + name.length,
		   *arrow = open ? memmem(open, (size_t)(end - open), " -> ", 4) : NULL,
		   *from = of_target && arrow ? arrow + 4
			   : open             ? open + 1
					      : end;
	const char *to = of_target || !arrow ? memchr(from, ')', (size_t)(end - from)) : arrow;

	for (uint32_t kind = 1; to && kind < sizeof words / sizeof *words; kind++)
		if ((size_t)(to - from) == strlen(words[kind]) &&
			!memcmp(from, words[kind], (size_t)(to - from)))
			return kind;
	return TRACE_MEMORY_UNKNOWN;
}

static struct trace_gpu gpu_head(
	const struct conversion *conversion, const struct imported_gpu *gpu)
{
	const uint64_t start = writer_realtime(
		conversion->writer, (uint64_t)(gpu->start - conversion->first));
	const struct correlation_owner *owner = convert_owner(conversion, gpu->correlation);

	return (struct trace_gpu){
		.head.flags = (uint8_t)((owner && owner->call ? 0 : TRACE_GPU_NO_LAUNCH) |
					(gpu->enclosed ? TRACE_GPU_ENCLOSED : 0)),
		.start_ns = start,
		.end_ns = start + gpu->duration,
		.correlation = gpu->correlation,
		.graph_node = gpu->graph_node,
		.device = gpu->device,
		.context = gpu->context,
		.stream = gpu->stream,
		.graph = gpu->graph
	};
}

static void write_gpu_kernel(struct conversion *conversion, const struct imported_gpu *gpu)
{
	struct trace_kernel kernel = { .gpu = gpu_head(conversion, gpu),
		.dynamic_shared_bytes = gpu->shared,
		.static_shared_bytes = gpu->static_shared,
		.registers = gpu->registers,
		.name = convert_name(conversion, gpu->name) };

	memcpy(kernel.grid, gpu->grid, sizeof kernel.grid);
	memcpy(kernel.block, gpu->block, sizeof kernel.block);
	writer_plain(conversion->writer, TRACE_KERNEL, &kernel, sizeof kernel);
}

static void write_gpu_copy(struct conversion *conversion, const struct imported_gpu *gpu)
{
	const struct string_view name = string_table_get(conversion->imported->texts, gpu->name);
	const bool is_copy = gpu->kind == IMPORTED_COPY;
	struct trace_gpu_copy copy = { .gpu = gpu_head(conversion, gpu),
		.bytes = gpu->bytes,
		.copy_kind = is_copy ? convert_copy_kind(name) : 0,
		.source_kind = is_copy ? memory_kind_of_name(name, false) : 0,
		.target_kind = memory_kind_of_name(name, true),
		.other_device = UINT32_MAX };

	writer_plain(
		conversion->writer, is_copy ? TRACE_GPU_COPY : TRACE_GPU_SET, &copy, sizeof copy);
}

/* Returns the time when all work of a batch has ended and its launches have returned, at least
 * `time`. */
static int64_t batch_time(
	const struct conversion *conversion, const uint32_t *rows, size_t count, int64_t time)
{
	const struct event_rows *imported = conversion->imported;

	for (size_t i = 0; i < count; i++) {
		const struct imported_gpu *gpu = &imported->gpus[rows[i]];
		const struct correlation_owner *owner = convert_owner(conversion, gpu->correlation);
		int64_t end = gpu->start + (int64_t)gpu->duration;

		time = end > time ? end : time;
		if (!owner || !owner->call)
			continue;
		end = imported->calls[owner->call - 1].start +
		      (int64_t)imported->calls[owner->call - 1].duration;
		time = end > time ? end : time;
	}
	return time;
}

static void write_gpu_work(struct conversion *conversion)
{
	struct event_rows *imported = conversion->imported;
	uint32_t *order = xcalloc((imported->gpu_count + 1) * sizeof *order);
	int64_t time = conversion->first;

	for (size_t i = 0; i < imported->gpu_count; i++)
		order[i] = (uint32_t)i;
	sort_row_numbers(order, imported->gpu_count, compare_gpu_rows, imported->gpus);
	writer_stream(conversion->writer, 0);
	for (size_t i = 0; i < imported->gpu_count; i++) {
		const size_t left = imported->gpu_count - i,
			     count = left < BATCH_RECORDS ? left : BATCH_RECORDS;
		struct trace_gpu_batch batch = { .records = (uint32_t)count };

		if (i % BATCH_RECORDS == 0) {
			time = batch_time(conversion, order + i, count, time);
			writer_timed(conversion->writer, (uint64_t)(time - conversion->first),
				TRACE_GPU_BATCH, &batch, sizeof batch);
		}
		if (imported->gpus[order[i]].kind == IMPORTED_KERNEL)
			write_gpu_kernel(conversion, &imported->gpus[order[i]]);
		else
			write_gpu_copy(conversion, &imported->gpus[order[i]]);
	}
	free(order);
}

static uint32_t sync_type(struct string_view name)
{
	return memmem(name.bytes, name.length, "Wait", 4)     ? TRACE_SYNC_STREAM_WAIT
	       : memmem(name.bytes, name.length, "Event", 5)  ? TRACE_SYNC_EVENT
	       : memmem(name.bytes, name.length, "Stream", 6) ? TRACE_SYNC_STREAM
							      : TRACE_SYNC_CONTEXT;
}

static void write_gpu_syncs(struct conversion *conversion)
{
	const struct event_rows *imported = conversion->imported;

	for (size_t i = 0; i < imported->sync_count; i++) {
		const struct imported_sync *sync = &imported->syncs[i];
		const uint64_t start = writer_realtime(
			conversion->writer, (uint64_t)(sync->start - conversion->first));
		struct trace_gpu_sync record = { .start_ns = start,
			.end_ns = start + sync->duration,
			.correlation = sync->correlation,
			.type = sync_type(string_table_get(imported->texts, sync->name)),
			.context = sync->context,
			.stream = sync->stream,
			.event = sync->event };

		writer_plain(conversion->writer, TRACE_GPU_SYNC, &record, sizeof record);
	}
}

static int compare_sync_records(const void *a, const void *b)
{
	const struct imported_sync *left = *(const struct imported_sync *const *)a,
				   *right = *(const struct imported_sync *const *)b;

	return COMPARE(left->record, right->record);
}

/* Collects the waits that name the call which recorded their event. Sorts them by that call. */
static size_t waits_for_records(
	const struct event_rows *imported, const struct imported_sync **waits)
{
	size_t count = 0;

	for (size_t i = 0; i < imported->sync_count; i++)
		if ((int64_t)imported->syncs[i].record > 0)
			waits[count++] = &imported->syncs[i];
	qsort(waits, count, sizeof *waits, compare_sync_records);
	return count;
}

/* Writes a record for each recorded event. CUPTI reports these events one by one, but the file
 * has only the waits for them. */
static void write_event_records(struct conversion *conversion)
{
	const struct event_rows *imported = conversion->imported;
	const struct imported_sync **waits = xcalloc((imported->sync_count + 1) * sizeof *waits);
	const size_t count = waits_for_records(imported, waits);

	for (size_t i = 0; count && i < imported->call_count; i++) {
		const struct imported_sync like = { .record = imported->calls[i].correlation },
					   *wanted = &like,
					   **found = bsearch(&wanted, waits, count, sizeof *waits,
						   compare_sync_records);
		struct trace_gpu_sync record = { .type = TRACE_EVENT_RECORD,
			.correlation = like.record };

		if (!found)
			continue;
		record.start_ns = record.end_ns = writer_realtime(conversion->writer,
			(uint64_t)(imported->calls[i].start - conversion->first));
		record.context = (*found)->context;
		record.stream = (*found)->waited_stream;
		record.event = (*found)->event;
		writer_plain(conversion->writer, TRACE_GPU_SYNC, &record, sizeof record);
	}
	free(waits);
}

/* Returns the kind of an overhead by its name in torch.profiler's files or nsys's. Names that CUPTI
 * does not have are of the profiler's own work. */
static uint32_t overhead_type(struct string_view name)
{
	static const struct {
		const char *pattern;
		uint32_t type;
	} types[] = { { "*lazy*loading*", TRACE_OVERHEAD_LAZY_LOADING },
		{ "*module*loading*", TRACE_OVERHEAD_MODULE_LOADING },
		{ "*driver*compile*", TRACE_OVERHEAD_DRIVER_COMPILER },
		{ "*command*buffer*full*", TRACE_OVERHEAD_COMMAND_BUFFER_FULL },
		{ "*buffer*request*", TRACE_OVERHEAD_BUFFER_REQUEST },
		{ "*buffer*flush*", TRACE_OVERHEAD_BUFFER_FLUSH },
		{ "*instrumentation*", TRACE_OVERHEAD_INSTRUMENTATION },
		{ "*resource*", TRACE_OVERHEAD_RESOURCE }, { "*uvm*", TRACE_OVERHEAD_UVM_INIT } };

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (category_matches(types[i].pattern, name.bytes, name.length))
			return types[i].type;
	return TRACE_OVERHEAD_UNKNOWN;
}

static void write_overheads(struct conversion *conversion)
{
	const struct event_rows *imported = conversion->imported;

	for (size_t i = 0; i < imported->overhead_count; i++) {
		const int64_t since = imported->overheads[i].start - conversion->first;
		const uint64_t start = writer_realtime(
			conversion->writer, since > 0 ? (uint64_t)since : 0);
		struct trace_overhead record = { .start_ns = start,
			.end_ns = start + imported->overheads[i].duration,
			.type = overhead_type(
				string_table_get(imported->texts, imported->overheads[i].name)) };

		writer_plain(conversion->writer, TRACE_OVERHEAD, &record, sizeof record);
	}
}

void convert_gpu_events(struct conversion *conversion)
{
	const struct event_rows *imported = conversion->imported;

	if (!imported->gpu_count && !imported->sync_count && !imported->overhead_count)
		return;
	write_gpu_work(conversion);
	write_gpu_syncs(conversion);
	write_event_records(conversion);
	write_overheads(conversion);
}
