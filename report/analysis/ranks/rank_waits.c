/* SPDX-License-Identifier: MIT
 *
 * Computes for each matched collective, on the reference's clock, which rank began last, how long
 * the others waited, and how long the transfer took.
 */
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/analysis/ranks/rank_set.h"
#include <stdlib.h>

/* The starts of one collective over all members. */
struct instance_times {
	const struct rank_communicator *last;
	int64_t last_start, second_start; /* on the reference's clock */
	uint64_t tolerance_ns;            /* largest residual of the clock fits */
	bool whole; /* every member has this collective, and its rank is aligned */
};

static struct instance_times instance_times_of(
	const struct ranks *ranks, const struct collective_group *group, size_t instance)
{
	struct instance_times times = { .last = NULL,
		.last_start = INT64_MIN,
		.second_start = INT64_MIN,
		.whole = group->count > 1 };

	for (size_t m = 0; m < group->count && times.whole; m++) {
		const struct rank_communicator *member = &group->members[m];
		const struct collective *collective = group_collective(ranks, member, instance);
		const struct rank_process *rank = &ranks->all[member->rank];
		int64_t start;

		if (!collective || !rank->aligned) {
			times.whole = false;
			break;
		}
		start = ranks_time(ranks, member->rank, collective->start_ns);
		if (rank->fit.residual_ns > times.tolerance_ns)
			times.tolerance_ns = rank->fit.residual_ns;
		if (!times.last || start > times.last_start) {
			times.second_start = times.last_start;
			times.last_start = start;
			times.last = member;
		} else if (start > times.second_start) {
			times.second_start = start;
		}
	}
	return times;
}

static uint64_t collective_time(const struct collective *collective)
{
	return (uint64_t)(collective->end_ns - collective->start_ns);
}

static uint64_t wait_until(const struct ranks *ranks, uint32_t rank,
	const struct collective *collective, int64_t last_start)
{
	const int64_t start = ranks_time(ranks, rank, collective->start_ns),
		      wait = last_start - start;

	if (wait <= 0)
		return 0;
	return (uint64_t)wait < collective_time(collective) ? (uint64_t)wait
							    : collective_time(collective);
}

uint64_t ranks_wait_ns(
	const struct ranks *ranks, uint32_t rank, const struct collective *collective)
{
	if (collective->outcome == UINT32_MAX)
		return 0;
	return wait_until(
		ranks, rank, collective, ranks->outcomes[collective->outcome].last_start_ns);
}

static void add_outcome(struct ranks *ranks, uint32_t group_index, size_t instance,
	const struct instance_times *times)
{
	const struct collective_group *group = &ranks->groups[group_index];
	const uint64_t late = (uint64_t)(times->last_start - times->second_start);
	struct outcome outcome = { .group = group_index,
		.instance = (uint32_t)instance,
		.last = UINT32_MAX,
		.late_ns = late,
		.last_start_ns = times->last_start };

	if (late > times->tolerance_ns)
		outcome.last = times->last->rank;
	for (size_t m = 0; m < group->count; m++) {
		struct collective *collective = group_collective(
			ranks, &group->members[m], instance);
		const uint32_t index = group->members[m].rank;
		struct rank_sums *sums = &ranks->all[index].sums;
		const uint64_t wait = wait_until(ranks, index, collective, times->last_start);

		collective->outcome = (uint32_t)ranks->outcome_count;
		outcome.kind = collective->kind;
		outcome.wait_ns += wait;
		outcome.transfer_ns += collective_time(collective) - wait;
		sums->matched++;
		sums->decided += outcome.last != UINT32_MAX;
		sums->wait_ns += wait;
		sums->transfer_ns += collective_time(collective) - wait;
		if (index == outcome.last) {
			sums->last++;
			sums->late_ns += late;
		}
	}
	*(outcome.last == UINT32_MAX ? &ranks->undecided : &ranks->decided) += 1;
	*ARRAY_ADD(ranks->outcomes, ranks->outcome_room, ranks->outcome_count) = outcome;
}

static void set_median_lateness(struct ranks *ranks, uint32_t rank)
{
	uint64_t *values = xcalloc((ranks->outcome_count + 1) * sizeof *values);
	size_t count = 0;

	for (size_t i = 0; i < ranks->outcome_count; i++)
		if (ranks->outcomes[i].last == rank)
			values[count++] = ranks->outcomes[i].late_ns;
	qsort(values, count, sizeof *values, compare_u64);
	if (count)
		ranks->all[rank].sums.late_median_ns =
			count % 2 ? values[count / 2]
				  : values[count / 2 - 1] +
					    (values[count / 2] - values[count / 2 - 1]) / 2;
	free(values);
}

static void count_unmatched(struct rank_process *rank)
{
	for (size_t i = 0; i < rank->collectives.count; i++)
		if (rank->collectives.all[i].outcome == UINT32_MAX) {
			rank->sums.unmatched++;
			rank->sums.unmatched_ns += collective_time(&rank->collectives.all[i]);
		}
}

/* ---- rows by kind and node ---- */

static struct collective_row *collective_row_of(struct ranks *ranks, uint8_t kind, uint32_t node)
{
	for (size_t i = 0; i < ranks->row_count; i++)
		if (ranks->rows[i].kind == kind && ranks->rows[i].node == node)
			return &ranks->rows[i];
	ARRAY_GROW(ranks->rows, ranks->row_room, ranks->row_count + 1);
	ranks->rows[ranks->row_count] = (struct collective_row){
		.kind = kind, .node = node, .last_rank = UINT32_MAX
	};
	return &ranks->rows[ranks->row_count++];
}

/* Returns the node in the reference's tree, or 0 if the reference is not a member: nodes of other
 * ranks are in other trees. */
static uint32_t collective_node_of(const struct ranks *ranks, const struct outcome *outcome)
{
	const struct collective_group *group = &ranks->groups[outcome->group];
	const struct collective *collective = group->members[0].rank == 0
						      ? group_collective(ranks, &group->members[0],
								outcome->instance)
						      : NULL;

	return collective ? collective->node : 0;
}

static int by_longest_wait(const void *a, const void *b)
{
	const struct collective_row *left = a, *right = b;

	if (left->wait_ns != right->wait_ns)
		return left->wait_ns > right->wait_ns ? -1 : 1;
	if (left->transfer_ns != right->transfer_ns)
		return left->transfer_ns > right->transfer_ns ? -1 : 1;
	return left->kind != right->kind ? (left->kind < right->kind ? -1 : 1)
					 : COMPARE(left->node, right->node);
}

static void add_outcome_to_row(
	struct collective_row *row, const struct outcome *outcome, uint64_t *last_of_rank)
{
	row->count++;
	row->wait_ns += outcome->wait_ns;
	row->transfer_ns += outcome->transfer_ns;
	if (outcome->last == UINT32_MAX)
		return;
	row->decided++;
	if (++last_of_rank[outcome->last] > row->last_count) {
		row->last_count = last_of_rank[outcome->last];
		row->last_rank = outcome->last;
	}
}

void ranks_make_rows(struct ranks *ranks)
{
	uint64_t *last = NULL; /* how often each rank was last, by row and rank */
	size_t room = 0;

	for (size_t i = 0; i < ranks->outcome_count; i++) {
		const struct outcome *outcome = &ranks->outcomes[i];
		struct collective_row *row = collective_row_of(
			ranks, outcome->kind, collective_node_of(ranks, outcome));
		const size_t at = (size_t)(row - ranks->rows) * ranks->count;

		ARRAY_GROW(last, room, at + ranks->count);
		add_outcome_to_row(row, outcome, last + at);
	}
	free(last);
	if (ranks->row_count)
		qsort(ranks->rows, ranks->row_count, sizeof *ranks->rows, by_longest_wait);
}

void ranks_compute_waits(struct ranks *ranks)
{
	for (uint32_t i = 0; i < ranks->group_count; i++)
		for (size_t k = 0; k < ranks->groups[i].instances; k++) {
			const struct instance_times times = instance_times_of(
				ranks, &ranks->groups[i], k);

			if (times.whole)
				add_outcome(ranks, i, k, &times);
		}
	for (uint32_t i = 0; i < ranks->count; i++) {
		set_median_lateness(ranks, i);
		count_unmatched(&ranks->all[i]);
	}
}
