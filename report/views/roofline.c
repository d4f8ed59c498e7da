/* SPDX-License-Identifier: MIT
 * arrange_roofline.c: how near operators, copies and sets come to what the GPU could do at most: the rows of each device.
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

struct figures {
	uint64_t flops, bytes;
	bool has_flops, has_bytes;
};

/* Each call has launched what is timed, and all of it. */
static bool is_whole(const struct roofline_subject *subject)
{
	return subject->calls && subject->launches == subject->works && !subject->untimed && subject->ns;
}

static struct figures figures_of(const struct roofline_subject *subject)
{
	struct figures figures = { .flops = subject->cost.flops,
		.bytes = subject->cost.bytes,
		.has_flops = subject->cost.has_flops,
		.has_bytes = subject->cost.has_bytes };

	figures.has_flops &= !__builtin_mul_overflow(figures.flops, subject->calls, &figures.flops);
	figures.has_bytes &= !__builtin_mul_overflow(figures.bytes, subject->calls, &figures.bytes);
	if (!is_whole(subject))
		figures.has_flops = figures.has_bytes = false;
	return figures;
}

static uint64_t rate(uint64_t amount, uint64_t ns)
{
	return number_whole((long double)amount * 1e9L / (long double)ns);
}

/* The roof is the lower one of what the GPU computes and what it can fetch for that; nothing to compute: what it moves. */
static void tell_roof(struct tally *tally, const struct figures *figures, uint64_t ns, double flops, double bytes)
{
	const double moving = figures->has_bytes && bytes > 0 ? (double)figures->bytes / bytes : -1,
		     computing = !figures->has_flops ? 0 : flops > 0 ? (double)figures->flops / flops : -1;

	if (moving < 0 || computing < 0 || moving + computing <= 0)
		return;
	tally_words(tally, "roof", computing > moving ? "compute" : "memory");
	tally_real(tally, "roof_share", (computing > moving ? computing : moving) * 1e9 / (double)ns);
}

static void tell_figures(
	struct tally *tally, const struct figures *figures, uint64_t ns, const struct peaks *peaks, double flops)
{
	if (!ns)
		return;
	if (figures->has_flops) {
		tally_unsigned(tally, "flops", figures->flops);
		tally_unsigned(tally, "flops_per_s", rate(figures->flops, ns));
	}
	if (figures->has_bytes) {
		tally_unsigned(tally, "bytes", figures->bytes);
		tally_unsigned(tally, "bytes_per_s", rate(figures->bytes, ns));
	}
	if (figures->has_flops && figures->has_bytes && figures->bytes)
		tally_real(tally, "intensity", (double)figures->flops / (double)figures->bytes);
	if (flops > 0 && figures->has_flops)
		tally_unsigned(tally, "peak_flops_per_s", number_whole(flops));
	tell_roof(tally, figures, ns, flops, peaks->bytes);
}

static struct tally *tell(struct process *process, const struct roofline_subject *subject, const struct roofline_device *device,
	const char *kind)
{
	struct tally *tally = tally_new(process, subject->node);

	tally_words(tally, "kind", kind);
	tally_unsigned(tally, "device", device->device);
	tally_unsigned(tally, "gpu_total_ns", subject->ns);
	tally_share(tally, "share", subject->ns, device->ns);
	tally_unsigned(tally, "gpu_calls", subject->works);
	tally_unsigned(tally, "untimed", subject->untimed);
	return tally;
}

/* `aten::mm  [[2, 3], [3, 4]]` */
static void name_operator(struct tally *tally, struct text key)
{
	const size_t name = op_inputs_shapes(key.bytes, key.length),
		     shapes = op_inputs_shapes(key.bytes + name + 1, key.length - name - 1);
	char *both = need(name + shapes + 3);

	memcpy(both, key.bytes, name);
	memcpy(both + name, "  ", 2);
	memcpy(both + name + 2, key.bytes + name + 1, shapes);
	tally_name(tally, both, name + 2 + shapes);
	free(both);
}

static struct tally *tell_operator(struct process *process, const struct roofline_subject *subject,
	const struct roofline_device *device, const struct peaks *peaks)
{
	struct tally *tally = tell(process, subject, device, "op");
	const struct figures figures = figures_of(subject);
	const struct text kernel = text_of(process->texts, subject->kernel);
	const enum element element = subject->narrow ? ELEMENT_TF32 : subject->cost.element;

	name_operator(tally, text_of(process->texts, subject->name));
	tally_unsigned(tally, "calls", subject->calls);
	if (!subject->several && kernel.length)
		tally_text(tally, "kernel", kernel.bytes, kernel.length);
	if (element != ELEMENT_UNKNOWN)
		tally_words(tally, "element_type", element_name(element));
	if (figures.has_flops || figures.has_bytes)
		tally_words(tally, "basis", subject->assumed ? "modelled, type assumed" : subject->cost.recorded ? "recorded" : "modelled");
	tell_figures(tally, &figures, subject->ns, peaks, peaks_flops(peaks, element, subject->cost.matrix));
	return tally;
}

/* Copies between memories of their own go over what links these, and have no roof here. */
static struct tally *tell_move(struct process *process, const struct roofline_subject *subject,
	const struct roofline_device *device, const struct peaks *peaks)
{
	const struct text name = text_of(process->texts, subject->name);
	const bool set = name.length >= 6 && !memcmp(name.bytes, "memset", 6),
		   within = name.length >= 4 && !memcmp(name.bytes + name.length - 4, "DtoD", 4);
	struct tally *tally = tell(process, subject, device, set ? "memset" : "memcpy");
	const struct figures figures = { .bytes = subject->bytes, .has_bytes = subject->bytes && !subject->untimed };
	const struct peaks none = { .bytes = 0 };

	tally_name(tally, name.bytes, name.length);
	tally_unsigned(tally, "calls", subject->works);
	if (figures.has_bytes)
		tally_words(tally, "basis", "measured");
	tell_figures(tally, &figures, subject->ns, set || within ? peaks : &none, 0);
	return tally;
}

/* What of its time is behind figures. */
static uint64_t known_ns(const struct roofline_device *device)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < device->operators.count; i++) {
		const struct figures figures = figures_of(&device->operators.all[i]);

		ns += figures.has_flops || figures.has_bytes ? device->operators.all[i].ns : 0;
	}
	for (size_t i = 0; i < device->moves.count; i++)
		ns += device->moves.all[i].bytes ? device->moves.all[i].ns : 0;
	return ns;
}

static void add_device_row(
	struct process *process, struct rows *rows, const struct roofline_device *device, const struct peaks *peaks)
{
	const struct text name = peaks_device_name(process, device->device);
	struct tally *tally = tally_new(process, 0);

	tally_name_format(tally, "device %u%s%.*s", device->device, name.length ? " " : "",
		(int)(name.length < 128 ? name.length : 128), name.bytes);
	tally_words(tally, "kind", "device");
	tally_unsigned(tally, "device", device->device);
	tally_unsigned(tally, "gpu_total_ns", device->ns);
	tally_unsigned(tally, "gpu_calls", device->works);
	tally_share(tally, "known_share", known_ns(device), device->ns);
	if (peaks->from != PEAKS_NONE)
		tally_words(tally, "basis", peaks_origin(peaks));
	if (peaks->flops[PEAK_FP32] > 0)
		tally_unsigned(tally, "peak_flops_per_s", number_whole(peaks->flops[PEAK_FP32]));
	if (peaks->bytes > 0)
		tally_unsigned(tally, "peak_bytes_per_s", number_whole(peaks->bytes));
	rows_add(rows, &tally->row);
}

static void add_unknown(const struct options *options, struct process *process, struct rows *rows,
	struct roofline_device *device, uint32_t parent)
{
	struct roofline_subject all = { .ns = 0 };
	struct tally *tally;
	uint32_t own;

	for (size_t i = 0; i < device->unknown.count; i++) {
		all.ns += device->unknown.all[i].ns;
		all.works += device->unknown.all[i].works;
		all.untimed += device->unknown.all[i].untimed;
	}
	if (!all.works)
		return;
	tally = tell(process, &all, device, "unknown");
	tally_name_format(tally, "(FLOPs and bytes unknown)");
	own = tally_add(rows, tally, parent);
	for (size_t i = 0; i < device->unknown.count; i++) {
		const struct roofline_subject *subject = &device->unknown.all[i];
		const struct text name = text_of(process->texts, subject->name);

		tally = tell(process, subject, device, "kernel");
		tally_name(tally, name.bytes, name.length);
		tally_add(rows, tally, own);
	}
	rows_end(options, process, rows, own + 1, 2, view_top(options));
}

static void add_rows(const struct options *options, struct process *process, struct rows *rows,
	struct roofline_device *device, const struct peaks_table *table)
{
	const uint32_t parent = (uint32_t)rows->count;
	const struct peaks peaks = peaks_of_process(process, table, device->device);

	add_device_row(process, rows, device, &peaks);
	if (options->depth < 2)
		return;
	for (size_t i = 0; i < device->operators.count; i++)
		if (device->operators.all[i].works)
			tally_add(rows, tell_operator(process, &device->operators.all[i], device, &peaks), parent);
	for (size_t i = 0; i < device->moves.count; i++)
		tally_add(rows, tell_move(process, &device->moves.all[i], device, &peaks), parent);
	rows_end(options, process, rows, parent + 1, 1, view_top(options));
	add_unknown(options, process, rows, device, parent);
}

/* What the trace would need for more figures, and how it comes by it. */
static void tell_what_lacks(const struct options *options, struct processes *processes, const struct process *process)
{
	struct trace_reader *reader = process->reader;
	const bool imported = process_meta(process, "import.format").known;
	uint32_t operators = 0, sized = 0, typed = 0;
	struct command command = { .ascii = true };

	for (uint32_t id = 1; id < reader_nodes(reader); id++) {
		const struct trace_place *place = reader_place(reader, id);
		const struct trace_text given = reader_name(reader, place->detail);
		struct op_inputs inputs;

		operators += place->kind == TRACE_NODE_OP;
		if (place->kind != TRACE_NODE_OP || !given.known || !op_inputs_read(&inputs, given.bytes, given.length))
			continue;
		sized++;
		typed += inputs.typed;
	}
	if (operators && !sized)
		processes_warn(processes, "%s: sizes of operators' inputs are not in this trace, so none has FLOPs or bytes; record it with %s",
			process->path, imported ? "record_shapes=True" : "PPERF_SHAPES=1");
	if (!sized || typed || options->assumed != ELEMENT_UNKNOWN)
		return;
	command_add(&command, "pperf-report roofline");
	command_file(&command, process->path);
	processes_warn(processes, "%s: types of tensors are not in this trace, so no operator has bytes or a roof; say what they are: %s --assume-type fp32",
		process->path, command.text);
	free(command.text);
}

static void arrange(const struct options *options, struct processes *processes, struct process *process, struct rows *rows,
	const struct peaks_table *table)
{
	struct roofline roofline = roofline_read(options, process);

	for (size_t i = 0; i < roofline.device_count; i++)
		if (roofline.devices[i].works)
			add_rows(options, process, rows, &roofline.devices[i], table);
	if (rows->count)
		tell_what_lacks(options, processes, process);
	else
		processes_warn(processes, "%s: no work of a GPU is in this trace; pperf-report info says which of its sources were on",
			process->path);
	roofline_free(&roofline);
}

void arrange_roofline(const struct options *options, struct processes *processes, struct rows *rows)
{
	struct peaks_table *table = peaks_read(options->peaks);

	for (size_t i = 0; i < processes->shown; i++)
		arrange(options, processes, &processes->all[i], rows, table);
	rows->told = rows->count == 0;
	peaks_free(table);
}

static void put_peaks(const struct style *style, uint32_t number, const struct peaks *peaks, const struct cell *known)
{
	static const char *const names[PEAK_COUNT] = {
#define X(id, name) [PEAK_##id] = #name,
		PEAKS(X)
#undef X
	};
	struct paragraph paragraph = { .style = style, .indent = 10 };
	char title[32], share[NUMBER_BYTES];
	bool any = false;

	for (unsigned i = 0; i < PEAK_COUNT; i++) {
		if (peaks->flops[i] <= 0 || i == PEAK_FP64 || i == PEAK_FP64_MATRIX)
			continue;
		paragraph_add(&paragraph, "%s%s %.1f", any ? ", " : "TFLOP/s at most: ", names[i], peaks->flops[i] / 1e12);
		any = true;
	}
	if (peaks->bytes > 0)
		paragraph_add(&paragraph, "%smemory %.2f TB/s", any ? "; " : "", peaks->bytes / 1e12);
	if (peaks->from == PEAKS_NONE)
		paragraph_add(&paragraph, "what it can do is not known (--peaks FILE says it)");
	else
		paragraph_add(&paragraph, " (%s)", peaks_origin(peaks));
	if (known->kind == CELL_REAL) {
		number_real(share, known->real * 100, 1);
		paragraph_add(&paragraph, ". FLOPs or bytes are known of %s %% of its GPU time", share);
	}
	snprintf(title, sizeof title, "device %u", number);
	paragraph_put(&paragraph, title);
}

void roofline_lead(const struct report *report, const struct style *style)
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

		if (is.kind != CELL_TEXT || is.text.length != 6 || memcmp(is.text.bytes, "device", 6) != 0)
			continue;
		number = (uint32_t)column_value(device, row, &report->rows).number;
		peaks = peaks_of_process(row->process, table, number);
		known = column_value(share, row, &report->rows);
		put_peaks(style, number, &peaks, &known);
	}
	peaks_free(table);
}
