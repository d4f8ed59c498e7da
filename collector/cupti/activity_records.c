/* SPDX-License-Identifier: MIT */
#include "collector/cupti/activity_records.h"

#include "collector/cupti/contexts.h"
#include "collector/cupti/kernel_names.h"
#include "collector/process/clock.h"
#include "collector/cupti/correlation.h"
#include "collector/cupti/graph_trace.h"
#include "collector/cupti/session.h"
#include "collector/cupti/abi.h"
#include "collector/cupti/call_ids.h"
#include "collector/cupti/client.h"
#include "collector/cupti/session_state.h"
#include "collector/file/dictionary.h"
#include "collector/stream/stream.h"
#include "collector/file/trace_file.h"
#include "collector/stream/recording_switch.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define WITHOUT_ID_MAX 8u /* so many records without an id mean that CUPTI gives none */

_Atomic uint64_t correlation_newest;

/* Returns the id that the record of the call has in the trace. */
static uint64_t trace_correlation(uint32_t id)
{
	return correlation_extend(call_ids_for_trace(id));
}

static void fill_times(struct trace_gpu *gpu, uint64_t start, uint64_t end, uint32_t correlation,
	uint64_t graph_node, uint32_t graph)
{
	gpu->start_ns = start;
	gpu->end_ns = end;
	gpu->correlation = trace_correlation(correlation);
	gpu->graph_node = graph_node;
	gpu->graph = graph_node ? graph : 0;
	if (graph_node)
		cupti_graph_trace_count_node(start);
}

static void fill_location(struct trace_gpu *gpu, uint32_t device, uint32_t context, uint32_t stream)
{
	gpu->device = device;
	gpu->context = context;
	gpu->stream = stream;
}

/* Defines a function that writes CUPTI's record of one kind to the trace. */
#define RECORD_WRITER(name) \
	static void name(   \
		const struct cupti_library *cupti __attribute__((unused)), const void *record)

RECORD_WRITER(write_kernel)
{
	const struct cupti_kernel *from = record;
	uint32_t name = kernel_names_id(from->name);
	struct trace_kernel *kernel = stream_record(TRACE_KERNEL, sizeof *kernel);

	if (!kernel)
		return;
	fill_times(&kernel->gpu, from->start, from->end, from->correlation, from->graph_node,
		from->graph);
	fill_location(&kernel->gpu, from->device, from->context, from->stream);
	memcpy(kernel->grid, from->grid, sizeof kernel->grid);
	memcpy(kernel->block, from->block, sizeof kernel->block);
	kernel->static_shared_bytes = from->static_shared;
	kernel->dynamic_shared_bytes = from->dynamic_shared;
	kernel->registers = from->registers;
	kernel->local_bytes = from->local_per_thread;
	kernel->name = name;
	kernel->shared_carveout_bytes = from->shared_executed;
	stream_commit();
}

/* The launch of a graph that is recorded as a whole: a kernel without a launch configuration. */
RECORD_WRITER(write_graph_launch)
{
	const struct cupti_graph_launch *from = record;
	uint32_t name = name_id_always(TRACE_WHOLE_GRAPH, sizeof TRACE_WHOLE_GRAPH - 1);
	const bool on_host = from->device == CUPTI_ON_HOST,
		   has_end = cupti->version >= CUPTI_VERSION_12_3;
	struct trace_kernel *kernel = stream_record(TRACE_KERNEL, sizeof *kernel);

	if (!kernel)
		return;
	fill_times(&kernel->gpu, from->start, from->end, from->correlation, 0, 0);
	fill_location(&kernel->gpu, on_host && has_end ? from->end_device : from->device,
		on_host && has_end ? from->end_context : from->context, from->stream);
	kernel->gpu.graph = from->graph;
	kernel->name = name;
	stream_commit();
}

RECORD_WRITER(write_memcpy)
{
	const struct cupti_memcpy *from = record;
	struct trace_gpu_copy *copy = stream_record(TRACE_GPU_COPY, sizeof *copy);

	if (!copy)
		return;
	fill_times(&copy->gpu, from->start, from->end, from->correlation, from->graph_node,
		from->graph);
	fill_location(&copy->gpu, from->device, from->context, from->stream);
	copy->bytes = from->bytes;
	copy->copy_kind = from->copy_kind;
	copy->source_kind = from->source_kind;
	copy->target_kind = from->target_kind;
	copy->other_device = UINT32_MAX;
	copy->async = from->flags & 1;
	stream_commit();
}

RECORD_WRITER(write_peer_copy)
{
	const struct cupti_memcpy_peer *from = record;
	struct trace_gpu_copy *copy = stream_record(TRACE_GPU_COPY, sizeof *copy);

	if (!copy)
		return;
	fill_times(&copy->gpu, from->start, from->end, from->correlation, from->graph_node,
		from->graph);
	fill_location(&copy->gpu, from->device, from->context, from->stream);
	copy->bytes = from->bytes;
	copy->copy_kind = from->copy_kind;
	copy->source_kind = from->source_kind;
	copy->target_kind = from->target_kind;
	copy->other_device = from->target_device;
	copy->async = from->flags & 1;
	stream_commit();
}

RECORD_WRITER(write_memset)
{
	const struct cupti_memset *from = record;
	struct trace_gpu_copy *set = stream_record(TRACE_GPU_SET, sizeof *set);

	if (!set)
		return;
	fill_times(&set->gpu, from->start, from->end, from->correlation, from->graph_node,
		from->graph);
	fill_location(&set->gpu, from->device, from->context, from->stream);
	set->bytes = from->bytes;
	set->target_kind = from->memory_kind;
	set->other_device = UINT32_MAX;
	set->value = from->value;
	set->async = from->flags & 1;
	stream_commit();
}

RECORD_WRITER(write_gpu_memory)
{
	const struct cupti_memory *from = record;
	struct trace_gpu_memory *memory = stream_record(TRACE_GPU_MEMORY, sizeof *memory);

	if (!memory)
		return;
	memory->time_ns = from->time;
	memory->correlation = trace_correlation(from->correlation);
	memory->address = from->address;
	memory->bytes = from->bytes;
	memory->operation = from->operation;
	memory->memory_kind = from->memory_kind;
	memory->device = from->device;
	memory->stream = from->stream;
	stream_commit();
}

RECORD_WRITER(write_synchronization)
{
	const struct cupti_synchronization *from = record;
	struct trace_gpu_sync *sync = stream_record(TRACE_GPU_SYNC, sizeof *sync);

	if (!sync)
		return;
	sync->start_ns = from->start;
	sync->end_ns = from->end;
	sync->correlation = trace_correlation(from->correlation);
	sync->type = from->type;
	sync->context = from->context;
	sync->stream = from->stream;
	sync->event = from->event;
	stream_commit();
}

RECORD_WRITER(write_cuda_event)
{
	const struct cupti_event *from = record;
	struct trace_gpu_sync *sync = stream_record(TRACE_GPU_SYNC, sizeof *sync);

	if (!sync)
		return;
	if (cupti->version >= CUPTI_VERSION_12_8)
		sync->start_ns = sync->end_ns = from->device_time;
	sync->correlation = trace_correlation(from->correlation);
	sync->type = TRACE_EVENT_RECORD;
	sync->context = from->context;
	sync->stream = from->stream;
	sync->event = from->event;
	stream_commit();
}

RECORD_WRITER(write_overhead)
{
	const struct cupti_overhead *from = record;
	struct trace_overhead *overhead = stream_record(TRACE_OVERHEAD, sizeof *overhead);

	if (!overhead)
		return;
	overhead->start_ns = from->start;
	overhead->end_ns = from->end;
	if (cupti->version >= CUPTI_VERSION_12_2)
		overhead->correlation = trace_correlation(from->correlation);
	overhead->type = from->type;
	overhead->tid = from->object_kind == CUPTI_OBJECT_THREAD ? from->object[1] : 0;
	stream_commit();
}

RECORD_WRITER(write_api)
{
	const struct cupti_api *from = record;
	int domain = from->kind == CUPTI_DRIVER_CALL ? CUPTI_DRIVER : CUPTI_RUNTIME;
	uint32_t name = cupti_call_name(domain, from->cbid);
	struct trace_api *api = stream_record(TRACE_API, sizeof *api);

	if (!api)
		return;
	api->start_ns = from->start;
	api->end_ns = from->end;
	api->correlation = trace_correlation(from->correlation);
	api->domain = (uint32_t)domain;
	api->cbid = from->cbid;
	api->tid = from->thread;
	api->result = from->result;
	api->name = name;
	stream_commit();
}

RECORD_WRITER(write_context)
{
	const struct cupti_context *from = record;

	cupti_write_context(from->context, from->device, from->null_stream);
}

/* For each kind the function that writes it, and the offset of its call's correlation id. 0: it has
 * no id, and is always recorded. */
static const struct {
	void (*write)(const struct cupti_library *, const void *);
	size_t correlation;
} kinds[] = {
	[CUPTI_MEMCPY] = { write_memcpy, offsetof(struct cupti_memcpy, correlation) },
	[CUPTI_MEMSET] = { write_memset, offsetof(struct cupti_memset, correlation) },
	[CUPTI_DRIVER_CALL] = { write_api, offsetof(struct cupti_api, correlation) },
	[CUPTI_RUNTIME_CALL] = { write_api, offsetof(struct cupti_api, correlation) },
	[CUPTI_CONTEXT] = { write_context, 0 },
	[CUPTI_CONCURRENT_KERNEL] = { write_kernel, offsetof(struct cupti_kernel, correlation) },
	[CUPTI_OVERHEAD] = { write_overhead, offsetof(struct cupti_overhead, correlation) },
	[CUPTI_MEMCPY_PEER] = { write_peer_copy, offsetof(struct cupti_memcpy_peer, correlation) },
	[CUPTI_CUDA_EVENT] = { write_cuda_event, offsetof(struct cupti_event, correlation) },
	[CUPTI_SYNCHRONIZATION] = { write_synchronization,
		offsetof(struct cupti_synchronization, correlation) },
	[CUPTI_MEMORY] = { write_gpu_memory, offsetof(struct cupti_memory, correlation) },
	[CUPTI_GRAPH_TRACE] = { write_graph_launch,
		offsetof(struct cupti_graph_launch, correlation) },
};

static bool is_known_record(const void *record)
{
	uint32_t kind = *(const uint32_t *)record;

	return kind < sizeof kinds / sizeof *kinds && kinds[kind].write;
}

/* Whether the record belongs to a call outside the recording windows of PPERF_SCHEDULE. A record
 * without a call id is judged by the time when it arrives. */
static bool is_skipped_record(const struct cupti_library *cupti, const void *record)
{
	const uint32_t kind = *(const uint32_t *)record;
	uint32_t id = 0;

	if (__builtin_expect(!recording_scheduled, 1) || !kinds[kind].correlation)
		return false;
	if (kind != CUPTI_OVERHEAD || cupti->version >= CUPTI_VERSION_12_2)
		memcpy(&id, (const char *)record + kinds[kind].correlation, sizeof id);
	return !recording_has_call(trace_correlation(id));
}

/* Finds out whether GPU records have ids. The first few may lack them, because their calls began
 * before the session. */
static void check_ids_given(uint32_t id)
{
	struct cupti_session *s = cupti_session;

	if (atomic_load_explicit(&s->ids, memory_order_relaxed) != CUPTI_IDS_UNKNOWN)
		return;
	if (id)
		atomic_store(&s->ids, CUPTI_IDS_GIVEN);
	else if (atomic_fetch_add(&s->records_without_id, 1) + 1 == WITHOUT_ID_MAX)
		atomic_store(&s->ids, CUPTI_IDS_MISSING);
}

/* Learns from a record of GPU work which ids such records carry. */
static void learn_ids(const void *record)
{
	const uint32_t kind = *(const uint32_t *)record;
	uint32_t id;

	if (kind != CUPTI_CONCURRENT_KERNEL && kind != CUPTI_MEMCPY && kind != CUPTI_MEMSET &&
		kind != CUPTI_MEMCPY_PEER)
		return;
	memcpy(&id, (const char *)record + kinds[kind].correlation, sizeof id);
	check_ids_given(id);
	call_ids_on_gpu_record(id);
}

/* Whether learn_ids has something to learn. */
static bool ids_unknown(void)
{
	return call_ids_in_use() ||
	       atomic_load_explicit(&cupti_session->ids, memory_order_relaxed) == CUPTI_IDS_UNKNOWN;
}

/* Whether the record is of a query that found work unfinished, so it did not wait. The session
 * disables such records, but a second client may have enabled them. */
static bool is_unfinished_query(const struct cupti_library *cupti, const void *record)
{
	const struct cupti_synchronization *sync = record;

	return sync->kind == CUPTI_SYNCHRONIZATION && cupti->version >= CUPTI_VERSION_12_8 &&
	       sync->result == CUDA_NOT_READY;
}

/* Whether the record is none of those that the session requests. */
static bool is_foreign_record(const struct cupti_library *cupti, const void *record)
{
	return is_unfinished_query(cupti, record) || cupti_client_owns_record(record);
}

struct buffer_contents {
	/* broken: 1 if the buffer ends in an incomplete record. */
	uint32_t known, unknown, broken;
	/* Known records that are not recorded. `known` does not count them. */
	uint32_t skipped;
	uint32_t client_only; /* enabled only by the second client, or not requested */
};

static struct buffer_contents count_records(
	const struct cupti_library *cupti, uint8_t *buffer, size_t valid)
{
	struct buffer_contents buffer_contents = { 0, 0, 0, 0, 0 };
	void *record = NULL;
	int result;

	while ((result = cupti->next_record(buffer, valid, &record)) == CUPTI_OK) {
		if (ids_unknown())
			learn_ids(record);
		*(is_foreign_record(cupti, record)         ? &buffer_contents.client_only
			: !is_known_record(record)         ? &buffer_contents.unknown
			: is_skipped_record(cupti, record) ? &buffer_contents.skipped
							   : &buffer_contents.known) += 1;
	}
	buffer_contents.broken = result != CUPTI_END_OF_BUFFER;
	return buffer_contents;
}

static void write_batch(const struct buffer_contents *buffer_contents, uint64_t dropped)
{
	struct trace_gpu_batch *batch = stream_record(TRACE_GPU_BATCH, sizeof *batch);

	if (!batch)
		return;
	batch->dropped = dropped;
	batch->records = buffer_contents->known;
	batch->unread = buffer_contents->broken;
	stream_commit();
}

static void write_records(const struct cupti_library *cupti, uint8_t *buffer, size_t valid)
{
	void *record = NULL;

	while (cupti->next_record(buffer, valid, &record) == CUPTI_OK)
		if (!is_foreign_record(cupti, record) && is_known_record(record) &&
			!is_skipped_record(cupti, record))
			kinds[*(const uint32_t *)record].write(cupti, record);
}

/* The skipped records' share of the time that reading all records took. */
static void count_skipped(const struct buffer_contents *contents, uint64_t ticks)
{
	const uint64_t all = contents->known + contents->unknown + contents->skipped;

	if (contents->skipped)
		recording_add_skipped(TRACE_SKIPPED_GPU, contents->skipped, contents->skipped,
			ticks * contents->skipped / all);
}

static void count_lost(uint64_t unread, uint64_t dropped)
{
	if (dropped)
		trace_lose(TRACE_LOST_CUPTI_DROPPED, dropped);
	if (unread)
		trace_lose(TRACE_LOST_CUPTI_UNREAD, unread);
}

void activity_records_read(
	const struct cupti_library *cupti, uint8_t *buffer, size_t valid, uint64_t dropped)
{
	int saved = errno;
	const uint64_t began = clock_now();
	const struct buffer_contents found = count_records(cupti, buffer, valid);

	count_skipped(&found, clock_now() - began);
	if (found.known + found.unknown + found.broken + dropped == 0) {
		errno = saved;
		return;
	}
	if (stream_enter()) {
		write_batch(&found, dropped);
		write_records(cupti, buffer, valid);
		stream_leave();
	} else if (found.known) {
		trace_lose(TRACE_LOST_REENTERED, found.known);
	}
	count_lost(found.unknown + found.broken, dropped);
	errno = saved;
}
