/* SPDX-License-Identifier: MIT
 *
 * The JSON of https://github.com/yottalabsai/Profiler, version 1.0 of its schema: each call of an
 * operator with the kernels that it launched itself, and the kernels that no operator launched.
 * Copies and memsets are not part of it. Times are nanoseconds since the trace's start.
 */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/error.h"
#include "report/base/external_sort.h"
#include "report/export/export.h"
#include "report/export/record_events.h"
#include "report/text/json_writer.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define IN_MEMORY 32768u

/* A call of an operator. */
struct operator_call {
	uint64_t number, begin_ns, end_ns;
	uint32_t name, index, depth; /* name: text; index: how many calls of the name came before */
};

struct opprof {
	const struct process *process;
	struct record_events *events;
	struct external_sort *operators, *kernels; /* by number; by operator and begin */
	struct string_table *names;                /* of operators */
	uint32_t *calls;                           /* by name */
	size_t call_room;
	struct json_writer json;
};

/* What the kernels of an operator sum up to. */
struct kernel_sums {
	uint64_t count, total_ns, longest_ns, longest;
	uint32_t registers, dynamic_shared_bytes;
	bool is_fused;
};

COMPARE_BY(compare_operators, struct operator_call, number)
COMPARE_BY_THREE(compare_kernels, struct gpu_event, operator_number, begin_ns, arrival)

/* ---- reading ---- */

static void add_operator(struct opprof *opprof, const struct host_event *event)
{
	const struct string_view name = record_event_name(opprof->events, event);
	const uint32_t id = string_table_intern(opprof->names, name.bytes, name.length);
	struct operator_call *call = external_sort_add(opprof->operators);

	ARRAY_GROW(opprof->calls, opprof->call_room, (size_t)id + 1);
	*call = (struct operator_call){ .number = event->number,
		.begin_ns = event->begin_ns,
		.end_ns = event->end_ns,
		.name = id,
		.index = opprof->calls[id]++,
		.depth = event->depth };
}

static void read_events(struct opprof *opprof)
{
	struct record_event event;

	while (record_events_next(opprof->events, &event)) {
		if (event.host && event.host->kind == HOST_RANGE && event.host->in_operator)
			add_operator(opprof, event.host);
		else if (event.gpu && event.gpu->kind == TRACE_KERNEL)
			*(struct gpu_event *)external_sort_add(opprof->kernels) = *event.gpu;
	}
	external_sort_rewind(opprof->operators);
	external_sort_rewind(opprof->kernels);
}

/* ---- kernels ---- */

static bool is_fused_kernel(struct string_view name)
{
	return name.length > 7 && !memcmp(name.bytes, "triton_", 7) &&
	       memmem(name.bytes, name.length, "_fused_", 7);
}

static void put_kernel_id(struct json_writer *json, const char *key, uint64_t number)
{
	char id[32];

	snprintf(id, sizeof id, "k%llu", (unsigned long long)number);
	json_put_string(json, key, id);
}

static void put_dimensions(struct json_writer *json, const char *key, const uint32_t dimensions[3])
{
	json_write_key(json, key);
	if (dimensions[0])
		json_write_triple(json, dimensions);
	else
		json_write_null(json);
}

/* Adds what the launch says, under the names that Nsight Compute has for it. */
static void put_kernel_metrics(struct json_writer *json, const struct trace_kernel *kernel)
{
	json_put_begin(json, "metrics", '{');
	json_put_begin(json, "raw", '{');
	json_put_unsigned(json, "launch__registers_per_thread", kernel->registers);
	json_put_unsigned(json, "launch__shared_mem_per_block_static", kernel->static_shared_bytes);
	json_put_unsigned(
		json, "launch__shared_mem_per_block_dynamic", kernel->dynamic_shared_bytes);
	json_write_end(json, '}');
	json_write_end(json, '}');
}

static void put_kernel(struct opprof *opprof, const struct gpu_event *gpu)
{
	struct json_writer *json = &opprof->json;
	const struct trace_kernel *kernel = &gpu->record.kernel;
	const struct trace_text name = reader_name(opprof->process->reader, kernel->name);
	const struct string_view full = record_kernel_name(opprof->events, kernel);
	const bool is_attributed = gpu->operator_number != 0;

	output_char(json->out, '\n');
	json_write_begin(json, '{');
	put_kernel_id(json, "kernel_id", gpu->arrival);
	json_put_text(json, "kernel_name",
		name.known ? (struct string_view){ name.bytes, name.length } : full);
	json_put_text(json, "demangled_name", full);
	json_put_unsigned(json, "stream_id", kernel->gpu.stream);
	json_put_unsigned(json, "device_id", gpu->device);
	json_put_unsigned(json, "start_ns", gpu->begin_ns);
	json_put_unsigned(json, "end_ns", gpu->end_ns);
	json_put_unsigned(json, "duration_ns", gpu->end_ns - gpu->begin_ns);
	put_dimensions(json, "grid_dim", kernel->grid);
	put_dimensions(json, "block_dim", kernel->block);
	put_kernel_metrics(json, kernel);
	json_put_string(
		json, "attribution_method", is_attributed ? "torch_profiler" : "unattributed");
	json_put_string(json, "confidence",
		!is_attributed                                 ? "unattributed"
		: kernel->gpu.head.flags & TRACE_GPU_ENCLOSED  ? "medium"
		: kernel->gpu.graph && !kernel->gpu.graph_node ? "low"
							       : "high");
	json_write_end(json, '}');
}

static void sum_kernel(struct opprof *opprof, struct kernel_sums *sums, const struct gpu_event *gpu)
{
	const uint64_t ns = gpu->end_ns - gpu->begin_ns;

	sums->total_ns += ns;
	sums->is_fused |= is_fused_kernel(record_kernel_name(opprof->events, &gpu->record.kernel));
	if (sums->count++ && ns <= sums->longest_ns)
		return;
	sums->longest_ns = ns;
	sums->longest = gpu->arrival;
	sums->registers = gpu->record.kernel.registers;
	sums->dynamic_shared_bytes = gpu->record.kernel.dynamic_shared_bytes;
}

/* Writes the kernels of the operator `number` as an array, and sums them. 0: of no operator. */
static struct kernel_sums put_kernels(struct opprof *opprof, uint64_t number)
{
	struct kernel_sums sums = { .count = 0 };
	const struct gpu_event *gpu;

	while ((gpu = external_sort_peek(opprof->kernels)) && gpu->operator_number == number) {
		put_kernel(opprof, gpu);
		sum_kernel(opprof, &sums, gpu);
		external_sort_next(opprof->kernels);
	}
	return sums;
}

/* ---- operators ---- */

static void put_sums(struct json_writer *json, const struct kernel_sums *sums)
{
	json_put_bool(json, "is_fused", sums->is_fused);
	json_put_begin(json, "aggregated", '{');
	json_put_unsigned(json, "total_duration_ns", sums->total_ns);
	json_put_unsigned(json, "kernel_count", sums->count);
	put_kernel_id(json, "dominant_kernel_id", sums->longest);
	json_put_unsigned(json, "registers_per_thread", sums->registers);
	json_put_unsigned(json, "dynamic_smem_per_block", sums->dynamic_shared_bytes);
	json_write_end(json, '}');
}

static void put_operator(struct opprof *opprof, const struct operator_call *call)
{
	struct json_writer *json = &opprof->json;
	const struct string_view name = string_table_get(opprof->names, call->name);
	char id[600];
	struct kernel_sums sums;
	const int length = snprintf(id, sizeof id, "%.*s_%u",
		(int)(name.length < 512 ? name.length : 512), name.bytes, call->index);

	output_char(json->out, '\n');
	json_write_begin(json, '{');
	json_put_text(json, "operator_id", (struct string_view){ id, (uint32_t)length });
	json_put_text(json, "operator_name", name);
	json_put_unsigned(json, "call_index", call->index);
	json_put_begin(json, "nvtx_range", '{');
	json_put_text(json, "text", name);
	json_put_unsigned(json, "depth", call->depth);
	json_put_unsigned(json, "start_ns", call->begin_ns);
	json_put_unsigned(json, "end_ns", call->end_ns);
	json_write_end(json, '}');
	json_put_begin(json, "kernels", '[');
	sums = put_kernels(opprof, call->number);
	json_write_end(json, ']');
	put_sums(json, &sums);
	json_write_end(json, '}');
}

/* Writes the operators with kernels. Both are sorted by the operator's number; what an operator
 * outside of --steps launched has none. */
static void put_operators(struct opprof *opprof)
{
	const struct operator_call *call;
	const struct gpu_event *gpu;

	while ((gpu = external_sort_peek(opprof->kernels))) {
		while ((call = external_sort_peek(opprof->operators)) &&
			call->number < gpu->operator_number)
			external_sort_next(opprof->operators);
		if (call && call->number == gpu->operator_number)
			put_operator(opprof, call);
		else
			external_sort_next(opprof->kernels);
	}
}

/* ---- the capture ---- */

static struct string_view meta_of(const struct opprof *opprof, const char *key, const char *unknown)
{
	const struct trace_text value = process_meta(opprof->process, key);

	return value.known ? (struct string_view){ value.bytes, value.length }
			   : (struct string_view){ unknown, (uint32_t)strlen(unknown) };
}

/* Writes CUDA's version, which the trace has as 12080 or as a list of such. */
static void put_cuda_version(struct opprof *opprof)
{
	const struct trace_text value = process_meta(opprof->process, "version.cuda_runtime");
	unsigned long number = 0;
	char text[32];

	for (uint32_t i = 0; i < value.length && value.bytes[i] >= '0' && value.bytes[i] <= '9' &&
			     number < 1000000;
		i++)
		number = number * 10 + (unsigned long)(value.bytes[i] - '0');
	if (number < 1000)
		return;
	snprintf(text, sizeof text, "%lu.%lu", number / 1000, number % 1000 / 10);
	json_put_string(&opprof->json, "cuda_version", text);
}

static bool is_compiled(const struct process *process)
{
	const struct trace_text value = process_meta(process, "source.torch_compile");

	return value.length >= 2 && !memcmp(value.bytes, "on", 2);
}

static void put_capture(struct opprof *opprof)
{
	struct json_writer *json = &opprof->json;
	const struct process *process = opprof->process;
	const time_t seconds = (time_t)(process->start_unix_ns / 1000000000);
	const struct trace_device *device = reader_dictionary(process->reader, TRACE_DEVICE, 0);
	struct trace_text name = { .known = false };
	char text[32] = "";
	struct tm utc;

	if (gmtime_r(&seconds, &utc))
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
	if (device)
		name = reader_name(process->reader, device->name);
	json_put_begin(json, "capture_metadata", '{');
	json_put_string(json, "model_name", *process->command ? process->command : process->path);
	json_put_text(json, "torch_version", meta_of(opprof, "version.torch", "unknown"));
	put_cuda_version(opprof);
	json_put_string(json, "compile_mode", is_compiled(process) ? "inductor" : "eager");
	json_put_string(json, "capture_timestamp_utc", text);
	json_put_text(json, "device_name", trace_text_or_null(name));
	json_write_end(json, '}');
}

static void put_profile(struct opprof *opprof, const struct processes *processes)
{
	struct json_writer *json = &opprof->json;

	json_write_begin(json, '{');
	json_put_string(json, "schema_version", "1.0");
	put_capture(opprof);
	json_put_begin(json, "unattributed_kernels", '[');
	put_kernels(opprof, 0);
	json_write_end(json, ']');
	json_put_begin(json, "operators", '[');
	put_operators(opprof);
	json_write_end(json, ']');
	json_put_begin(json, "warnings", '[');
	for (size_t i = 0; i < processes->warning_count; i++)
		json_write_string(json, processes->warnings[i]);
	json_write_end(json, ']');
	json_write_end(json, '}');
	output_char(json->out, '\n');
}

void export_opprof(const struct options *options, struct processes *processes, struct output *out)
{
	struct opprof opprof = { .process = &processes->all[0], .json = { .out = out } };

	if (processes->shown > 1)
		warn_user("opprof describes one process: %s", process_name(&processes->all[0]));
	opprof.names = string_table_new();
	opprof.operators = external_sort_new(
		sizeof(struct operator_call), IN_MEMORY, compare_operators, "the operators");
	opprof.kernels = external_sort_new(
		sizeof(struct gpu_event), IN_MEMORY, compare_kernels, "the GPU records");
	opprof.events = record_events_read(opprof.process, options);
	read_events(&opprof);
	put_profile(&opprof, processes);
	record_events_free(opprof.events);
	external_sort_free(opprof.operators);
	external_sort_free(opprof.kernels);
	string_table_free(opprof.names);
	free(opprof.calls);
}
