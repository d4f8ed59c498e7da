/* SPDX-License-Identifier: MIT
 * Chooses the ranges that are steps among those that are named like steps (`step 7`, `epoch: 2`).
 *
 * 1. Ranges of one word on one thread are a group. A group counts only if its numbers differ and
 *    ascend ("batch 32" is a size), and if it contains most of the modules' calls and optimizer
 *    steps of its thread. Then numbers may also be missing ("step"). Without modules and
 *    optimizers, it must contain most of the launches between its begin and its end, or most of
 *    the time if nothing is launched.
 * 2. Of the groups that are in no other group, the one with most time is taken.
 * 3. A group inside it is taken instead if it has most of the outer one's launches (or time), and
 *    more ranges, and either the outer one is "epoch", or its numbers go on from one outer range to
 *    the next. Numbers that begin again in each outer range are parts of a step (micro-batches).
 */
#include "report/base/alloc.h"
#include "report/steps/step_rules.h"
#include <stdlib.h>

#define GROUPS_MAX 64u /* further ones, of programs with many threads, are no candidates */

struct named_group {
	uint8_t word;
	uint16_t thread;
	size_t count, pairs, ascending; /* pairs of consecutive ranges that have numbers */
	uint64_t ns, launches, own_launches;
	uint32_t first, last; /* indexes of items */
	uint32_t last_number;
	bool marked; /* one of its ranges has kind step, which needs no number */
	bool is_valid;
};

struct named_groups {
	const struct evidence_list *evidence;
	struct named_group *groups;
	size_t count, room;
	uint32_t *group_of; /* by item: index + 1; 0: none */
};

static bool is_in_same_group(const struct evidence_list *evidence, uint32_t item)
{
	const struct evidence_item *of = &evidence->items[item];

	for (uint32_t at = of->around; at != EVIDENCE_NO_INDEX; at = evidence->items[at].around)
		if (evidence->items[at].kind == EVIDENCE_RANGE &&
			evidence->items[at].word == of->word)
			return true;
	return false;
}

static struct named_group *named_group_of(struct named_groups *groups, uint32_t item)
{
	const struct evidence_item *of = &groups->evidence->items[item];
	size_t at = 0;

	while (at < groups->count &&
		(groups->groups[at].word != of->word || groups->groups[at].thread != of->thread))
		at++;
	if (at == groups->count && at == GROUPS_MAX)
		return NULL;
	if (at == groups->count) {
		array_grow_zeroed(
			&groups->groups, &groups->room, groups->count + 1, sizeof *groups->groups);
		groups->groups[groups->count++] = (struct named_group){ .word = of->word,
			.thread = of->thread,
			.first = item,
			.last_number = EVIDENCE_NO_NUMBER };
	}
	groups->group_of[item] = (uint32_t)at + 1;
	return &groups->groups[at];
}

static void add_to_group(struct named_groups *groups, uint32_t item)
{
	struct named_group *group = named_group_of(groups, item);
	const struct evidence_item *of = &groups->evidence->items[item];

	if (!group)
		return;
	if (group->last_number != EVIDENCE_NO_NUMBER && of->number != EVIDENCE_NO_NUMBER) {
		group->pairs++;
		group->ascending += of->number > group->last_number;
	}
	group->count++;
	group->last_number = of->number;
	group->last = item;
	group->ns += of->end_ns - of->begin_ns;
	group->launches += of->launches_end - of->launches_begin;
	group->own_launches += of->own_launches;
	group->marked |= of->is_marked;
}

/* Whether the numbers are those of a loop. In an inner loop of two they ascend in half of the
 * pairs. */
static bool has_numbers_of_a_loop(const struct named_group *group)
{
	if (group->marked)
		return true;
	return group->pairs ? group->ascending * 2 >= group->pairs && group->ascending > 0
			    : group->count >= 2 && group->last_number == EVIDENCE_NO_NUMBER;
}

static uint64_t count_kind(
	const struct named_groups *groups, size_t group, enum evidence_kind kind, uint64_t *inside)
{
	const struct evidence_list *evidence = groups->evidence;
	uint64_t all = 0;

	*inside = 0;
	for (uint32_t i = 0; i < evidence->count; i++) {
		if (evidence->items[i].kind != kind ||
			evidence->items[i].thread != groups->groups[group].thread)
			continue;
		all++;
		for (uint32_t at = evidence->items[i].around; at != EVIDENCE_NO_INDEX;
			at = evidence->items[at].around)
			if (groups->group_of[at] == group + 1) {
				++*inside;
				break;
			}
	}
	return all;
}

/* Whether a group has most of the model's calls and optimizer steps. `several`: whether each of its
 * ranges has several of them, so that it is a loop of steps itself. `none`: there are none. */
static bool contains_model(
	const struct named_groups *groups, size_t group, bool *none, bool *several)
{
	uint64_t forwards_inside, optimizers_inside;
	const uint64_t forwards = count_kind(groups, group, EVIDENCE_FORWARD, &forwards_inside),
		       optimizers = count_kind(
			       groups, group, EVIDENCE_OPTIMIZER, &optimizers_inside),
		       steps = optimizers ? optimizers_inside : forwards_inside;

	*none = !forwards && !optimizers;
	*several = steps * 2 >= 3 * groups->groups[group].count;
	return forwards_inside * 2 >= forwards && optimizers_inside * 2 >= optimizers;
}

static bool contains_launches(const struct named_groups *groups, const struct named_group *group)
{
	const struct evidence_item *first = &groups->evidence->items[group->first],
				   *last = &groups->evidence->items[group->last];
	const uint64_t launches = last->launches_end - first->launches_begin;

	if (!groups->evidence->launches)
		return group->ns * 2 >= last->end_ns - first->begin_ns;
	return group->launches > 0 && group->launches * 2 >= launches &&
	       group->own_launches * 4 >= group->launches;
}

static bool is_loop_of_steps(const struct named_groups *groups, size_t at)
{
	const struct named_group *group = &groups->groups[at];
	bool none, several;

	if (!has_numbers_of_a_loop(group) || !contains_model(groups, at, &none, &several))
		return false;
	if (group->word == STEP_WORD_EPOCH && several)
		return false;
	if (!none || group->marked)
		return true;
	return group->pairs > 0 && contains_launches(groups, group);
}

/* Returns the number of ranges of group `inner` that are in ranges of group `outer`. */
static size_t count_nested(const struct named_groups *groups, size_t inner, size_t outer)
{
	const struct evidence_item *items = groups->evidence->items;
	size_t nested = 0;

	for (uint32_t i = 0; i < groups->evidence->count; i++) {
		uint32_t at = items[i].around;

		if (groups->group_of[i] != inner + 1)
			continue;
		while (at != EVIDENCE_NO_INDEX && groups->group_of[at] != outer + 1)
			at = items[at].around;
		nested += at != EVIDENCE_NO_INDEX;
	}
	return nested;
}

static bool is_nested(const struct named_groups *groups, size_t inner, size_t outer)
{
	return inner != outer && groups->groups[inner].thread == groups->groups[outer].thread &&
	       count_nested(groups, inner, outer) * 2 > groups->groups[inner].count;
}

static bool replaces_outer(const struct named_groups *groups, size_t inner, size_t outer)
{
	const struct named_group *in = &groups->groups[inner], *out = &groups->groups[outer];
	const bool has_most = groups->evidence->launches ? in->launches * 2 >= out->launches
							 : in->ns * 2 >= out->ns;

	return in->is_valid && in->count > out->count && has_most &&
	       is_nested(groups, inner, outer) &&
	       (out->word == STEP_WORD_EPOCH || (in->pairs && in->ascending * 10 >= in->pairs * 9));
}

static size_t outermost_group(const struct named_groups *groups)
{
	size_t best = groups->count;

	for (size_t i = 0; i < groups->count; i++) {
		bool nested = false;

		if (!groups->groups[i].is_valid)
			continue;
		for (size_t outer = 0; outer < groups->count && !nested; outer++)
			nested = groups->groups[outer].is_valid && is_nested(groups, i, outer);
		if (!nested &&
			(best == groups->count || groups->groups[i].ns > groups->groups[best].ns))
			best = i;
	}
	return best;
}

static size_t choose_group(const struct named_groups *groups)
{
	size_t best = outermost_group(groups);

	for (size_t i = 0; best < groups->count && i < groups->count; i++)
		if (replaces_outer(groups, i, best)) {
			best = i;
			i = SIZE_MAX; /* again from 0, for what is inside this one */
		}
	return best;
}

/* Returns true for a range of group `best`, or of an equal group of another thread. */
static bool is_of_word(const struct named_groups *groups, uint32_t item, size_t best)
{
	const size_t at = groups->group_of[item];

	return at == best + 1 || (at && groups->groups[at - 1].is_valid &&
					 groups->groups[at - 1].word == groups->groups[best].word);
}

bool steps_from_named_ranges(
	const struct evidence_list *evidence, uint16_t *thread, struct step_spans *spans)
{
	struct named_groups groups = { .evidence = evidence,
		.group_of = xcalloc((evidence->count + 1) * sizeof *groups.group_of) };
	size_t best;

	for (uint32_t i = 0; i < evidence->count; i++)
		if (evidence->items[i].kind == EVIDENCE_RANGE && !is_in_same_group(evidence, i))
			add_to_group(&groups, i);
	for (size_t i = 0; i < groups.count; i++)
		groups.groups[i].is_valid = is_loop_of_steps(&groups, i);
	best = choose_group(&groups);
	for (uint32_t i = 0; best < groups.count && i < evidence->count; i++)
		if (is_of_word(&groups, i, best))
			step_spans_add(spans, i, i, evidence->items[i].is_open);
	if (best < groups.count)
		*thread = groups.groups[best].thread;
	free(groups.groups);
	free(groups.group_of);
	return best < groups.count;
}
