/* SPDX-License-Identifier: MIT */
#include "report/analysis/communicator_requests.h"
#include "report/views/dump_record.h"

#include "report/trace/record_check.h"

#include <string.h>

/* Sets the word for `value`, or the number itself if there is none. */
static void put_word(struct dump_line *line, enum dump_key key, const char *const *words,
	size_t count, uint32_t value)
{
	if (value < count && words[value])
		line_string(line, key, words[value]);
	else
		line_unsigned(line, key, value);
}
#define PUT_WORD(line, key, words, value) \
	put_word(line, key, words, sizeof words / sizeof *words, value)

static const char *const memory_kinds[] = { "unknown", "pageable", "pinned", "device", "array",
	"managed", "device_static", "managed_static" };
static const char *const copy_kinds[] = { "unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD",
	"DtoA", "DtoD", "HtoH", "PtoP" };
static const char *const sync_types[] = { NULL, "event", "stream_wait", "stream", "context",
	"event_record" };
static const char *const object_types[] = { NULL, "category", "thread", "cu_device", "cu_context",
	"cu_stream", "cu_event", "cuda_device", "cuda_stream", "cuda_event", "resource", "sync",
	"destroyed" };
static const char *const payload_types[] = { NULL, "u64", "i64", "double", "u32", "i32", "float" };
static const char *const lock_actions[] = { NULL, "acquire_start", "acquire_failed",
	"acquire_success", "releasing" };
static const char *const self_actions[] = { NULL, "seal", "start", "flush", "stack", "sample",
	"sampler" };
static const char *const window_edges[] = { NULL, "begins", "ends", "step" };
static const char *const handover_edges[] = { NULL, "begins", "ends" };
static const char *const mapping_actions[] = { NULL, "reserve", "unreserve", "map", "unmap",
	"retain", "import" };
static const char *const device_memory_reasons[] = { "first_allocation", "failed_allocation",
	"query", "nvml" };
static const char *const loss_reasons[] = {
#define X(name, text) text,
	TRACE_LOSSES(X)
#undef X
};

static void device_line(struct dump_line *line, enum dump_key key, uint32_t device)
{
	if (device == UINT32_MAX)
		line_null(line, key);
	else
		line_unsigned(line, key, device);
}

static void payload_line(struct dump_line *line, const struct trace_range *range)
{
	float narrow;
	double wide;

	if (range->payload_type == 0)
		return;
	PUT_WORD(line, DUMP_payload_type, payload_types, range->payload_type);
	memcpy(&narrow, &range->payload, sizeof narrow);
	memcpy(&wide, &range->payload, sizeof wide);
	switch (range->payload_type) {
	case 2:
		line_wide(line, DUMP_payload, (int64_t)range->payload);
		break;
	case 3:
		line_double(line, DUMP_payload, wide);
		break;
	case 4:
		line_unsigned(line, DUMP_payload, (uint32_t)range->payload);
		break;
	case 5:
		line_signed(line, DUMP_payload, (int32_t)(uint32_t)range->payload);
		break;
	case 6:
		line_double(line, DUMP_payload, (double)narrow);
		break;
	default:
		line_id(line, DUMP_payload, range->payload);
	}
}

void dump_range_line(struct dump_line *line, const struct trace_range *range)
{
	if (range->head.flags & TRACE_HAS_CATEGORY)
		line_unsigned(line, DUMP_category, range->category);
	if (range->head.flags & TRACE_HAS_COLOR)
		line_color(line, DUMP_color, range->color);
	payload_line(line, range);
}

static void object_line(
	struct trace_reader *reader, struct dump_line *line, const struct trace_object *object)
{
	bool destroyed = object->type == TRACE_OBJECT_DESTROYED;

	line_string(line, DUMP_kind, destroyed ? "destroyed" : "name");
	line_text(line, DUMP_name, reader_name(reader, object->name));
	line_text(line, DUMP_domain, reader_name(reader, object->domain));
	PUT_WORD(line, DUMP_object_type, object_types, destroyed ? object->subtype : object->type);
	line_id(line, DUMP_object, object->object);
	if (object->type == TRACE_OBJECT_CATEGORY)
		line_unsigned(line, DUMP_category, object->object);
	if (object->type == TRACE_OBJECT_RESOURCE) {
		line_unsigned(line, DUMP_subtype, object->subtype);
		line_id(line, DUMP_other, object->other);
	}
}

static void metric_line(
	struct trace_reader *reader, struct dump_line *line, const struct trace_metric *metric)
{
	const struct trace_counter *counter = reader_counter(reader, metric->counter);
	double real;

	memcpy(&real, &metric->value, sizeof real);
	line_text(line, DUMP_name, reader_name(reader, counter ? counter->name : 0));
	line_text(line, DUMP_domain, reader_name(reader, counter ? counter->domain : 0));
	line_unsigned(line, DUMP_counter, metric->counter);
	if (counter && counter->unit)
		line_text(line, DUMP_unit, reader_name(reader, counter->unit));
	if (metric->type == TRACE_METRIC_I64)
		line_signed(line, DUMP_value, (int64_t)metric->value);
	else if (metric->type == TRACE_METRIC_F64)
		line_double(line, DUMP_value, real);
	else
		line_null(line, DUMP_value);
}

/* Adds the id of a call's stack, and its frames if it is a Python stack. */
static void stack_line(struct trace_reader *reader, struct dump_line *line, uint32_t id)
{
	const struct trace_python_stack *stack = id ? reader_python_stack(reader, id) : NULL;

	if (id)
		line_unsigned(line, DUMP_stack, id);
	if (stack)
		line_frames(line, DUMP_python_stack,
			(struct dump_frames){ reader, (const void *)(stack + 1), stack->frames });
}

void dump_source_line(
	struct trace_reader *reader, struct dump_line *line, const struct trace_source *source)
{
	line_string(line, DUMP_kind, "source");
	line_text(
		line, DUMP_name, reader_name(reader, reader_node(reader, source->head.node)->name));
	line_unsigned(line, DUMP_node, source->head.node);
	line_frames(line, DUMP_python_stack, (struct dump_frames){ reader, &source->at, 1 });
}

void dump_node_line(struct trace_reader *reader, struct dump_line *line, uint32_t node)
{
	static const char *const kinds[] = { NULL, "range", "module", "op", "backward", "optimizer",
		"step" };
	const struct trace_node_info *of = reader_node(reader, node);

	line_string(line, DUMP_kind, "node");
	line_text(line, DUMP_name, reader_name(reader, of->name));
	line_text(line, DUMP_domain, reader_name(reader, of->domain));
	line_unsigned(line, DUMP_node, node);
	if (of->parent)
		line_unsigned(line, DUMP_parent, of->parent);
	PUT_WORD(line, DUMP_node_kind, kinds, of->kind);
}

static void call_line(
	struct trace_reader *reader, struct dump_line *line, const struct trace_call *call)
{
	struct trace_text api = reader_name(reader, call->api);

	if (api.known)
		line_text(line, DUMP_api, api);
	line_unsigned(line, DUMP_result, call->result);
	line_unsigned(line, DUMP_duration_ns, reader_duration(reader, call->stamp, call->duration));
	device_line(line, DUMP_device, call->device);
	if (call->correlation)
		line_id(line, DUMP_correlation, call->correlation);
	stack_line(reader, line, call->stack);
	line_flag(line, "captured", call->head.flags & TRACE_CALL_CAPTURED);
	line_flag(line, "empty", call->head.flags & TRACE_CALL_EMPTY);
	line_flag(line, "before_gpu", call->head.flags & TRACE_CALL_BEFORE_GPU);
	line_flag(line, "after_gpu", call->head.flags & TRACE_CALL_AFTER_GPU);
	line_flag(line, "range_profiled", call->head.flags & TRACE_CALL_PROFILED);
}

static void launch_line(
	struct trace_reader *reader, struct dump_line *line, const struct trace_launch *launch)
{
	call_line(reader, line, &launch->call);
	line_text(line, DUMP_name, reader_name(reader, launch->name));
	line_id(line, DUMP_stream, launch->stream);
	line_id(line, DUMP_function, launch->function);
	if (launch->grid[0]) {
		line_triple(line, DUMP_grid, launch->grid);
		line_triple(line, DUMP_block, launch->block);
	}
	line_unsigned(line, DUMP_shared_bytes, launch->shared_bytes);
}

static void graph_launch_line(struct trace_reader *reader, struct dump_line *line,
	const struct trace_graph_launch *launch)
{
	call_line(reader, line, &launch->call);
	line_id(line, DUMP_stream, launch->stream);
	line_id(line, DUMP_exec, launch->exec);
	if (launch->exec_id)
		line_unsigned(line, DUMP_exec_id, launch->exec_id);
}

static void copy_line(
	struct trace_reader *reader, struct dump_line *line, const struct trace_copy *copy)
{
	call_line(reader, line, &copy->call);
	line_id(line, DUMP_stream, copy->stream);
	line_unsigned(line, DUMP_bytes, copy->bytes);
	if (copy->call.head.kind == TRACE_SET)
		line_unsigned(line, DUMP_value, copy->value);
	else
		PUT_WORD(line, DUMP_copy_kind, copy_kinds, copy->copy_kind);
}

static void sync_line(
	struct trace_reader *reader, struct dump_line *line, const struct trace_sync *sync)
{
	call_line(reader, line, &sync->call);
	PUT_WORD(line, DUMP_type, sync_types, sync->type);
	line_id(line, DUMP_stream, sync->stream);
	if (sync->event)
		line_id(line, DUMP_event, sync->event);
}

static void memory_line(
	struct trace_reader *reader, struct dump_line *line, const struct trace_memory *memory)
{
	call_line(reader, line, &memory->call);
	line_id(line, DUMP_address, memory->address);
	if (memory->call.head.kind == TRACE_ALLOC)
		line_unsigned(line, DUMP_bytes, memory->bytes);
	line_id(line, DUMP_stream, memory->stream);
	PUT_WORD(line, DUMP_memory_kind, memory_kinds, memory->memory_kind);
	line_flag(line, "pool", memory->flags & TRACE_MEMORY_POOL);
	line_flag(line, "registered", memory->flags & TRACE_MEMORY_REGISTERED);
	line_flag(line, "mapped", memory->flags & TRACE_MEMORY_MAPPED);
	line_flag(line, "all", memory->flags & TRACE_MEMORY_ALL);
	line_flag(line, "for_stream", memory->flags & TRACE_MEMORY_FOR_STREAM);
	line_flag(line, "for_capture", memory->flags & TRACE_MEMORY_FOR_CAPTURE);
}

static void mapping_line(
	struct trace_reader *reader, struct dump_line *line, const struct trace_mapping *mapping)
{
	call_line(reader, line, &mapping->call);
	PUT_WORD(line, DUMP_action, mapping_actions, mapping->action);
	if (mapping->address)
		line_id(line, DUMP_address, mapping->address);
	if (mapping->bytes)
		line_unsigned(line, DUMP_bytes, mapping->bytes);
	if (mapping->handle)
		line_id(line, DUMP_handle, mapping->handle);
}

static void tensor_line(
	struct trace_reader *reader, struct dump_line *line, const struct trace_tensor *tensor)
{
	line_signed(line, DUMP_bytes, tensor->bytes);
	if (tensor->head.kind == TRACE_TENSOR)
		line_id(line, DUMP_address, tensor->address);
	line_unsigned(line, DUMP_device, tensor->device);
	line_unsigned(line, DUMP_allocated, tensor->allocated);
	if (tensor->reserved || !reader_meta(reader, "import.format").known)
		line_unsigned(line, DUMP_reserved, tensor->reserved);
	else
		line_null(line, DUMP_reserved); /* torch.profiler did not say */
	stack_line(reader, line, tensor->stack);
}

static void profiler_line(
	struct trace_reader *reader, struct dump_line *line, const void *record, uint32_t kind)
{
	const struct trace_clock_record *clock = record;
	const struct trace_lost *lost = record;
	const struct trace_self *self = record;
	const struct trace_gpu_batch *batch = record;
	const struct trace_nvtx_sync *lock = record;
	const struct trace_window *window = record;
	const struct trace_away *away = record;
	const struct trace_device_memory *memory = record;

	switch (kind) {
	case TRACE_CLOCK:
		line_unsigned(line, DUMP_stamp, clock->stamp);
		line_unsigned(line, DUMP_monotonic_ns, clock->monotonic_ns);
		line_unsigned(line, DUMP_realtime_ns, clock->realtime_ns);
		break;
	case TRACE_LOST:
		line_unsigned(line, DUMP_events, lost->events);
		PUT_WORD(line, DUMP_reason, loss_reasons, lost->reason);
		break;
	case TRACE_SELF:
		PUT_WORD(line, DUMP_action, self_actions, self->what);
		line_unsigned(line, DUMP_duration_ns,
			reader_duration(reader, self->stamp, self->duration));
		if (self->peak_kib)
			line_unsigned(
				line, DUMP_peak_memory_bytes, UINT64_C(1024) * self->peak_kib);
		break;
	case TRACE_GPU_BATCH:
		line_unsigned(line, DUMP_records, batch->records);
		line_unsigned(line, DUMP_dropped, batch->dropped);
		line_unsigned(line, DUMP_unread, batch->unread);
		break;
	case TRACE_WINDOW:
		PUT_WORD(line, DUMP_action, window_edges, window->edge);
		line_unsigned(line, DUMP_value, window->step);
		break;
	case TRACE_DEVICE_MEMORY:
		line_unsigned(line, DUMP_device, memory->device);
		line_unsigned(line, DUMP_free_bytes, memory->free_bytes);
		line_unsigned(line, DUMP_total_bytes, memory->total_bytes);
		if (memory->process_bytes)
			line_unsigned(line, DUMP_process_bytes, memory->process_bytes);
		PUT_WORD(line, DUMP_reason, device_memory_reasons, memory->reason);
		break;
	case TRACE_AWAY:
		PUT_WORD(line, DUMP_action, handover_edges, away->edge);
		line_unsigned(line, DUMP_realtime_ns, away->realtime_ns);
		break;
	case TRACE_NVTX_SYNC:
		PUT_WORD(line, DUMP_action, lock_actions, lock->action);
		line_id(line, DUMP_object, lock->object);
		break;
	}
}

static void sample_line(
	struct trace_reader *reader, struct dump_line *line, const struct trace_cpu_sample *sample)
{
	line_text(line, DUMP_name, reader_name(reader, sample->function));
	line_text(line, DUMP_module, reader_name(reader, sample->module));
	line_flag(line, "in_call", sample->head.flags & TRACE_SAMPLE_IN_CALL);
}

static const char *const sample_states[] = { NULL, "on_cpu", "waits_for_core", "blocked",
	"kernel" };

static void thread_sample_line(struct dump_line *line, const struct trace_sample *sample)
{
	const unsigned flags = sample->head.flags;

	line_id(line, DUMP_of_tid, sample->tid);
	PUT_WORD(line, DUMP_state, sample_states, sample->state);
	line_unsigned(line, DUMP_duration_ns, (uint64_t)sample->weight * TRACE_SAMPLE_WEIGHT_NS);
	line_flag(line, "guessed", flags & TRACE_SAMPLE_GUESSED);
	line_flag(line, "cut", flags & TRACE_SAMPLE_CUT);
	line_flag(line, "moved", flags & TRACE_SAMPLE_MOVED);
	line_flag(line, "no_python", flags & TRACE_SAMPLE_NO_PYTHON);
	line_flag(line, "unequal", flags & TRACE_SAMPLE_UNEQUAL);
}

static void sampled_thread_line(struct trace_reader *reader, struct dump_line *line,
	const struct trace_sampled_thread *thread)
{
	line_id(line, DUMP_of_tid, thread->tid);
	line_unsigned(line, DUMP_cpu_ns, thread->cpu_ns);
	line_text(line, DUMP_name, reader_name(reader, thread->name));
}

static const char *const nccl_types[] = { "int8", "uint8", "int32", "uint32", "int64", "uint64",
	"float16", "float32", "float64", "bfloat16", "float8_e4m3", "float8_e5m2" };

static void communicator_line(struct trace_reader *reader, struct dump_line *line, uint32_t id)
{
	const uint32_t count = reader_dictionary_count(reader, TRACE_COMMUNICATOR);
	const struct trace_communicator *one = NULL;
	uint32_t i = 0;

	while (i < count && (one = reader_dictionary(reader, TRACE_COMMUNICATOR, i)) &&
		one->communicator != id)
		i++;
	line_unsigned(line, DUMP_communicator, id);
	if (i == count || !one)
		return;
	line_unsigned(line, DUMP_ranks, one->ranks);
	line_unsigned(line, DUMP_rank, one->rank);
	line_id(line, DUMP_key, one->key);
	if (one->name)
		line_text(line, DUMP_communicator_name, reader_name(reader, one->name));
}

static void collective_line(
	struct trace_reader *reader, struct dump_line *line, const struct trace_collective *call)
{
	const bool begins = call->head.flags & TRACE_COLLECTIVE_BEGIN;

	PUT_WORD(line, DUMP_name, nccl_operation_names, call->operation);
	if (!begins) {
		line_unsigned(line, DUMP_duration_ns,
			reader_duration(reader, call->stamp, call->duration));
		line_unsigned(line, DUMP_result, call->result);
	}
	line_flag(line, "begin", begins);
	if (call->operation == TRACE_NCCL_GROUP) {
		line_unsigned(line, DUMP_calls, call->calls);
		return;
	}
	if (call->operation < TRACE_NCCL_INIT) {
		line_unsigned(line, DUMP_bytes, call->bytes);
		line_id(line, DUMP_stream, call->stream);
		PUT_WORD(line, DUMP_data_type, nccl_types, call->data_type);
	}
	if (call->peer != UINT32_MAX)
		line_unsigned(line, DUMP_peer, call->peer);
	if (call->operation != TRACE_NCCL_INIT)
		line_unsigned(line, DUMP_sequence, call->sequence);
	if (call->communicator)
		communicator_line(reader, line, call->communicator);
	line_flag(line, "grouped", call->head.flags & TRACE_COLLECTIVE_GROUPED);
}

bool dump_record_line(
	struct trace_reader *reader, const struct trace_event *event, struct dump_line *line)
{
	if (!event_kind_name(event->kind) || kind_is_gpu(event->kind))
		return false;
	line_string(line, DUMP_kind, event_kind_name(event->kind));
	if (event->node)
		line_unsigned(line, DUMP_node, event->node);
	switch (event->kind) {
	case TRACE_OBJECT:
		object_line(reader, line, event->record);
		break;
	case TRACE_METRIC:
		metric_line(reader, line, event->record);
		break;
	case TRACE_LAUNCH:
		launch_line(reader, line, event->record);
		break;
	case TRACE_GRAPH_LAUNCH:
		graph_launch_line(reader, line, event->record);
		break;
	case TRACE_COPY:
	case TRACE_SET:
		copy_line(reader, line, event->record);
		break;
	case TRACE_SYNC:
		sync_line(reader, line, event->record);
		break;
	case TRACE_ALLOC:
	case TRACE_FREE:
		memory_line(reader, line, event->record);
		break;
	case TRACE_MAPPING:
		mapping_line(reader, line, event->record);
		break;
	case TRACE_TENSOR:
	case TRACE_TENSOR_OOM:
		tensor_line(reader, line, event->record);
		break;
	case TRACE_CPU_SAMPLE:
		sample_line(reader, line, event->record);
		break;
	case TRACE_SAMPLE:
		thread_sample_line(line, event->record);
		break;
	case TRACE_SAMPLED_THREAD:
		sampled_thread_line(reader, line, event->record);
		break;
	case TRACE_SAMPLE_PYTHON:
		break;
	case TRACE_COLLECTIVE:
		collective_line(reader, line, event->record);
		break;
	default:
		profiler_line(reader, line, event->record, event->kind);
	}
	return true;
}

static void gpu_work_line(struct dump_line *line, const struct trace_gpu *gpu)
{
	line_id(line, DUMP_correlation, gpu->correlation);
	device_line(line, DUMP_device, gpu->device);
	line_unsigned(line, DUMP_context, gpu->context);
	line_unsigned(line, DUMP_stream, gpu->stream);
	if (gpu->graph_node) {
		line_unsigned(line, DUMP_graph, gpu->graph);
		line_id(line, DUMP_graph_node, gpu->graph_node);
	}
}

static void kernel_line(
	struct trace_reader *reader, struct dump_line *line, const struct trace_kernel *kernel)
{
	gpu_work_line(line, &kernel->gpu);
	line_text(line, DUMP_name, reader_name(reader, kernel->name));
	line_triple(line, DUMP_grid, kernel->grid);
	line_triple(line, DUMP_block, kernel->block);
	line_unsigned(line, DUMP_shared_bytes, kernel->dynamic_shared_bytes);
	line_unsigned(line, DUMP_static_shared_bytes, kernel->static_shared_bytes);
	line_unsigned(line, DUMP_registers, kernel->registers);
	line_unsigned(line, DUMP_local_bytes, kernel->local_bytes);
}

static void gpu_copy_line(struct dump_line *line, const struct trace_gpu_copy *copy)
{
	gpu_work_line(line, &copy->gpu);
	line_unsigned(line, DUMP_bytes, copy->bytes);
	line_flag(line, "async", copy->async);
	if (copy->gpu.head.kind == TRACE_GPU_SET) {
		line_unsigned(line, DUMP_value, copy->value);
		PUT_WORD(line, DUMP_memory_kind, memory_kinds, copy->target_kind);
		return;
	}
	PUT_WORD(line, DUMP_copy_kind, copy_kinds, copy->copy_kind);
	PUT_WORD(line, DUMP_source_kind, memory_kinds, copy->source_kind);
	PUT_WORD(line, DUMP_target_kind, memory_kinds, copy->target_kind);
	if (copy->other_device != UINT32_MAX)
		line_unsigned(line, DUMP_other_device, copy->other_device);
}

static void gpu_memory_line(struct dump_line *line, const struct trace_gpu_memory *memory)
{
	static const char *const operations[] = { NULL, "taken", "given_back" };

	PUT_WORD(line, DUMP_action, operations, memory->operation);
	line_id(line, DUMP_correlation, memory->correlation);
	line_id(line, DUMP_address, memory->address);
	line_unsigned(line, DUMP_bytes, memory->bytes);
	PUT_WORD(line, DUMP_memory_kind, memory_kinds, memory->memory_kind);
	device_line(line, DUMP_device, memory->device);
	line_unsigned(line, DUMP_stream, memory->stream);
}

static void gpu_sync_line(struct dump_line *line, const struct trace_gpu_sync *sync)
{
	PUT_WORD(line, DUMP_type, sync_types, sync->type);
	line_id(line, DUMP_correlation, sync->correlation);
	line_unsigned(line, DUMP_context, sync->context);
	line_unsigned(line, DUMP_stream, sync->stream);
	line_unsigned(line, DUMP_event, sync->event);
}

static void api_line(
	struct trace_reader *reader, struct dump_line *line, const struct trace_api *api)
{
	line_string(line, DUMP_type, api->domain == 1 ? "driver" : "runtime");
	line_text(line, DUMP_name, reader_name(reader, api->name));
	line_unsigned(line, DUMP_tid, api->tid);
	line_unsigned(line, DUMP_subtype, api->cbid);
	line_id(line, DUMP_correlation, api->correlation);
	line_unsigned(line, DUMP_result, api->result);
}

static void overhead_line(struct dump_line *line, const struct trace_overhead *overhead)
{
	line_unsigned(line, DUMP_type, overhead->type);
	line_unsigned(line, DUMP_tid, overhead->tid);
	if (overhead->correlation)
		line_id(line, DUMP_correlation, overhead->correlation);
}

static void gpu_record_line(
	struct trace_reader *reader, const struct gpu_record *entry, struct dump_line *line)
{
	switch (entry->kind) {
	case TRACE_KERNEL:
		kernel_line(reader, line, &entry->record.kernel);
		break;
	case TRACE_GPU_COPY:
	case TRACE_GPU_SET:
		gpu_copy_line(line, &entry->record.copy);
		break;
	case TRACE_GPU_SYNC:
		gpu_sync_line(line, &entry->record.sync);
		break;
	case TRACE_GPU_MEMORY:
		gpu_memory_line(line, &entry->record.memory);
		break;
	case TRACE_API:
		api_line(reader, line, &entry->record.api);
		break;
	case TRACE_OVERHEAD:
		overhead_line(line, &entry->record.overhead);
		break;
	}
}

void dump_gpu_line(
	struct trace_reader *reader, const struct gpu_record *entry, struct dump_line *line)
{
	line_string(line, DUMP_kind, event_kind_name(entry->kind));
	if (entry->timed && entry->kind != TRACE_GPU_MEMORY)
		line_unsigned(line, DUMP_duration_ns, entry->duration_ns);
	gpu_record_line(reader, entry, line);
}
