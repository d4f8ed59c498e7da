/* SPDX-License-Identifier: MIT
 *
 * Arranges how close operators, copies and memsets are to the peak rates of their GPU. Each device
 * has its own rows.
 */
#include "report/print/shell_command.h"
#include "report/analysis/device_peaks.h"
#include "report/base/alloc.h"
#include "report/text/format_number.h"
#include "report/trace/op_inputs.h"
#include "report/analysis/roofline_model.h"
#include "report/table/column.h"
#include "report/table/computed_row.h"
#include "report/text/paragraph.h"
#include "report/print/print.h"
#include "report/views/views.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct work_amounts {
	uint64_t flops, bytes;
	bool has_flops, has_bytes;
};

/* Returns true if all work that the calls launched is in the trace and has times. */
static bool is_complete(const struct roofline_subject *subject)
{
	return subject->calls && subject->launches == subject->operations && !subject->untimed &&
	       subject->ns;
}

static struct work_amounts amounts_of(const struct roofline_subject *subject)
{
	struct work_amounts amounts = { .flops = subject->cost.flops,
		.bytes = subject->cost.bytes,
		.has_flops = subject->cost.has_flops,
		.has_bytes = subject->cost.has_bytes };

	amounts.has_flops &= !__builtin_mul_overflow(amounts.flops, subject->calls, &amounts.flops);
	amounts.has_bytes &= !__builtin_mul_overflow(amounts.bytes, subject->calls, &amounts.bytes);
	if (!is_complete(subject))
		amounts.has_flops = amounts.has_bytes = false;
	return amounts;
}

static uint64_t per_second(uint64_t amount, uint64_t ns)
{
	return clamp_to_u64((long double)amount * 1e9L / (long double)ns);
}

/* The roof is what takes longer at the GPU's peak rates, computing or moving. Without FLOPs it is
 * moving. */
static void set_roof_cells(struct computed_row *computed, const struct work_amounts *amounts,
	uint64_t ns, double flops, double bytes)
{
	const double moving = amounts->has_bytes && bytes > 0 ? (double)amounts->bytes / bytes : -1,
		     computing = !amounts->has_flops ? 0
				 : flops > 0         ? (double)amounts->flops / flops
						     : -1;

	if (moving < 0 || computing < 0 || moving + computing <= 0)
		return;
	computed_row_set_string(computed, "roof", computing > moving ? "compute" : "memory");
	computed_row_set_real(computed, "roof_share",
		(computing > moving ? computing : moving) * 1e9 / (double)ns);
}

static void set_rate_cells(struct computed_row *computed, const struct work_amounts *amounts,
	uint64_t ns, const struct peaks *peaks, double flops)
{
	if (!ns)
		return;
	if (amounts->has_flops) {
		computed_row_set_unsigned(computed, "flops", amounts->flops);
		computed_row_set_unsigned(computed, "flops_per_s", per_second(amounts->flops, ns));
	}
	if (amounts->has_bytes) {
		computed_row_set_unsigned(computed, "bytes", amounts->bytes);
		computed_row_set_unsigned(computed, "bytes_per_s", per_second(amounts->bytes, ns));
	}
	if (amounts->has_flops && amounts->has_bytes && amounts->bytes)
		computed_row_set_real(
			computed, "intensity", (double)amounts->flops / (double)amounts->bytes);
	if (flops > 0 && amounts->has_flops)
		computed_row_set_unsigned(computed, "peak_flops_per_s", clamp_to_u64(flops));
	set_roof_cells(computed, amounts, ns, flops, peaks->bytes);
}

static struct computed_row *roofline_row(struct process *process,
	const struct roofline_subject *subject, const struct roofline_device *device,
	const char *kind)
{
	struct computed_row *computed = computed_row_new(process, subject->node, kind);

	computed_row_set_unsigned(computed, "device", device->device);
	computed_row_set_unsigned(computed, "gpu_total_ns", subject->ns);
	computed_row_set_share(computed, "share", subject->ns, device->ns);
	computed_row_set_unsigned(computed, "gpu_calls", subject->operations);
	computed_row_set_unsigned(computed, "untimed", subject->untimed);
	return computed;
}

/* Sets a name of this form: `aten::mm  [[2, 3], [3, 4]]`. */
static void name_operator(struct computed_row *computed, struct string_view key)
{
	const size_t name = op_inputs_shapes_length(key.bytes, key.length),
		     shapes = op_inputs_shapes_length(key.bytes + name + 1, key.length - name - 1);
	char *both = xcalloc(name + shapes + 3);

	memcpy(both, key.bytes, name);
	memcpy(both + name, "  ", 2);
	memcpy(both + name + 2, key.bytes + name + 1, shapes);
	computed_row_set_name(computed, both, name + 2 + shapes);
	free(both);
}

static const char *basis_of(const struct roofline_subject *subject)
{
	if (subject->assumed)
		return "modelled, type assumed";
	return subject->cost.recorded ? "recorded" : "modelled";
}

static struct computed_row *operator_row(struct process *process,
	const struct roofline_subject *subject, const struct roofline_device *device,
	const struct peaks *peaks)
{
	struct computed_row *computed = roofline_row(process, subject, device, "op");
	const struct work_amounts amounts = amounts_of(subject);
	const struct string_view kernel = string_table_get(process->texts, subject->kernel);
	const enum element_type element = subject->uses_tf32 ? ELEMENT_TF32 : subject->cost.element;

	name_operator(computed, string_table_get(process->texts, subject->name));
	computed_row_set_unsigned(computed, "calls", subject->calls);
	if (!subject->several_kernels && kernel.length)
		computed_row_set_text(computed, "kernel", kernel.bytes, kernel.length);
	if (element != ELEMENT_UNKNOWN)
		computed_row_set_string(computed, "element_type", element_name(element));
	if (amounts.has_flops || amounts.has_bytes)
		computed_row_set_string(computed, "basis", basis_of(subject));
	set_rate_cells(computed, &amounts, subject->ns, peaks,
		peaks_flops(peaks, element, subject->cost.matrix));
	return computed;
}

/* Only memsets and copies within a device have a roof. Other copies are limited by the link between
 * two memories. */
static struct computed_row *copy_row(struct process *process,
	const struct roofline_subject *subject, const struct roofline_device *device,
	const struct peaks *peaks)
{
	const struct string_view name = string_table_get(process->texts, subject->name);
	const bool set = name.length >= 6 && !memcmp(name.bytes, "memset", 6),
		   within = name.length >= 4 && !memcmp(name.bytes + name.length - 4, "DtoD", 4);
	struct computed_row *computed = roofline_row(
		process, subject, device, set ? "memset" : "memcpy");
	const struct work_amounts amounts = { .bytes = subject->bytes,
		.has_bytes = subject->bytes && !subject->untimed };
	const struct peaks none = { .bytes = 0 };

	computed_row_set_name(computed, name.bytes, name.length);
	computed_row_set_unsigned(computed, "calls", subject->operations);
	if (amounts.has_bytes)
		computed_row_set_string(computed, "basis", "measured");
	set_rate_cells(computed, &amounts, subject->ns, set || within ? peaks : &none, 0);
	return computed;
}

/* Returns the GPU time of the work whose FLOPs or bytes are known. */
static uint64_t modelled_ns(const struct roofline_device *device)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < device->operators.count; i++) {
		const struct work_amounts amounts = amounts_of(&device->operators.all[i]);

		ns += amounts.has_flops || amounts.has_bytes ? device->operators.all[i].ns : 0;
	}
	for (size_t i = 0; i < device->copies.count; i++)
		ns += device->copies.all[i].bytes ? device->copies.all[i].ns : 0;
	return ns;
}

static void add_roofline_device(struct process *process, struct rows *rows,
	const struct roofline_device *device, const struct peaks *peaks)
{
	const struct string_view name = peaks_device_name(process, device->device);
	struct computed_row *computed = computed_row_new(process, 0, "device");

	computed_row_format_name(computed, "device %u%s%.*s", device->device,
		name.length ? " " : "", (int)(name.length < 128 ? name.length : 128), name.bytes);
	computed_row_set_unsigned(computed, "device", device->device);
	computed_row_set_unsigned(computed, "gpu_total_ns", device->ns);
	computed_row_set_unsigned(computed, "gpu_calls", device->operations);
	computed_row_set_share(computed, "known_share", modelled_ns(device), device->ns);
	if (peaks->from != PEAKS_NONE)
		computed_row_set_string(computed, "basis", peaks_origin(peaks));
	if (peaks->flops[PEAK_FP32] > 0)
		computed_row_set_unsigned(
			computed, "peak_flops_per_s", clamp_to_u64(peaks->flops[PEAK_FP32]));
	if (peaks->bytes > 0)
		computed_row_set_unsigned(computed, "peak_bytes_per_s", clamp_to_u64(peaks->bytes));
	rows_add(rows, &computed->row);
}

static struct roofline_subject sum_of_subjects(const struct roofline_subjects *subjects)
{
	struct roofline_subject sum = { .ns = 0 };

	for (size_t i = 0; i < subjects->count; i++) {
		sum.ns += subjects->all[i].ns;
		sum.operations += subjects->all[i].operations;
		sum.untimed += subjects->all[i].untimed;
	}
	return sum;
}

static void add_unmodelled_rows(const struct options *options, struct process *process,
	struct rows *rows, struct roofline_device *device, uint32_t parent)
{
	const struct roofline_subject all = sum_of_subjects(&device->unknown);
	struct computed_row *computed;
	uint32_t own;

	if (!all.operations)
		return;
	computed = roofline_row(process, &all, device, "unknown");
	computed_row_format_name(computed, "(FLOPs and bytes unknown)");
	own = computed_row_add(rows, computed, parent);
	for (size_t i = 0; i < device->unknown.count; i++) {
		const struct roofline_subject *subject = &device->unknown.all[i];
		const struct string_view name = string_table_get(process->texts, subject->name);

		computed = roofline_row(process, subject, device, "kernel");
		computed_row_set_name(computed, name.bytes, name.length);
		computed_row_add(rows, computed, own);
	}
	rows_finish_level(options, process, rows, own + 1, 2, view_top(options));
}

static void add_roofline_rows(const struct options *options, struct process *process,
	struct rows *rows, struct roofline_device *device, const struct peaks_table *table)
{
	const uint32_t parent = (uint32_t)rows->count;
	const struct peaks peaks = peaks_of_process(process, table, device->device);

	add_roofline_device(process, rows, device, &peaks);
	if (options->depth < 2)
		return;
	for (size_t i = 0; i < device->operators.count; i++)
		if (device->operators.all[i].operations)
			computed_row_add(rows,
				operator_row(process, &device->operators.all[i], device, &peaks),
				parent);
	for (size_t i = 0; i < device->copies.count; i++)
		computed_row_add(
			rows, copy_row(process, &device->copies.all[i], device, &peaks), parent);
	rows_finish_level(options, process, rows, parent + 1, 1, view_top(options));
	add_unmodelled_rows(options, process, rows, device, parent);
}

/* Warns that input sizes or element types are missing, and says how to record or set them. */
static void warn_missing_inputs(
	const struct options *options, struct processes *processes, const struct process *process)
{
	struct trace_reader *reader = process->reader;
	const bool imported = process_meta(process, "import.format").known;
	uint32_t operators = 0, sized = 0, typed = 0;
	struct shell_command command = { .ascii = true };

	for (uint32_t id = 1; id < reader_node_count(reader); id++) {
		const struct trace_node_info *trace_node = reader_node(reader, id);
		const struct trace_text given = reader_name(reader, trace_node->detail);
		struct op_inputs inputs;

		operators += trace_node->kind == TRACE_NODE_OP;
		if (trace_node->kind != TRACE_NODE_OP || !given.known ||
			!op_inputs_read(&inputs, given.bytes, given.length))
			continue;
		sized++;
		typed += inputs.typed;
	}
	if (operators && !sized)
		processes_warn(processes,
			"%s: input sizes of operators are not in this trace, so no FLOPs or bytes "
			"are known; record them with %s",
			process->path, imported ? "record_shapes=True" : "PPERF_SHAPES=1");
	if (!sized || typed || options->assumed != ELEMENT_UNKNOWN)
		return;
	text_add(&command.built, "pperf-report roofline");
	shell_command_add_file(&command, process->path);
	processes_warn(processes,
		"%s: element types of tensors are not in this trace, so no operator has bytes or a "
		"roof; set the type with: %s --assume-type fp32",
		process->path, command.built.text);
	free(command.built.text);
}

static void arrange_process_roofline(const struct options *options, struct processes *processes,
	struct process *process, struct rows *rows, const struct peaks_table *table)
{
	const struct roofline *roofline = roofline_of(options, process);

	for (size_t i = 0; i < roofline->device_count; i++)
		if (roofline->devices[i].operations)
			add_roofline_rows(options, process, rows, &roofline->devices[i], table);
	if (rows->count)
		warn_missing_inputs(options, processes, process);
	else
		processes_warn(processes,
			"%s: no GPU work is in this trace; pperf-report info lists its sources",
			process->path);
}

void arrange_roofline(const struct options *options, struct processes *processes, struct rows *rows)
{
	struct peaks_table *table = peaks_read(options->peaks);

	for (size_t i = 0; i < processes->shown; i++)
		arrange_process_roofline(options, processes, &processes->all[i], rows, table);
	rows->empty_explained = rows->count == 0;
	peaks_free(table);
}

static void put_peaks(const struct style *style, uint32_t number, const struct peaks *peaks,
	const struct cell *known)
{
	static const char *const names[PEAK_COUNT] = {
#define X(id, name) [PEAK_##id] = #name,
		PEAKS(X)
#undef X
	};
	struct paragraph paragraph = { .style = style, .indent = 10 };
	char title[32], share[FORMAT_NUMBER_BYTES];
	bool any = false;

	for (unsigned i = 0; i < PEAK_COUNT; i++) {
		if (peaks->flops[i] <= 0 || i == PEAK_FP64 || i == PEAK_FP64_MATRIX)
			continue;
		paragraph_add(&paragraph, "%s%s %.1f", any ? ", " : "peak TFLOP/s: ", names[i],
			peaks->flops[i] / 1e12);
		any = true;
	}
	if (peaks->bytes > 0)
		paragraph_add(
			&paragraph, "%smemory %.2f TB/s", any ? "; " : "", peaks->bytes / 1e12);
	if (peaks->from == PEAKS_NONE)
		paragraph_add(&paragraph, "peak rates unknown (set them with --peaks FILE)");
	else
		paragraph_add(&paragraph, " (%s)", peaks_origin(peaks));
	if (known->kind == CELL_REAL) {
		format_real(share, known->real * 100, 1);
		paragraph_add(
			&paragraph, ". FLOPs or bytes are known for %s %% of its GPU time", share);
	}
	snprintf(title, sizeof title, "device %u", number);
	paragraph_print(&paragraph, title);
}

static bool is_device_cell(const struct cell *kind)
{
	return kind->kind == CELL_TEXT && kind->text.length == 6 &&
	       memcmp(kind->text.bytes, "device", 6) == 0;
}

void roofline_header(const struct report *report, const struct style *style)
{
	struct peaks_table *table = peaks_read(report->options->peaks);
	const struct column *kind = column_find("kind", 4), *device = column_find("device", 6),
			    *share = column_find("known_share", 11);

	for (size_t i = 0; i < report->rows.count; i++) {
		const struct row *row = &report->rows.rows[i];
		const struct cell is = column_value(kind, row, &report->rows);
		struct peaks peaks;
		struct cell known;
		uint32_t number;

		if (!is_device_cell(&is))
			continue;
		number = (uint32_t)column_value(device, row, &report->rows).unsigned_value;
		peaks = peaks_of_process(row->process, table, number);
		known = column_value(share, row, &report->rows);
		put_peaks(style, number, &peaks, &known);
	}
	peaks_free(table);
}
