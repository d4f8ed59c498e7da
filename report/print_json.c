/* SPDX-License-Identifier: MIT
 * print_json.c: the envelope, the same for every view, and the rows, one a line. Written as it goes, so a report of a
 * million rows needs no more memory than one of ten.
 */
#include "report/call_stack.h"
#include "report/fatal.h"
#include "report/print.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_key(struct out *out, const char *key, bool *first)
{
	if (!*first)
		out_string(out, ", ");
	*first = false;
	out_char(out, '"');
	out_string(out, key);
	out_string(out, "\": ");
}

static void put_string(struct out *out, const char *text)
{
	out_json_text(out, text, strlen(text));
}

static void put_text_or_null(struct out *out, struct trace_text text)
{
	if (text.known)
		out_json_text(out, text.bytes, text.length);
	else
		out_string(out, "null");
}

static struct trace_text text_or_none(const char *text)
{
	return (struct trace_text){ .bytes = text, .length = (uint32_t)strlen(text), .known = *text != '\0' };
}

static void put_unsigned(struct out *out, const char *key, uint64_t value, bool *first)
{
	put_key(out, key, first);
	out_unsigned(out, value);
}

static void put_path(struct out *out, const struct row *row)
{
	uint32_t few[64], *nodes = few;
	const size_t length = row_path(row, few, sizeof few / sizeof *few);

	if (length > sizeof few / sizeof *few) {
		nodes = need(length * sizeof *nodes);
		row_path(row, nodes, length);
	}
	out_char(out, '[');
	for (size_t i = 0; i < length; i++) {
		const struct text name = text_of(row->process->texts, row->tree->nodes[nodes[i]].name);

		if (i)
			out_string(out, ", ");
		out_json_text(out, name.bytes, name.length);
	}
	out_char(out, ']');
	if (nodes != few)
		free(nodes);
}

static void put_frames(struct out *out, const struct row *row, uint32_t stack_id)
{
	const uint32_t frames = call_stack_frames(row->process, stack_id);
	char text[4096];

	out_char(out, '[');
	for (uint32_t i = 0; i < frames; i++) {
		if (i)
			out_string(out, ", ");
		out_json_text(out, text, call_stack_frame(row->process, stack_id, i, false, text, sizeof text));
	}
	out_char(out, ']');
}

static void put_source(struct out *out, const struct row *row, uint32_t place)
{
	char *text = need(CALL_STACK_TEXT);

	out_json_text(out, text, call_stack_source(row->process, place, false, text, CALL_STACK_TEXT));
	free(text);
}

static void put_cell(struct out *out, const struct row *row, const struct cell *cell)
{
	switch (cell->kind) {
	case CELL_NONE:
	case CELL_NULL:
		out_string(out, "null");
		break;
	case CELL_WHOLE:
		out_signed(out, cell->whole);
		break;
	case CELL_UNSIGNED:
		out_unsigned(out, cell->number);
		break;
	case CELL_REAL:
		out_json_double(out, cell->real);
		break;
	case CELL_BOOL:
		out_string(out, cell->truth ? "true" : "false");
		break;
	case CELL_TEXT:
		out_json_text(out, cell->text.bytes, cell->text.length);
		break;
	case CELL_TRIPLE:
		out_char(out, '[');
		for (int i = 0; i < 3; i++) {
			out_unsigned(out, cell->triple[i]);
			out_string(out, i < 2 ? ", " : "]");
		}
		break;
	case CELL_SPAN:
		out_char(out, '[');
		out_unsigned(out, cell->number);
		out_string(out, ", ");
		out_unsigned(out, cell->most);
		out_char(out, ']');
		break;
	case CELL_PATH:
		put_path(out, row);
		break;
	case CELL_FRAMES:
		put_frames(out, row, (uint32_t)cell->number);
		break;
	case CELL_SOURCE:
		put_source(out, row, (uint32_t)cell->number);
		break;
	}
}

/* Keys with a dot are gathered in an object; those of one object stand side by side in a view's list. */
static void put_row(struct out *out, const struct report *report, const struct row *row)
{
	const char *keys = report->options->row_columns, *dot;
	const struct column *column;
	char object[32] = "";
	bool first = true, inner_first = true;

	out_char(out, '{');
	while ((column = column_next(&keys))) {
		const struct cell cell = column_value(column, row, &report->rows);
		const size_t length = (dot = strchr(column->key, '.')) ? (size_t)(dot - column->key) : 0;

		if (cell.kind == CELL_NONE)
			continue;
		if (*object && (length != strlen(object) || memcmp(object, column->key, length) != 0)) {
			out_char(out, '}');
			*object = '\0';
		}
		if (length && !*object) {
			memcpy(object, column->key, length);
			object[length] = '\0';
			put_key(out, object, &first);
			out_char(out, '{');
			inner_first = true;
		}
		put_key(out, dot ? dot + 1 : column->key, dot ? &inner_first : &first);
		put_cell(out, row, &cell);
	}
	out_string(out, *object ? "}}" : "}");
}

static void put_versions(struct out *out, const struct process *process)
{
	static const char *const names[] = { "pperf", "torch", "python", "cuda_runtime", "cuda_driver", "cupti" };
	bool first = true;

	out_char(out, '{');
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char key[64];

		snprintf(key, sizeof key, "version.%s", names[i]);
		put_key(out, names[i], &first);
		put_text_or_null(out, process_meta(process, key));
	}
	out_char(out, '}');
}

static void put_uuid(struct out *out, const uint8_t *uuid)
{
	static const uint8_t unknown[16];
	char text[64];
	size_t used = (size_t)snprintf(text, sizeof text, "GPU-");

	if (!memcmp(uuid, unknown, sizeof unknown)) {
		out_string(out, "null");
		return;
	}
	for (int i = 0; i < 16; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	put_string(out, text);
}

static void put_devices(struct out *out, const struct process *process)
{
	const struct trace_device *device;

	out_char(out, '[');
	for (uint32_t i = 0; (device = reader_dictionary(process->reader, TRACE_DEVICE, i)); i++) {
		const struct trace_text name = reader_name(process->reader, device->name);
		bool first = true;

		out_string(out, i ? ", {" : "{");
		put_unsigned(out, "id", device->device, &first);
		put_key(out, "name", &first);
		out_json_text(out, name.bytes, name.length);
		put_key(out, "uuid", &first);
		put_uuid(out, device->uuid);
		put_key(out, "simulated", &first);
		out_string(out, device_is_simulated(process->reader, device) ? "true" : "false");
		put_unsigned(out, "multiprocessors", device->multiprocessors, &first);
		put_unsigned(out, "memory_bytes", device->memory_bytes, &first);
		out_char(out, '}');
	}
	out_char(out, ']');
}

static void put_sources(struct out *out, const struct process *process)
{
	static const char *const names[] = { "nvtx", "torch_ops", "torch_modules", "torch_memory", "python_stacks",
		"cuda_symbols", "cupti" };
	bool first = true;

	out_char(out, '{');
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct trace_text state;
		char key[64];

		snprintf(key, sizeof key, "source.%s", names[i]);
		state = process_meta(process, key);
		put_key(out, names[i], &first);
		if (state.known)
			out_json_text(out, state.bytes, state.length);
		else
			put_string(out, "absent");
	}
	out_char(out, '}');
}

/* What was found; not what --steps asks for. */
static void put_steps(struct out *out, const struct steps *steps)
{
	bool first = true;

	out_char(out, '{');
	put_unsigned(out, "count", steps->count, &first);
	put_unsigned(out, "warmup", steps->warm_up, &first);
	put_unsigned(out, "unfinished", steps->unfinished, &first);
	put_key(out, "evidence", &first);
	put_text_or_null(out, text_or_none(steps->evidence));
	put_key(out, "confidence", &first);
	put_string(out, steps_confidence_name(steps->confidence));
	put_key(out, "reason", &first);
	put_text_or_null(out, text_or_none(steps->reason));
	put_key(out, "own_ranges", &first);
	out_string(out, steps->own_ranges ? "true" : "false");
	put_unsigned(out, "p50_ns", steps->p50_ns, &first);
	put_unsigned(out, "min_ns", steps->min_ns, &first);
	put_unsigned(out, "max_ns", steps->max_ns, &first);
	put_unsigned(out, "sum_ns", steps->sum_ns, &first);
	put_unsigned(out, "captures", steps->captures, &first);
	out_char(out, '}');
}

/* When CUPTI was another client's. */
static void put_away(struct out *out, const struct away *away)
{
	const struct away_span *spans = away->spans[AWAY_TRACE];
	bool first = true;

	out_char(out, '{');
	put_unsigned(out, "ns", away->ns, &first);
	put_key(out, "spans", &first);
	out_char(out, '[');
	for (size_t i = 0; i < away->count; i++) {
		const bool ended = spans[i].end_ns != UINT64_MAX;
		bool part_first = true;

		out_string(out, i ? ", {" : "{");
		put_unsigned(out, "begin_ns", spans[i].begin_ns, &part_first);
		put_key(out, "end_ns", &part_first);
		if (ended)
			out_unsigned(out, spans[i].end_ns);
		else
			out_string(out, "null");
		out_char(out, '}');
	}
	out_string(out, "]}");
}

/* What PPERF_SCHEDULE had recorded, and what was not. */
static void put_windows(struct out *out, const struct windows *windows)
{
	bool first = true, inner_first = true;

	out_char(out, '{');
	put_key(out, "schedule", &first);
	put_text_or_null(out, windows->schedule);
	put_unsigned(out, "steps", windows->steps, &first);
	put_unsigned(out, "recorded_ns", windows->ns, &first);
	put_key(out, "recorded", &first);
	out_char(out, '[');
	for (size_t i = 0; i < windows->count; i++) {
		const struct window *window = &windows->windows[i];
		bool part_first = true;

		out_string(out, i ? ", {" : "{");
		put_unsigned(out, "first_step", window->first, &part_first);
		put_unsigned(out, "steps", window->steps, &part_first);
		put_unsigned(out, "warmup", window->warmup, &part_first);
		put_unsigned(out, "begin_ns", window->begin_ns, &part_first);
		put_unsigned(out, "end_ns", window->end_ns, &part_first);
		put_key(out, "ended", &part_first);
		out_string(out, window->ended ? "true" : "false");
		out_char(out, '}');
	}
	out_char(out, ']');
	put_key(out, "skipped", &first);
	out_char(out, '{');
	for (int kind = 0; kind < TRACE_SKIP_KINDS; kind++)
		put_unsigned(out, windows_skip_name((enum trace_skip_kind)kind), windows->skipped[kind].events, &inner_first);
	out_char(out, '}');
	put_unsigned(out, "skipped_cost_ns", windows->cost_ns, &first);
	out_char(out, '}');
}

static void put_rank(struct out *out, int64_t rank)
{
	if (rank >= 0)
		out_signed(out, rank);
	else
		out_string(out, "null");
}

static void put_processes(struct out *out, const struct processes *processes)
{
	out_char(out, '[');
	for (size_t i = 0; i < processes->count; i++) {
		const struct process *process = &processes->all[i];
		bool first = true;

		out_string(out, i ? ", {" : "{");
		put_unsigned(out, "pid", process->pid, &first);
		put_key(out, "rank", &first);
		put_rank(out, process->rank);
		put_key(out, "file", &first);
		put_string(out, process->path);
		put_key(out, "command", &first);
		put_string(out, process->command);
		put_unsigned(out, "start_unix_ns", process->start_unix_ns, &first);
		put_unsigned(out, "duration_ns", process->wall_ns, &first);
		put_unsigned(out, "gpu_sum_ns", process->gpu_ns, &first);
		put_unsigned(out, "events", process->events, &first);
		put_key(out, "shown", &first);
		out_string(out, process->shown ? "true" : "false");
		put_key(out, "complete", &first);
		out_string(out, process->complete ? "true" : "false");
		out_char(out, '}');
	}
	out_char(out, ']');
}

/* Of the first process shown. */
static void put_capture(struct out *out, const struct processes *processes)
{
	const struct process *process = &processes->all[0];
	bool first = true;

	out_char(out, '{');
	put_key(out, "command", &first);
	put_text_or_null(out, process_meta(process, "command"));
	put_unsigned(out, "pid", process->pid, &first);
	put_key(out, "rank", &first);
	put_rank(out, process->rank);
	put_unsigned(out, "start_unix_ns", process->start_unix_ns, &first);
	put_unsigned(out, "duration_ns", reader_duration_ns(process->reader), &first);
	put_key(out, "host", &first);
	put_text_or_null(out, process_meta(process, "host"));
	put_key(out, "versions", &first);
	put_versions(out, process);
	put_key(out, "compile_mode", &first);
	out_string(out, "null");
	put_key(out, "devices", &first);
	put_devices(out, process);
	put_key(out, "sources", &first);
	put_sources(out, process);
	if (process->windows) {
		put_key(out, "window", &first);
		put_windows(out, process->windows);
	}
	if (process->away) {
		put_key(out, "away", &first);
		put_away(out, process->away);
	}
	if (process->steps) {
		put_key(out, "steps", &first);
		put_steps(out, process->steps);
	}
	put_key(out, "processes", &first);
	put_processes(out, processes);
	out_char(out, '}');
}

/* Of all processes shown, together. */
static void put_integrity(struct out *out, const struct processes *processes)
{
	bool first = true, complete = true, conserved = true;

	out_char(out, '{');
	for (size_t item = 0; item < integrity_item_count; item++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < processes->shown; i++)
			sum += integrity_value(&processes->all[i].integrity, item);
		put_unsigned(out, integrity_items[item].name, sum, &first);
	}
	for (size_t i = 0; i < processes->shown; i++) {
		complete &= processes->all[i].integrity.complete;
		conserved &= processes->all[i].integrity.conserved;
	}
	put_key(out, "complete", &first);
	out_string(out, complete ? "true" : "false");
	put_key(out, "conserved", &first);
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
	put_unsigned(out, "pid", process->pid, &first);
	put_unsigned(out, "tid", oom->tid, &first);
	put_unsigned(out, "t_ns", oom->time_ns, &first);
	put_unsigned(out, "device", oom->device, &first);
	put_key(out, "path", &first);
	put_path(out, &at);
	put_unsigned(out, "asked_bytes", oom->asked, &first);
	put_unsigned(out, "allocated_bytes", oom->allocated, &first);
	put_unsigned(out, "reserved_bytes", oom->reserved, &first);
	put_key(out, "outside_bytes", &first);
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

	put_key(out, "ooms", first);
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
		put_key(out, part[i].key, first);
		if (whole)
			out_unsigned(out, part[i].value);
		else
			out_string(out, "null");
	}
}

static void put_totals(struct out *out, const struct processes *processes)
{
	struct fold_totals sum = { .wall_ns = 0 };
	bool first = true, inner_first = true;

	for (size_t i = 0; i < processes->shown; i++)
		add_totals(&sum, &processes->all[i].fold->totals);
	out_char(out, '{');
	put_unsigned(out, "wall_ns", sum.wall_ns, &first);
	put_unsigned(out, "gpu_sum_ns", sum.gpu_sum_ns, &first);
	put_unsigned(out, "gpu_busy_ns", sum.gpu_busy_ns, &first);
	put_unsigned(out, "gpu_idle_ns", sum.gpu_idle_ns, &first);
	put_unsigned(out, "gpu_unknown_ns", sum.gpu_unknown_ns, &first);
	put_gpu_parts(out, processes, &sum, &first);
	put_unsigned(out, "attributed_ns", sum.attributed_ns, &first);
	put_unsigned(out, "unattributed_ns", sum.unattributed_ns, &first);
	put_key(out, "methods", &first);
	out_char(out, '{');
	for (int method = 0; method < METHOD_COUNT; method++) {
		bool part_first = true;

		put_key(out, method_name((enum method)method), &inner_first);
		out_char(out, '{');
		put_unsigned(out, "records", sum.method_records[method], &part_first);
		put_unsigned(out, "ns", sum.method_ns[method], &part_first);
		out_char(out, '}');
	}
	out_char(out, '}');
	put_unsigned(out, "alloc_bytes", sum.alloc_bytes, &first);
	put_unsigned(out, "free_bytes", sum.free_bytes, &first);
	put_key(out, "reserved_peak_bytes", &first);
	out_signed(out, sum.reserved_peak);
	put_key(out, "allocated_peak_bytes", &first);
	if (sum.has_tensors)
		out_signed(out, sum.allocated_peak);
	else
		out_string(out, "null");
	put_unsigned(out, "tensor_alloc_bytes", sum.tensor_alloc_bytes, &first);
	put_unsigned(out, "tensor_free_bytes", sum.tensor_free_bytes, &first);
	put_ooms(out, processes, &first);
	put_unsigned(out, "self_cost_ns", sum.self_ns, &first);
	put_unsigned(out, "cupti_overhead_ns", sum.overhead_ns, &first);
	put_key(out, "gpus", &first);
	print_json_gpus(processes, out);
	out_char(out, '}');
}

static void put_warnings(struct out *out, const struct processes *processes)
{
	bool first = true;

	out_char(out, '[');
	for (size_t i = 0; i < processes->warning_count; i++) {
		if (!first)
			out_string(out, ", ");
		first = false;
		put_string(out, processes->warnings[i]);
	}
	for (size_t i = 0; i < processes->shown; i++) {
		if (!processes->all[i].fold->memory->counts.ooms)
			continue;
		if (!first)
			out_string(out, ", ");
		first = false;
		put_string(out, "PyTorch ran out of memory: see totals.ooms");
	}
	out_char(out, ']');
}

static void put_files(struct out *out, const struct options *options)
{
	out_char(out, '[');
	for (size_t i = 0; i < options->file_count; i++) {
		if (i)
			out_string(out, ", ");
		put_string(out, options->files[i]);
	}
	out_char(out, ']');
}

void print_json_head(const struct report *report, struct out *out)
{
	out_string(out, "{\"schema\": \"pperf.report/1\", \"view\": \"");
	out_string(out, report->options->view->name);
	out_string(out, "\", \"files\": ");
	put_files(out, report->options);
	out_string(out, ",\n \"capture\": ");
	put_capture(out, report->processes);
	out_string(out, ",\n \"integrity\": ");
	put_integrity(out, report->processes);
	out_string(out, ",\n \"totals\": ");
	put_totals(out, report->processes);
	out_string(out, ",\n \"warnings\": ");
	put_warnings(out, report->processes);
}

void print_json(const struct report *report, struct out *out)
{
	print_json_head(report, out);
	out_string(out, ",\n \"rows\": [");
	for (size_t i = 0; i < report->rows.count; i++) {
		out_string(out, i ? ",\n  " : "\n  ");
		put_row(out, report, &report->rows.rows[i]);
	}
	out_string(out, "]}\n");
}
