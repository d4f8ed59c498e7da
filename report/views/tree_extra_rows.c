/* SPDX-License-Identifier: MIT */
#include "report/views/tree_extra_rows.h"
#include "report/base/alloc.h"
#include "report/text/format_number.h"
#include <stdio.h>
#include <string.h>

static bool did_work(const struct node *node)
{
	const struct node_memory *memory = node->memory;

	return (node->gpu && node->gpu->self_calls) || (memory && (memory->allocs || memory->frees || memory->failed)) ||
	       (node_kind_class(node->kind) != NODE_RANGES && node->kind != NODE_MARK);
}

static bool may_be_idle(const struct node *node)
{
	return node->kind == NODE_OP || node->kind == NODE_BACKWARD || node->kind == NODE_MODULE;
}

bool *asides_workless(const struct process *process)
{
	const struct fold *fold = process->fold;
	const struct tree *tree = fold->tree;
	bool *workless;

	if (!fold->totals.gpu_sum_ns && !fold->counts.launches)
		return NULL;
	workless = need(tree->count * sizeof *workless);
	for (uint32_t id = 1; id < tree->count; id++)
		workless[id] = !did_work(&tree->nodes[id]);
	for (uint32_t id = tree->count - 1; id > 0; id--)
		workless[tree->nodes[id].parent] &= workless[id];
	for (uint32_t id = 1; id < tree->count; id++)
		workless[id] &= may_be_idle(&tree->nodes[id]);
	return workless;
}

static struct row add(struct process *process, const struct row *like, const char *name, enum node_kind kind)
{
	struct row row = *like;

	if (!process->asides)
		process->asides = tree_new();
	row.tree = process->asides;
	row.node = tree_add(process->asides, text_id(process->texts, name, strlen(name)), kind);
	return row;
}

struct row asides_sum(struct process *process, const struct row *like, uint64_t operators, uint64_t cpu_ns)
{
	char name[NUMBER_BYTES + 32], number[NUMBER_BYTES];
	struct row row;

	number_scaled(number, UNIT_COUNT, (int64_t)operators, false, false);
	snprintf(name, sizeof name, "(%s operators without work)", number);
	row = add(process, like, name, NODE_OP);
	process->asides->nodes[row.node].is_group = true;
	process->asides->nodes[row.node].total_ns = cpu_ns;
	return row;
}

bool asides_odd(const struct row *of, const struct row *like, struct row *odd)
{
	char name[320], times[NUMBER_BYTES];
	struct spread spread;
	struct text label;
	struct node *node;

	if (!row_spread(of, &spread) || !spread.odd)
		return false;
	label = text_of(of->process->texts, spread.odd->label);
	if (spread.median)
		number_real(times, (long double)spread.odd_ns / (long double)spread.median, 2);
	snprintf(name, sizeof name, "%.*s alone%s%s%s", label.length < 200 ? (int)label.length : 200, label.bytes,
		spread.median ? ": " : "", spread.median ? times : "", spread.median ? " times the median" : "");
	*odd = add(of->process, like, name, NODE_MODULE);
	node = &of->process->asides->nodes[odd->node];
	node->is_group = true;
	node->total_ns = of->process->gpu_ns ? spread.odd->cpu_ns : spread.odd_ns;
	if (spread.odd->gpu_ns) {
		struct node_gpu *gpu = tree_gpu(of->process->asides, odd->node);

		gpu->total_ns = spread.odd->gpu_ns;
		gpu->total_calls = 1;
	}
	return true;
}

bool asides_moved(const struct row *of, const struct row *like, struct row *moved)
{
	const struct node *node = &of->tree->nodes[of->node];
	const struct text name = text_of(of->process->texts, node->name);
	uint64_t rest;

	if (node->kind != NODE_BACKWARD || !node->calls || name.length != strlen("(backward)") ||
		memcmp(name.bytes, "(backward)", name.length) != 0)
		return false;
	rest = node->total_ns - node->self_ns;
	for (uint32_t id = node->first_child; id; id = of->tree->nodes[id].next)
		if (node_kind_class(of->tree->nodes[id].kind) == NODE_RANGES && rest >= of->tree->nodes[id].total_ns)
			rest -= of->tree->nodes[id].total_ns;
	if (!rest)
		return false;
	*moved = add(of->process, like, "(shown in modules, as (bwd))", NODE_BACKWARD);
	of->process->asides->nodes[moved->node].total_ns = rest;
	of->process->asides->nodes[moved->node].is_group = true;
	return true;
}
