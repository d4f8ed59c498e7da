/* SPDX-License-Identifier: MIT
 * Checks that nothing is owned twice, and nothing is lost between the records and the tree.
 */
#include "report/profile/profile.h"
#include <stdio.h>

struct profile_sums {
	uint64_t ranges_ns, work_ns, unattributed_ns, records;
	uint64_t roots_ns, alloc_bytes, free_bytes, root_alloc, root_free;
	struct tensor_sums tensors, root_tensors;
};

static void add_tensor_sums(struct tensor_sums *sum, const struct tensor_sums *part)
{
	sum->alloc_bytes += part->alloc_bytes;
	sum->free_bytes += part->free_bytes;
}

static void add_node_to_sums(struct profile_sums *sums, const struct profile *profile, uint32_t id)
{
	const struct node *node = &profile->tree->nodes[id];
	const enum node_class class = node_kind_class(node->kind);

	if (node->gpu && class == NODE_RANGES && !node->captured) {
		sums->ranges_ns += node->gpu->self_ns;
		sums->records += node->gpu->self_calls;
		if (node->kind == NODE_UNATTRIBUTED)
			sums->unattributed_ns += node->gpu->self_ns;
		if (node->parent == 0)
			sums->roots_ns += node->gpu->total_ns;
	}
	if (node->gpu && class == NODE_WORK && node->kind != NODE_GRAPH)
		sums->work_ns += node->gpu->self_ns;
	if (node->memory && class == NODE_RANGES) {
		sums->alloc_bytes += node->memory->alloc_self;
		sums->free_bytes += node->memory->free_self;
		if (node->parent == 0) {
			sums->root_alloc += node->memory->alloc_bytes;
			sums->root_free += node->memory->free_bytes;
		}
	}
	if (node->tensors)
		add_tensor_sums(&sums->tensors, &node->tensors->self);
	if (node->tensors && node->parent == 0)
		add_tensor_sums(&sums->root_tensors, &node->tensors->total);
}

static bool tensors_conserved(const struct profile_totals *totals, const struct profile_sums *sums,
	char *problem, size_t room)
{
	if (sums->tensors.alloc_bytes == totals->tensor_alloc_bytes &&
		sums->tensors.free_bytes == totals->tensor_free_bytes &&
		sums->root_tensors.alloc_bytes == totals->tensor_alloc_bytes &&
		sums->root_tensors.free_bytes == totals->tensor_free_bytes)
		return true;
	snprintf(problem, room,
		"tensors are not conserved: %llu bytes were allocated, ranges own %llu; %llu were "
		"freed, ranges own %llu",
		(unsigned long long)totals->tensor_alloc_bytes,
		(unsigned long long)sums->tensors.alloc_bytes,
		(unsigned long long)totals->tensor_free_bytes,
		(unsigned long long)sums->tensors.free_bytes);
	return false;
}

bool profile_check_conservation(const struct profile *profile, char *problem, size_t room)
{
	const struct profile_totals *totals = &profile->totals;
	const uint64_t records = profile->counts.kernels + profile->counts.copies +
				 profile->counts.sets;
	struct profile_sums sums = { .records = 0 };

	for (uint32_t id = 1; id < profile->tree->count; id++)
		add_node_to_sums(&sums, profile, id);
	if (totals->attributed_ns + totals->unattributed_ns != totals->gpu_sum_ns ||
		sums.ranges_ns != totals->gpu_sum_ns || sums.work_ns != totals->gpu_sum_ns ||
		sums.roots_ns != totals->gpu_sum_ns ||
		sums.unattributed_ns != totals->unattributed_ns) {
		snprintf(problem, room,
			"GPU time is not conserved: the records have %llu ns, ranges own %llu ns, "
			"kernels and copies have %llu ns, the roots add up to %llu ns",
			(unsigned long long)totals->gpu_sum_ns, (unsigned long long)sums.ranges_ns,
			(unsigned long long)sums.work_ns, (unsigned long long)sums.roots_ns);
		return false;
	}
	if (sums.alloc_bytes != totals->alloc_bytes || sums.free_bytes != totals->free_bytes ||
		sums.root_alloc != totals->alloc_bytes || sums.root_free != totals->free_bytes) {
		snprintf(problem, room,
			"memory is not conserved: %llu bytes were allocated, ranges own %llu; %llu "
			"were freed, ranges own %llu",
			(unsigned long long)totals->alloc_bytes,
			(unsigned long long)sums.alloc_bytes,
			(unsigned long long)totals->free_bytes,
			(unsigned long long)sums.free_bytes);
		return false;
	}
	if (!tensors_conserved(totals, &sums, problem, room))
		return false;
	if (profile->counts.attributed + profile->counts.unattributed != records) {
		snprintf(problem, room,
			"GPU records are not conserved: %llu were read, %llu have a range, %llu "
			"have none",
			(unsigned long long)records, (unsigned long long)profile->counts.attributed,
			(unsigned long long)profile->counts.unattributed);
		return false;
	}
	return true;
}
