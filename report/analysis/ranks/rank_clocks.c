/* SPDX-License-Identifier: MIT
 *
 * Aligns the clocks of the ranks along a spanning tree. From a reference, the tree grows by groups:
 * of the groups with an aligned member, the one with the most common ends is next; of equal ones,
 * that with the lowest rank. Each of its other members is fitted once, to one member: the lowest
 * aligned rank, of the ranks with a whole trace if there are any. Ranks that share no group with
 * the tree become further islands, each with a reference of its own.
 */
#include "report/analysis/ranks/rank_set.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <stdlib.h>

/* A group of a rank. */
struct membership {
	uint32_t rank, group, member; /* member: index in the group */
};

struct clock_tree {
	struct ranks *ranks;
	struct membership *memberships; /* sorted by rank, then group */
	size_t *first;                  /* by rank: its first one; one more at the end */
	size_t *ends;                   /* by group: collectives that end together */
	bool *reached;                  /* by group: it is or was in the heap */
	struct ready_group *heap;
	size_t heap_count;
};

/* A group with an aligned member. */
struct ready_group {
	size_t ends;
	uint32_t rank, group; /* rank: the first member that was aligned */
};

int64_t ranks_time(const struct ranks *ranks, uint32_t rank, int64_t time_ns)
{
	return theil_sen_map(&ranks->all[rank].fit, time_ns);
}

/* ---- the groups of each rank ---- */

COMPARE_BY_THREE(by_rank, struct membership, rank, group, member)

static void list_memberships(struct clock_tree *tree)
{
	const struct ranks *ranks = tree->ranks;
	size_t count = 0, room = 0;

	for (uint32_t group = 0; group < ranks->group_count; group++)
		for (uint32_t m = 0; m < ranks->groups[group].count; m++)
			*ARRAY_ADD(tree->memberships, room, count) = (struct membership){
				ranks->groups[group].members[m].rank, group, m
			};
	if (count)
		qsort(tree->memberships, count, sizeof *tree->memberships, by_rank);
	tree->first = xcalloc((ranks->count + 1) * sizeof *tree->first);
	for (size_t i = 0; i < count; i++)
		tree->first[tree->memberships[i].rank + 1]++;
	for (size_t rank = 0; rank < ranks->count; rank++)
		tree->first[rank + 1] += tree->first[rank];
}

static size_t count_ends(const struct ranks *ranks, const struct collective_group *group)
{
	const struct rank_communicator *longest = &group->members[group->longest];
	size_t ends = 0;

	for (int64_t i = group->begin; i < group->end; i++) {
		const struct collective *collective = group_collective(ranks, longest, i);

		ends += collective && collective_together(collective->kind);
	}
	return ends;
}

/* ---- the heap of groups that are ready ---- */

static bool is_before(const struct ready_group *left, const struct ready_group *right)
{
	if (left->ends != right->ends)
		return left->ends > right->ends;
	return left->rank != right->rank ? left->rank < right->rank : left->group < right->group;
}

static void swap_ready(struct ready_group *left, struct ready_group *right)
{
	const struct ready_group kept = *left;

	*left = *right;
	*right = kept;
}

static void push_group(struct clock_tree *tree, uint32_t group, uint32_t rank)
{
	size_t at = tree->heap_count++;

	tree->reached[group] = true;
	tree->heap[at] = (struct ready_group){ tree->ends[group], rank, group };
	for (; at && is_before(&tree->heap[at], &tree->heap[(at - 1) / 2]); at = (at - 1) / 2)
		swap_ready(&tree->heap[at], &tree->heap[(at - 1) / 2]);
}

static struct ready_group pop_group(struct clock_tree *tree)
{
	const struct ready_group top = tree->heap[0];

	tree->heap[0] = tree->heap[--tree->heap_count];
	for (size_t at = 0, child; (child = 2 * at + 1) < tree->heap_count; at = child) {
		if (child + 1 < tree->heap_count &&
			is_before(&tree->heap[child + 1], &tree->heap[child]))
			child++;
		if (!is_before(&tree->heap[child], &tree->heap[at]))
			break;
		swap_ready(&tree->heap[child], &tree->heap[at]);
	}
	return top;
}

/* ---- fits ---- */

struct moment_list {
	struct clock_readings *pairs;
	size_t count, room;
};

/* Adds the common ends of two members, those of `one` on the clock of its island. */
static void add_group_ends(const struct ranks *ranks, const struct collective_group *group,
	const struct rank_communicator *one, const struct rank_communicator *other,
	struct moment_list *list)
{
	for (int64_t i = group->begin; i < group->end; i++) {
		const struct collective *left = group_collective(ranks, one, i),
					*right = group_collective(ranks, other, i);

		if (left && right && collective_together(left->kind))
			*ARRAY_ADD(list->pairs, list->room, list->count) = (struct clock_readings){
				ranks_time(ranks, one->rank, left->end_ns), right->end_ns
			};
	}
}

/* Returns the times at which common collectives of two ranks ended, over all groups that both are
 * in. The caller frees the pairs. */
static struct moment_list common_ends(const struct clock_tree *tree, uint32_t from, uint32_t to)
{
	const struct membership *one = tree->memberships + tree->first[from],
				*one_end = tree->memberships + tree->first[from + 1],
				*other = tree->memberships + tree->first[to],
				*other_end = tree->memberships + tree->first[to + 1];
	struct moment_list list = { .count = 0 };

	while (one < one_end && other < other_end) {
		const struct collective_group *group = &tree->ranks->groups[one->group];

		if (one->group < other->group) {
			one++;
		} else if (other->group < one->group) {
			other++;
		} else {
			add_group_ends(tree->ranks, group, &group->members[one->member],
				&group->members[other->member], &list);
			one++;
			other++;
		}
	}
	return list;
}

COMPARE_BY(by_own_ns, struct clock_readings, own_ns)

/* Fits the clock of `to` to that of `from`. Returns whether there were enough common ends. */
static bool fit_clock(const struct clock_tree *tree, uint32_t from, uint32_t to)
{
	struct rank_process *rank = &tree->ranks->all[to];
	struct moment_list list = common_ends(tree, from, to);
	struct theil_sen_fit fit;

	if (list.pairs)
		qsort(list.pairs, list.count, sizeof *list.pairs, by_own_ns);
	fit = theil_sen_fit(list.pairs, list.count);
	free(list.pairs);
	if (!fit.pairs)
		return false;
	rank->fit = fit;
	rank->aligned_with = from;
	return true;
}

/* ---- the tree ---- */

static bool is_whole(const struct ranks *ranks, uint32_t rank)
{
	return ranks->all[rank].input->status == RANK_INPUT_OK;
}

/* Adds a rank to an island. Its groups become ready. */
static void reach_rank(struct clock_tree *tree, uint32_t rank, uint32_t island)
{
	tree->ranks->all[rank].island = island;
	tree->ranks->islands[island].count++;
	for (size_t i = tree->first[rank]; i < tree->first[rank + 1]; i++)
		if (!tree->reached[tree->memberships[i].group])
			push_group(tree, tree->memberships[i].group, rank);
}

/* Returns the member that the others are fitted to. */
static uint32_t hub_of(
	const struct ranks *ranks, const struct collective_group *group, uint32_t island)
{
	uint32_t hub = UINT32_MAX;

	for (size_t m = 0; m < group->count; m++) {
		const uint32_t rank = group->members[m].rank;

		if (ranks->all[rank].island != island)
			continue;
		if (is_whole(ranks, rank))
			return rank;
		if (hub == UINT32_MAX)
			hub = rank;
	}
	return hub;
}

static void grow_by_group(struct clock_tree *tree, uint32_t group_index, uint32_t island)
{
	const struct collective_group *group = &tree->ranks->groups[group_index];
	const uint32_t hub = hub_of(tree->ranks, group, island);

	for (size_t m = 0; m < group->count; m++) {
		const uint32_t rank = group->members[m].rank;

		if (tree->ranks->all[rank].island == RANKS_NO_ISLAND && fit_clock(tree, hub, rank))
			reach_rank(tree, rank, island);
	}
}

/* Grows an island from a reference. A rank that no other can be aligned to is none. */
static void grow_island(struct clock_tree *tree, uint32_t reference)
{
	struct ranks *ranks = tree->ranks;
	const uint32_t island = (uint32_t)ranks->island_count;

	*ARRAY_ADD(ranks->islands, ranks->island_room,
		ranks->island_count) = (struct rank_island){ .reference = reference };
	reach_rank(tree, reference, island);
	while (tree->heap_count)
		grow_by_group(tree, pop_group(tree).group, island);
	if (ranks->islands[island].count > 1)
		return;
	ranks->all[reference].island = RANKS_NO_ISLAND;
	ranks->island_count--;
	/* Others of its groups may be aligned with each other. */
	for (size_t i = tree->first[reference]; i < tree->first[reference + 1]; i++)
		tree->reached[tree->memberships[i].group] = false;
}

/* Grows islands from ranks with whole traces, or from the others. */
static void grow_islands(struct clock_tree *tree, bool whole)
{
	for (uint32_t rank = 0; rank < tree->ranks->count; rank++)
		if (tree->ranks->all[rank].island == RANKS_NO_ISLAND &&
			is_whole(tree->ranks, rank) == whole)
			grow_island(tree, rank);
}

/* Sets the island of most members. */
static void set_group_island(const struct ranks *ranks, struct collective_group *group)
{
	size_t most = 0;

	for (size_t m = 0; m < group->count; m++) {
		const uint32_t island = ranks->all[group->members[m].rank].island;
		size_t count = 0;

		if (island == RANKS_NO_ISLAND || island == group->island)
			continue;
		for (size_t k = 0; k < group->count; k++)
			count += ranks->all[group->members[k].rank].island == island;
		if (count > most) {
			most = count;
			group->island = island;
		}
	}
}

/* Chooses the reference: that of the largest island, or rank 0 if there is none. */
static void set_reference(struct ranks *ranks)
{
	uint32_t largest = RANKS_NO_ISLAND;

	for (uint32_t i = 0; i < ranks->island_count; i++)
		if (largest == RANKS_NO_ISLAND ||
			ranks->islands[i].count > ranks->islands[largest].count)
			largest = i;
	ranks->reference = largest == RANKS_NO_ISLAND ? 0 : ranks->islands[largest].reference;
	for (uint32_t rank = 0; rank < ranks->count; rank++) {
		ranks->all[rank].aligned = rank == ranks->reference ||
					   (largest != RANKS_NO_ISLAND &&
						   ranks->all[rank].island == largest);
		if (!ranks->all[rank].aligned)
			ranks->all[rank].unaligned_reason = ranks_explain_unaligned(ranks, rank);
	}
}

void ranks_align_clocks(struct ranks *ranks)
{
	struct clock_tree tree = { .ranks = ranks };

	list_memberships(&tree);
	tree.ends = xcalloc((ranks->group_count + 1) * sizeof *tree.ends);
	tree.reached = xcalloc((ranks->group_count + 1) * sizeof *tree.reached);
	tree.heap = xcalloc((ranks->group_count + 1) * sizeof *tree.heap);
	for (size_t i = 0; i < ranks->group_count; i++)
		tree.ends[i] = count_ends(ranks, &ranks->groups[i]);
	for (uint32_t rank = 0; rank < ranks->count; rank++)
		ranks->all[rank].island = RANKS_NO_ISLAND;
	grow_islands(&tree, true);
	grow_islands(&tree, false);
	for (size_t i = 0; i < ranks->group_count; i++)
		set_group_island(ranks, &ranks->groups[i]);
	set_reference(ranks);
	free(tree.memberships);
	free(tree.first);
	free(tree.ends);
	free(tree.reached);
	free(tree.heap);
}
