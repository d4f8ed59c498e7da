/* SPDX-License-Identifier: MIT */
#include "report/views/tree_extra_rows.h"
#include "report/base/alloc.h"
#include "report/text/format_number.h"
#include <stdio.h>
#include <string.h>

static bool has_own_work(const struct node *node)
{
	const struct node_memory *memory = node->memory;

	return (node->gpu && node->gpu->self_calls) ||
	       (memory && (memory->allocs || memory->frees || memory->failed)) ||
	       (node_kind_class(node->kind) != NODE_RANGES && node->kind != NODE_MARK);
}

static bool can_be_without_gpu_work(const struct node *node)
{
	return node->kind == NODE_OP || node->kind == NODE_BACKWARD || node->kind == NODE_MODULE;
}

bool *extra_rows_without_gpu_work(const struct process *process)
{
	const struct profile *profile = process->profile;
	const struct tree *tree = profile->tree;
	bool *without_gpu_work;

	if (!profile->totals.gpu_sum_ns && !profile->counts.launches)
		return NULL;
	without_gpu_work = xcalloc(tree->count * sizeof *without_gpu_work);
	for (uint32_t id = 1; id < tree->count; id++)
		without_gpu_work[id] = !has_own_work(&tree->nodes[id]);
	for (uint32_t id = tree->count - 1; id > 0; id--)
		without_gpu_work[tree->nodes[id].parent] &= without_gpu_work[id];
	for (uint32_t id = 1; id < tree->count; id++)
		without_gpu_work[id] &= can_be_without_gpu_work(&tree->nodes[id]);
	return without_gpu_work;
}

static struct row new_extra_row(
	struct process *process, const struct row *like, const char *name, enum node_kind kind)
{
	struct row row = *like;

	if (!process->extra_rows)
		process->extra_rows = tree_new();
	row.tree = process->extra_rows;
	row.node = tree_add(
		process->extra_rows, string_table_intern(process->texts, name, strlen(name)), kind);
	return row;
}

struct row extra_row_without_gpu_work_sum(
	struct process *process, const struct row *like, uint64_t operators, uint64_t cpu_ns)
{
	char name[FORMAT_NUMBER_BYTES + 32], number[FORMAT_NUMBER_BYTES];
	struct row row;

	format_with_unit(number, UNIT_COUNT, (int64_t)operators, false, false);
	snprintf(name, sizeof name, "(%s operators without GPU work)", number);
	row = new_extra_row(process, like, name, NODE_OP);
	process->extra_rows->nodes[row.node].is_group = true;
	process->extra_rows->nodes[row.node].total_ns = cpu_ns;
	return row;
}

struct row extra_row_rest(struct process *process, const struct row *like, uint64_t nodes,
	uint64_t gpu_ns, uint64_t cpu_ns)
{
	char name[FORMAT_NUMBER_BYTES + 32], number[FORMAT_NUMBER_BYTES];
	struct row row;

	format_with_unit(number, UNIT_COUNT, (int64_t)nodes, false, false);
	snprintf(name, sizeof name, "(%s more)", number);
	row = new_extra_row(process, like, name, NODE_RANGE);
	process->extra_rows->nodes[row.node].is_group = true;
	process->extra_rows->nodes[row.node].total_ns = cpu_ns;
	if (gpu_ns) {
		struct node_gpu *gpu = tree_gpu(process->extra_rows, row.node);

		gpu->total_ns = gpu_ns;
		gpu->total_calls = 1;
	}
	return row;
}

bool extra_row_outlier(const struct row *around, const struct row *like, struct row *outlier)
{
	char name[320], times[FORMAT_NUMBER_BYTES];
	struct module_spread spread;
	struct string_view label;
	struct node *node;

	if (!row_spread(around, &spread) || !spread.outlier)
		return false;
	label = string_table_get(around->process->texts, spread.outlier->label);
	if (spread.median)
		format_real(times, (long double)spread.outlier_ns / (long double)spread.median, 2);
	snprintf(name, sizeof name, "%.*s%s%s%s", label.length < 200 ? (int)label.length : 200,
		label.bytes, spread.median ? ": " : " (outlier)", spread.median ? times : "",
		spread.median ? " times the median" : "");
	*outlier = new_extra_row(around->process, like, name, NODE_MODULE);
	node = &around->process->extra_rows->nodes[outlier->node];
	node->is_group = true;
	node->total_ns = around->process->gpu_ns ? spread.outlier->cpu_ns : spread.outlier_ns;
	if (spread.outlier->gpu_ns) {
		struct node_gpu *gpu = tree_gpu(around->process->extra_rows, outlier->node);

		gpu->total_ns = spread.outlier->gpu_ns;
		gpu->total_calls = 1;
	}
	return true;
}

bool extra_row_moved_backward(const struct row *around, const struct row *like, struct row *moved)
{
	const struct node *node = &around->tree->nodes[around->node];
	const struct string_view name = string_table_get(around->process->texts, node->name);
	uint64_t rest;

	if (node->kind != NODE_BACKWARD || !node->calls || name.length != strlen("(backward)") ||
		memcmp(name.bytes, "(backward)", name.length) != 0)
		return false;
	rest = node->total_ns - node->self_ns;
	for (uint32_t id = node->first_child; id; id = around->tree->nodes[id].next)
		if (node_kind_class(around->tree->nodes[id].kind) == NODE_RANGES &&
			rest >= around->tree->nodes[id].total_ns)
			rest -= around->tree->nodes[id].total_ns;
	if (!rest)
		return false;
	*moved = new_extra_row(
		around->process, like, "(shown in modules, as (bwd))", NODE_BACKWARD);
	around->process->extra_rows->nodes[moved->node].total_ns = rest;
	around->process->extra_rows->nodes[moved->node].is_group = true;
	return true;
}
