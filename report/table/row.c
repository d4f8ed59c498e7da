/* SPDX-License-Identifier: MIT
 *
 * Names and paths of rows.
 */
#include "report/run/call_stack.h"
#include "report/table/column.h"
#include "report/analysis/duration_distribution.h"
#include "report/base/alloc.h"
#include "report/base/text_builder.h"
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
		return (struct string_view){ process_name(row->process),
			(uint32_t)strlen(process_name(row->process)) };
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
	case CELL_INTEGER:
		*number = cell->integer;
		return true;
	case CELL_UNSIGNED:
		*number = cell->unsigned_value;
		return true;
	case CELL_REAL:
		*number = cell->real;
		return true;
	default:
		return false;
	}
}

/* Returns the next node of the row's path, from `node` to the root. */
static uint32_t next_of_path(const struct row *row, uint32_t node)
{
	const struct memory_site *site = row->kind == ROW_SITE ? row->of.site : NULL;
	const bool is_call_path = row->kind == ROW_COMPUTED && row->of.computed->is_call_path,
		   omits_sections = is_call_path || (site && site->omits_sections),
		   omits_steps = is_call_path || (site && site->omits_steps);

	while ((omits_sections || omits_steps) && node) {
		const uint8_t kind = row->tree->nodes[node].kind;

		/* what has only a section for a path keeps it */
		if (node == row->node || ((kind != NODE_SECTION || !omits_sections) &&
						 (kind != NODE_STEP || !omits_steps)))
			break;
		node = row->tree->nodes[node].parent;
	}
	return node;
}

size_t row_path(const struct row *row, uint32_t *nodes, size_t room)
{
	size_t length = 0, at;

	for (uint32_t node = next_of_path(row, row->node); node;
		node = next_of_path(row, row->tree->nodes[node].parent))
		length++;
	at = length;
	for (uint32_t node = next_of_path(row, row->node); node;
		node = next_of_path(row, row->tree->nodes[node].parent))
		if (--at < room)
			nodes[at] = node;
	return length;
}

/* The label of one row at a time; its memory stays. */
static struct text_builder label_buffer;

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

static void append_frame(const struct row *row, uint32_t index)
{
	char caller[1024] = "";
	const size_t length = call_stack_frame(
		row->process, row->of.site->stack, index, true, caller, sizeof caller);

	text_add(&label_buffer, " < ");
	text_add_bytes(&label_buffer, caller, length);
}

/* Appends who called there, where that is known. */
static void append_caller(const struct row *row)
{
	uint32_t shown[CALL_STACK_SHOWN];
	const uint32_t count = call_stack_shown_frames(
		row->process, row->node, row->of.site->stack, shown);

	for (uint32_t i = 0; i < count; i++)
		append_frame(row, shown[i]);
}

/* PyTorch's own way to write it; a model is named after its class. */
static void append_class(const struct row *row, const struct node *node, struct string_view name)
{
	const struct string_view class = string_table_get(row->process->texts, node->class);

	if (!node->class ||
		(class.length <= name.length &&
			memcmp(class.bytes, name.bytes, class.length) == 0 &&
			(class.length == name.length || name.bytes[class.length] == ' ')))
		return;
	text_add(&label_buffer, " (");
	text_add_bytes(&label_buffer, class.bytes, class.length);
	text_add(&label_buffer, ")");
}

/* Appends the call path, because a memory site is identified by where it is. */
static void append_path(const struct row *row)
{
	const size_t length = row_path(row, NULL, 0);
	uint32_t *nodes = xcalloc((length + 1) * sizeof *nodes);

	row_path(row, nodes, length);
	for (size_t i = 0; i < length; i++) {
		const struct node *node = &row->tree->nodes[nodes[i]];
		const struct string_view name = string_table_get(row->process->texts, node->name);

		text_add_bytes(&label_buffer, " / ", i ? 3 : 0);
		text_add_bytes(&label_buffer, name.bytes, name.length);
		/* The label pattern of modules whose name is only a number. */
		if (name.length == 1 && name.bytes[0] == '*')
			append_class(row, node, name);
	}
	free(nodes);
	if (row->kind == ROW_SITE)
		append_caller(row);
	else if (!label_buffer.used)
		text_add(&label_buffer, "(no range)");
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

static void append_domain(const struct row *row, const struct node *node)
{
	const struct string_view domain = string_table_get(row->process->texts, node->domain);

	if (!node->domain)
		return;
	text_add(&label_buffer, " [");
	text_add_bytes(&label_buffer, domain.bytes, domain.length);
	text_add(&label_buffer, "]");
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

static void append_text(const struct row *row, const char *before, uint32_t text)
{
	const struct string_view name = string_table_get(row->process->texts, text);

	if (!text)
		return;
	text_add(&label_buffer, "%s", before);
	text_add_bytes(&label_buffer, name.bytes, name.length);
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

	label_buffer.used = 0;
	if (row_has_path(row))
		append_path(row);
	else
		text_add_bytes(&label_buffer, name.length ? name.bytes : "(no name)",
			name.length ? name.length : 9);
	if (row->kind == ROW_COMPUTED) {
		append_text(row, " / ", row->of.computed->last_call);
		append_text(
			row, ascii ? " -> " : " \xe2\x86\x92 ", row->of.computed->next_operation);
	}
	if (node && !is_short)
		append_class(row, node, name);
	if (node)
		append_domain(row, node);
	if (similar_count(row) > 1)
		text_add(&label_buffer, ascii ? " x%llu" : " \xc3\x97%llu",
			(unsigned long long)similar_count(row));
	if (shape && shape->grid[0] && !is_short) /* 0: the trace does not say */
		text_add(&label_buffer, "  <<<(%u,%u,%u),(%u,%u,%u)>>>", shape->grid[0],
			shape->grid[1], shape->grid[2], shape->block[0], shape->block[1],
			shape->block[2]);
	return (struct string_view){ label_buffer.used ? label_buffer.text : "",
		(uint32_t)label_buffer.used };
}

struct string_view row_label(const struct row *row, bool ascii)
{
	return build_label(row, ascii, false);
}

struct string_view row_short_label(const struct row *row, bool ascii)
{
	return build_label(row, ascii, true);
}
