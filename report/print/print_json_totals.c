/* SPDX-License-Identifier: MIT
 *
 * Writes the objects `totals` and `integrity`.
 */
#include "report/print/print_json.h"
#include <stdlib.h>
#include <string.h>

/* Sums over all processes shown. */
void print_json_integrity(struct output *out, const struct processes *processes)
{
	bool first = true, complete = true, conserved = true;

	output_char(out, '{');
	for (size_t item = 0; item < integrity_item_count; item++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < processes->shown; i++)
			sum += integrity_value(&processes->all[i].integrity, item);
		print_json_member(out, integrity_items[item].name, sum, &first);
	}
	for (size_t i = 0; i < processes->shown; i++) {
		complete &= processes->all[i].integrity.complete;
		conserved &= processes->all[i].integrity.conserved;
	}
	print_json_key(out, "complete", &first);
	output_string(out, complete ? "true" : "false");
	print_json_key(out, "conserved", &first);
	output_string(out, conserved ? "true" : "false");
	output_char(out, '}');
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

static void put_json_node_path(struct output *out, struct process *process, uint32_t node)
{
	const struct row row = tree_row(process, process->profile->tree, node);

	print_json_path(out, &row);
}

static void put_json_oom(struct output *out, struct process *process, const struct memory_oom *oom)
{
	bool first = true;

	output_char(out, '{');
	print_json_member(out, "pid", process->pid, &first);
	print_json_member(out, "tid", oom->tid, &first);
	print_json_member(out, "t_ns", oom->time_ns, &first);
	print_json_member(out, "device", oom->device, &first);
	print_json_key(out, "path", &first);
	put_json_node_path(out, process, oom->node);
	print_json_member(out, "asked_bytes", oom->requested_bytes, &first);
	print_json_member(out, "allocated_bytes", oom->allocated, &first);
	print_json_member(out, "reserved_bytes", oom->reserved, &first);
	print_json_key(out, "outside_bytes", &first);
	if (oom->outside >= 0)
		output_signed(out, oom->outside);
	else
		output_string(out, "null");
	output_char(out, '}');
}

/* Each time that PyTorch ran out of memory. */
static void put_json_ooms(struct output *out, const struct processes *processes, bool *first)
{
	const char *before = "";

	print_json_key(out, "ooms", first);
	output_char(out, '[');
	for (size_t i = 0; i < processes->shown; i++)
		for (uint32_t oom = 0; oom < processes->all[i].profile->memory->oom_count; oom++) {
			output_string(out, before);
			put_json_oom(out, &processes->all[i],
				&processes->all[i].profile->memory->ooms[oom]);
			before = ", ";
		}
	output_char(out, ']');
}

static void put_json_failed(
	struct output *out, struct process *process, const struct failed_allocation *failed)
{
	const struct trace_text api = reader_name(process->reader, failed->api);
	const struct trace_device *device = process_device(process, failed->device);
	const bool of_device = memory_is_device(failed->kind);
	bool first = true;

	output_char(out, '{');
	print_json_member(out, "pid", process->pid, &first);
	print_json_member(out, "tid", failed->tid, &first);
	print_json_member(out, "t_ns", failed->time_ns, &first);
	print_json_key(out, "device", &first);
	if (failed->device == UINT32_MAX)
		output_string(out, "null");
	else
		output_unsigned(out, failed->device);
	print_json_key(out, "api", &first);
	print_json_text_or_null(out, api);
	print_json_key(out, "path", &first);
	put_json_node_path(out, process, failed->node);
	print_json_key(out, "memory_kind", &first);
	print_json_string(out, memory_kind_name(failed->kind));
	print_json_member(out, "requested_bytes", failed->requested_bytes, &first);
	print_json_member(out, "held_bytes", failed->held, &first);
	print_json_key(out, "device_bytes", &first);
	if (of_device && device && device->memory_bytes)
		output_unsigned(out, device->memory_bytes);
	else
		output_string(out, "null");
	print_json_bool(out, "succeeded_later", failed->succeeded_later, &first);
	output_char(out, '}');
}

/* Each CUDA allocation that failed for want of memory. */
static void put_json_failures(struct output *out, const struct processes *processes, bool *first)
{
	const char *before = "";

	print_json_key(out, "failed_allocations", first);
	output_char(out, '[');
	for (size_t i = 0; i < processes->shown; i++) {
		const struct memory_owners *memory = processes->all[i].profile->memory;

		for (uint32_t at = 0; at < memory->failed_count; at++) {
			output_string(out, before);
			put_json_failed(out, &processes->all[i], &memory->failed[at]);
			before = ", ";
		}
	}
	output_char(out, ']');
}

/* The parts of busy time. They are null if only some steps are shown. */
static void put_json_gpu_parts(struct output *out, const struct processes *processes,
	const struct profile_totals *sum, bool *first)
{
	const struct {
		const char *key;
		uint64_t value;
	} part[] = { { "gpu_computation_ns", sum->gpu_computation_ns },
		{ "gpu_communication_ns", sum->gpu_communication_ns },
		{ "gpu_exposed_communication_ns", sum->gpu_exposed_communication_ns },
		{ "gpu_copy_ns", sum->gpu_copy_ns },
		{ "gpu_exposed_copy_ns", sum->gpu_exposed_copy_ns } };
	const bool whole = processes->shown == 0 || !processes->all[0].profile->options.steps;

	for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
		print_json_key(out, part[i].key, first);
		if (whole)
			output_unsigned(out, part[i].value);
		else
			output_string(out, "null");
	}
}

static void put_json_methods(struct output *out, const struct profile_totals *sum)
{
	bool first = true;

	output_char(out, '{');
	for (int method = 0; method < METHOD_COUNT; method++) {
		bool part_first = true;

		print_json_key(out, method_name((enum method)method), &first);
		output_char(out, '{');
		print_json_member(out, "records", sum->method_records[method], &part_first);
		print_json_member(out, "ns", sum->method_ns[method], &part_first);
		output_char(out, '}');
	}
	output_char(out, '}');
}

void print_json_totals(struct output *out, const struct processes *processes)
{
	struct profile_totals sum = { .wall_ns = 0 };
	bool first = true;

	for (size_t i = 0; i < processes->shown; i++)
		sum_totals(&sum, &processes->all[i].profile->totals);
	output_char(out, '{');
	print_json_member(out, "wall_ns", sum.wall_ns, &first);
	print_json_member(out, "gpu_sum_ns", sum.gpu_sum_ns, &first);
	print_json_member(out, "gpu_busy_ns", sum.gpu_busy_ns, &first);
	print_json_member(out, "gpu_idle_ns", sum.gpu_idle_ns, &first);
	print_json_member(out, "gpu_unknown_ns", sum.gpu_unknown_ns, &first);
	put_json_gpu_parts(out, processes, &sum, &first);
	print_json_member(out, "attributed_ns", sum.attributed_ns, &first);
	print_json_member(out, "unattributed_ns", sum.unattributed_ns, &first);
	print_json_key(out, "methods", &first);
	put_json_methods(out, &sum);
	print_json_member(out, "alloc_bytes", sum.alloc_bytes, &first);
	print_json_member(out, "free_bytes", sum.free_bytes, &first);
	print_json_key(out, "reserved_peak_bytes", &first);
	output_signed(out, sum.reserved_peak);
	print_json_key(out, "allocated_peak_bytes", &first);
	if (sum.has_tensors)
		output_signed(out, sum.allocated_peak);
	else
		output_string(out, "null");
	print_json_member(out, "tensor_alloc_bytes", sum.tensor_alloc_bytes, &first);
	print_json_member(out, "tensor_free_bytes", sum.tensor_free_bytes, &first);
	put_json_ooms(out, processes, &first);
	put_json_failures(out, processes, &first);
	print_json_member(out, "self_cost_ns", sum.self_ns, &first);
	print_json_member(out, "cupti_overhead_ns", sum.overhead_ns, &first);
	print_json_key(out, "gpus", &first);
	print_json_gpus(processes, out);
	output_char(out, '}');
}
