/* SPDX-License-Identifier: MIT
 *
 * Matches the communicators of different ranks. rank_set.h has the rules.
 *
 * Communicators with a name are found by it. One without a name is compared with all groups, but
 * most of these are ruled out by the spread of the distances of their ends, without a fit.
 */
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/base/hash_index.h"
#include "report/analysis/ranks/rank_set.h"
#include <stdlib.h>
#include <string.h>

#define SAMPLED 48u /* collectives of two communicators that are compared in a trial */

static const struct communicator *communicator_of(
	const struct ranks *ranks, const struct rank_communicator *member)
{
	return &ranks->all[member->rank].collectives->communicators[member->communicator];
}

struct collective *group_collective(
	const struct ranks *ranks, const struct rank_communicator *member, int64_t instance)
{
	const struct communicator *communicator = communicator_of(ranks, member);
	const int64_t index = instance + member->shift;
	const struct rank_process *rank = &ranks->all[member->rank];

	if (index < 0 || (size_t)index >= communicator->count)
		return NULL;
	return collective_is_lost(&rank->collectives->all[communicator->first + (size_t)index])
		       ? NULL
		       : &rank->collectives->all[communicator->first + (size_t)index];
}

struct collective *group_comparable(const struct ranks *ranks, const struct collective_group *group,
	const struct rank_communicator *member, int64_t instance)
{
	const uint32_t island = ranks->all[member->rank].island;

	return island != RANKS_NO_ISLAND && island == group->island
		       ? group_collective(ranks, member, instance)
		       : NULL;
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

static uint64_t residual_limit(uint64_t median_ns)
{
	return max_u64(median_ns / 2, RANK_RESIDUAL_MAX_NS);
}

/* Returns false if no fit can be good: half of the ends would be no further than the limit from a
 * line with a possible drift. So half of the differences are in a window of twice the limit, plus
 * the drift over the whole time. */
static bool fit_is_possible(const struct clock_readings *pairs, size_t count, uint64_t limit_ns)
{
	double differences[SAMPLED] = { 0 }, first_ns = 0, last_ns = 0, window_ns;
	const size_t half = count / 2;

	for (size_t i = 0; i < count; i++) {
		const double own_ns = (double)pairs[i].own_ns;

		differences[i] = (double)pairs[i].other_ns - own_ns;
		first_ns = !i || own_ns < first_ns ? own_ns : first_ns;
		last_ns = !i || own_ns > last_ns ? own_ns : last_ns;
	}
	/* A double is exact to 256 ns at the present time. */
	window_ns = 2 * (double)limit_ns + 4 * 512 +
		    (last_ns - first_ns) * THEIL_SEN_DRIFT_PPM_MAX * 1e-6;
	qsort(differences, count, sizeof *differences, compare_double);
	for (size_t i = 0; i + half <= count; i++)
		if (half < 2 || differences[i + half - 1] - differences[i] <= window_ns)
			return true;
	return false;
}

/* Compares collectives that end together, evenly sampled. No fit if the kinds differ, or if it
 * cannot be good. */
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
		if (!collective_together(left[i].kind) || collective_is_lost(&left[i]) ||
			collective_is_lost(&right[i]))
			continue;
		durations[used] = max_u64(
			collective_duration(&left[i]), collective_duration(&right[i]));
		pairs[used++] = (struct clock_readings){ left[i].end_ns, right[i].end_ns };
	}
	qsort(durations, used, sizeof *durations, compare_u64);
	trial.median_ns = used ? durations[used / 2] : 0;
	if (fit_is_possible(pairs, used, residual_limit(trial.median_ns)))
		trial.fit = theil_sen_fit(pairs, used);
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
	return try_alignment(&ranks->all[first->rank].collectives->all[a->first + from_a],
		&ranks->all[other->rank].collectives->all[b->first + from_b], count);
}

static bool is_good_fit(const struct shift_trial *trial)
{
	return trial->same && trial->fit.pairs &&
	       trial->fit.residual_ns <= residual_limit(trial->median_ns);
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

/* Ranks are added in ascending order. */
static bool has_rank(const struct collective_group *group, uint32_t rank)
{
	return group->members[group->count - 1].rank == rank;
}

static void add_member(
	const struct ranks *ranks, struct collective_group *group, struct rank_communicator member)
{
	const int64_t count = (int64_t)communicator_of(ranks, &member)->count,
		      first = -member.shift;

	if (!group->count || first < group->begin)
		group->begin = first;
	if (!group->count || first + count > group->end)
		group->end = first + count;
	*ARRAY_ADD(group->members, group->room, group->count) = member;
	if ((size_t)count > communicator_of(ranks, &group->members[group->longest])->count)
		group->longest = group->count - 1;
}

/* Groups with a name, by it; and those without one. */
struct group_finder {
	struct hash_index by_name;
	uint32_t *unnamed;
	size_t unnamed_count, unnamed_room;
};

static uint64_t hash_name(struct trace_text name)
{
	uint64_t hash = name.length;

	for (uint32_t i = 0; i < name.length; i++)
		hash = hash_u64(hash ^ (unsigned char)name.bytes[i]);
	return hash;
}

struct trace_text ranks_group_name(const struct ranks *ranks, uint32_t group)
{
	return communicator_of(ranks, &ranks->groups[group].members[0])->group;
}

static void new_group(
	struct ranks *ranks, struct group_finder *finder, struct rank_communicator member)
{
	struct collective_group *group;
	struct trace_text name;
	struct hash_slot *slot;
	uint64_t hash;

	group = ARRAY_ADD(ranks->groups, ranks->group_room, ranks->group_count);
	*group = (struct collective_group){ .island = RANKS_NO_ISLAND };
	member.shift = 0;
	add_member(ranks, group, member);
	name = communicator_of(ranks, &member)->group;
	if (!name.known) {
		*ARRAY_ADD(finder->unnamed, finder->unnamed_room,
			finder->unnamed_count) = (uint32_t)ranks->group_count - 1;
		return;
	}
	hash = hash_name(name);
	hash_index_reserve(&finder->by_name);
	for (slot = hash_index_first(&finder->by_name, hash); slot->number;)
		slot = hash_index_next(&finder->by_name, slot);
	hash_index_add(&finder->by_name, slot, hash, (uint32_t)ranks->group_count);
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

/* ---- collectives whose records are lost ---- */

/* Whether records may be lost in the middle of a trace. */
static bool may_have_lost(const struct ranks *ranks, uint32_t rank)
{
	const struct rank_input *input = ranks->all[rank].input;

	return input->status == RANK_INPUT_DAMAGED || input->process.integrity.dropped;
}

/* Returns how many of the next collectives of `longest` are lost, if `own` is the first one after
 * them. `distance_ns`: of the ends before them. SIZE_MAX: not known. */
static size_t count_lost(const struct collective *longest, size_t count,
	const struct collective *own, int64_t distance_ns, int64_t before_ns)
{
	const double drifted = (double)(own->end_ns - before_ns) * THEIL_SEN_DRIFT_PPM_MAX * 1e-6;

	for (size_t lost = 0; lost < count; lost++) {
		const double change = (double)(longest[lost].end_ns - own->end_ns) -
				      (double)distance_ns;

		if (longest[lost].kind == own->kind && !collective_is_lost(&longest[lost]) &&
			(change < 0 ? -change : change) <= RANK_RESIDUAL_MAX_NS + drifted)
			return lost;
	}
	return SIZE_MAX;
}

/* Compares the ends of a communicator with those of the longest member of its group, from the first
 * on. Where their distance changes, inserts collectives that are lost. */
static void insert_lost(struct ranks *ranks, const struct rank_communicator *longest,
	const struct rank_communicator *member)
{
	const struct communicator *other = communicator_of(ranks, longest),
				  *own = communicator_of(ranks, member);
	struct collectives *collectives = ranks->all[member->rank].collectives;
	const struct collective *others = &ranks->all[longest->rank].collectives->all[other->first];

	for (size_t i = 1; i < own->count && i < other->count; i++) {
		const struct collective *all = &collectives->all[own->first];
		size_t lost;

		if (!collective_together(all[i].kind) || collective_is_lost(&others[i - 1]))
			continue;
		lost = count_lost(others + i, other->count - i, &all[i],
			others[i - 1].end_ns - all[i - 1].end_ns, all[i - 1].end_ns);
		if (lost == SIZE_MAX)
			return;
		if (lost)
			collectives_insert_lost(
				collectives, member->communicator, i, others + i, lost);
		i += lost;
	}
}

/* The group that a communicator fits best so far. */
struct group_choice {
	struct collective_group *group; /* NULL: none */
	struct rank_communicator as;
	uint64_t least_ns;
};

static void try_group(struct ranks *ranks, struct collective_group *group,
	const struct rank_communicator *member, struct group_choice *best)
{
	const struct rank_communicator *longest = &group->members[group->longest];
	const int same = compare_process_groups(ranks, longest, member);
	struct rank_communicator tried = *member;
	struct shift_trial trial;

	if (has_rank(group, member->rank) || same < 0)
		return;
	if (same > 0 && may_have_lost(ranks, member->rank) &&
		communicator_of(ranks, member)->count < communicator_of(ranks, longest)->count)
		insert_lost(ranks, longest, member);
	trial = best_shift(ranks, longest, &tried);
	if (!may_be_joined(ranks, longest, member, &trial, same != 0, best->least_ns))
		return;
	tried.shift += longest->shift;
	*best = (struct group_choice){ group, tried, same ? 0 : trial.fit.residual_ns };
}

static void try_groups_of_name(struct ranks *ranks, const struct group_finder *finder,
	const struct rank_communicator *member, struct group_choice *best)
{
	const uint64_t hash = hash_name(communicator_of(ranks, member)->group);
	struct hash_slot *slot;

	if (!finder->by_name.count)
		return;
	for (slot = hash_index_first(&finder->by_name, hash); slot->number;
		slot = hash_index_next(&finder->by_name, slot))
		try_group(ranks, &ranks->groups[slot->number - 1], member, best);
}

/* Adds a communicator to the group that it fits best, or to a new group. */
static void join_communicator(
	struct ranks *ranks, struct group_finder *finder, struct rank_communicator member)
{
	const bool named = communicator_of(ranks, &member)->group.known;
	struct group_choice best = { .least_ns = UINT64_MAX };

	if (named)
		try_groups_of_name(ranks, finder, &member, &best);
	for (size_t i = 0; i < finder->unnamed_count && named && !best.group; i++)
		try_group(ranks, &ranks->groups[finder->unnamed[i]], &member, &best);
	for (size_t i = 0; i < ranks->group_count && !named; i++)
		try_group(ranks, &ranks->groups[i], &member, &best);
	if (best.group)
		add_member(ranks, best.group, best.as);
	else
		new_group(ranks, finder, member);
}

static size_t common_ends(const struct collectives *collectives)
{
	size_t together = 0;

	for (size_t i = 0; i < collectives->count; i++)
		together += collective_together(collectives->all[i].kind);
	return together;
}

/* Whether every communicator of the rank is known to be another one than all of the reference. */
static bool are_strangers(const struct ranks *ranks, uint32_t rank)
{
	struct rank_communicator first = { .rank = ranks->reference }, own = { .rank = rank };
	const size_t mine = ranks->all[rank].collectives->communicator_count,
		     others = ranks->all[ranks->reference].collectives->communicator_count;
	size_t strangers = 0;

	for (own.communicator = 0; own.communicator < mine; own.communicator++)
		for (first.communicator = 0; first.communicator < others; first.communicator++)
			strangers += compare_process_groups(ranks, &first, &own) < 0;
	return strangers == mine * others;
}

/* Returns the median distance from a fit of the first communicators of both; SIZE_MAX: their
 * collectives differ. */
static uint64_t deviation_of_first(const struct ranks *ranks, uint32_t rank)
{
	const struct rank_communicator first = { .rank = ranks->reference }, own = { .rank = rank };
	const struct communicator *a = communicator_of(ranks, &first),
				  *b = communicator_of(ranks, &own);
	const struct collective *left = &ranks->all[first.rank].collectives->all[a->first],
				*right = &ranks->all[rank].collectives->all[b->first];
	const size_t count = min_u64(a->count, b->count), stride = (count + SAMPLED - 1) / SAMPLED;
	struct clock_readings pairs[SAMPLED] = { { 0, 0 } };
	size_t used = 0;

	if (!count || !kinds_match(left, right, count))
		return UINT64_MAX;
	for (size_t i = 0; i < count; i += stride)
		if (collective_together(left[i].kind) && !collective_is_lost(&left[i]) &&
			!collective_is_lost(&right[i]))
			pairs[used++] = (struct clock_readings){ left[i].end_ns, right[i].end_ns };
	return theil_sen_fit(pairs, used).residual_ns;
}

char *ranks_explain_unaligned(const struct ranks *ranks, uint32_t rank)
{
	const size_t together = common_ends(ranks->all[rank].collectives);
	uint64_t deviation_ns;
	struct text_builder reason = { .text = NULL };

	if (together < THEIL_SEN_PAIRS_MIN)
		text_add(&reason,
			"it has %zu collectives that end at the same time on all ranks; %u are "
			"needed",
			together, THEIL_SEN_PAIRS_MIN);
	else if (are_strangers(ranks, rank))
		text_add(&reason,
			"it shares no process group with rank %lld, directly or through other "
			"ranks",
			(long long)ranks->all[ranks->reference].number);
	else if ((deviation_ns = deviation_of_first(ranks, rank)) == UINT64_MAX)
		text_add(&reason, "its collectives differ from those of the others, or are in "
				  "another order");
	else
		text_add(&reason,
			"the ends of its collectives do not keep a constant distance to the "
			"others' (median deviation %llu ns)",
			(unsigned long long)deviation_ns);
	return reason.text;
}

/* Returns the number of members that a collective of the group needs. */
static size_t quorum_of(const struct collective_group *group, unsigned percent)
{
	const size_t needed = (group->count * percent + 99) / 100;

	return needed > 2 ? needed : 2;
}

void ranks_group(struct ranks *ranks)
{
	struct group_finder finder = { .unnamed = NULL };

	for (uint32_t rank = 0; rank < ranks->count; rank++)
		for (uint32_t i = 0; i < ranks->all[rank].collectives->communicator_count; i++)
			if (ranks->all[rank].collectives->communicators[i].count)
				join_communicator(ranks, &finder,
					(struct rank_communicator){
						.rank = rank, .communicator = i });
	for (size_t i = 0; i < ranks->group_count; i++)
		ranks->groups[i].quorum = quorum_of(&ranks->groups[i], ranks->quorum);
	hash_index_free(&finder.by_name);
	free(finder.unnamed);
}
