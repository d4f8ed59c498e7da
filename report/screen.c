/* SPDX-License-Identifier: MIT
 * screen.c: what there is to know first: what ran, what is known of it and what not, where the time or the memory
 * went. Every figure here is measured; what is missing is said, with what to do about it.
 */
#include "report/fatal.h"
#include "report/print.h"
#include "report/visible.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INDENT 10
#define TREE_LINES 12 /* of the critical tree */

/* Text that is put together: visible, and wrapped when it is printed. */
struct paragraph {
	char *text;
	size_t used, room;
	const struct style *style;
};

static void add(struct paragraph *paragraph, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct paragraph *paragraph, const char *format, ...)
{
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(NULL, 0, format, list);
	va_end(list);
	if (length < 0)
		return;
	grow(&paragraph->text, &paragraph->room, paragraph->used + (size_t)length + 1, 1);
	va_start(list, format);
	vsnprintf(paragraph->text + paragraph->used, (size_t)length + 1, format, list);
	va_end(list);
	paragraph->used += (size_t)length;
}

/* Somebody else's text. */
static void add_text(struct paragraph *paragraph, const char *bytes, size_t length)
{
	grow(&paragraph->text, &paragraph->room, paragraph->used + length * 10 + 1, 1);
	paragraph->used += visible(
		paragraph->text + paragraph->used, length * 10 + 1, bytes, length, paragraph->style->ascii);
}

static void add_figure(struct paragraph *paragraph, enum unit unit, uint64_t value)
{
	char text[NUMBER_BYTES];

	number_scaled(text, unit, value > INT64_MAX ? INT64_MAX : (int64_t)value, paragraph->style->iec,
		paragraph->style->ascii);
	add(paragraph, "%s", text);
}

static void add_percent(struct paragraph *paragraph, uint64_t part, uint64_t whole)
{
	char text[NUMBER_BYTES];

	number_percent(text, (int64_t)part, (int64_t)whole);
	add(paragraph, "%s", text);
}

/* The bytes of the next line: as many words as fit into `columns`, at least one. */
static size_t line_bytes(const char *text, size_t columns)
{
	size_t end = strcspn(text, " ");

	for (;;) {
		const size_t next = text[end] ? end + 1 + strcspn(text + end + 1, " ") : end;

		if (next == end || visible_width(text, next) > columns)
			return end;
		end = next;
	}
}

static void put(struct paragraph *paragraph, const char *title)
{
	const struct style *style = paragraph->style;
	const char *text = paragraph->text ? paragraph->text : "";

	for (bool first = true; *text || first; first = false) {
		const size_t length = line_bytes(text, style->width > INDENT + 20 ? style->width - INDENT : 20);

		print_paint(style, PAINT_BOLD);
		print_line(style, "%-*s", INDENT, first ? title : "");
		print_paint(style, PAINT_NONE);
		out_bytes(style->out, text, length);
		out_char(style->out, '\n');
		text += length + (text[length] == ' ');
	}
	free(paragraph->text);
	*paragraph = (struct paragraph){ .style = style };
}

static const char *dot(const struct style *style)
{
	return style->ascii ? ", " : " \xc2\xb7 ";
}

static void put_what_ran(const struct process *process, const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	const struct trace_text host = process_meta(process, "host");

	if (*process->command)
		add_text(&paragraph, process->command, strlen(process->command));
	else
		add(&paragraph, "(the trace does not say what)");
	put(&paragraph, "ran");
	add(&paragraph, "pid %u", process->pid);
	if (process->rank >= 0)
		add(&paragraph, "%srank %lld", dot(style), (long long)process->rank);
	if (host.length) {
		add(&paragraph, "%s", dot(style));
		add_text(&paragraph, host.bytes, host.length);
	}
	add(&paragraph, "%s", dot(style));
	add_figure(&paragraph, UNIT_TIME, process->wall_ns);
	add(&paragraph, "%s", dot(style));
	add_figure(&paragraph, UNIT_COUNT, process->events);
	add(&paragraph, " events%s", dot(style));
	add_text(&paragraph, process->path, strlen(process->path));
	if (!(reader_header(process->reader)->flags & TRACE_ENDED))
		add(&paragraph, "%sit did not end by exit(): killed, or still running", dot(style));
	put(&paragraph, "");
}

static void add_version(struct paragraph *paragraph, const struct process *process, const char *key, const char *title)
{
	const struct trace_text version = process_meta(process, key);

	if (!version.length)
		return;
	add(paragraph, "%s%s ", dot(paragraph->style), title);
	add_text(paragraph, version.bytes, version.length);
}

static void put_devices(const struct process *process, const struct style *style)
{
	const struct trace_device *device;
	struct paragraph paragraph = { .style = style };

	for (uint32_t i = 0; (device = reader_dictionary(process->reader, TRACE_DEVICE, i)); i++) {
		const struct trace_text name = reader_name(process->reader, device->name);

		add(&paragraph, "GPU %u ", device->device);
		add_text(&paragraph, name.bytes, name.length);
		if (i == 0) {
			add_version(&paragraph, process, "version.cuda_runtime", "CUDA runtime");
			add_version(&paragraph, process, "version.cuda_driver", "driver");
			add_version(&paragraph, process, "version.cupti", "CUPTI");
		}
		put(&paragraph, i ? "" : "device");
	}
	if (process->simulated) {
		add(&paragraph,
			"SIMULATED: counts and bytes are what the program did; no time of this GPU is a measurement");
		put(&paragraph, "");
	}
}

/* Where what is missing comes from, and what to do. */
static const struct {
	const char *key, *missing, *advice;
} sources[] = {
	{ "nvtx", "names of the program's parts",
		"if it uses NVTX, start it with libpperf.so's full path in LD_PRELOAD" },
	{ "cuda_symbols", "memory and launches seen on the CPU",
		"a program with a static CUDA runtime needs CUPTI for this" },
	{ "cupti", "times of kernels and copies",
		"let libcupti of the same CUDA version be found (beside libcudart, or in LD_LIBRARY_PATH), and no "
		"other profiler hold it" },
	{ "torch_ops", "PyTorch's operators", "see the reason" },
	{ "torch_modules", "names of PyTorch's modules", "see the reason" },
	{ "torch_memory", "memory of tensors", "see the reason" },
};

static bool begins(struct trace_text text, const char *with)
{
	return text.length >= strlen(with) && memcmp(text.bytes, with, strlen(with)) == 0;
}

static void put_sources(const struct process *process, const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	const char *before = "";

	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
		char key[64];
		struct trace_text state;

		snprintf(key, sizeof key, "source.%s", sources[i].key);
		state = process_meta(process, key);
		if (!state.length)
			continue;
		add(&paragraph, "%s%s ", before, sources[i].key);
		add_text(&paragraph, state.bytes, state.length);
		before = dot(style);
	}
	if (!*before)
		add(&paragraph, "none is noted in the trace");
	put(&paragraph, "sources");
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
		char key[64];
		struct trace_text state;

		snprintf(key, sizeof key, "source.%s", sources[i].key);
		state = process_meta(process, key);
		if (!begins(state, "off") && !begins(state, "partial"))
			continue;
		add(&paragraph, "%s no %s: %s", style->ascii ? "->" : "\xe2\x86\x92", sources[i].missing,
			sources[i].advice);
		put(&paragraph, "");
	}
}

static void add_pair(struct paragraph *paragraph, const char *what, uint64_t seen, uint64_t of, const char *before)
{
	if (!seen && !of)
		return;
	add(paragraph, "%s", before);
	add_figure(paragraph, UNIT_COUNT, seen);
	add(paragraph, " of ");
	add_figure(paragraph, UNIT_COUNT, of);
	add(paragraph, " %s", what);
}

static void put_coverage(const struct process *process, const struct style *style)
{
	const struct integrity *integrity = &process->integrity;
	const uint64_t records = integrity->attributed + integrity->unattributed;
	struct paragraph paragraph = { .style = style };

	if (!records && !integrity->launches && !integrity->copies_called && !integrity->sets_called &&
		!integrity->graph_launches) {
		add(&paragraph, "no GPU work in this trace: what follows is the time of ranges on the CPU");
		put(&paragraph, "coverage");
		return;
	}
	if (records) {
		add_percent(&paragraph, integrity->attributed, records);
		add(&paragraph, " of ");
		add_figure(&paragraph, UNIT_COUNT, records);
		add(&paragraph, " GPU records have the range that asked for them");
		if (integrity->untimed)
			add(&paragraph, " (%llu without a time)", (unsigned long long)integrity->untimed);
	} else {
		add(&paragraph, "the GPU told of nothing");
	}
	add(&paragraph, "; recorded:");
	add_pair(&paragraph, "launches", integrity->kernels - integrity->graph_kernels, integrity->launches, " ");
	add_pair(&paragraph, "copies", integrity->copies - integrity->graph_copies, integrity->copies_called, ", ");
	add_pair(&paragraph, "memsets", integrity->sets - integrity->graph_sets, integrity->sets_called, ", ");
	if (integrity->graph_launches) {
		add(&paragraph, ", ");
		add_figure(&paragraph, UNIT_COUNT,
			integrity->graph_kernels + integrity->graph_copies + integrity->graph_sets);
		add(&paragraph, " by ");
		add_figure(&paragraph, UNIT_COUNT, integrity->graph_launches);
		add(&paragraph, " graph launches");
	}
	put(&paragraph, "coverage");
}

static uint64_t amount_of(const struct node *node, enum metric metric)
{
	if (metric == METRIC_GPU)
		return node->gpu ? node->gpu->total_ns : 0;
	if (metric == METRIC_ALLOC)
		return node->memory ? node->memory->alloc_bytes : 0;
	return node->total_ns;
}

/* Down from the root along the heaviest range, as long as that has at least half of the whole. */
static uint32_t heaviest_place(const struct fold *fold, enum metric metric, uint64_t whole)
{
	uint32_t place = 0;

	for (;;) {
		uint32_t heaviest = 0;

		for (uint32_t id = fold->tree->nodes[place].first_child; id; id = fold->tree->nodes[id].next) {
			const struct node *node = &fold->tree->nodes[id];

			if (node_kind_class(node->kind) != NODE_RANGES || id == fold->spans)
				continue;
			if (!heaviest || amount_of(node, metric) > amount_of(&fold->tree->nodes[heaviest], metric) ||
				(amount_of(node, metric) == amount_of(&fold->tree->nodes[heaviest], metric) &&
					text_compare(fold->texts, node->name, fold->tree->nodes[heaviest].name) < 0))
				heaviest = id;
		}
		if (!heaviest || (place && amount_of(&fold->tree->nodes[heaviest], metric) < whole / 2))
			return place;
		place = heaviest;
	}
}

/* ` in `a / b``, or that it is in no range. */
static void add_place(struct paragraph *paragraph, const struct process *process, uint32_t node)
{
	const struct row row = { .process = (struct process *)(uintptr_t)process,
		.kind = ROW_NODE,
		.node = node,
		.tree = process->fold->tree };
	uint32_t nodes[16];
	const size_t length = row_path(&row, nodes, 16);

	if (node == process->fold->unattributed) {
		add(paragraph, "outside of any range");
		return;
	}
	add(paragraph, "in ");
	for (size_t i = 0; i < length && i < 16; i++) {
		const struct text name = text_of(process->texts, process->fold->tree->nodes[nodes[i]].name);

		add(paragraph, i ? " / " : "`");
		add_text(paragraph, name.bytes, name.length);
	}
	add(paragraph, "%s`", length > 16 ? " / ..." : "");
}

static void add_gpu_verdict(struct paragraph *paragraph, const struct process *process)
{
	const struct fold_totals *totals = &process->fold->totals;
	const uint32_t place = heaviest_place(process->fold, METRIC_GPU, totals->gpu_sum_ns);

	add(paragraph, "the GPU was busy ");
	add_percent(paragraph, totals->gpu_busy_ns, totals->gpu_busy_ns + totals->gpu_idle_ns);
	add(paragraph, " of the ");
	add_figure(paragraph, UNIT_TIME, totals->gpu_busy_ns + totals->gpu_idle_ns);
	add(paragraph, " from its first work to its last");
	if (!place)
		return;
	add(paragraph, "; ");
	add_percent(paragraph, amount_of(&process->fold->tree->nodes[place], METRIC_GPU), totals->gpu_sum_ns);
	add(paragraph, " of that work was launched ");
	add_place(paragraph, process, place);
}

static void add_memory_verdict(struct paragraph *paragraph, const struct process *process)
{
	const struct fold_totals *totals = &process->fold->totals;
	const uint32_t place = heaviest_place(process->fold, METRIC_ALLOC, totals->alloc_bytes);

	add(paragraph, "device memory reached ");
	add_figure(paragraph, UNIT_BYTES, (uint64_t)totals->reserved_peak);
	add(paragraph, " and stood at ");
	add_figure(paragraph, UNIT_BYTES, totals->reserved_now > 0 ? (uint64_t)totals->reserved_now : 0);
	add(paragraph, " at the end");
	if (!place)
		return;
	add(paragraph, "; ");
	add_percent(paragraph, amount_of(&process->fold->tree->nodes[place], METRIC_ALLOC), totals->alloc_bytes);
	add(paragraph, " of all that was taken was taken ");
	add_place(paragraph, process, place);
}

static void add_cpu_verdict(struct paragraph *paragraph, const struct process *process)
{
	const uint64_t whole = (uint64_t)process->whole;
	const uint32_t place = process->metric == METRIC_CPU ? heaviest_place(process->fold, METRIC_CPU, whole) : 0;

	if (!place) {
		add(paragraph, "no range was recorded, so there is nothing that time could be laid to");
		return;
	}
	add_percent(paragraph, process->fold->tree->nodes[place].total_ns, whole);
	add(paragraph, " of the time in ranges (");
	add_figure(paragraph, UNIT_TIME, process->fold->tree->nodes[place].total_ns);
	add(paragraph, " of ");
	add_figure(paragraph, UNIT_TIME, whole);
	add(paragraph, ", all threads) is ");
	add_place(paragraph, process, place);
}

static void put_verdict(const struct process *process, const struct style *style)
{
	const struct fold_totals *totals = &process->fold->totals;
	struct paragraph paragraph = { .style = style };

	if (totals->gpu_sum_ns)
		add_gpu_verdict(&paragraph, process);
	else if (!totals->reserved_peak)
		add_cpu_verdict(&paragraph, process);
	if (totals->reserved_peak) {
		if (paragraph.used)
			put(&paragraph, "verdict");
		add_memory_verdict(&paragraph, process);
		put(&paragraph, totals->gpu_sum_ns ? "" : "verdict");
		return;
	}
	put(&paragraph, "verdict");
}

static void put_losses(const struct process *process, const struct style *style)
{
	const struct integrity *integrity = &process->integrity;
	struct paragraph paragraph = { .style = style };

	for (size_t i = 0; i < integrity_item_count; i++) {
		const uint64_t value = integrity_value(integrity, i);
		const bool note = integrity_items[i].missing || strcmp(integrity_items[i].name, "left_open") == 0 ||
				  strcmp(integrity_items[i].name, "unmatched_ends") == 0 ||
				  strcmp(integrity_items[i].name, "clock_violations") == 0 ||
				  strcmp(integrity_items[i].name, "unknown_frees") == 0 ||
				  strcmp(integrity_items[i].name, "failed_calls") == 0;

		if (value && note)
			add(&paragraph, "%s%llu %s", paragraph.used ? "; " : "", (unsigned long long)value,
				integrity_items[i].text);
	}
	if (!integrity->conserved)
		add(&paragraph, "%s%s", paragraph.used ? "; " : "", integrity->problem);
	if (!paragraph.used)
		add(&paragraph, "none");
	put(&paragraph, integrity->complete ? "losses" : "LOSSES");
}

static void put_cost(const struct process *process, const struct style *style)
{
	const struct fold_totals *totals = &process->fold->totals;
	struct paragraph paragraph = { .style = style };

	add(&paragraph, "pperf measured ");
	add_figure(&paragraph, UNIT_TIME, totals->self_ns);
	add(&paragraph, " of its own in the program (");
	add_percent(&paragraph, totals->self_ns, process->wall_ns);
	add(&paragraph, " of ");
	add_figure(&paragraph, UNIT_TIME, process->wall_ns);
	add(&paragraph, ")");
	if (totals->overhead_ns) {
		add(&paragraph, ", CUPTI ");
		add_figure(&paragraph, UNIT_TIME, totals->overhead_ns);
	}
	put(&paragraph, "cost");
}

static const char *metric_name(const struct process *process)
{
	return process->metric == METRIC_USER ? process->fold->options.counter : metrics[process->metric].key;
}

static void put_critical(const struct report *report, const struct style *style)
{
	struct process *process = &report->processes->all[0];
	const struct instance *root = process_critical(process);
	struct processes only = { .all = process, .count = 1, .shown = 1 };
	struct options options = *report->options;
	struct rows rows = { .count = 0 };
	struct paragraph paragraph = { .style = style };

	if (!root)
		return;
	options.depth = UINT32_MAX;
	options.top = UINT32_MAX;
	options.all = false;
	arrange_critical(&options, &only, &rows);
	add(&paragraph, "by %s: ", metric_name(process));
	if (process->fold->tree->nodes[root->node].calls > 1) {
		add(&paragraph, "the worst of ");
		add_figure(&paragraph, UNIT_COUNT, process->fold->tree->nodes[root->node].calls);
		add(&paragraph, " instances ");
	} else {
		add(&paragraph, "the only instance ");
	}
	add_place(&paragraph, process, root->node);
	put(&paragraph, "critical");
	if (rows.count > TREE_LINES)
		rows.more = rows.count - TREE_LINES;
	rows.count -= (size_t)rows.more;
	print_ruled(&rows, &options, style);
	if (rows.more)
		print_line(style, "and %llu lines more\n", (unsigned long long)rows.more);
	free(rows.rows);
}

static void put_next(const struct process *process, const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	const bool memory = process->fold->totals.reserved_peak && process->metric != METRIC_RESERVED;

	add(&paragraph, "pperf-report critical ");
	add_text(&paragraph, process->path, strlen(process->path));
	add(&paragraph, " -m %s", memory ? "reserved" : metric_name(process));
	put(&paragraph, "next");
}

void print_screen(const struct report *report, const struct style *style)
{
	const struct process *process = &report->processes->all[0];

	put_what_ran(process, style);
	put_devices(process, style);
	put_sources(process, style);
	put_coverage(process, style);
	put_verdict(process, style);
	put_losses(process, style);
	put_cost(process, style);
	out_char(style->out, '\n');
	put_critical(report, style);
	out_char(style->out, '\n');
	put_next(process, style);
	out_char(style->out, '\n');
	if (report->rows.count)
		print_table(report, &report->rows, LAYOUT_TREE, style);
}
