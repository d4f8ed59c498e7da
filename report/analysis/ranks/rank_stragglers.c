/* SPDX-License-Identifier: MIT
 *
 * Finds stragglers, and the node in which each spent more time than the others before the
 * collectives for which it was last: CPU time or GPU work.
 *
 * The interval before a collective begins where the process requested the collective before it, and
 * ends where it requested this one. So the same parts of the program are compared in all ranks.
 * Each node is compared, by path, with the median of the other ranks. From the node with the
 * largest excess, the search descends while one child has 60 % of the excess or more.
 */
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/base/text_builder.h"
#include "report/text/format_number.h"
#include "report/analysis/ranks/interval_times.h"
#include "report/analysis/ranks/rank_set.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A node of a rank's tree, without what follows from its path. */
struct straggler_node {
	uint32_t place, first_child, next;
	bool is_async;
};

/* The state of the pass over one rank, and what is kept of it. */
struct straggler_pass {
	struct ranks *ranks;
	struct rank_process *rank;
	struct process process; /* open during the pass */
	struct profile *profile;
	struct straggler_node *nodes; /* of the rank's tree */
	uint32_t node_count;
	uint32_t peer_of; /* bits: the stragglers that it is compared with, or is */
	struct collective_nodes launched;
	struct interval_times intervals[RANKS_STRAGGLERS_MAX];
};

/* Whether the straggler was last in a collective of the group in which it is examined. */
static bool is_late_outcome(const struct outcome *outcome, const struct straggler *straggler)
{
	return outcome->last == straggler->rank && outcome->group == straggler->group;
}

static void find_straggler_intervals(struct straggler_pass *pass)
{
	const struct collectives *collectives = pass->rank->collectives;
	struct collective_arrival *arrivals = collectives_by_request(collectives);

	for (size_t i = 1; i < collectives->count && arrivals[i].at_ns != UINT64_MAX; i++) {
		const uint32_t outcome = collectives->all[arrivals[i].collective].outcome;

		for (size_t s = 0; outcome != UINT32_MAX && s < pass->ranks->straggler_count; s++)
			if (is_late_outcome(
				    &pass->ranks->outcomes[outcome], &pass->ranks->stragglers[s]))
				interval_times_add(&pass->intervals[s], arrivals[i - 1].at_ns,
					arrivals[i].at_ns);
	}
	free(arrivals);
}

/* Keeps the tree, with the id of each node's call path, which is the same in each rank. */
static void keep_nodes(struct straggler_pass *pass)
{
	const struct tree *tree = pass->profile->tree;
	struct text_builder text = { .text = NULL };

	pass->node_count = tree->count;
	pass->nodes = xcalloc(tree->count * sizeof *pass->nodes);
	for (uint32_t id = 0; id < tree->count; id++) {
		const struct node *node = &tree->nodes[id];
		const struct string_view name = string_table_get(pass->process.texts, node->name);

		pass->nodes[id] = (struct straggler_node){ .first_child = node->first_child,
			.next = node->next,
			.is_async = node->kind == NODE_ASYNC };
		if (!id)
			continue;
		text.used = 0;
		text_add(&text, "%u %u ", pass->nodes[node->parent].place, (unsigned)node->kind);
		text_add_bytes(&text, name.bytes, name.length);
		pass->nodes[id].place = string_table_intern(
			pass->ranks->places, text.text, text.used);
	}
	free(text.text);
}

static void set_places(struct straggler_pass *pass)
{
	struct collectives *collectives = pass->rank->collectives;

	for (size_t i = 0; i < collectives->count; i++)
		collectives->all[i].place =
			pass->nodes[collective_node_of(&pass->launched, pass->profile, i)].place;
	pass->rank->read_again = true;
}

/* Opens the trace again. It was read before, so a failure means that it was changed meanwhile. */
static bool open_rank(struct straggler_pass *pass)
{
	char error[READER_ERROR_BYTES];

	pass->process = (struct process){ .path = pass->rank->process->path,
		.categories = pass->ranks->processes.categories };
	if (process_open(&pass->process, error))
		return true;
	processes_warn(&pass->ranks->processes, "%s", error);
	return false;
}

static void close_rank(struct straggler_pass *pass)
{
	profile_free(pass->profile);
	pass->profile = NULL;
	process_close(&pass->process);
	free(pass->process.command);
	rank_inputs_forget(&pass->ranks->inputs, pass->process.path);
	collective_nodes_free(&pass->launched);
}

/* Profiles the rank once more. Adds up the CPU and GPU time of each node in the intervals before
 * the stragglers' collectives. Sets the place that launched each collective. */
static void run_straggler_pass(struct straggler_pass *pass, const struct options *given)
{
	struct interval_pass times = { pass->intervals, pass->ranks->straggler_count,
		&pass->launched };
	const struct profile_observer observer = interval_pass_observer(&times);
	struct profile_options options;

	if (!open_rank(pass))
		return;
	find_straggler_intervals(pass);
	pass->launched = collective_nodes_new(pass->rank->collectives);
	options = collective_nodes_options(&pass->process, given);
	options.observer = &observer;
	pass->profile = profile_build(pass->process.reader, pass->process.texts, &options);
	pass->profile->options.observer = NULL;
	keep_nodes(pass);
	set_places(pass);
	interval_pass_finish(&times, pass->profile);
	close_rank(pass);
}

/* ---- nodes of all ranks ---- */

/* Time of each rank at each node: by path, then rank. */
struct node_times {
	uint64_t *ns;
	size_t room, rank_count, straggler;
};

static void add_rank_time(struct node_times *times, uint32_t path, size_t rank, uint64_t ns)
{
	ARRAY_GROW(times->ns, times->room, ((size_t)path + 1) * times->rank_count);
	times->ns[path * times->rank_count + rank] += ns;
}

static bool is_peer(const struct straggler_pass *pass, size_t straggler)
{
	return pass->peer_of >> straggler & 1 && pass->nodes;
}

static uint64_t others_median(const struct node_times *times, uint32_t place, size_t own,
	const struct straggler_pass *passes)
{
	uint64_t *values = xcalloc(times->rank_count * sizeof *values), median;
	size_t count = 0;

	for (size_t i = 0; i < times->rank_count; i++)
		if (i != own && is_peer(&passes[i], times->straggler))
			values[count++] = times->ns[place * times->rank_count + i];
	qsort(values, count, sizeof *values, compare_u64);
	median = !count ? 0
		 : count % 2
			 ? values[count / 2]
			 : values[count / 2 - 1] + (values[count / 2] - values[count / 2 - 1]) / 2;
	free(values);
	return median;
}

/* A node of a straggler's tree, and how much more time than the others it spent there. */
struct node_excess {
	uint32_t node;
	uint64_t own_ns, others_ns, more_ns;
};

/* Replaces `best` if node `id` of the straggler `own` has a larger excess. */
static void compare_node(const struct straggler_pass *passes, size_t own,
	const struct node_times *times, uint32_t id, struct node_excess *best)
{
	const struct straggler_node *node = &passes[own].nodes[id];
	const uint64_t own_ns = times->ns ? times->ns[node->place * times->rank_count + own] : 0;
	uint64_t others;

	if (own_ns <= best->more_ns || node->is_async)
		return;
	others = others_median(times, node->place, own, passes);
	if (own_ns > others && own_ns - others > best->more_ns)
		*best = (struct node_excess){ id, own_ns, others, own_ns - others };
}

/* Starts at the node with the largest excess, wherever it is, and descends. The excess may not show
 * in its ancestors, because the rank then waits less for the others. */
static struct node_excess follow_largest_excess(
	const struct straggler_pass *passes, size_t own, const struct node_times *times)
{
	const struct straggler_node *nodes = passes[own].nodes;
	struct node_excess at = { .node = 0 };

	for (uint32_t id = 1; id < passes[own].node_count; id++)
		compare_node(passes, own, times, id, &at);
	for (struct node_excess next = { .node = 0 }; at.node; at = next) {
		next = (struct node_excess){ .node = 0 };
		for (uint32_t id = nodes[at.node].first_child; id; id = nodes[id].next)
			compare_node(passes, own, times, id, &next);
		if (!next.more_ns || next.more_ns * 10 < at.more_ns * 6)
			break;
	}
	return at;
}

/* Sums the times of all peers by place, in the intervals of one straggler. */
static void sum_rank_times(const struct straggler_pass *passes, size_t index,
	struct node_times *cpu, struct node_times *gpu)
{
	for (size_t i = 0; i < cpu->rank_count; i++)
		for (uint32_t id = 1; is_peer(&passes[i], index) && id < passes[i].node_count;
			id++) {
			const uint32_t place = passes[i].nodes[id].place;

			add_rank_time(cpu, place, i, passes[i].intervals[index].cpu[id]);
			add_rank_time(gpu, place, i, passes[i].intervals[index].gpu[id]);
		}
}

static void explain_straggler(const struct ranks *ranks, struct straggler *straggler,
	const struct straggler_pass *passes, size_t pass_count)
{
	const size_t index = (size_t)(straggler - ranks->stragglers);
	struct node_times cpu = { .rank_count = pass_count, .straggler = index }, gpu = cpu;
	struct node_excess on_cpu, on_gpu, found;
	size_t own = 0;

	while (passes[own].rank != &ranks->all[straggler->rank])
		own++;
	sum_rank_times(passes, index, &cpu, &gpu);
	on_cpu = follow_largest_excess(passes, own, &cpu);
	on_gpu = follow_largest_excess(passes, own, &gpu);
	/* Check the GPU first: a program that waits for its GPU takes longer on the CPU too. */
	straggler->gpu = on_gpu.more_ns >= straggler->typical_ns / 2 ||
			 on_gpu.more_ns > on_cpu.more_ns;
	found = straggler->gpu ? on_gpu : on_cpu;
	if (found.more_ns && found.more_ns >= straggler->typical_ns / 10) {
		straggler->place = passes[own].nodes[found.node].place;
		straggler->more_ns = found.more_ns;
		straggler->own_ns = found.own_ns;
		straggler->others_ns = found.others_ns;
	}
	free(cpu.ns);
	free(gpu.ns);
}

/* ---- finding stragglers ---- */

COMPARE_BY_LARGEST(by_lateness, struct straggler, late_ns, rank)

/* By chance each member is last equally often. A count 2.5 standard deviations higher occurs once
 * in 160 times. */
static struct straggler *find_stragglers(const struct ranks *ranks, size_t *count)
{
	struct straggler *found = xcalloc((ranks->count + 1) * sizeof *found);
	double *expected = xcalloc((ranks->count + 1) * sizeof *expected),
	       *variance = xcalloc((ranks->count + 1) * sizeof *variance);

	for (size_t i = 0; i < ranks->outcome_count; i++) {
		const struct outcome *outcome = &ranks->outcomes[i];
		const struct collective_group *group = &ranks->groups[outcome->group];
		const double chance = 1.0 / (double)outcome->present;

		for (size_t m = 0; outcome->last != UINT32_MAX && m < group->count; m++) {
			if (!group_comparable(ranks, group, &group->members[m], outcome->instance))
				continue;
			expected[group->members[m].rank] += chance;
			variance[group->members[m].rank] += chance * (1 - chance);
		}
	}
	*count = 0;
	for (uint32_t i = 0; i < ranks->count; i++) {
		const struct rank_sums *sums = &ranks->all[i].sums;

		if (sums->last >= 3 && (double)sums->last > expected[i] + 2.5 * sqrt(variance[i]))
			found[(*count)++] = (struct straggler){
				.rank = i, .expected = expected[i], .late_ns = sums->late_ns
			};
	}
	qsort(found, *count, sizeof *found, by_lateness);
	free(expected);
	free(variance);
	return found;
}

static void free_straggler_pass(struct straggler_pass *pass)
{
	for (size_t s = 0; s < RANKS_STRAGGLERS_MAX; s++)
		interval_times_free(&pass->intervals[s]);
	free(pass->nodes);
}

/* Sets the group in which the sum of its lateness is the largest. */
static void set_worst_group(const struct ranks *ranks, struct straggler *straggler)
{
	uint64_t *late_ns = xcalloc((ranks->group_count + 1) * sizeof *late_ns);

	for (size_t i = 0; i < ranks->outcome_count; i++)
		if (ranks->outcomes[i].last == straggler->rank)
			late_ns[ranks->outcomes[i].group] += ranks->outcomes[i].late_ns;
	for (uint32_t i = 0; i < ranks->group_count; i++)
		if (late_ns[i] > late_ns[straggler->group])
			straggler->group = i;
	free(late_ns);
}

/* Uses the median, because one very late collective, as at the start, says nothing about all. */
static void set_typical_lateness(const struct ranks *ranks, struct straggler *straggler)
{
	uint64_t *late_ns = xcalloc((ranks->outcome_count + 1) * sizeof *late_ns);
	size_t count = 0;

	for (size_t i = 0; i < ranks->outcome_count; i++)
		if (is_late_outcome(&ranks->outcomes[i], straggler))
			late_ns[count++] = ranks->outcomes[i].late_ns;
	qsort(late_ns, count, sizeof *late_ns, compare_u64);
	if (count)
		straggler->typical_ns = count *
					(late_ns[(count - 1) / 2] +
						(late_ns[count / 2] - late_ns[(count - 1) / 2]) /
							2);
	free(late_ns);
}

static void store_worst_stragglers(struct ranks *ranks)
{
	struct straggler *found = find_stragglers(ranks, &ranks->straggler_count);

	ranks->straggler_count = min_u64(ranks->straggler_count, RANKS_STRAGGLERS_MAX);
	memcpy(ranks->stragglers, found, ranks->straggler_count * sizeof *found);
	free(found);
	for (size_t s = 0; s < ranks->straggler_count; s++) {
		set_worst_group(ranks, &ranks->stragglers[s]);
		set_typical_lateness(ranks, &ranks->stragglers[s]);
	}
}

/* ---- which ranks are read again ---- */

static bool is_straggler(const struct ranks *ranks, uint32_t rank)
{
	for (size_t s = 0; s < ranks->straggler_count; s++)
		if (ranks->stragglers[s].rank == rank)
			return true;
	return false;
}

/* Why a rank is read again. */
struct read_reason {
	bool is_read;
	uint32_t peer_of; /* bits: stragglers */
};

/* Chooses RANKS_PEERS_MAX members of the straggler's group, evenly by rank, and the stragglers in
 * it. */
static void choose_peers(const struct ranks *ranks, size_t straggler, struct read_reason *reasons)
{
	const struct collective_group *group = &ranks->groups[ranks->stragglers[straggler].group];
	uint32_t *others = xcalloc((group->count + 1) * sizeof *others);
	size_t count = 0, most;

	for (size_t m = 0; m < group->count; m++) {
		const uint32_t rank = group->members[m].rank;

		if (is_straggler(ranks, rank))
			reasons[rank] = (struct read_reason){ true,
				reasons[rank].peer_of | 1u << straggler };
		else if (ranks->all[rank].sums.matched)
			others[count++] = rank;
	}
	most = min_u64(count, RANKS_PEERS_MAX);
	for (size_t i = 0; i < most; i++) {
		struct read_reason *reason =
			&reasons[others[most > 1 ? i * (count - 1) / (most - 1) : 0]];

		*reason = (struct read_reason){ true, reason->peer_of | 1u << straggler };
	}
	free(others);
}

/* Chooses the reference, and a member of each group that has none yet. */
static void choose_for_places(const struct ranks *ranks, struct read_reason *reasons)
{
	size_t added = 0;

	reasons[ranks->reference].is_read = true;
	for (size_t i = 0; i < ranks->group_count && added < RANKS_PLACES_MAX; i++) {
		const struct collective_group *group = &ranks->groups[i];
		uint32_t first = UINT32_MAX;
		bool known = group->count < 2;

		for (size_t m = 0; m < group->count && !known; m++) {
			const uint32_t rank = group->members[m].rank;

			known = reasons[rank].is_read;
			if (first == UINT32_MAX && ranks->all[rank].island == group->island)
				first = rank;
		}
		if (known || first == UINT32_MAX || group->island == RANKS_NO_ISLAND)
			continue;
		reasons[first].is_read = true;
		added++;
	}
}

/* Reads the chosen ranks, the reference first, so that its places come first. Returns their
 * number. */
static size_t run_passes(struct ranks *ranks, const struct read_reason *reasons,
	struct straggler_pass *passes, const struct options *options)
{
	size_t count = 0;

	for (uint32_t i = 0; i <= ranks->count; i++) {
		const uint32_t rank = i ? i - 1 : ranks->reference;

		if ((i && rank == ranks->reference) || !reasons[rank].is_read)
			continue;
		passes[count] = (struct straggler_pass){
			.ranks = ranks, .rank = &ranks->all[rank], .peer_of = reasons[rank].peer_of
		};
		run_straggler_pass(&passes[count++], options);
	}
	return count;
}

void ranks_find_stragglers(struct ranks *ranks, const struct options *options)
{
	struct read_reason *reasons = xcalloc((ranks->count + 1) * sizeof *reasons);
	struct straggler_pass *passes;
	size_t count;

	store_worst_stragglers(ranks);
	ranks->places = string_table_new();
	for (size_t s = 0; s < ranks->straggler_count; s++)
		choose_peers(ranks, s, reasons);
	choose_for_places(ranks, reasons);
	passes = xcalloc((1 + RANKS_STRAGGLERS_MAX * (1 + RANKS_PEERS_MAX) + RANKS_PLACES_MAX) *
			 sizeof *passes);
	count = run_passes(ranks, reasons, passes, options);
	for (size_t s = 0; s < ranks->straggler_count; s++)
		explain_straggler(ranks, &ranks->stragglers[s], passes, count);
	for (size_t i = 0; i < count; i++)
		free_straggler_pass(&passes[i]);
	free(passes);
	free(reasons);
}
