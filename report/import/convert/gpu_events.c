/* SPDX-License-Identifier: MIT
 * kineto_gpu.c: what the GPU did, in the order in which it began, a few hundred at a time, each told when all of them and
 * the calls that asked for them were over.
 */
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"
#include <stdlib.h>

#define BATCH_RECORDS 256u

static int by_gpu(const void *a, const void *b, void *context)
{
	const struct kineto_gpu *gpus = context;
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (gpus[left].start != gpus[right].start)
		return gpus[left].start < gpus[right].start ? -1 : 1;
	return left < right ? -1 : 1;
}

/* Of `Memcpy HtoD (Pageable -> Device)`; of AMD's `CopyHostToDevice`. */
static uint32_t copy_kind(struct text name)
{
	static const char *const words[] = { [TRACE_COPY_HTOD] = "HtoD", [TRACE_COPY_DTOH] = "DtoH",
		[TRACE_COPY_HTOA] = "HtoA", [TRACE_COPY_ATOH] = "AtoH", [TRACE_COPY_ATOA] = "AtoA",
		[TRACE_COPY_ATOD] = "AtoD", [TRACE_COPY_DTOA] = "DtoA", [TRACE_COPY_DTOD] = "DtoD",
		[TRACE_COPY_HTOH] = "HtoH", [TRACE_COPY_PTOP] = "PtoP" };

	static const struct {
		const char *word;
		uint32_t kind;
	} long_words[] = { { "HostToDevice", TRACE_COPY_HTOD }, { "DeviceToHost", TRACE_COPY_DTOH },
		{ "DeviceToDevice", TRACE_COPY_DTOD }, { "HostToHost", TRACE_COPY_HTOH } };

	for (uint32_t kind = 1; kind < sizeof words / sizeof *words; kind++)
		if (memmem(name.bytes, name.length, words[kind], 4))
			return kind;
	for (size_t i = 0; i < sizeof long_words / sizeof *long_words; i++)
		if (memmem(name.bytes, name.length, long_words[i].word, strlen(long_words[i].word)))
			return long_words[i].kind;
	return TRACE_COPY_UNKNOWN;
}

static uint32_t memory_kind(struct text name, bool target)
{
	static const char *const words[] = { [TRACE_MEMORY_PAGEABLE] = "Pageable", [TRACE_MEMORY_PINNED] = "Pinned",
		[TRACE_MEMORY_DEVICE] = "Device", [TRACE_MEMORY_ARRAY] = "Array", [TRACE_MEMORY_MANAGED] = "Managed",
		[TRACE_MEMORY_DEVICE_STATIC] = "Device Static", [TRACE_MEMORY_MANAGED_STATIC] = "Managed Static" };
	const char *open = memchr(name.bytes, '(', name.length), *end = name.bytes + name.length,
		   *arrow = open ? memmem(open, (size_t)(end - open), " -> ", 4) : NULL,
		   *from = target && arrow ? arrow + 4 : open ? open + 1 : end;
	const char *to = target || !arrow ? memchr(from, ')', (size_t)(end - from)) : arrow;

	for (uint32_t kind = 1; to && kind < sizeof words / sizeof *words; kind++)
		if ((size_t)(to - from) == strlen(words[kind]) && !memcmp(from, words[kind], (size_t)(to - from)))
			return kind;
	return TRACE_MEMORY_UNKNOWN;
}

static struct trace_gpu gpu_head(const struct kineto_build *build, const struct kineto_gpu *gpu)
{
	const uint64_t start = writer_realtime(build->writer, (uint64_t)(gpu->start - build->first));
	const struct kineto_owner *owner = kineto_owner_of(build, gpu->correlation);

	return (struct trace_gpu){ .head.flags = (uint8_t)((owner && owner->call ? 0 : TRACE_GPU_NO_LAUNCH) |
					(gpu->enclosed ? TRACE_GPU_ENCLOSED : 0)),
		.start_ns = start,
		.end_ns = start + gpu->duration,
		.correlation = gpu->correlation,
		.graph_node = gpu->graph_node,
		.device = gpu->device,
		.context = gpu->context,
		.stream = gpu->stream,
		.graph = gpu->graph };
}

static void put_kernel(struct kineto_build *build, const struct kineto_gpu *gpu)
{
	struct trace_kernel kernel = { .gpu = gpu_head(build, gpu),
		.dynamic_shared_bytes = gpu->shared,
		.static_shared_bytes = gpu->static_shared,
		.registers = gpu->registers,
		.name = kineto_name(build, gpu->name) };

	memcpy(kernel.grid, gpu->grid, sizeof kernel.grid);
	memcpy(kernel.block, gpu->block, sizeof kernel.block);
	writer_plain(build->writer, TRACE_KERNEL, &kernel, sizeof kernel);
}

static void put_copy(struct kineto_build *build, const struct kineto_gpu *gpu)
{
	const struct text name = text_of(build->kineto->texts, gpu->name);
	const bool is_copy = gpu->kind == KINETO_COPY;
	struct trace_gpu_copy copy = { .gpu = gpu_head(build, gpu),
		.bytes = gpu->bytes,
		.copy_kind = is_copy ? copy_kind(name) : 0,
		.source_kind = is_copy ? memory_kind(name, false) : 0,
		.target_kind = memory_kind(name, true),
		.other_device = UINT32_MAX };

	writer_plain(build->writer, is_copy ? TRACE_GPU_COPY : TRACE_GPU_SET, &copy, sizeof copy);
}

/* When all that is told in a batch was over, and its launches had returned. */
static int64_t batch_time(const struct kineto_build *build, const uint32_t *rows, size_t count, int64_t time)
{
	const struct kineto *kineto = build->kineto;

	for (size_t i = 0; i < count; i++) {
		const struct kineto_gpu *gpu = &kineto->gpus[rows[i]];
		const struct kineto_owner *owner = kineto_owner_of(build, gpu->correlation);
		int64_t end = gpu->start + (int64_t)gpu->duration;

		time = end > time ? end : time;
		if (!owner || !owner->call)
			continue;
		end = kineto->calls[owner->call - 1].start + (int64_t)kineto->calls[owner->call - 1].duration;
		time = end > time ? end : time;
	}
	return time;
}

static void put_work(struct kineto_build *build)
{
	struct kineto *kineto = build->kineto;
	uint32_t *order = need((kineto->gpu_count + 1) * sizeof *order);
	int64_t time = build->first;

	for (size_t i = 0; i < kineto->gpu_count; i++)
		order[i] = (uint32_t)i;
	kineto_order(order, kineto->gpu_count, by_gpu, kineto->gpus);
	writer_stream(build->writer, 0);
	for (size_t i = 0; i < kineto->gpu_count; i++) {
		const size_t left = kineto->gpu_count - i, count = left < BATCH_RECORDS ? left : BATCH_RECORDS;
		struct trace_gpu_batch batch = { .records = (uint32_t)count };

		if (i % BATCH_RECORDS == 0) {
			time = batch_time(build, order + i, count, time);
			writer_timed(build->writer, (uint64_t)(time - build->first), TRACE_GPU_BATCH, &batch,
				sizeof batch);
		}
		if (kineto->gpus[order[i]].kind == KINETO_KERNEL)
			put_kernel(build, &kineto->gpus[order[i]]);
		else
			put_copy(build, &kineto->gpus[order[i]]);
	}
	free(order);
}

static uint32_t sync_type(struct text name)
{
	return memmem(name.bytes, name.length, "Wait", 4)      ? TRACE_SYNC_STREAM_WAIT
	       : memmem(name.bytes, name.length, "Event", 5)   ? TRACE_SYNC_EVENT
	       : memmem(name.bytes, name.length, "Stream", 6) ? TRACE_SYNC_STREAM
							       : TRACE_SYNC_CONTEXT;
}

static void put_syncs(struct kineto_build *build)
{
	const struct kineto *kineto = build->kineto;

	for (size_t i = 0; i < kineto->sync_count; i++) {
		const struct kineto_sync *sync = &kineto->syncs[i];
		const uint64_t start = writer_realtime(build->writer, (uint64_t)(sync->start - build->first));
		struct trace_gpu_sync record = { .start_ns = start,
			.end_ns = start + sync->duration,
			.correlation = sync->correlation,
			.type = sync_type(text_of(kineto->texts, sync->name)),
			.context = sync->context,
			.stream = sync->stream,
			.event = sync->event };

		writer_plain(build->writer, TRACE_GPU_SYNC, &record, sizeof record);
	}
}

static int by_record(const void *a, const void *b)
{
	const struct kineto_sync *left = *(const struct kineto_sync *const *)a, *right = *(const struct kineto_sync *const *)b;

	return (left->record > right->record) - (left->record < right->record);
}

/* The waits for events that say by which call, and into which stream, those were recorded; by that call. */
static size_t waits_for_records(const struct kineto *kineto, const struct kineto_sync **waits)
{
	size_t count = 0;

	for (size_t i = 0; i < kineto->sync_count; i++)
		if ((int64_t)kineto->syncs[i].record > 0)
			waits[count++] = &kineto->syncs[i];
	qsort(waits, count, sizeof *waits, by_record);
	return count;
}

/* The file tells of records of events only with the waits for them; CUPTI has an entry for each. */
static void put_records(struct kineto_build *build)
{
	const struct kineto *kineto = build->kineto;
	const struct kineto_sync **waits = need((kineto->sync_count + 1) * sizeof *waits);
	const size_t count = waits_for_records(kineto, waits);

	for (size_t i = 0; count && i < kineto->call_count; i++) {
		const struct kineto_sync like = { .record = kineto->calls[i].correlation }, *wanted = &like,
					 **found = bsearch(&wanted, waits, count, sizeof *waits, by_record);
		struct trace_gpu_sync record = { .type = TRACE_EVENT_RECORD, .correlation = like.record };

		if (!found)
			continue;
		record.start_ns = record.end_ns =
			writer_realtime(build->writer, (uint64_t)(kineto->calls[i].start - build->first));
		record.context = (*found)->context;
		record.stream = (*found)->waited_stream;
		record.event = (*found)->event;
		writer_plain(build->writer, TRACE_GPU_SYNC, &record, sizeof record);
	}
	free(waits);
}

static void put_overheads(struct kineto_build *build)
{
	const struct kineto *kineto = build->kineto;

	for (size_t i = 0; i < kineto->overhead_count; i++) {
		const int64_t since = kineto->overheads[i].start - build->first;
		const uint64_t start = writer_realtime(build->writer, since > 0 ? (uint64_t)since : 0);
		struct trace_overhead record = { .start_ns = start, .end_ns = start + kineto->overheads[i].duration };

		writer_plain(build->writer, TRACE_OVERHEAD, &record, sizeof record);
	}
}

void kineto_gpu_write(struct kineto_build *build)
{
	const struct kineto *kineto = build->kineto;

	if (!kineto->gpu_count && !kineto->sync_count && !kineto->overhead_count)
		return;
	put_work(build);
	put_syncs(build);
	put_records(build);
	put_overheads(build);
}
