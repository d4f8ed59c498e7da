/* SPDX-License-Identifier: MIT */
#include "report/analysis/tree_amounts.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <stdlib.h>
#include <string.h>

const struct tree_amount_facts tree_amounts[AMOUNT_COUNT] = {
#define X(amount, key, unit, title, help) [AMOUNT_##amount] = { key, unit, title, help },
	TREE_AMOUNTS(X)
#undef X
};

enum tree_amount tree_amount_find(const char *key)
{
	enum tree_amount amount = 0;

	while (amount < AMOUNT_COUNT && strcmp(tree_amounts[amount].key, key) != 0)
		amount++;
	return amount;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Start/end ranges overlap and cross threads, so they are no time of a thread. */
static bool is_async(const struct tree *tree, const struct node *node)
{
	return node->kind == NODE_ASYNC || tree->nodes[node->parent].kind == NODE_ASYNC;
}

/* ---- times ---- */

static uint64_t gpu_total(const struct node *node)
{
	return node->gpu ? node->gpu->total_ns : 0;
}

static uint64_t idle_total(const struct node *node)
{
	return node->gpu ? node->gpu->idle_before_ns : 0;
}

/* Takes from the total of each node that of the nodes below it. */
static void set_own(
	const struct tree *tree, uint64_t (*total)(const struct node *node), uint64_t *amounts)
{
	for (uint32_t id = 1; id < tree->count; id++)
		amounts[id] = total(&tree->nodes[id]);
	for (uint32_t id = 1; id < tree->count; id++)
		if (tree->nodes[id].parent)
			amounts[tree->nodes[id].parent] = minus(
				amounts[tree->nodes[id].parent], total(&tree->nodes[id]));
}

/* The time of a range that is in none inside it, and in no CUDA call; and that of CUDA calls. */
static void set_cpu(const struct tree *tree, uint64_t *amounts)
{
	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];

		if (is_async(tree, node))
			continue;
		if (node_kind_class(node->kind) == NODE_RANGES)
			amounts[id] += node->self_ns;
		else if (node_kind_class(node->kind) == NODE_CALLS && node->kind != NODE_MARK) {
			amounts[id] = node->total_ns;
			amounts[node->parent] = minus(amounts[node->parent], node->total_ns);
		}
	}
}

/* `wall`: also of threads that did not run. */
static void set_sampled(const struct profile *profile, bool wall, uint64_t *amounts)
{
	const struct sample_sums *all = &profile->sampled;

	if (wall && !all->waits_ns && !all->blocked_ns)
		return;
	for (uint32_t id = 1; id < profile->tree->count; id++)
		if (profile->tree->nodes[id].sampled) {
			const struct sample_sums *self = &profile->tree->nodes[id].sampled->self;

			amounts[id] = self->cpu_ns + (wall ? self->waits_ns + self->blocked_ns : 0);
		}
}

static void set_calls(const struct tree *tree, uint64_t *amounts)
{
	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];

		if (node_kind_class(node->kind) == NODE_WORK)
			amounts[id] = node->gpu && !node->captured ? node->gpu->self_calls : 0;
		else if (!node->is_group && node->kind != NODE_UNATTRIBUTED)
			amounts[id] = node->calls;
	}
}

/* ---- memory ---- */

static void set_tensors(const struct tree *tree, enum tree_amount amount, uint64_t *amounts)
{
	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node_tensors *tensors = tree->nodes[id].tensors;

		if (tensors)
			amounts[id] = amount == AMOUNT_HELD ? tensors->self.at_peak
							    : tensors->self.alloc_bytes;
	}
}

static void set_alloc(const struct tree *tree, uint64_t *amounts)
{
	for (uint32_t id = 1; id < tree->count; id++)
		if (tree->nodes[id].memory && node_kind_class(tree->nodes[id].kind) == NODE_RANGES)
			amounts[id] = tree->nodes[id].memory->alloc_self;
}

static void set_reserved(const struct profile *profile, uint64_t *amounts)
{
	const struct memory_owners *memory = profile->memory;

	for (uint32_t i = 0; i < memory->site_count; i++) {
		const struct memory_site *site = &memory->sites[i];
		const struct memory_level *level = &memory->levels[site->level];

		if (memory_is_device(level->kind) && level->device == profile->totals.level_device)
			amounts[site->node] += site->flow.at_peak;
	}
}

/* Returns what was held at a peak and is in no node, whose sum is `known`. Of device memory nothing
 * is known to be missing if no allocation was recorded. */
static uint64_t unrecorded(const struct profile *profile, enum tree_amount amount, uint64_t known)
{
	if (amount == AMOUNT_HELD && profile->totals.allocated_peak > 0)
		return minus((uint64_t)profile->totals.allocated_peak, known);
	if (amount == AMOUNT_RESERVED && profile->totals.reserved_peak > 0 && known)
		return minus((uint64_t)profile->totals.reserved_peak, known);
	return 0;
}

const char *tree_amount_unrecorded(const struct profile *profile)
{
	return profile->options.windows ? "(allocated while nothing was recorded)"
					: "(allocated before the trace began)";
}

uint64_t *tree_amounts_of(const struct profile *profile, enum tree_amount amount, uint64_t *sum)
{
	const struct tree *tree = profile->tree;
	uint64_t *amounts = xcalloc(tree->count * sizeof *amounts);

	switch (amount) {
	case AMOUNT_GPU:
		set_own(tree, gpu_total, amounts);
		break;
	case AMOUNT_IDLE: /* not charged where recording windows interrupt the trace */
		if (!profile->options.windows)
			set_own(tree, idle_total, amounts);
		break;
	case AMOUNT_CPU:
		set_cpu(tree, amounts);
		break;
	case AMOUNT_SAMPLED:
	case AMOUNT_SAMPLED_WALL:
		set_sampled(profile, amount == AMOUNT_SAMPLED_WALL, amounts);
		break;
	case AMOUNT_CALLS:
		set_calls(tree, amounts);
		break;
	case AMOUNT_TENSORS:
	case AMOUNT_HELD:
		set_tensors(tree, amount, amounts);
		break;
	case AMOUNT_ALLOC:
		set_alloc(tree, amounts);
		break;
	case AMOUNT_RESERVED:
		set_reserved(profile, amounts);
		break;
	case AMOUNT_COUNT:
		break;
	}
	*sum = 0;
	for (uint32_t id = 1; id < tree->count; id++)
		*sum += amounts[id];
	amounts[0] = unrecorded(profile, amount, *sum);
	*sum += amounts[0];
	return amounts;
}
