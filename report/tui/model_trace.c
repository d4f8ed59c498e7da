/* SPDX-License-Identifier: MIT
 *
 * The model of one trace: all rows of the view `tree`, and its columns.
 */
#include "report/views/views.h"
#include "report/base/alloc.h"
#include "report/text/format_number.h"
#include "report/run/warnings.h"
#include "report/tui/model.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct trace_model {
	struct processes processes;
	struct options options; /* for arranging the rows */
	struct rows rows;       /* same order as the items */
	uint32_t *bases;        /* by process: the key of its node 0 */
	struct column const **columns;
	/* by column: the value that percentages refer to; below 0: not computed yet */
	long double *base_values;
	uint32_t base_item; /* the item that they are values of; TUI_NONE: the whole trace */
};

/* Columns whose values add up, and the column of their total. */
static const struct {
	const char *key, *of;
} additive[] = {
	{ "gpu_total_ns", "gpu_total_ns" },
	{ "gpu_self_ns", "gpu_total_ns" },
	{ "gpu_calls", "gpu_calls" },
	{ "cpu_total_ns", "cpu_total_ns" },
	{ "cpu_self_ns", "cpu_total_ns" },
	{ "cpu_self_x_ns", "cpu_total_ns" },
	{ "idle_ns", "idle_ns" },
	{ "alloc_bytes", "alloc_bytes" },
	{ "free_bytes", "free_bytes" },
	{ "tensor_alloc_bytes", "tensor_alloc_bytes" },
	{ "tensor_free_bytes", "tensor_free_bytes" },
	{ "at_peak_bytes", "at_peak_bytes" },
	{ "at_oom_bytes", "at_oom_bytes" },
};

static const struct column *base_column(const struct column *column)
{
	for (size_t i = 0; i < sizeof additive / sizeof *additive; i++)
		if (strcmp(column->key, additive[i].key) == 0)
			return column_find(additive[i].of, strlen(additive[i].of));
	return NULL;
}

static long double column_number(
	const struct trace_model *trace, const struct column *column, uint32_t item)
{
	const struct cell cell = column->value(&trace->rows.rows[item], &trace->rows);
	long double number;

	return cell_number(&cell, &number) ? number : 0;
}

static long double sum_of_roots(struct tui_model *model, const struct column *column, bool of_time)
{
	const struct trace_model *trace = model->context;
	long double sum = 0;

	for (uint32_t item = 0; item < model->count; item++) {
		const struct row *row = &trace->rows.rows[item];

		if (row->kind == ROW_NODE && !row->tree->nodes[row->node].parent &&
			profile_root_has_share(row->process->profile, row->node, of_time))
			sum += column_number(trace, column, item);
	}
	return sum;
}

/* Returns the total for percentages of `column`: the value of the focused item, or the sum over the
 * roots that shares refer to. */
static long double base_value(struct tui_model *model, uint32_t column, uint32_t focus)
{
	struct trace_model *trace = model->context;
	const struct column *of = base_column(trace->columns[column]);
	const bool time = strncmp(of->key, "cpu", 3) == 0 || strcmp(of->key, "idle_ns") == 0;
	long double *value = &trace->base_values[column];

	if (trace->base_item != focus)
		for (uint32_t i = 0; i < model->column_count; i++)
			trace->base_values[i] = -1;
	trace->base_item = focus;
	if (*value < 0)
		*value = focus == TUI_NONE ? sum_of_roots(model, of, time)
					   : column_number(trace, of, focus);
	return *value;
}

static enum tui_paint share_paint(
	const struct column *column, const struct row *row, const struct rows *rows)
{
	const struct cell cell = column->value(row, rows);

	if (strcmp(column->key, "share") != 0 || cell.kind != CELL_REAL)
		return TUI_PLAIN;
	return cell.real >= 0.5 ? TUI_HOT : cell.real >= 0.1 ? TUI_WARM : TUI_PLAIN;
}

static struct tui_cell trace_cell(
	struct tui_model *model, uint32_t item, uint32_t index, bool percent, uint32_t focus)
{
	struct trace_model *trace = model->context;
	const struct column *column = trace->columns[index];
	const struct row *row = &trace->rows.rows[item];
	struct tui_cell cell = { .paint = share_paint(column, row, &trace->rows) };
	const size_t length = cell_text(cell.text, model->style, column, row, &trace->rows);

	if (percent && length && base_column(column)) {
		const long double all = base_value(model, index, focus);
		const size_t used = format_real(
			cell.text, all > 0 ? 100 * column_number(trace, column, item) / all : 0, 1);

		snprintf(cell.text + used, sizeof cell.text - used, " %%");
	}
	return cell;
}

static size_t trace_name(
	struct tui_model *model, uint32_t item, bool is_short, char **out, size_t *room)
{
	const struct trace_model *trace = model->context;
	const struct row *row = &trace->rows.rows[item];
	const struct string_view label = is_short ? row_short_label(row, model->style->ascii)
						  : row_label(row, model->style->ascii);

	array_grow_zeroed(out, room, (size_t)label.length * 10 + 16, 1);
	return escape_text(*out, *room, label.bytes, label.length, model->style->ascii);
}

/* Dims kernels, copies and calls, which ranges launched or called. */
static enum tui_paint trace_paint(struct tui_model *model, uint32_t item)
{
	const struct trace_model *trace = model->context;
	const struct row *row = &trace->rows.rows[item];

	return row->kind == ROW_NODE &&
			       node_kind_class(row->tree->nodes[row->node].kind) != NODE_RANGES
		       ? TUI_DIM
		       : TUI_PLAIN;
}

static uint32_t item_key(const struct trace_model *trace, const struct row *row)
{
	return trace->bases[row->process - trace->processes.all] +
	       (row->kind == ROW_NODE ? row->node : 0);
}

/* Numbers the items by process and node: the keys of a process begin at its base. Its rows are
 * nodes of the call tree, or of functions if there is nothing but samples. */
static void number_items(struct tui_model *model, struct trace_model *trace)
{
	uint32_t *const counts = xcalloc((trace->processes.shown + 1) * sizeof *counts);

	for (size_t i = 0; i < trace->processes.shown; i++)
		counts[i] = trace->processes.all[i].profile->tree->count;
	for (size_t i = 0; i < trace->rows.count; i++) {
		const struct row *row = &trace->rows.rows[i];
		uint32_t *count = &counts[row->process - trace->processes.all];

		if (row->kind == ROW_NODE && row->tree->count > *count)
			*count = row->tree->count;
	}
	trace->bases = xcalloc((trace->processes.shown + 1) * sizeof *trace->bases);
	for (size_t i = 0; i < trace->processes.shown; i++) {
		trace->bases[i] = model->keys;
		model->keys += counts[i];
		model->simulated |= trace->processes.all[i].simulated;
	}
	free(counts);
}

static void arrange_items(struct tui_model *model)
{
	struct trace_model *trace = model->context;

	free(trace->rows.rows);
	trace->rows = (struct rows){ 0 };
	arrange_tree(&trace->options, &trace->processes, &trace->rows);
	if (!trace->bases)
		number_items(model, trace);
	free(model->items);
	model->count = (uint32_t)trace->rows.count;
	model->items = xcalloc((trace->rows.count + 1) * sizeof *model->items);
	for (uint32_t i = 0; i < model->count; i++) {
		const struct row *row = &trace->rows.rows[i];

		model->items[i] = (struct tui_item){
			.key = item_key(trace, row), .parent = row->parent, .depth = row->depth
		};
	}
	tui_model_set_ends(model);
	trace->base_item = TUI_NONE;
	for (uint32_t i = 0; i < model->column_count; i++)
		trace->base_values[i] = -1;
}

static void trace_sort(struct tui_model *model, uint32_t column)
{
	struct trace_model *trace = model->context;

	model->sort = column;
	trace->options.sort = model->columns[column].key;
	arrange_items(model);
}

static void add_tui_column(struct tui_model *model, const struct column *column, bool shown)
{
	static const char *const left_out[] = { "id", "parent", "depth", "name", "label", "path",
		"section" };
	struct trace_model *trace = model->context;

	for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
		if (strcmp(column->key, left_out[i]) == 0)
			return;
	for (uint32_t i = 0; i < model->column_count; i++)
		if (trace->columns[i] == column)
			return;
	trace->columns[model->column_count] = column;
	model->columns[model->column_count++] = (struct tui_column){ .key = column->key,
		.title = column->title,
		.help = column->help,
		.left = cell_is_left_aligned(column),
		.sortable = column->unit != UNIT_TEXT,
		.shown = shown };
}

/* Returns true if any row has a value other than zero. */
static bool is_filled(const struct trace_model *trace, const struct column *column)
{
	for (size_t i = 0; i < trace->rows.count; i++) {
		const struct cell cell = column->value(&trace->rows.rows[i], &trace->rows);
		long double number = 1;

		cell_number(&cell, &number);
		if (cell.kind != CELL_NONE && cell.kind != CELL_NULL && number != 0)
			return true;
	}
	return false;
}

/* Chooses the columns: the sort column, then those of --columns, else of the view `tree`, the most
 * important first. All others follow, not shown. */
static void choose_tui_columns(struct tui_model *model)
{
	struct trace_model *trace = model->context;
	const struct column *sort = view_sort(&trace->options, &trace->processes.all[0]),
			    *column = sort;
	const char *keys = trace->options.columns ? trace->options.columns
						  : trace->options.view->text;

	if (!model->columns) {
		model->columns = xcalloc((all_column_count + 1) * sizeof *model->columns);
		trace->columns = xcalloc((all_column_count + 1) * sizeof(struct column *));
		trace->base_values = xcalloc((all_column_count + 1) * sizeof *trace->base_values);
	}
	model->column_count = model->sort = 0;
	for (; column; column = column_next(&keys))
		add_tui_column(model, column, true);
	for (keys = trace->options.view->text; (column = column_next(&keys));)
		add_tui_column(model, column, false);
	keys = trace->options.view->columns;
	while ((column = column_next(&keys)))
		add_tui_column(model, column, false);
}

static bool has_counter(const struct process *process, const char *name)
{
	const struct trace_counter *counter;

	for (uint32_t i = 0; (counter = reader_dictionary(process->reader, TRACE_COUNTER, i));
		i++) {
		const struct trace_text text = reader_name(process->reader, counter->name);

		if (text.length == strlen(name) && memcmp(text.bytes, name, text.length) == 0)
			return true;
	}
	return false;
}

static bool process_has_metric(const struct process *process, const char *metric)
{
	const struct profile_totals *totals = &process->profile->totals;

	switch (metric_find(metric)) {
	case METRIC_GPU:
		return totals->gpu_sum_ns > 0;
	case METRIC_IDLE:
		return process->profile->timeline != NULL;
	case METRIC_RESERVED:
	case METRIC_RESERVED_PEAK:
	case METRIC_ALLOC:
		return totals->alloc_bytes > 0;
	case METRIC_ALLOCATED:
	case METRIC_ALLOCATED_PEAK:
	case METRIC_TENSORS:
		return totals->has_tensors;
	case METRIC_USER:
		return has_counter(process, metric);
	default:
		return true;
	}
}

static bool trace_has_metric(struct tui_model *model, const char *metric)
{
	const struct trace_model *trace = model->context;

	for (size_t i = 0; i < trace->processes.shown; i++)
		if (process_has_metric(&trace->processes.all[i], metric))
			return true;
	return false;
}

static void rebuild_model(struct tui_model *model)
{
	struct trace_model *trace = model->context;

	model->metric = trace->processes.all[0].metric == METRIC_USER
				? trace->processes.all[0].profile->options.counter
				: metrics[trace->processes.all[0].metric].key;
	choose_tui_columns(model);
	arrange_items(model);
	for (uint32_t i = 0; i < model->column_count; i++)
		model->columns[i].filled = is_filled(trace, trace->columns[i]);
}

static bool trace_change_metric(struct tui_model *model, const char *metric)
{
	struct trace_model *trace = model->context;

	for (size_t i = 0; i < trace->processes.shown; i++)
		process_measure(&trace->processes.all[i], metric_find(metric), metric);
	trace->options.metric_name = metric;
	trace->options.metric = metric_find(metric);
	trace->options.sort = NULL;
	rebuild_model(model);
	return true;
}

static uint32_t item_of_instance(const struct tui_model *model, const struct process *process,
	const struct instance *instance)
{
	const struct trace_model *trace = model->context;
	const uint32_t node = tree_find_path(
		process->profile->tree, process->critical->tree, instance->node);

	return node ? tui_model_find(model, trace->bases[process - trace->processes.all] + node)
		    : TUI_NONE;
}

/* Returns true if one child has at least half of the value, so that the path continues there. */
static bool has_dominant_child(const struct instance *instance)
{
	return instance->children && instance->children->value * 2 >= instance->value;
}

static void describe_instance(struct process *process, const struct instance *instance,
	unsigned level, const struct style *style, char *message, size_t room)
{
	const struct row row = { .process = process,
		.kind = ROW_INSTANCE,
		.parent = NO_ROW,
		.node = instance->node,
		.tree = process->critical->tree,
		.of.instance = instance };
	const struct string_view label = row_short_label(&row, style->ascii);
	const enum unit unit = metrics[process->metric].unit;
	char name[64], value[FORMAT_NUMBER_BYTES];

	escape_text(name, sizeof name, label.bytes, label.length, style->ascii);
	if (unit == UNIT_USER)
		format_real(value, instance->value, 4);
	else
		format_with_unit(
			value, unit, clamp_to_i64(instance->value), style->iec, style->ascii);
	snprintf(message, room, "critical, level %u: %s, %s%s", level, name, value,
		instance->children ? "; w: one level down" : "; this is the last level");
}

static uint32_t trace_next_critical(
	struct tui_model *model, uint32_t from, bool last, char *message, size_t room)
{
	struct trace_model *trace = model->context;
	struct process *process = from == TUI_NONE ? &trace->processes.all[0]
						   : trace->rows.rows[from].process;
	const struct instance *instance = process_critical(process), *found = instance;
	unsigned level = 1, found_level = 1;

	snprintf(message, room, "no range has a value of `%s`", model->metric);
	for (; instance; instance = instance->children, level++) {
		const uint32_t item = item_of_instance(model, process, instance);

		if (!last && from != TUI_NONE && item == from && instance->children) {
			found = instance->children;
			found_level = level + 1;
		}
		if (last && item != TUI_NONE) {
			found = instance;
			found_level = level;
			if (!has_dominant_child(instance))
				break;
		}
	}
	if (!found)
		return TUI_NONE;
	describe_instance(process, found, found_level, model->style, message, room);
	return item_of_instance(model, process, found);
}

static void trace_details(struct tui_model *model, uint32_t item, struct tui_lines *lines)
{
	const struct trace_model *trace = model->context;

	tui_details(lines, model->style, &trace->rows.rows[item]);
}

static bool trace_enter_shows_details(struct tui_model *model, uint32_t item)
{
	const struct trace_model *trace = model->context;
	const struct row *row = &trace->rows.rows[item];

	return row->kind == ROW_NODE && row->tree->nodes[row->node].kind == NODE_KERNEL;
}

static void trace_free(struct tui_model *model)
{
	struct trace_model *trace = model->context;

	free(trace->rows.rows);
	free(trace->bases);
	free(trace->columns);
	free(trace->base_values);
	processes_free(&trace->processes);
	free(trace);
}

static const struct tui_kind trace_kind = {
	.cell = trace_cell,
	.name = trace_name,
	.paint = trace_paint,
	.sort = trace_sort,
	.has_metric = trace_has_metric,
	.change_metric = trace_change_metric,
	.next_critical = trace_next_critical,
	.details = trace_details,
	.enter_shows_details = trace_enter_shows_details,
	.free = trace_free,
};

struct tui_model *tui_model_of_trace(const struct options *options, const struct style *style)
{
	struct tui_model *model = xcalloc(sizeof *model);
	struct trace_model *trace = xcalloc(sizeof *trace);

	*model = (struct tui_model){
		.kind = &trace_kind, .options = options, .style = style, .context = trace
	};
	trace->options = *options;
	trace->options.view = view_find("tree");
	trace->options.format = FORMAT_JSON; /* as for JSON, which has all rows and no extra rows */
	trace->processes = processes_read(options);
	warnings_check_metric(options, &trace->processes);
	warnings_collect(options, &trace->processes);
	for (size_t i = 0; i < trace->processes.warning_count; i++)
		tui_line(&model->warnings, style, trace->processes.warnings[i],
			strlen(trace->processes.warnings[i]));
	tui_set_title(model, trace->processes.all[0].path, NULL);
	rebuild_model(model);
	return model;
}
