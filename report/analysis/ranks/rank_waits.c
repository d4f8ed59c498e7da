/* SPDX-License-Identifier: MIT
 *
 * Computes for each matched collective, on the reference's clock, which rank began last, how long
 * the others waited, and how long the transfer took.
 */
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/analysis/ranks/rank_set.h"
#include "report/text/format_number.h"
#include <stdlib.h>

/* The starts of one collective over the members that have it. */
struct instance_times {
	const struct rank_communicator *last;
	int64_t last_start, second_start; /* on the clock of the island */
	uint64_t tolerance_ns;            /* largest residual of the clock fits */
	uint32_t present;
};

static struct instance_times instance_times_of(
	const struct ranks *ranks, const struct collective_group *group, int64_t instance)
{
	struct instance_times times = {
		.last = NULL, .last_start = INT64_MIN, .second_start = INT64_MIN
	};

	for (size_t m = 0; m < group->count; m++) {
		const struct rank_communicator *member = &group->members[m];
		const struct collective *collective = group_comparable(
			ranks, group, member, instance);
		int64_t start;

		if (!collective)
			continue;
		times.present++;
		start = ranks_time(ranks, member->rank, collective->start_ns);
		times.tolerance_ns = max_u64(
			times.tolerance_ns, ranks->all[member->rank].fit.residual_ns);
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

static uint64_t sum_bytes(uint64_t sum, uint64_t bytes)
{
	return sum + min_u64(bytes, UINT64_MAX - sum);
}

static void add_rates(struct transfer_rate *sum, const struct transfer_rate *rate)
{
	sum->bytes = sum_bytes(sum->bytes, rate->bytes);
	sum->bytes_ns += rate->bytes_ns;
	sum->bus_bytes = sum_bytes(sum->bus_bytes, rate->bus_bytes);
	sum->bus_ns += rate->bus_ns;
	sum->residual_ns += rate->residual_ns;
}

/* Adds the transfer of one rank's collective, if its size is known. */
static void add_transfer(struct transfer_rate *rate, const struct collective *collective,
	uint64_t transfer_ns, uint64_t residual_ns)
{
	if (!collective->bytes)
		return;
	add_rates(rate, &(struct transfer_rate){ .bytes = collective->bytes,
				.bytes_ns = transfer_ns,
				.bus_bytes = collective->bus_bytes,
				.bus_ns = collective->bus_bytes ? transfer_ns : 0,
				.residual_ns = residual_ns });
}

uint64_t collective_row_rate(const struct collective_row *row, bool on_bus)
{
	const struct transfer_rate *rate = &row->rate;
	const uint64_t bytes = on_bus ? rate->bus_bytes : rate->bytes,
		       ns = on_bus ? rate->bus_ns : rate->bytes_ns;

	if (!ns || rate->bytes_ns < rate->residual_ns * RANKS_RATE_RESIDUALS)
		return 0;
	return clamp_to_u64((double)bytes * 1e9 / (double)ns);
}

static void add_outcome(struct ranks *ranks, uint32_t group_index, int64_t instance,
	const struct instance_times *times)
{
	const struct collective_group *group = &ranks->groups[group_index];
	const uint64_t late = (uint64_t)(times->last_start - times->second_start);
	struct outcome outcome = { .group = group_index,
		.instance = instance,
		.present = times->present,
		.last = UINT32_MAX,
		.late_ns = late,
		.last_start_ns = times->last_start };

	if (late > times->tolerance_ns)
		outcome.last = times->last->rank;
	for (size_t m = 0; m < group->count; m++) {
		struct collective *collective = group_comparable(
			ranks, group, &group->members[m], instance);
		const uint32_t index = group->members[m].rank;
		struct rank_sums *sums = &ranks->all[index].sums;
		uint64_t wait;

		if (!collective)
			continue;
		wait = wait_until(ranks, index, collective, times->last_start);
		collective->outcome = (uint32_t)ranks->outcome_count;
		outcome.kind = collective->kind;
		outcome.wait_ns += wait;
		outcome.transfer_ns += collective_time(collective) - wait;
		outcome.exposed_ns += collective->exposed_ns;
		add_transfer(&outcome.rate, collective, collective_time(collective) - wait,
			times->tolerance_ns);
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
	ranks->incomplete += outcome.present < group->count;
	*ARRAY_ADD(ranks->outcomes, ranks->outcome_room, ranks->outcome_count) = outcome;
}

struct lateness {
	uint32_t rank;
	uint64_t late_ns;
};

COMPARE_BY_TWO(by_rank_and_lateness, struct lateness, rank, late_ns)

static uint64_t median_lateness(const struct lateness *values, size_t count)
{
	const uint64_t low = values[(count - 1) / 2].late_ns, high = values[count / 2].late_ns;

	return low + (high - low) / 2;
}

static void set_median_lateness(struct ranks *ranks)
{
	struct lateness *values = xcalloc((ranks->outcome_count + 1) * sizeof *values);
	size_t count = 0;

	for (size_t i = 0; i < ranks->outcome_count; i++)
		if (ranks->outcomes[i].last != UINT32_MAX)
			values[count++] = (struct lateness){ ranks->outcomes[i].last,
				ranks->outcomes[i].late_ns };
	qsort(values, count, sizeof *values, by_rank_and_lateness);
	for (size_t first = 0, next; first < count; first = next) {
		for (next = first; next < count && values[next].rank == values[first].rank;)
			next++;
		ranks->all[values[first].rank].sums.late_median_ns = median_lateness(
			values + first, next - first);
	}
	free(values);
}

static void count_unmatched(struct rank_process *rank)
{
	for (size_t i = 0; i < rank->collectives->count; i++)
		if (rank->collectives->all[i].outcome == UINT32_MAX &&
			!collective_is_lost(&rank->collectives->all[i])) {
			rank->sums.unmatched++;
			rank->sums.unmatched_ns += collective_time(&rank->collectives->all[i]);
		}
}

/* ---- rows by kind and place ---- */

static struct collective_row *collective_row_of(struct ranks *ranks, uint8_t kind, uint32_t place)
{
	for (size_t i = 0; i < ranks->row_count; i++)
		if (ranks->rows[i].kind == kind && ranks->rows[i].place == place)
			return &ranks->rows[i];
	ARRAY_GROW(ranks->rows, ranks->row_room, ranks->row_count + 1);
	ranks->rows[ranks->row_count] = (struct collective_row){
		.kind = kind, .place = place, .last_rank = UINT32_MAX
	};
	return &ranks->rows[ranks->row_count++];
}

/* Returns the place of the reference's collective, else that of the first member whose places are
 * known; 0: no member's are. */
static uint32_t place_of(const struct ranks *ranks, const struct outcome *outcome)
{
	const struct collective_group *group = &ranks->groups[outcome->group];
	bool found = false;
	uint32_t place = 0;

	for (size_t m = 0; m < group->count; m++) {
		const struct rank_communicator *member = &group->members[m];
		const struct collective *collective;

		if (!ranks->all[member->rank].read_again ||
			(found && member->rank != ranks->reference))
			continue;
		collective = group_comparable(ranks, group, member, outcome->instance);
		if (collective)
			place = collective->place;
		found |= collective != NULL;
	}
	return place;
}

static int by_longest_wait(const void *a, const void *b)
{
	const struct collective_row *left = a, *right = b;

	if (left->wait_ns != right->wait_ns)
		return left->wait_ns > right->wait_ns ? -1 : 1;
	if (left->transfer_ns != right->transfer_ns)
		return left->transfer_ns > right->transfer_ns ? -1 : 1;
	return left->kind != right->kind ? (left->kind < right->kind ? -1 : 1)
					 : COMPARE(left->place, right->place);
}

static void add_outcome_to_row(
	struct collective_row *row, const struct outcome *outcome, uint64_t *last_of_rank)
{
	row->count++;
	row->wait_ns += outcome->wait_ns;
	row->transfer_ns += outcome->transfer_ns;
	row->exposed_ns += outcome->exposed_ns;
	add_rates(&row->rate, &outcome->rate);
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
			ranks, outcome->kind, place_of(ranks, outcome));
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
		for (int64_t k = ranks->groups[i].begin; k < ranks->groups[i].end; k++) {
			const struct instance_times times = instance_times_of(
				ranks, &ranks->groups[i], k);

			if (times.present >= ranks->groups[i].quorum)
				add_outcome(ranks, i, k, &times);
		}
	set_median_lateness(ranks);
	for (uint32_t i = 0; i < ranks->count; i++)
		count_unmatched(&ranks->all[i]);
}

COMPARE_POINTERS_BY_LARGEST(by_exposed, struct collective_row, exposed_ns)

const struct collective_row **ranks_exposed_rows(const struct ranks *ranks, size_t *count)
{
	const struct collective_row **rows = xcalloc((ranks->row_count + 1) * sizeof *rows);

	*count = 0;
	for (size_t i = 0; i < ranks->row_count; i++)
		if (ranks->rows[i].exposed_ns)
			rows[(*count)++] = &ranks->rows[i];
	qsort(rows, *count, sizeof *rows, by_exposed);
	return rows;
}

uint64_t ranks_exposed_ns(const struct ranks *ranks)
{
	uint64_t exposed_ns = 0;

	for (size_t i = 0; i < ranks->count; i++)
		exposed_ns += ranks->all[i].input->totals.gpu_exposed_communication_ns;
	return exposed_ns;
}
