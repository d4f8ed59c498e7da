/* SPDX-License-Identifier: MIT
 * print_json_totals.c: of the envelope, what it all comes to, and whether that is all.
 */
#include "report/print/print_json_parts.h"
#include <stdlib.h>
#include <string.h>

/* Of all processes shown, together. */
void print_json_integrity(struct out *out, const struct processes *processes)
{
	bool first = true, complete = true, conserved = true;

	out_char(out, '{');
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
	out_string(out, complete ? "true" : "false");
	print_json_key(out, "conserved", &first);
	out_string(out, conserved ? "true" : "false");
	out_char(out, '}');
}

static void add_totals(struct fold_totals *sum, const struct fold_totals *part)
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

static void put_oom(struct out *out, struct process *process, const struct memory_oom *oom)
{
	const struct row at = { .process = process, .kind = ROW_NODE, .node = oom->node, .tree = process->fold->tree };
	bool first = true;

	out_char(out, '{');
	print_json_member(out, "pid", process->pid, &first);
	print_json_member(out, "tid", oom->tid, &first);
	print_json_member(out, "t_ns", oom->time_ns, &first);
	print_json_member(out, "device", oom->device, &first);
	print_json_key(out, "path", &first);
	print_json_path(out, &at);
	print_json_member(out, "asked_bytes", oom->asked, &first);
	print_json_member(out, "allocated_bytes", oom->allocated, &first);
	print_json_member(out, "reserved_bytes", oom->reserved, &first);
	print_json_key(out, "outside_bytes", &first);
	if (oom->outside >= 0)
		out_signed(out, oom->outside);
	else
		out_string(out, "null");
	out_char(out, '}');
}

/* Every time that PyTorch ran out of memory. */
static void put_ooms(struct out *out, const struct processes *processes, bool *first)
{
	const char *before = "";

	print_json_key(out, "ooms", first);
	out_char(out, '[');
	for (size_t i = 0; i < processes->shown; i++)
		for (uint32_t oom = 0; oom < processes->all[i].fold->memory->oom_count; oom++) {
			out_string(out, before);
			put_oom(out, &processes->all[i], &processes->all[i].fold->memory->ooms[oom]);
			before = ", ";
		}
	out_char(out, ']');
}

/* What the busy time was spent on; null where only some steps are shown. */
static void put_gpu_parts(
	struct out *out, const struct processes *processes, const struct fold_totals *sum, bool *first)
{
	const struct {
		const char *key;
		uint64_t value;
	} part[] = { { "gpu_computation_ns", sum->gpu_computation_ns },
		{ "gpu_communication_ns", sum->gpu_communication_ns },
		{ "gpu_exposed_communication_ns", sum->gpu_exposed_communication_ns },
		{ "gpu_copy_ns", sum->gpu_copy_ns }, { "gpu_exposed_copy_ns", sum->gpu_exposed_copy_ns } };
	const bool whole = processes->shown == 0 || !processes->all[0].fold->options.steps;

	for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
		print_json_key(out, part[i].key, first);
		if (whole)
			out_unsigned(out, part[i].value);
		else
			out_string(out, "null");
	}
}

void print_json_totals(struct out *out, const struct processes *processes)
{
	struct fold_totals sum = { .wall_ns = 0 };
	bool first = true, inner_first = true;

	for (size_t i = 0; i < processes->shown; i++)
		add_totals(&sum, &processes->all[i].fold->totals);
	out_char(out, '{');
	print_json_member(out, "wall_ns", sum.wall_ns, &first);
	print_json_member(out, "gpu_sum_ns", sum.gpu_sum_ns, &first);
	print_json_member(out, "gpu_busy_ns", sum.gpu_busy_ns, &first);
	print_json_member(out, "gpu_idle_ns", sum.gpu_idle_ns, &first);
	print_json_member(out, "gpu_unknown_ns", sum.gpu_unknown_ns, &first);
	put_gpu_parts(out, processes, &sum, &first);
	print_json_member(out, "attributed_ns", sum.attributed_ns, &first);
	print_json_member(out, "unattributed_ns", sum.unattributed_ns, &first);
	print_json_key(out, "methods", &first);
	out_char(out, '{');
	for (int method = 0; method < METHOD_COUNT; method++) {
		bool part_first = true;

		print_json_key(out, method_name((enum method)method), &inner_first);
		out_char(out, '{');
		print_json_member(out, "records", sum.method_records[method], &part_first);
		print_json_member(out, "ns", sum.method_ns[method], &part_first);
		out_char(out, '}');
	}
	out_char(out, '}');
	print_json_member(out, "alloc_bytes", sum.alloc_bytes, &first);
	print_json_member(out, "free_bytes", sum.free_bytes, &first);
	print_json_key(out, "reserved_peak_bytes", &first);
	out_signed(out, sum.reserved_peak);
	print_json_key(out, "allocated_peak_bytes", &first);
	if (sum.has_tensors)
		out_signed(out, sum.allocated_peak);
	else
		out_string(out, "null");
	print_json_member(out, "tensor_alloc_bytes", sum.tensor_alloc_bytes, &first);
	print_json_member(out, "tensor_free_bytes", sum.tensor_free_bytes, &first);
	put_ooms(out, processes, &first);
	print_json_member(out, "self_cost_ns", sum.self_ns, &first);
	print_json_member(out, "cupti_overhead_ns", sum.overhead_ns, &first);
	print_json_key(out, "gpus", &first);
	print_json_gpus(processes, out);
	out_char(out, '}');
}
