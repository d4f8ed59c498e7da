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
#include "report/base/search.h"
#include "report/text/format_number.h"
#include "report/analysis/ranks/rank_set.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Intervals of one straggler on one rank. before_ns: total length of the intervals before it. */
struct straggler_interval {
	uint64_t begin_ns, end_ns, before_ns;
};

struct straggler_intervals {
	struct straggler_interval *all;
	size_t count, room;
	uint64_t *cpu, *gpu; /* time spent in the intervals, by node */
	size_t cpu_room, gpu_room;
};

struct arrival {
	uint64_t at_ns;
	size_t collective;
};

/* The state of the pass over one rank. */
struct straggler_pass {
	struct ranks *ranks;
	struct rank_process *rank;
	struct arrival *launched; /* sorted by launch time */
	struct straggler_intervals intervals[RANKS_STRAGGLERS_MAX];
};

COMPARE_BY_TWO(by_arrival, struct arrival, at_ns, collective)

/* Returns the collectives by launch or request time. The caller frees the array. */
static struct arrival *collectives_by_time(const struct collectives *collectives, bool launched)
{
	struct arrival *arrivals = xcalloc((collectives->count + 1) * sizeof *arrivals);

	for (size_t i = 0; i < collectives->count; i++)
		arrivals[i] = (struct arrival){ launched ? collectives->all[i].launched_ns
							 : collectives->all[i].requested_ns,
			i };
	qsort(arrivals, collectives->count, sizeof *arrivals, by_arrival);
	return arrivals;
}

static void add_straggler_interval(
	struct straggler_intervals *intervals, uint64_t begin_ns, uint64_t end_ns)
{
	const struct straggler_interval *last = intervals->count
							? &intervals->all[intervals->count - 1]
							: NULL;
	const uint64_t before = last ? last->before_ns + (last->end_ns - last->begin_ns) : 0;

	*ARRAY_ADD(intervals->all, intervals->room,
		intervals->count) = (struct straggler_interval){ begin_ns, end_ns, before };
}

static void find_straggler_intervals(struct straggler_pass *pass)
{
	const struct collectives *collectives = &pass->rank->collectives;
	struct arrival *arrivals = collectives_by_time(collectives, false);

	for (size_t i = 1; i < collectives->count && arrivals[i].at_ns != UINT64_MAX; i++) {
		const uint32_t outcome = collectives->all[arrivals[i].collective].outcome;

		for (size_t s = 0; outcome != UINT32_MAX && s < pass->ranks->straggler_count; s++)
			if (pass->ranks->outcomes[outcome].last == pass->ranks->stragglers[s].rank)
				add_straggler_interval(&pass->intervals[s], arrivals[i - 1].at_ns,
					arrivals[i].at_ns);
	}
	free(arrivals);
}

DEFINE_COUNT_WHILE(intervals_begun, struct straggler_interval, item->begin_ns <= limit)

/* Total length of the intervals before `at_ns`. */
static uint64_t time_before(const struct straggler_intervals *intervals, uint64_t at_ns)
{
	const size_t count = intervals_begun(intervals->all, intervals->count, at_ns);
	const struct straggler_interval *last = count ? &intervals->all[count - 1] : NULL;

	return last ? last->before_ns +
			       ((at_ns < last->end_ns ? at_ns : last->end_ns) - last->begin_ns)
		    : 0;
}

static void add_node_time(uint64_t **by_node, size_t *room, uint32_t node, uint64_t ns)
{
	array_grow_zeroed(by_node, room, (size_t)node + 1, sizeof **by_node);
	(*by_node)[node] += ns;
}

static void add_cpu_time(
	struct straggler_pass *pass, uint32_t node, uint64_t at_ns, uint64_t duration_ns)
{
	for (size_t s = 0; s < pass->ranks->straggler_count; s++) {
		struct straggler_intervals *intervals = &pass->intervals[s];

		add_node_time(&intervals->cpu, &intervals->cpu_room, node,
			time_before(intervals, at_ns + duration_ns) -
				time_before(intervals, at_ns));
	}
}

static void add_gpu_time(
	struct straggler_pass *pass, uint32_t node, uint64_t at_ns, uint64_t duration_ns)
{
	for (size_t s = 0; s < pass->ranks->straggler_count; s++) {
		struct straggler_intervals *intervals = &pass->intervals[s];
		const size_t count = intervals_begun(intervals->all, intervals->count, at_ns);

		if (count && at_ns < intervals->all[count - 1].end_ns)
			add_node_time(&intervals->gpu, &intervals->gpu_room, node, duration_ns);
	}
}

DEFINE_COUNT_WHILE(launched_before, struct arrival, item->at_ns < limit)

/* Stores the leaf of GPU work that was launched at `at_ns` in the collectives launched then.
 * run_straggler_pass replaces it by its parent, the launching node. */
static void set_collective_node(struct straggler_pass *pass, uint32_t leaf, uint64_t at_ns)
{
	struct collectives *collectives = &pass->rank->collectives;

	for (size_t i = launched_before(pass->launched, collectives->count, at_ns);
		i < collectives->count && pass->launched[i].at_ns == at_ns; i++)
		collectives->all[pass->launched[i].collective].node = leaf;
}

/* Clears the sums: the trace is read from its beginning. */
static void clear_interval_times(void *context)
{
	struct straggler_pass *pass = context;

	for (size_t s = 0; s < pass->ranks->straggler_count; s++) {
		if (pass->intervals[s].cpu)
			memset(pass->intervals[s].cpu, 0,
				pass->intervals[s].cpu_room * sizeof *pass->intervals[s].cpu);
		if (pass->intervals[s].gpu)
			memset(pass->intervals[s].gpu, 0,
				pass->intervals[s].gpu_room * sizeof *pass->intervals[s].gpu);
	}
}

static void add_leaf_time(
	void *context, uint32_t node, bool is_work, uint64_t at_ns, uint64_t duration_ns)
{
	struct straggler_pass *pass = context;

	if (!is_work) {
		add_cpu_time(pass, node, at_ns, duration_ns);
		return;
	}
	set_collective_node(pass, node, at_ns);
	add_gpu_time(pass, node, at_ns, duration_ns);
}

static void add_instance_time(void *context, uint32_t node, uint64_t at_ns, long double value)
{
	add_cpu_time(context, node, at_ns, clamp_to_u64(value));
}

static bool is_communication(const struct rank_process *rank, uint32_t node)
{
	return node_names_is_communication(
		rank->profile->names, rank->profile->tree->nodes[node].name);
}

/* Adds GPU work to all ancestors. Communication is left out: it is what ranks wait for, not what
 * delays them. */
static void sum_gpu_times(const struct rank_process *rank, struct straggler_intervals *intervals)
{
	const struct tree *tree = rank->profile->tree;

	ARRAY_GROW(intervals->gpu, intervals->gpu_room, tree->count);
	ARRAY_GROW(intervals->cpu, intervals->cpu_room, tree->count);
	for (uint32_t id = tree->count - 1; id > 0; id--) {
		if (intervals->gpu[id] && !tree->nodes[id].first_child &&
			is_communication(rank, id))
			intervals->gpu[id] = 0;
		intervals->gpu[tree->nodes[id].parent] += intervals->gpu[id];
	}
}

/* Profiles the rank once more, and keeps the profile in rank->profile. Adds up the CPU and GPU time
 * of each node in the intervals before the stragglers' collectives. Sets the node that launched
 * each collective. */
static void run_straggler_pass(struct straggler_pass *pass)
{
	const struct profile_observer observer = { .context = pass,
		.restart = clear_interval_times,
		.leaf = add_leaf_time,
		.instance = add_instance_time };
	struct process *process = pass->rank->process;
	struct profile_options options = process->profile->options;
	struct collectives *collectives = &pass->rank->collectives;

	find_straggler_intervals(pass);
	pass->launched = collectives_by_time(collectives, true);
	options.metric = METRIC_CPU;
	options.pick_metric = false;
	/* Warm-up steps of one rank may be steady-state steps of another. Their call paths would
	 * differ. */
	options.found_steps = NULL;
	options.observer = &observer;
	pass->rank->profile = profile_build(process->reader, process->texts, &options);
	pass->rank->profile->options.observer = NULL;
	free(pass->launched);
	for (size_t i = 0; i < collectives->count; i++) {
		const uint32_t node = collectives->all[i].node;

		collectives->all[i].node = node && is_communication(pass->rank, node)
						   ? pass->rank->profile->tree->nodes[node].parent
						   : 0;
	}
	for (size_t s = 0; s < pass->ranks->straggler_count; s++)
		sum_gpu_times(pass->rank, &pass->intervals[s]);
}

/* ---- nodes of all ranks ---- */

/* Returns, by node, the id of its call path, which is the same in each rank. The caller frees
 * it. */
static uint32_t *paths_of(const struct rank_process *rank, struct string_table *paths)
{
	const struct tree *tree = rank->profile->tree;
	uint32_t *keys = xcalloc(tree->count * sizeof *keys);
	struct text_builder text = { .text = NULL };

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct string_view name = string_table_get(
			rank->process->texts, tree->nodes[id].name);

		text.used = 0;
		text_add(&text, "%u %u ", keys[tree->nodes[id].parent],
			(unsigned)tree->nodes[id].kind);
		text_add_bytes(&text, name.bytes, name.length);
		keys[id] = string_table_intern(paths, text.text, text.used);
	}
	free(text.text);
	return keys;
}

/* Time of each rank at each node: by path, then rank. */
struct node_times {
	uint64_t *ns;
	size_t room, rank_count;
};

static void add_rank_time(struct node_times *times, uint32_t path, size_t rank, uint64_t ns)
{
	ARRAY_GROW(times->ns, times->room, ((size_t)path + 1) * times->rank_count);
	times->ns[path * times->rank_count + rank] += ns;
}

static uint64_t others_median(
	const struct node_times *times, uint32_t path, size_t rank, const struct ranks *ranks)
{
	uint64_t *values = xcalloc(times->rank_count * sizeof *values), median;
	size_t count = 0;

	for (size_t i = 0; i < times->rank_count; i++)
		if (i != rank && ranks->all[i].sums.matched)
			values[count++] = times->ns[path * times->rank_count + i];
	qsort(values, count, sizeof *values, compare_u64);
	median = !count ? 0
		 : count % 2
			 ? values[count / 2]
			 : values[count / 2 - 1] + (values[count / 2] - values[count / 2 - 1]) / 2;
	free(values);
	return median;
}

/* A node, and how much more time than the others the straggler spent there. */
struct node_excess {
	uint32_t node;
	uint64_t own_ns, others_ns, more_ns;
};

/* Replaces `best` if node `id` has a larger excess. */
static void compare_node(const struct ranks *ranks, const struct straggler *straggler,
	const struct node_times *times, const uint32_t *paths, uint32_t id,
	struct node_excess *best)
{
	const struct tree *tree = ranks->all[straggler->rank].profile->tree;
	const uint64_t own = times->ns ? times->ns[paths[id] * times->rank_count + straggler->rank]
				       : 0;
	uint64_t others;

	if (own <= best->more_ns || tree->nodes[id].kind == NODE_ASYNC)
		return;
	others = others_median(times, paths[id], straggler->rank, ranks);
	if (own > others && own - others > best->more_ns)
		*best = (struct node_excess){ id, own, others, own - others };
}

/* Starts at the node with the largest excess, wherever it is, and descends. The excess may not show
 * in its ancestors, because the rank then waits less for the others. */
static struct node_excess follow_largest_excess(const struct ranks *ranks,
	const struct straggler *straggler, const struct node_times *times, const uint32_t *paths)
{
	const struct tree *tree = ranks->all[straggler->rank].profile->tree;
	struct node_excess at = { .node = 0 };

	for (uint32_t id = 1; id < tree->count; id++)
		compare_node(ranks, straggler, times, paths, id, &at);
	for (struct node_excess next = { .node = 0 }; at.node; at = next) {
		next = (struct node_excess){ .node = 0 };
		for (uint32_t id = tree->nodes[at.node].first_child; id; id = tree->nodes[id].next)
			compare_node(ranks, straggler, times, paths, id, &next);
		if (!next.more_ns || next.more_ns * 10 < at.more_ns * 6)
			break;
	}
	return at;
}

/* Sums the times of all ranks by path, in the intervals of one straggler. */
static void sum_rank_times(const struct ranks *ranks, const struct straggler_pass *passes,
	size_t index, uint32_t *const *paths, struct node_times *cpu, struct node_times *gpu)
{
	for (size_t rank = 0; rank < ranks->count; rank++)
		for (uint32_t id = 1; id < ranks->all[rank].profile->tree->count; id++) {
			add_rank_time(
				cpu, paths[rank][id], rank, passes[rank].intervals[index].cpu[id]);
			add_rank_time(
				gpu, paths[rank][id], rank, passes[rank].intervals[index].gpu[id]);
		}
}

static void set_excess(struct straggler *straggler, const struct node_excess *excess)
{
	straggler->node = excess->node;
	straggler->more_ns = excess->more_ns;
	straggler->own_ns = excess->own_ns;
	straggler->others_ns = excess->others_ns;
}

static void explain_straggler(const struct ranks *ranks, struct straggler *straggler,
	const struct straggler_pass *passes, uint32_t *const *paths)
{
	const size_t index = (size_t)(straggler - ranks->stragglers);
	struct node_times cpu = { .rank_count = ranks->count },
			  gpu = { .rank_count = ranks->count };
	const struct rank_sums *sums = &ranks->all[straggler->rank].sums;
	/* The median, because one very late collective, as at the start, says nothing about all. */
	const uint64_t typical_ns = sums->late_median_ns * sums->last;
	struct node_excess on_cpu, on_gpu, found;

	sum_rank_times(ranks, passes, index, paths, &cpu, &gpu);
	on_cpu = follow_largest_excess(ranks, straggler, &cpu, paths[straggler->rank]);
	on_gpu = follow_largest_excess(ranks, straggler, &gpu, paths[straggler->rank]);
	/* Check the GPU first: a program that waits for its GPU takes longer on the CPU too. */
	straggler->gpu = on_gpu.more_ns >= typical_ns / 2 || on_gpu.more_ns > on_cpu.more_ns;
	found = straggler->gpu ? on_gpu : on_cpu;
	if (found.more_ns && found.more_ns >= typical_ns / 10)
		set_excess(straggler, &found);
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
		const struct collective_group *group = &ranks->groups[ranks->outcomes[i].group];
		const double chance = 1.0 / (double)group->count;

		for (size_t m = 0; ranks->outcomes[i].last != UINT32_MAX && m < group->count; m++) {
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
	for (size_t s = 0; s < RANKS_STRAGGLERS_MAX; s++) {
		free(pass->intervals[s].all);
		free(pass->intervals[s].cpu);
		free(pass->intervals[s].gpu);
	}
}

static void store_worst_stragglers(struct ranks *ranks)
{
	struct straggler *found = find_stragglers(ranks, &ranks->straggler_count);

	ranks->straggler_count = min_u64(ranks->straggler_count, RANKS_STRAGGLERS_MAX);
	memcpy(ranks->stragglers, found, ranks->straggler_count * sizeof *found);
	free(found);
}

void ranks_find_stragglers(struct ranks *ranks)
{
	struct straggler_pass *passes = xcalloc((ranks->count + 1) * sizeof *passes);
	uint32_t **paths = xcalloc((ranks->count + 1) * sizeof *paths);
	struct string_table *texts = string_table_new();

	store_worst_stragglers(ranks);
	for (size_t i = 0; i < ranks->count; i++) {
		passes[i] = (struct straggler_pass){ .ranks = ranks, .rank = &ranks->all[i] };
		run_straggler_pass(&passes[i]);
		paths[i] = paths_of(&ranks->all[i], texts);
	}
	for (size_t s = 0; s < ranks->straggler_count; s++)
		explain_straggler(ranks, &ranks->stragglers[s], passes, paths);
	for (size_t i = 0; i < ranks->count; i++) {
		free_straggler_pass(&passes[i]);
		free(paths[i]);
	}
	free(passes);
	free(paths);
	string_table_free(texts);
}
