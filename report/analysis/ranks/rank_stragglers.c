/* SPDX-License-Identifier: MIT
 * rank_blame.c: who was last more often than chance would have it, and where it spent more than the others before those collectives: on
 * the CPU, or in the GPU's work. See ranks.h.
 *
 * Before a collective: from when the process came to the one before it to when it came to this one. So the same stretches of the program are
 * compared in all ranks, and each with the median of the others, place by place, by path. From the place with most of it the largest in it is followed,
 * as long as that has most of it.
 */
#include "report/base/alloc.h"
#include "report/text/format_number.h"
#include "report/analysis/ranks/rank_set.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one straggler on one rank: stretches of time, and how much of such lay before each. */
struct stretch {
	uint64_t begin_ns, end_ns, before_ns;
};

struct stretches {
	struct stretch *all;
	size_t count, room;
	uint64_t *cpu, *gpu; /* spent in them, by node */
	size_t cpu_room, gpu_room;
};

struct came {
	uint64_t at_ns;
	size_t collective;
};

/* What a rank is watched for in its pass. */
struct watch {
	struct ranks *ranks;
	struct rank *rank;
	struct came *launched; /* by when */
	struct stretches of[RANKS_NAMED];
};

static int by_time(const void *a, const void *b)
{
	const struct came *left = a, *right = b;

	if (left->at_ns != right->at_ns)
		return left->at_ns < right->at_ns ? -1 : 1;
	return (left->collective > right->collective) - (left->collective < right->collective);
}

/* When collectives were launched, or come to; to be freed. */
static struct came *in_order(const struct collectives *collectives, bool launched)
{
	struct came *came = need((collectives->count + 1) * sizeof *came);

	for (size_t i = 0; i < collectives->count; i++)
		came[i] = (struct came){ launched ? collectives->all[i].launched_ns : collectives->all[i].asked_ns, i };
	qsort(came, collectives->count, sizeof *came, by_time);
	return came;
}

static void add_stretch(struct stretches *stretches, uint64_t begin_ns, uint64_t end_ns)
{
	const struct stretch *last = stretches->count ? &stretches->all[stretches->count - 1] : NULL;
	const uint64_t before = last ? last->before_ns + (last->end_ns - last->begin_ns) : 0;

	grow(&stretches->all, &stretches->room, stretches->count + 1, sizeof *stretches->all);
	stretches->all[stretches->count++] = (struct stretch){ begin_ns, end_ns, before };
}

static void find_stretches(struct watch *watch)
{
	const struct collectives *collectives = &watch->rank->collectives;
	struct came *came = in_order(collectives, false);

	for (size_t i = 1; i < collectives->count && came[i].at_ns != UINT64_MAX; i++) {
		const uint32_t outcome = collectives->all[came[i].collective].outcome;

		for (size_t s = 0; outcome != UINT32_MAX && s < watch->ranks->straggler_count; s++)
			if (watch->ranks->outcomes[outcome].last == watch->ranks->stragglers[s].rank)
				add_stretch(&watch->of[s], came[i - 1].at_ns, came[i].at_ns);
	}
	free(came);
}

/* The number of stretches that begin at or before that moment. */
static size_t begun(const struct stretches *stretches, uint64_t at_ns)
{
	size_t low = 0, high = stretches->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (stretches->all[middle].begin_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* How much of all stretches lies before that moment. */
static uint64_t before(const struct stretches *stretches, uint64_t at_ns)
{
	const size_t count = begun(stretches, at_ns);
	const struct stretch *last = count ? &stretches->all[count - 1] : NULL;

	return last ? last->before_ns + ((at_ns < last->end_ns ? at_ns : last->end_ns) - last->begin_ns) : 0;
}

static void spend(uint64_t **by_node, size_t *room, uint32_t node, uint64_t ns)
{
	grow(by_node, room, (size_t)node + 1, sizeof **by_node);
	(*by_node)[node] += ns;
}

static void spend_cpu(struct watch *watch, uint32_t node, uint64_t at_ns, uint64_t duration_ns)
{
	for (size_t s = 0; s < watch->ranks->straggler_count; s++) {
		struct stretches *of = &watch->of[s];

		spend(&of->cpu, &of->cpu_room, node, before(of, at_ns + duration_ns) - before(of, at_ns));
	}
}

static void spend_gpu(struct watch *watch, uint32_t node, uint64_t at_ns, uint64_t duration_ns)
{
	for (size_t s = 0; s < watch->ranks->straggler_count; s++) {
		struct stretches *of = &watch->of[s];
		const size_t count = begun(of, at_ns);

		if (count && at_ns < of->all[count - 1].end_ns)
			spend(&of->gpu, &of->gpu_room, node, duration_ns);
	}
}

/* The leaf of its work; what that is and lies in is seen after the pass. */
static void place_collective(struct watch *watch, uint32_t leaf, uint64_t at_ns)
{
	struct collectives *collectives = &watch->rank->collectives;
	size_t low = 0, high = collectives->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (watch->launched[middle].at_ns < at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < collectives->count && watch->launched[low].at_ns == at_ns; low++)
		collectives->all[watch->launched[low].collective].node = leaf;
}

static void begins(void *context)
{
	struct watch *watch = context;

	for (size_t s = 0; s < watch->ranks->straggler_count; s++) {
		if (watch->of[s].cpu)
			memset(watch->of[s].cpu, 0, watch->of[s].cpu_room * sizeof *watch->of[s].cpu);
		if (watch->of[s].gpu)
			memset(watch->of[s].gpu, 0, watch->of[s].gpu_room * sizeof *watch->of[s].gpu);
	}
}

static void leaf(void *context, uint32_t node, bool is_work, uint64_t at_ns, uint64_t duration_ns)
{
	struct watch *watch = context;

	if (!is_work) {
		spend_cpu(watch, node, at_ns, duration_ns);
		return;
	}
	place_collective(watch, node, at_ns);
	spend_gpu(watch, node, at_ns, duration_ns);
}

static void instance(void *context, uint32_t node, uint64_t at_ns, long double value)
{
	spend_cpu(context, node, at_ns, number_whole(value));
}

static bool is_communication(const struct rank *rank, uint32_t node)
{
	const struct text name = text_of(rank->process->texts, rank->fold->tree->nodes[node].name);

	return collective_kernel((struct trace_text){ name.bytes, name.length, true }) >= 0;
}

/* Work is part of all that it lies in; communication is what is waited for, not what is done meanwhile. */
static void sum_gpu(const struct rank *rank, struct stretches *of)
{
	const struct tree *tree = rank->fold->tree;

	grow(&of->gpu, &of->gpu_room, tree->count, sizeof *of->gpu);
	grow(&of->cpu, &of->cpu_room, tree->count, sizeof *of->cpu);
	for (uint32_t id = tree->count - 1; id > 0; id--) {
		if (of->gpu[id] && !tree->nodes[id].first_child && is_communication(rank, id))
			of->gpu[id] = 0;
		of->gpu[tree->nodes[id].parent] += of->gpu[id];
	}
}

static void pass(struct watch *watch)
{
	const struct fold_observer observer = { .context = watch, .begins = begins, .leaf = leaf, .instance = instance };
	struct process *process = watch->rank->process;
	struct fold_options options = process->fold->options;
	struct collectives *collectives = &watch->rank->collectives;

	find_stretches(watch);
	watch->launched = in_order(collectives, true);
	options.metric = METRIC_CPU;
	options.pick_metric = false;
	options.found = NULL; /* what warms up in one rank may be usual in another: then their places would not be the same */
	options.observer = &observer;
	watch->rank->fold = fold_run(process->reader, process->texts, &options);
	watch->rank->fold->options.observer = NULL;
	free(watch->launched);
	for (size_t i = 0; i < collectives->count; i++) {
		const uint32_t node = collectives->all[i].node;

		collectives->all[i].node = node && is_communication(watch->rank, node) ? watch->rank->fold->tree->nodes[node].parent : 0;
	}
	for (size_t s = 0; s < watch->ranks->straggler_count; s++)
		sum_gpu(watch->rank, &watch->of[s]);
}

/* ---- places of all ranks ---- */

/* By node: the number of its path, the same in each rank. To be freed. */
static uint32_t *paths_of(const struct rank *rank, struct texts *paths)
{
	const struct tree *tree = rank->fold->tree;
	uint32_t *keys = need(tree->count * sizeof *keys);
	char *text = NULL;
	size_t room = 0;

	for (uint32_t id = 1; id < tree->count; id++) {
		const struct text name = text_of(rank->process->texts, tree->nodes[id].name);
		int used;

		grow(&text, &room, name.length + 32, 1);
		used = snprintf(text, 32, "%u %u ", keys[tree->nodes[id].parent], (unsigned)tree->nodes[id].kind);
		memcpy(text + used, name.bytes, name.length);
		keys[id] = text_id(paths, text, (size_t)used + name.length);
	}
	free(text);
	return keys;
}

/* What each rank spent at each place: by path, then rank. */
struct spent {
	uint64_t *ns;
	size_t room, ranks;
};

static void add_spent(struct spent *spent, uint32_t path, size_t rank, uint64_t ns)
{
	grow(&spent->ns, &spent->room, ((size_t)path + 1) * spent->ranks, sizeof *spent->ns);
	spent->ns[path * spent->ranks + rank] += ns;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static uint64_t others_median(const struct spent *spent, uint32_t path, size_t rank, const struct ranks *ranks)
{
	uint64_t *values = need(spent->ranks * sizeof *values), median;
	size_t count = 0;

	for (size_t i = 0; i < spent->ranks; i++)
		if (i != rank && ranks->ranks[i].sums.matched)
			values[count++] = spent->ns[path * spent->ranks + i];
	qsort(values, count, sizeof *values, by_value);
	median = !count ? 0 : count % 2 ? values[count / 2] : values[count / 2 - 1] + (values[count / 2] - values[count / 2 - 1]) / 2;
	free(values);
	return median;
}

/* A place, and by how much the straggler spent more there. */
struct excess {
	uint32_t node;
	uint64_t own_ns, others_ns, more_ns;
};

/* Of two places the one with more. */
static void compare_place(const struct ranks *ranks, const struct straggler *straggler, const struct spent *spent, const uint32_t *paths, uint32_t id,
	struct excess *best)
{
	const struct tree *tree = ranks->ranks[straggler->rank].fold->tree;
	const uint64_t own = spent->ns ? spent->ns[paths[id] * spent->ranks + straggler->rank] : 0;
	uint64_t others;

	if (own <= best->more_ns || tree->nodes[id].kind == NODE_SPANS)
		return;
	others = others_median(spent, paths[id], straggler->rank, ranks);
	if (own > others && own - others > best->more_ns)
		*best = (struct excess){ id, own, others, own - others };
}

/* The largest of all: what a place has more may be made up for in the one around it, by less waiting for the others. Then down. */
static struct excess follow(const struct ranks *ranks, const struct straggler *straggler, const struct spent *spent, const uint32_t *paths)
{
	const struct tree *tree = ranks->ranks[straggler->rank].fold->tree;
	struct excess at = { .node = 0 };

	for (uint32_t id = 1; id < tree->count; id++)
		compare_place(ranks, straggler, spent, paths, id, &at);
	for (struct excess next = { .node = 0 }; at.node; at = next) {
		next = (struct excess){ .node = 0 };
		for (uint32_t id = tree->nodes[at.node].first_child; id; id = tree->nodes[id].next)
			compare_place(ranks, straggler, spent, paths, id, &next);
		if (!next.more_ns || next.more_ns * 10 < at.more_ns * 6)
			break;
	}
	return at;
}

static void blame(const struct ranks *ranks, struct straggler *straggler, const struct watch *watches, uint32_t *const *paths)
{
	const size_t index = (size_t)(straggler - ranks->stragglers);
	struct spent cpu = { .ranks = ranks->count }, gpu = { .ranks = ranks->count };
	const struct rank_sums *sums = &ranks->ranks[straggler->rank].sums;
	const uint64_t usual_ns = sums->late_median_ns * sums->last; /* what made one of them very late, such as the start, says nothing of all */
	struct excess on_cpu, on_gpu, found;

	for (size_t rank = 0; rank < ranks->count; rank++)
		for (uint32_t id = 1; id < ranks->ranks[rank].fold->tree->count; id++) {
			add_spent(&cpu, paths[rank][id], rank, watches[rank].of[index].cpu[id]);
			add_spent(&gpu, paths[rank][id], rank, watches[rank].of[index].gpu[id]);
		}
	on_cpu = follow(ranks, straggler, &cpu, paths[straggler->rank]);
	on_gpu = follow(ranks, straggler, &gpu, paths[straggler->rank]);
	/* A program that waits for its GPU takes longer on the CPU, too: the GPU is asked first. */
	straggler->gpu = on_gpu.more_ns >= usual_ns / 2 || on_gpu.more_ns > on_cpu.more_ns;
	found = straggler->gpu ? on_gpu : on_cpu;
	if (found.more_ns && found.more_ns >= usual_ns / 10) {
		straggler->node = found.node;
		straggler->more_ns = found.more_ns;
		straggler->own_ns = found.own_ns;
		straggler->others_ns = found.others_ns;
	}
	free(cpu.ns);
	free(gpu.ns);
}

/* ---- who ---- */

static int by_lateness(const void *a, const void *b)
{
	const struct straggler *left = a, *right = b;

	if (left->late_ns != right->late_ns)
		return left->late_ns > right->late_ns ? -1 : 1;
	return (left->rank > right->rank) - (left->rank < right->rank);
}

/* By chance each member is last as often as any other; two and a half deviations more come once in 160 times. */
static struct straggler *find_stragglers(const struct ranks *ranks, size_t *count)
{
	struct straggler *found = need((ranks->count + 1) * sizeof *found);
	double *expected = need((ranks->count + 1) * sizeof *expected), *variance = need((ranks->count + 1) * sizeof *variance);

	for (size_t i = 0; i < ranks->outcome_count; i++) {
		const struct group *group = &ranks->groups[ranks->outcomes[i].group];
		const double chance = 1.0 / (double)group->count;

		for (size_t m = 0; ranks->outcomes[i].last != UINT32_MAX && m < group->count; m++) {
			expected[group->members[m].rank] += chance;
			variance[group->members[m].rank] += chance * (1 - chance);
		}
	}
	*count = 0;
	for (uint32_t i = 0; i < ranks->count; i++) {
		const struct rank_sums *sums = &ranks->ranks[i].sums;

		if (sums->last >= 3 && (double)sums->last > expected[i] + 2.5 * sqrt(variance[i]))
			found[(*count)++] = (struct straggler){ .rank = i, .expected = expected[i], .late_ns = sums->late_ns };
	}
	qsort(found, *count, sizeof *found, by_lateness);
	free(expected);
	free(variance);
	return found;
}

void ranks_blame(struct ranks *ranks)
{
	struct watch *watches = need((ranks->count + 1) * sizeof *watches);
	uint32_t **paths = need((ranks->count + 1) * sizeof *paths);
	struct texts *texts = texts_new();
	struct straggler *found = find_stragglers(ranks, &ranks->straggler_count);

	if (ranks->straggler_count > RANKS_NAMED)
		ranks->straggler_count = RANKS_NAMED;
	memcpy(ranks->stragglers, found, ranks->straggler_count * sizeof *found);
	free(found);
	for (size_t i = 0; i < ranks->count; i++) {
		watches[i] = (struct watch){ .ranks = ranks, .rank = &ranks->ranks[i] };
		pass(&watches[i]);
		paths[i] = paths_of(&ranks->ranks[i], texts);
	}
	for (size_t s = 0; s < ranks->straggler_count; s++)
		blame(ranks, &ranks->stragglers[s], watches, paths);
	for (size_t i = 0; i < ranks->count; i++) {
		for (size_t s = 0; s < RANKS_NAMED; s++) {
			free(watches[i].of[s].all);
			free(watches[i].of[s].cpu);
			free(watches[i].of[s].gpu);
		}
		free(paths[i]);
	}
	free(watches);
	free(paths);
	texts_free(texts);
}
