/* SPDX-License-Identifier: MIT
 *
 * Names and paths of rows.
 */
#include "report/run/call_stack.h"
#include "report/table/column.h"
#include "report/analysis/duration_distribution.h"
#include "report/base/alloc.h"
#include "report/table/computed_row.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct trace_kernel *row_shape(const struct row *row)
{
	const struct node_gpu *gpu = row->kind == ROW_NODE ? row->tree->nodes[row->node].gpu : NULL;

	if (row->kind == ROW_INSTANCE)
		return row->of.instance->kernel;
	if (row->kind == ROW_SHAPE)
		return row->of.shape->name ? &row->of.shape->record : NULL;
	return gpu && !gpu->several_shapes ? gpu->shape : NULL;
}

struct string_view row_name(const struct row *row)
{
	static char built[64];

	switch (row->kind) {
	case ROW_SHAPE:
		return row->of.shape->name
			       ? string_table_get(row->process->texts, row->of.shape->name)
			       : (struct string_view){ "(all other shapes)", 18 };
	case ROW_API:
		return string_table_get(row->process->texts, row->of.api->name);
	case ROW_COMPUTED:
		return row->of.computed->name ? (struct string_view){ row->of.computed->name,
			row->of.computed->name_bytes }
					      : string_table_get(row->process->texts,
							row->tree->nodes[row->node].name);
	case ROW_DISTRIBUTION:
		return string_table_get(row->process->texts,
			row->process->profile->tree->nodes[row->of.part->node].name);
	case ROW_PROCESS:
		return (struct string_view){ row->process->command,
			(uint32_t)strlen(row->process->command) };
	case ROW_LEVEL:
		snprintf(built, sizeof built, "%s memory", memory_kind_name(row->of.level->kind));
		if (row->of.level->device != UINT32_MAX)
			snprintf(built + strlen(built), sizeof built - strlen(built), ", device %u",
				row->of.level->device);
		return (struct string_view){ built, (uint32_t)strlen(built) };
	default:
		return string_table_get(row->process->texts, row->tree->nodes[row->node].name);
	}
}

bool cell_number(const struct cell *cell, long double *number)
{
	switch (cell->kind) {
	case CELL_WHOLE:
		*number = cell->whole;
		return true;
	case CELL_UNSIGNED:
		*number = cell->number;
		return true;
	case CELL_REAL:
		*number = cell->real;
		return true;
	default:
		return false;
	}
}

size_t row_path(const struct row *row, uint32_t *nodes, size_t room)
{
	size_t length = 0, at;

	for (uint32_t node = row->node; node; node = row->tree->nodes[node].parent)
		length++;
	at = length;
	for (uint32_t node = row->node; node; node = row->tree->nodes[node].parent)
		if (--at < room)
			nodes[at] = node;
	return length;
}

/* A buffer that grows and is never freed. It holds the label of one row at a time. */
static char *label_buffer;
static size_t label_room;

static size_t append_label(size_t used, const char *bytes, size_t length)
{
	array_grow_zeroed(&label_buffer, &label_room, used + length + 1, 1);
	memcpy(label_buffer + used, bytes, length);
	label_buffer[used + length] = '\0';
	return used + length;
}

static struct string_view instance_name(const struct row *row)
{
	const struct instance *instance = row->of.instance;
	struct trace_text name;

	if (instance->label)
		return (struct string_view){ instance->label, instance->label_bytes };
	if (!instance->trace_node)
		return row_name(row);
	name = reader_name(row->process->reader,
		reader_node(row->process->reader, instance->trace_node)->name);
	return (struct string_view){ name.bytes, name.length };
}

/* Appends the innermost function of the call stack, if it is known. */
static size_t append_caller(const struct row *row, size_t used)
{
	char caller[1024] = "";
	size_t length;

	if (!call_stack_frames(row->process, row->of.site->stack))
		return used;
	length = call_stack_frame(
		row->process, row->of.site->stack, 0, true, caller, sizeof caller);
	return append_label(append_label(used, " < ", 3), caller, length);
}

/* Appends the class as PyTorch writes it. A name that begins with the class, as a model's does,
 * gets none. */
static size_t append_class(
	const struct row *row, const struct node *node, struct string_view name, size_t used)
{
	const struct string_view class = string_table_get(row->process->texts, node->class);

	if (!node->class ||
		(class.length <= name.length &&
			memcmp(class.bytes, name.bytes, class.length) == 0 &&
			(class.length == name.length || name.bytes[class.length] == ' ')))
		return used;
	return append_label(
		append_label(append_label(used, " (", 2), class.bytes, class.length), ")", 1);
}

/* Appends the call path, because a memory site is identified by where it is. */
static size_t append_path(const struct row *row)
{
	const size_t length = row_path(row, NULL, 0);
	uint32_t *nodes = xcalloc((length + 1) * sizeof *nodes);
	size_t used = 0;

	row_path(row, nodes, length);
	for (size_t i = 0; i < length; i++) {
		const struct node *node = &row->tree->nodes[nodes[i]];
		const struct string_view name = string_table_get(row->process->texts, node->name);

		used = append_label(append_label(used, " / ", i ? 3 : 0), name.bytes, name.length);
		if (name.length == 1 &&
			/* The label pattern of modules whose name is only a number. */
			name.bytes[0] == '*')
			used = append_class(row, node, name, used);
	}
	free(nodes);
	return row->kind == ROW_SITE ? append_caller(row, used)
	       : used                ? used
				     : append_label(0, "(no range)", 10);
}

/* Whether the row is shown outside of the tree, where it needs its path. */
bool row_has_path(const struct row *row)
{
	return row->kind == ROW_SITE || (row->kind == ROW_COMPUTED && !row->of.computed->name);
}

uint32_t row_labels(const struct node *node)
{
	return node->labels < node->calls ? node->labels : (uint32_t)node->calls;
}

bool row_spread(const struct row *row, struct module_spread *spread)
{
	const struct node *node = row->kind == ROW_NODE ? &row->tree->nodes[row->node] : NULL;

	return node && node->kind == NODE_MODULE && node->labels > 1 &&
	       row->tree == row->process->profile->tree &&
	       module_group_spread(node_names_module_group(row->process->profile->names), row->node,
		       row->process->gpu_ns > 0, spread);
}

static size_t append_domain(const struct row *row, const struct node *node, size_t used)
{
	const struct string_view domain = string_table_get(row->process->texts, node->domain);

	return node->domain ? append_label(append_label(append_label(used, " [", 2), domain.bytes,
						   domain.length),
				      "]", 1)
			    : used;
}

/* Returns how many instances or labels the row represents; 1: a single one. */
static uint64_t similar_count(const struct row *row)
{
	if (row->kind == ROW_INSTANCE)
		return row->of.instance->form == INSTANCE_MANY ? row->of.instance->times : 1;
	return row->kind == ROW_NODE && row->tree && row->node
		       ? row_labels(&row->tree->nodes[row->node])
		       : 1;
}

static struct string_view build_label(const struct row *row, bool ascii, bool is_short)
{
	const struct string_view name = row->kind == ROW_INSTANCE ? instance_name(row)
								  : row_name(row);
	const struct node *node = row->tree && row->node && row->kind != ROW_SITE &&
						  row->kind != ROW_COMPUTED
					  ? &row->tree->nodes[row->node]
					  : NULL;
	const struct trace_kernel *shape = row->kind == ROW_NODE || row->kind == ROW_INSTANCE
						   ? row_shape(row)
						   : NULL;
	size_t used = row_has_path(row) ? append_path(row)
		      : name.length     ? append_label(0, name.bytes, name.length)
					: append_label(0, "(no name)", 9);
	char extra[160] = "";
	int length = 0;

	if (node && !is_short)
		used = append_class(row, node, name, used);
	if (node)
		used = append_domain(row, node, used);
	if (similar_count(row) > 1)
		length = snprintf(extra, sizeof extra, ascii ? " x%llu" : " \xc3\x97%llu",
			(unsigned long long)similar_count(row));
	if (shape && shape->grid[0] && !is_short) /* grid 0: not in the trace */
		snprintf(extra + length, sizeof extra - (size_t)length,
			"  <<<(%u,%u,%u),(%u,%u,%u)>>>", shape->grid[0], shape->grid[1],
			shape->grid[2], shape->block[0], shape->block[1], shape->block[2]);
	used = append_label(used, extra, strlen(extra));
	return (struct string_view){ label_buffer, (uint32_t)used };
}

struct string_view row_label(const struct row *row, bool ascii)
{
	return build_label(row, ascii, false);
}

struct string_view row_short_label(const struct row *row, bool ascii)
{
	return build_label(row, ascii, true);
}
