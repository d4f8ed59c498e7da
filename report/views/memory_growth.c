/* SPDX-License-Identifier: MIT */
#include "report/views/memory_growth.h"
#include "report/print/node_words.h"
#include "report/profile/node_placement.h"
#include "report/run/call_stack.h"
#include "report/table/column.h"
#include "report/table/computed_row.h"
#include <math.h>
#include <string.h>

const char *memory_growth_kind(uint32_t kind)
{
	switch (kind) {
	case MEMORY_TENSOR:
		return "tensor memory";
	case TRACE_MEMORY_DEVICE:
	case TRACE_MEMORY_DEVICE_STATIC:
		return "device memory";
	case TRACE_MEMORY_PINNED:
		return "pinned memory of the host";
	case TRACE_MEMORY_MANAGED:
	case TRACE_MEMORY_MANAGED_STATIC:
		return "managed memory";
	case TRACE_MEMORY_ARRAY:
		return "memory of arrays";
	default:
		return "memory";
	}
}

const char *memory_growth_cause(enum leak_cause cause)
{
	static const char *const causes[] = { [LEAK_UNKNOWN] = "kept by the program",
		[LEAK_GRAPH] = "outputs kept by their graph",
		[LEAK_SCALAR] = "one scalar a step, which keeps its graph",
		[LEAK_PINNED] = "pinned memory that is not freed",
		[LEAK_MANAGED] = "managed memory that is not freed",
		[LEAK_CUDA] = "CUDA allocations that are not freed" };

	return causes[cause];
}

size_t memory_growth_line(
	struct process *process, const struct memory_path *path, char *out, size_t room)
{
	const uint32_t own = path->stack ? call_stack_own_frame(process, path->stack, 0) : 0;

	*out = '\0';
	if (!path->stack || own >= call_stack_frames(process, path->stack))
		return 0;
	return call_stack_frame(process, path->stack, own, true, out, room);
}

/* Appends the name of a node of the trace; of a module with its class. */
static void add_trace_node(
	struct paragraph *paragraph, const struct process *process, uint32_t trace_node)
{
	const struct trace_node_info *node = reader_node(process->reader, trace_node);
	const struct trace_text name = reader_name(process->reader, node->name),
				class = reader_name(process->reader, node->detail);

	paragraph_name(paragraph, name.bytes, name.length);
	if (node->kind != TRACE_NODE_MODULE || !class.length)
		return;
	paragraph_add(paragraph, " (");
	paragraph_name(paragraph, class.bytes, class.length);
	paragraph_add(paragraph, ")");
}

/* Returns whether the tree node is a range with a name of its own. */
static bool is_named(const struct process *process, uint32_t node)
{
	const uint8_t kind = process->profile->tree->nodes[node].kind;

	return node && kind != NODE_UNATTRIBUTED && kind != NODE_SECTION;
}

void memory_growth_add_owner(
	struct paragraph *paragraph, const struct process *process, const struct memory_path *path)
{
	if (path->module) {
		add_trace_node(paragraph, process, path->module);
	} else if (path->trace_node &&
		   reader_node(process->reader, path->trace_node)->kind == TRACE_NODE_OP) {
		add_trace_node(paragraph, process,
			node_placement_operator(process->reader, path->trace_node));
	} else if (is_named(process, path->node)) {
		paragraph_add_node(paragraph, process, path->node);
	} else {
		paragraph_add(paragraph, "no range");
	}
}

static void add_scalar(
	struct paragraph *paragraph, const struct process *process, const struct memory_leak *leak)
{
	if (!leak->scalar)
		return;
	paragraph_add(paragraph, ", which one scalar a step of ");
	memory_growth_add_owner(paragraph, process, leak->scalar);
	paragraph_add(paragraph, " keeps");
}

void memory_growth_add_sentence(
	struct paragraph *paragraph, struct process *process, const struct memory_leak *leak)
{
	const enum leak_cause cause = leak->cause == LEAK_SCALAR ? LEAK_GRAPH : leak->cause;
	const double rate = leak->held->growth.rate;
	char line[CALL_STACK_TEXT];

	if (leak->held->kind != MEMORY_TENSOR)
		paragraph_add(paragraph, "%s ", memory_growth_kind(leak->held->kind));
	paragraph_add(paragraph, "grows ");
	paragraph_value(paragraph, UNIT_BYTES, (uint64_t)llround(rate));
	paragraph_add(paragraph, " a step");
	if (leak->path_count) {
		const struct memory_path *path = leak->paths[0].path;

		paragraph_add(paragraph, ", %.0f %% of it in ",
			rate >= 1 ? fmin(100, 100 * path->growth.rate / rate) : 100);
		memory_growth_add_owner(paragraph, process, path);
		if (memory_growth_line(process, path, line, sizeof line)) {
			paragraph_add(paragraph, " at ");
			paragraph_name(paragraph, line, strlen(line));
		}
	}
	paragraph_add(paragraph, ": %s", memory_growth_cause(cause));
	add_scalar(paragraph, process, leak);
}

bool memory_growth_put(struct process *process, const struct style *style)
{
	const struct memory_leak *leak = memory_leaks_worst(process);
	struct paragraph paragraph = { .style = style };

	if (!leak)
		return false;
	memory_growth_add_sentence(&paragraph, process, leak);
	paragraph_print(&paragraph, "memory");
	return true;
}

/* ---- rows ---- */

void memory_growth_set_name(struct computed_row *computed, const struct memory_held *held)
{
	if (held->kind == TRACE_MEMORY_PINNED || held->device == UINT32_MAX)
		computed_row_format_name(computed, "%s", memory_growth_kind(held->kind));
	else
		computed_row_format_name(
			computed, "%s, device %u", memory_growth_kind(held->kind), held->device);
}

/* The values of the column growth_cause. */
static const char *const cause_keys[] = { [LEAK_UNKNOWN] = "program",
	[LEAK_GRAPH] = "graph",
	[LEAK_SCALAR] = "scalar",
	[LEAK_PINNED] = "pinned",
	[LEAK_MANAGED] = "managed",
	[LEAK_CUDA] = "CUDA call" };

static void set_growth(
	struct computed_row *computed, const struct memory_growth *growth, const char *kind_name)
{
	computed_row_set_string(computed, "memory_kind", kind_name);
	if (growth->grows)
		computed_row_set_unsigned(
			computed, "growth_bytes", (uint64_t)llround(growth->rate));
	computed_row_set_unsigned(computed, "left_bytes", growth->left_bytes);
	computed_row_set_unsigned(computed, "grown_steps", growth->left);
	computed_row_set_unsigned(computed, "late_steps", growth->late);
	computed_row_set_real(computed, "p_value", growth->p);
}

static void add_path_row(struct process *process, struct rows *rows, uint32_t parent,
	const struct memory_leak *leak, const struct leak_path *leaking)
{
	const struct memory_path *path = leaking->path;
	struct computed_row *computed = computed_row_new(process, path->node, "growth");
	char line[CALL_STACK_TEXT];
	const size_t length = memory_growth_line(process, path, line, sizeof line);

	set_growth(computed, &path->growth, memory_kind_name(path->kind));
	if (leak->held->growth.rate >= 1)
		computed_row_set_real(computed, "growth_share",
			fmin(1, path->growth.rate / leak->held->growth.rate));
	computed_row_set_string(computed, "growth_cause", cause_keys[leaking->cause]);
	if (length)
		computed_row_set_text(computed, "line", line, length);
	computed->is_call_path = true;
	computed_row_add(rows, computed, parent);
}

static void add_leak_rows(const struct options *options, struct process *process, struct rows *rows,
	const struct memory_leak *leak)
{
	const struct memory_held *held = leak->held;
	struct computed_row *computed = computed_row_new(process, 0, "growth");
	const uint32_t parent = (uint32_t)rows->count;
	const struct column *rate = column_find("growth_bytes", strlen("growth_bytes"));

	if (held->device != UINT32_MAX)
		computed_row_format_name(
			computed, "%s, device %u", memory_growth_kind(held->kind), held->device);
	else
		computed_row_format_name(computed, "%s", memory_growth_kind(held->kind));
	set_growth(computed, &held->growth, memory_kind_name(held->kind));
	computed_row_set_unsigned(computed, "device", held->device);
	computed_row_set_string(computed, "growth_cause", cause_keys[leak->cause]);
	computed_row_add(rows, computed, NO_ROW);
	for (size_t i = 0; i < leak->path_count && options->depth > 1; i++)
		add_path_row(process, rows, parent, leak, &leak->paths[i]);
	if (options->depth < 2)
		rows->hidden_by_depth += leak->path_count;
	rows_prune(rows, parent + 1, rate, view_min_percent(options), view_top(options));
}

void arrange_memory_growth(
	const struct options *options, struct process *process, struct rows *rows)
{
	const struct memory_leaks *leaks = memory_leaks_of(process);

	for (size_t i = 0; i < leaks->count; i++)
		add_leak_rows(options, process, rows, &leaks->leaks[i]);
}
