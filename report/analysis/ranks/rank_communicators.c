/* SPDX-License-Identifier: MIT
 *
 * Matches the communicators of different ranks and aligns the clocks of the ranks. rank_set.h has
 * the rules.
 */
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/analysis/ranks/rank_set.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLED 48u /* collectives of two communicators that are compared in a trial */

static const struct communicator *communicator_of(
	const struct ranks *ranks, const struct rank_communicator *member)
{
	return &ranks->all[member->rank].collectives.communicators[member->communicator];
}

struct collective *group_collective(
	const struct ranks *ranks, const struct rank_communicator *member, size_t instance)
{
	const struct communicator *communicator = communicator_of(ranks, member);
	const int64_t index = (int64_t)instance + member->shift;
	const struct rank_process *rank = &ranks->all[member->rank];

	if (index < 0 || (size_t)index >= communicator->count)
		return NULL;
	return &rank->collectives.all[communicator->first + (size_t)index];
}

/* How well two communicators match if one is shifted. */
struct shift_trial {
	bool same; /* all kinds match */
	struct theil_sen_fit fit;
	uint64_t median_ns; /* median of the longer duration of each two collectives */
	size_t common;
};

static uint64_t collective_duration(const struct collective *collective)
{
	return (uint64_t)(collective->end_ns - collective->start_ns);
}

static bool kinds_match(const struct collective *left, const struct collective *right, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (left[i].kind != right[i].kind)
			return false;
	return true;
}

/* Compares collectives that end together, evenly sampled. No fit if the kinds differ. */
static struct shift_trial try_alignment(
	const struct collective *left, const struct collective *right, size_t count)
{
	const size_t stride = (count + SAMPLED - 1) / SAMPLED;
	struct shift_trial trial = { .common = count };
	struct clock_readings pairs[SAMPLED] = { { 0, 0 } };
	uint64_t durations[SAMPLED] = { 0 };
	size_t used = 0;

	if (!kinds_match(left, right, count))
		return trial;
	trial.same = count > 0;
	for (size_t i = 0; i < count; i += stride) {
		if (!collective_together(left[i].kind))
			continue;
		durations[used] = max_u64(
			collective_duration(&left[i]), collective_duration(&right[i]));
		pairs[used++] = (struct clock_readings){ left[i].end_ns, right[i].end_ns };
	}
	trial.fit = theil_sen_fit(pairs, used);
	qsort(durations, used, sizeof *durations, compare_u64);
	trial.median_ns = used ? durations[used / 2] : 0;
	return trial;
}

static struct shift_trial try_shift(const struct ranks *ranks,
	const struct rank_communicator *first, const struct rank_communicator *other, int64_t shift)
{
	const struct communicator *a = communicator_of(ranks, first),
				  *b = communicator_of(ranks, other);
	const size_t from_a = shift < 0 ? (size_t)-shift : 0,
		     from_b = shift > 0 ? (size_t)shift : 0;
	size_t count;

	if (from_a >= a->count || from_b >= b->count)
		return (struct shift_trial){ .common = 0 };
	count = a->count - from_a < b->count - from_b ? a->count - from_a : b->count - from_b;
	return try_alignment(&ranks->all[first->rank].collectives.all[a->first + from_a],
		&ranks->all[other->rank].collectives.all[b->first + from_b], count);
}

static bool is_good_fit(const struct shift_trial *trial)
{
	return trial->same && trial->fit.pairs &&
	       trial->fit.residual_ns <= (trial->median_ns / 2 > RANK_RESIDUAL_MAX_NS
							 ? trial->median_ns / 2
							 : RANK_RESIDUAL_MAX_NS);
}

/* Tries the shift by which the sequence numbers of the first collectives differ, if the traces have
 * these numbers. Returns whether it fits. */
static bool by_sequence(const struct ranks *ranks, const struct rank_communicator *first,
	struct rank_communicator *other, struct shift_trial *best)
{
	const int64_t mine = communicator_of(ranks, first)->sequence,
		      theirs = communicator_of(ranks, other)->sequence;
	struct shift_trial trial = { .same = false };

	if (mine >= 0 && theirs >= 0)
		trial = try_shift(ranks, first, other, mine - theirs);
	if (!is_good_fit(&trial))
		return false;
	*best = trial;
	other->shift = mine - theirs;
	return true;
}

/* Whether a shift is clearly better. `count`: collectives of the communicator with fewer. */
static bool is_better_shift(
	const struct shift_trial *trial, const struct shift_trial *best, size_t count)
{
	return is_good_fit(trial) && trial->common * 2 >= count &&
	       !(is_good_fit(best) && trial->fit.residual_ns * 4 + 1000 >= best->fit.residual_ns);
}

/* Finds the best shift. A shift other than 0 must be clearly better. */
static struct shift_trial best_shift(const struct ranks *ranks,
	const struct rank_communicator *first, struct rank_communicator *other)
{
	const size_t first_count = communicator_of(ranks, first)->count,
		     other_count = communicator_of(ranks, other)->count;
	struct shift_trial best = try_shift(ranks, first, other, 0);

	other->shift = 0;
	if (by_sequence(ranks, first, other, &best) ||
		(first_count == other_count && is_good_fit(&best)))
		return best;
	for (int64_t i = 2; i <= 2 * RANKS_SHIFT_MAX + 1; i++) {
		const int64_t shift = i % 2 ? -(i / 2) : i / 2;
		const struct shift_trial trial = try_shift(ranks, first, other, shift);

		if (!is_better_shift(&trial, &best, min_u64(first_count, other_count)))
			continue;
		best = trial;
		other->shift = shift;
	}
	return best;
}

static bool has_rank(const struct collective_group *group, uint32_t rank)
{
	for (size_t i = 0; i < group->count; i++)
		if (group->members[i].rank == rank)
			return true;
	return false;
}

static void add_member(struct collective_group *group, struct rank_communicator member)
{
	*ARRAY_ADD(group->members, group->room, group->count) = member;
}

static void new_group(struct ranks *ranks, struct rank_communicator member)
{
	struct collective_group *group;

	group = ARRAY_ADD(ranks->groups, ranks->group_room, ranks->group_count);
	*group = (struct collective_group){ .instances = communicator_of(ranks, &member)->count };
	member.shift = 0;
	add_member(group, member);
}

/* Returns -1 if the process groups differ, 1 if they are equal, 0 if one is unknown. */
static int compare_process_groups(const struct ranks *ranks, const struct rank_communicator *first,
	const struct rank_communicator *other)
{
	const struct trace_text a = communicator_of(ranks, first)->group,
				b = communicator_of(ranks, other)->group;

	if (!a.known || !b.known)
		return 0;
	return a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0 ? 1 : -1;
}

/* Whether both have the key of one communicator of NCCL, or are the same pair of ranks. Then equal
 * counts in equal order are taken as equal: sends and receives do not end together, and a key needs
 * no ends. */
static bool is_named_same(const struct ranks *ranks, const struct rank_communicator *first,
	const struct rank_communicator *other, const struct shift_trial *trial)
{
	const struct communicator *a = communicator_of(ranks, first),
				  *b = communicator_of(ranks, other);

	return ((communicator_is_pair(a) && communicator_is_pair(b)) ||
		       (a->key && a->key == b->key)) &&
	       trial->same && a->count == b->count;
}

/* Whether two communicators may be one. `same`: their process groups are the same. */
static bool may_be_joined(const struct ranks *ranks, const struct rank_communicator *first,
	const struct rank_communicator *member, const struct shift_trial *trial, bool same,
	uint64_t least_ns)
{
	return is_named_same(ranks, first, member, trial) ||
	       (is_good_fit(trial) && (same || trial->fit.residual_ns < least_ns));
}

/* Adds a communicator to the group that it fits best, or to a new group. */
static void join_communicator(struct ranks *ranks, struct rank_communicator member)
{
	struct collective_group *best = NULL;
	struct rank_communicator as = member;
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < ranks->group_count; i++) {
		struct collective_group *group = &ranks->groups[i];
		const struct rank_communicator *first = &group->members[0];
		const int same = compare_process_groups(ranks, first, &member);
		struct rank_communicator tried = member;
		struct shift_trial trial;

		if (has_rank(group, member.rank) || same < 0)
			continue;
		trial = best_shift(ranks, first, &tried);
		if (!may_be_joined(ranks, first, &member, &trial, same != 0, least))
			continue;
		least = same ? 0 : trial.fit.residual_ns;
		best = group;
		as = tried;
	}
	if (best)
		add_member(best, as);
	else
		new_group(ranks, member);
}

/* ---- clocks ---- */

static const struct rank_communicator *member_of_rank(
	const struct collective_group *group, uint32_t rank)
{
	const struct rank_communicator *member = NULL;

	for (size_t i = 0; i < group->count; i++)
		if (group->members[i].rank == rank)
			member = &group->members[i];
	return member;
}

struct moment_list {
	struct clock_readings *pairs;
	size_t count, room;
};

static void add_moment(struct moment_list *list, int64_t left_ns, int64_t right_ns)
{
	*ARRAY_ADD(list->pairs, list->room, list->count) = (struct clock_readings){ left_ns,
		right_ns };
}

/* Returns the times at which common collectives ended, those of `from` on the reference's clock.
 * The caller frees the array. */
static struct clock_readings *common_clock_readings(
	const struct ranks *ranks, uint32_t from, uint32_t to, size_t *count)
{
	struct moment_list list = { .count = 0 };

	for (size_t i = 0; i < ranks->group_count; i++) {
		const struct collective_group *group = &ranks->groups[i];
		const struct rank_communicator *one = member_of_rank(group, from),
					       *other = member_of_rank(group, to);

		for (size_t k = 0; one && other && k < group->instances; k++) {
			const struct collective *left = group_collective(ranks, one, k),
						*right = group_collective(ranks, other, k);

			if (left && right && collective_together(left->kind))
				add_moment(&list, ranks_time(ranks, from, left->end_ns),
					right->end_ns);
		}
	}
	*count = list.count;
	return list.pairs;
}

COMPARE_BY(by_own_ns, struct clock_readings, own_ns)

static void align_clock_to(struct ranks *ranks, uint32_t from, uint32_t to)
{
	struct rank_process *rank = &ranks->all[to];
	size_t count;
	struct clock_readings *pairs = common_clock_readings(ranks, from, to, &count);
	struct theil_sen_fit fit;

	if (pairs)
		qsort(pairs, count, sizeof *pairs, by_own_ns);
	fit = theil_sen_fit(pairs, count);
	free(pairs);
	if (!fit.pairs || (rank->aligned && rank->fit.pairs >= fit.pairs))
		return;
	rank->fit = fit;
	rank->aligned_with = from;
	rank->aligned = true;
}

int64_t ranks_time(const struct ranks *ranks, uint32_t rank, int64_t time_ns)
{
	return rank ? theil_sen_map(&ranks->all[rank].fit, time_ns) : time_ns;
}

static void explain_unaligned(struct ranks *ranks, struct rank_process *rank)
{
	const struct collectives *mine = &rank->collectives;
	/* First the number of communicator pairs with different process groups, then whether all
	 * are. */
	size_t together = 0, strangers = 0;
	struct rank_communicator first = { .rank = 0 },
				 own = { .rank = (uint32_t)(rank - ranks->all) };
	struct shift_trial trial = { .same = false };

	for (size_t i = 0; i < mine->count; i++)
		together += collective_together(mine->all[i].kind);
	for (uint32_t i = 0; i < mine->communicator_count; i++) {
		own.communicator = i;
		for (first.communicator = 0;
			first.communicator < ranks->all[0].collectives.communicator_count;
			first.communicator++)
			strangers += compare_process_groups(ranks, &first, &own) < 0;
	}
	strangers = strangers ==
		    mine->communicator_count * ranks->all[0].collectives.communicator_count;
	own.communicator = first.communicator = 0;
	if (mine->communicator_count && ranks->all[0].collectives.communicator_count)
		trial = try_shift(ranks, &first, &own, 0);
	if (together < THEIL_SEN_PAIRS_MIN)
		snprintf(rank->unaligned_reason, sizeof rank->unaligned_reason,
			"it has %zu collectives that end at the same time on all ranks; %u are "
			"needed",
			together, THEIL_SEN_PAIRS_MIN);
	else if (strangers)
		snprintf(rank->unaligned_reason, sizeof rank->unaligned_reason,
			"it shares no process group with rank %lld, directly or through other "
			"ranks",
			(long long)ranks->all[0].number);
	else if (!trial.same)
		snprintf(rank->unaligned_reason, sizeof rank->unaligned_reason,
			"its collectives differ from those of the others, or are in another order");
	else
		snprintf(rank->unaligned_reason, sizeof rank->unaligned_reason,
			"the ends of its collectives do not keep a constant distance to the "
			"others' (median deviation %llu ns)",
			(unsigned long long)trial.fit.residual_ns);
}

/* Aligns each rank with the reference or with a rank already aligned: the one with the most common
 * collectives. */
static void align_clocks(struct ranks *ranks)
{
	bool more = true;

	ranks->all[0].aligned = true;
	while (more) {
		more = false;
		for (uint32_t to = 1; to < ranks->count; to++) {
			if (ranks->all[to].aligned)
				continue;
			for (uint32_t from = 0; from < ranks->count; from++)
				if (from != to && ranks->all[from].aligned)
					align_clock_to(ranks, from, to);
			more |= ranks->all[to].aligned;
		}
	}
	for (size_t i = 1; i < ranks->count; i++)
		if (!ranks->all[i].aligned)
			explain_unaligned(ranks, &ranks->all[i]);
}

void ranks_group(struct ranks *ranks)
{
	for (uint32_t rank = 0; rank < ranks->count; rank++)
		for (uint32_t i = 0; i < ranks->all[rank].collectives.communicator_count; i++)
			if (ranks->all[rank].collectives.communicators[i].count)
				join_communicator(ranks, (struct rank_communicator){
								 .rank = rank, .communicator = i });
	align_clocks(ranks);
}
