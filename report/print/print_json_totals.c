/* SPDX-License-Identifier: MIT
 *
 * Writes the objects `totals` and `integrity`.
 */
#include "report/print/print_json.h"
#include "report/analysis/oom_cause.h"

/* Sums over all processes shown. */
void print_json_integrity(struct output *out, const struct processes *processes)
{
	struct json_writer writer = { .out = out, .spaced = true }, *json = &writer;
	bool complete = true, conserved = true;

	json_write_begin(json, '{');
	for (size_t item = 0; item < integrity_item_count; item++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < processes->shown; i++)
			sum += integrity_value(&processes->all[i].integrity, item);
		json_put_unsigned(json, integrity_items[item].name, sum);
	}
	for (size_t i = 0; i < processes->shown; i++) {
		complete &= processes->all[i].integrity.complete;
		conserved &= processes->all[i].integrity.conserved;
	}
	json_put_bool(json, "complete", complete);
	json_put_bool(json, "conserved", conserved);
	json_write_end(json, '}');
}

static void sum_totals(struct profile_totals *sum, const struct profile_totals *part)
{
	if (part->wall_ns > sum->wall_ns)
		sum->wall_ns = part->wall_ns;
	sum->gpu_sum_ns += part->gpu_sum_ns;
	sum->gpu_busy_ns += part->gpu_busy_ns;
	sum->gpu_idle_ns += part->gpu_idle_ns;
	sum->gpu_unknown_ns += part->gpu_unknown_ns;
	sum->gpu_computation_ns += part->gpu_computation_ns;
	sum->gpu_communication_ns += part->gpu_communication_ns;
	sum->gpu_exposed_communication_ns += part->gpu_exposed_communication_ns;
	sum->gpu_copy_ns += part->gpu_copy_ns;
	sum->gpu_exposed_copy_ns += part->gpu_exposed_copy_ns;
	sum->attributed_ns += part->attributed_ns;
	sum->unattributed_ns += part->unattributed_ns;
	sum->alloc_bytes += part->alloc_bytes;
	sum->free_bytes += part->free_bytes;
	sum->self_ns += part->self_ns;
	sum->overhead_ns += part->overhead_ns;
	sum->reserved_peak += part->reserved_peak;
	sum->has_tensors |= part->has_tensors;
	sum->allocated_peak += part->allocated_peak;
	sum->tensor_alloc_bytes += part->tensor_alloc_bytes;
	sum->tensor_free_bytes += part->tensor_free_bytes;
	for (int method = 0; method < METHOD_COUNT; method++) {
		sum->method_ns[method] += part->method_ns[method];
		sum->method_records[method] += part->method_records[method];
	}
}

/* Writes the open ranges of a thread, outermost first. */
static void put_json_open(
	struct json_writer *json, const struct process *process, uint32_t first, uint32_t count)
{
	const struct oom_open_range *ranges = process->profile->oom_ranges + first;

	json_put_begin(json, "open", '[');
	for (uint32_t i = 0; i < count; i++) {
		const struct string_view label = string_table_get(process->texts, ranges[i].label);

		json_write_begin(json, '{');
		json_put_text(json, "label", label);
		json_put_known_signed(json, "grown_bytes", ranges[i].grown, true);
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
}

static void put_json_threads(
	struct json_writer *json, const struct process *process, uint32_t first, uint32_t count)
{
	const struct oom_thread *threads = process->profile->oom_threads + first;

	json_put_begin(json, "threads", '[');
	for (uint32_t i = 0; i < count; i++) {
		json_write_begin(json, '{');
		json_put_unsigned(json, "tid", threads[i].tid);
		put_json_open(json, process, threads[i].first_open, threads[i].open);
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
}

static void put_json_cause(struct json_writer *json, const struct oom_cause *cause)
{
	json_put_string(json, "cause", oom_cause_name(cause->kind));
	json_put_known_unsigned(json, "free_bytes", cause->free, cause->is_free_known);
	json_put_known_unsigned(json, "total_bytes", cause->total, cause->total > 0);
	json_put_known_unsigned(json, "others_bytes", cause->others, cause->is_free_known);
	json_put_known_unsigned(
		json, "growth_per_step_bytes", cause->growth_per_step, cause->grown > 0);
}

static void put_json_gaps(struct json_writer *json, const struct memory_gaps *gaps)
{
	json_put_known_unsigned(json, "gaps", gaps->gaps, gaps->known);
	json_put_known_unsigned(json, "gap_bytes", gaps->free_bytes, gaps->known);
	json_put_known_unsigned(json, "largest_gap_bytes", gaps->largest, gaps->known);
}

static void put_json_oom(
	struct json_writer *json, struct process *process, const struct memory_oom *oom)
{
	const struct row row = tree_row(process, process->profile->tree, oom->node);
	const struct oom_cause cause = oom_cause_of_torch(process, oom);

	json_write_begin(json, '{');
	json_put_unsigned(json, "pid", process->pid);
	json_put_unsigned(json, "tid", oom->tid);
	json_put_unsigned(json, "t_ns", oom->time_ns);
	json_put_unsigned(json, "device", oom->device);
	json_write_key(json, "path");
	print_json_path(json, &row);
	json_put_unsigned(json, "asked_bytes", oom->requested_bytes);
	json_put_unsigned(json, "allocated_bytes", oom->allocated);
	json_put_unsigned(json, "reserved_bytes", oom->reserved);
	json_put_known_signed(
		json, "outside_bytes", oom->outside_allocator, oom->outside_allocator >= 0);
	put_json_cause(json, &cause);
	put_json_gaps(json, &oom->gaps);
	json_put_unsigned(json, "failed_calls", oom->failed);
	put_json_open(json, process, oom->first_open, oom->open);
	put_json_threads(json, process, oom->first_thread, oom->threads);
	json_write_end(json, '}');
}

/* Each time that PyTorch ran out of memory. */
static void put_json_ooms(struct json_writer *json, const struct processes *processes)
{
	json_put_begin(json, "ooms", '[');
	for (size_t i = 0; i < processes->shown; i++)
		for (uint32_t oom = 0; oom < processes->all[i].profile->memory->oom_count; oom++)
			put_json_oom(json, &processes->all[i],
				&processes->all[i].profile->memory->ooms[oom]);
	json_write_end(json, ']');
}

static void put_json_failed(
	struct json_writer *json, struct process *process, const struct failed_allocation *failed)
{
	const struct row row = tree_row(process, process->profile->tree, failed->node);
	const struct oom_cause cause = oom_cause_of_call(process, failed);
	const struct trace_device *device = process_device(process, failed->device);
	const uint64_t device_bytes = device && memory_is_device(failed->kind)
					      ? device->memory_bytes
					      : 0;

	json_write_begin(json, '{');
	json_put_unsigned(json, "pid", process->pid);
	json_put_unsigned(json, "tid", failed->tid);
	json_put_unsigned(json, "t_ns", failed->time_ns);
	json_put_known_unsigned(json, "device", failed->device, failed->device != UINT32_MAX);
	json_put_text(json, "api", trace_text_or_null(reader_name(process->reader, failed->api)));
	json_write_key(json, "path");
	print_json_path(json, &row);
	json_put_string(json, "memory_kind", memory_kind_name(failed->kind));
	json_put_unsigned(json, "requested_bytes", failed->requested_bytes);
	json_put_unsigned(json, "held_bytes", failed->held);
	json_put_known_unsigned(json, "device_bytes", device_bytes, device_bytes > 0);
	json_put_bool(json, "succeeded_later", failed->succeeded_later);
	json_put_known_unsigned(
		json, "retry_ns", failed->repeated_ns - failed->begin_ns, failed->succeeded_later);
	json_put_unsigned(json, "released_bytes", failed->released_bytes);
	put_json_cause(json, &cause);
	put_json_open(json, process, failed->first_open, failed->open);
	put_json_threads(json, process, failed->first_thread, failed->threads);
	json_write_end(json, '}');
}

/* Each CUDA allocation that failed for want of memory. */
static void put_json_failures(struct json_writer *json, const struct processes *processes)
{
	json_put_begin(json, "failed_allocations", '[');
	for (size_t i = 0; i < processes->shown; i++) {
		const struct memory_owners *memory = processes->all[i].profile->memory;

		for (uint32_t at = 0; at < memory->failed_count; at++)
			put_json_failed(json, &processes->all[i], &memory->failed[at]);
	}
	json_write_end(json, ']');
}

/* The parts of busy time. They are null if only some steps are shown. */
static void put_json_gpu_parts(struct json_writer *json, const struct processes *processes,
	const struct profile_totals *sum)
{
	const bool whole = processes->shown == 0 || !processes->all[0].profile->options.steps;

#define PUT(name) json_put_known_unsigned(json, #name, sum->name, whole)
	PUT(gpu_computation_ns);
	PUT(gpu_communication_ns);
	PUT(gpu_exposed_communication_ns);
	PUT(gpu_copy_ns);
	PUT(gpu_exposed_copy_ns);
#undef PUT
}

static void put_json_methods(struct json_writer *json, const struct profile_totals *sum)
{
	json_put_begin(json, "methods", '{');
	for (int method = 0; method < METHOD_COUNT; method++) {
		json_put_begin(json, method_name((enum method)method), '{');
		json_put_unsigned(json, "records", sum->method_records[method]);
		json_put_unsigned(json, "ns", sum->method_ns[method]);
		json_write_end(json, '}');
	}
	json_write_end(json, '}');
}

void print_json_totals(struct output *out, const struct processes *processes)
{
	struct json_writer writer = { .out = out, .spaced = true }, *json = &writer;
	struct profile_totals sum = { .wall_ns = 0 };

	for (size_t i = 0; i < processes->shown; i++)
		sum_totals(&sum, &processes->all[i].profile->totals);
	json_write_begin(json, '{');
	json_put_unsigned(json, "wall_ns", sum.wall_ns);
	json_put_unsigned(json, "gpu_sum_ns", sum.gpu_sum_ns);
	json_put_unsigned(json, "gpu_busy_ns", sum.gpu_busy_ns);
	json_put_unsigned(json, "gpu_idle_ns", sum.gpu_idle_ns);
	json_put_unsigned(json, "gpu_unknown_ns", sum.gpu_unknown_ns);
	put_json_gpu_parts(json, processes, &sum);
	json_put_unsigned(json, "attributed_ns", sum.attributed_ns);
	json_put_unsigned(json, "unattributed_ns", sum.unattributed_ns);
	put_json_methods(json, &sum);
	json_put_unsigned(json, "alloc_bytes", sum.alloc_bytes);
	json_put_unsigned(json, "free_bytes", sum.free_bytes);
	json_put_known_signed(json, "reserved_peak_bytes", sum.reserved_peak, true);
	json_put_known_signed(json, "allocated_peak_bytes", sum.allocated_peak, sum.has_tensors);
	json_put_unsigned(json, "tensor_alloc_bytes", sum.tensor_alloc_bytes);
	json_put_unsigned(json, "tensor_free_bytes", sum.tensor_free_bytes);
	put_json_ooms(json, processes);
	put_json_failures(json, processes);
	json_put_unsigned(json, "self_cost_ns", sum.self_ns);
	json_put_unsigned(json, "cupti_overhead_ns", sum.overhead_ns);
	json_write_key(json, "gpus");
	print_json_gpus(processes, out);
	json_write_end(json, '}');
}
