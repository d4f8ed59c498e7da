/* SPDX-License-Identifier: MIT */
#include "report/analysis/ranks/rank_set.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/text/output.h"
#include <stdlib.h>

COMPARE_BY_TWO(by_number, struct rank_process, number, process)

/* Numbers the ranks. If a file does not say its rank, all are numbered in the order given. Returns
 * false if two have the same number. */
static bool number_ranks(struct ranks *ranks)
{
	for (size_t i = 0; i < ranks->count; i++)
		ranks->numbered_by_file |= ranks->all[i].process->rank < 0;
	for (size_t i = 0; i < ranks->count; i++)
		ranks->all[i].number = ranks->numbered_by_file ? (int64_t)i
							       : ranks->all[i].process->rank;
	qsort(ranks->all, ranks->count, sizeof *ranks->all, by_number);
	for (size_t i = 1; i < ranks->count; i++)
		if (ranks->all[i].number == ranks->all[i - 1].number) {
			text_add(&ranks->problem,
				"%s and %s both have rank %lld; give one trace per rank",
				ranks->all[i - 1].process->path, ranks->all[i].process->path,
				(long long)ranks->all[i].number);
			return false;
		}
	return true;
}

static bool has_two_ranks(struct ranks *ranks)
{
	if (!ranks->count)
		text_add(&ranks->problem, "these traces contain no collective: neither NCCL or "
					  "RCCL kernels nor ranges such as gloo:all_reduce");
	else if (ranks->count < 2)
		text_add(&ranks->problem,
			"only %s has collectives; give several ranks: pperf-report ranks TRACE "
			"TRACE ...",
			ranks->all[0].process->path);
	return ranks->count >= 2;
}

/* Selects the processes with collectives. Data loaders and compilers of a rank have its number too,
 * but no collectives. Returns false if the ranks cannot be compared. */
static bool select_ranks(struct ranks *ranks)
{
	ranks->all = xcalloc((ranks->processes.count + 1) * sizeof *ranks->all);
	for (size_t i = 0; i < ranks->processes.shown; i++) {
		struct rank_process rank = { .process = &ranks->processes.all[i] };

		collectives_read(&rank.collectives, rank.process->reader,
			collective_calls_of(rank.process), rank.process->simulated);
		if (rank.collectives.count)
			ranks->all[ranks->count++] = rank;
		else
			collectives_free(&rank.collectives);
	}
	ranks->processes_without_collectives = (uint32_t)(ranks->processes.shown - ranks->count);
	return has_two_ranks(ranks) && number_ranks(ranks);
}

bool rank_is_wanted(const struct options *options, const struct rank_process *rank)
{
	return options->rank < 0 || options->rank == rank->number;
}

struct trace_text *ranks_path(const struct rank_process *rank, uint32_t node, size_t *count)
{
	const struct tree *tree = rank->profile->tree;
	struct trace_text *path = xcalloc((tree->nodes[node].depth + 2u) * sizeof *path);

	*count = 0;
	for (uint32_t at = node; at; at = tree->nodes[at].parent)
		++*count;
	for (size_t i = *count; node; node = tree->nodes[node].parent) {
		const struct string_view name = string_table_get(
			rank->process->texts, tree->nodes[node].name);

		path[--i] = (struct trace_text){
			.bytes = name.bytes, .length = name.length, .known = true
		};
	}
	return path;
}

void ranks_free(struct ranks *ranks)
{
	for (size_t i = 0; i < ranks->count; i++) {
		collectives_free(&ranks->all[i].collectives);
		profile_free(ranks->all[i].profile);
	}
	for (size_t i = 0; i < ranks->group_count; i++)
		free(ranks->groups[i].members);
	free(ranks->groups);
	free(ranks->outcomes);
	free(ranks->rows);
	free(ranks->all);
	free(ranks->problem.text);
	processes_free(&ranks->processes);
}

bool ranks_read(struct ranks *ranks, const struct options *options)
{
	struct options all = *options;

	*ranks = (struct ranks){ .count = 0 };
	all.all = true;
	all.rank = -1;
	ranks->processes = processes_read(&all);
	if (!select_ranks(ranks))
		return false;
	ranks_group(ranks);
	ranks_compute_waits(ranks);
	ranks_find_stragglers(ranks);
	ranks_make_rows(ranks);
	return true;
}
