/* SPDX-License-Identifier: MIT */
#include "report/views/ranks_words.h"
#include "report/base/alloc.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ranks_add_path(struct paragraph *paragraph, const struct ranks *ranks, uint32_t place)
{
	size_t count;
	struct trace_text *path = ranks_path(ranks, place, &count);

	for (size_t i = 0; i < count; i++) {
		if (i)
			paragraph_add(paragraph, " / ");
		paragraph_text(paragraph, path[i].bytes, path[i].length);
	}
	free(path);
}

static void add_time(struct paragraph *paragraph, int64_t ns)
{
	char text[FORMAT_NUMBER_BYTES];

	format_with_unit(text, UNIT_TIME, ns, false, paragraph->style->ascii);
	paragraph_add(paragraph, "%s%s", ns > 0 ? "+" : "", text);
}

static void add_clock_fit(
	struct paragraph *paragraph, const struct ranks *ranks, const struct rank_process *rank)
{
	paragraph_add(paragraph, "offset ");
	add_time(paragraph, rank->fit.offset_ns);
	if (rank->fit.drift != 0)
		paragraph_add(paragraph, ", drift %+.2f ppm", rank->fit.drift * 1e6);
	paragraph_add(paragraph, ", residual ");
	paragraph_value(paragraph, UNIT_TIME, rank->fit.residual_ns);
	paragraph_add(paragraph, " median, ");
	paragraph_value(paragraph, UNIT_TIME, rank->fit.residual_max_ns);
	paragraph_add(paragraph, " maximum, over %zu ends", rank->fit.pairs);
	if (rank->aligned_with != ranks->reference)
		paragraph_add(paragraph, " shared with rank %lld",
			(long long)ranks->all[rank->aligned_with].number);
}

void ranks_add_clock(
	struct paragraph *paragraph, const struct ranks *ranks, const struct rank_process *rank)
{
	paragraph_add(paragraph, "rank %lld ", (long long)rank->number);
	if (rank->aligned)
		add_clock_fit(paragraph, ranks, rank);
	else
		paragraph_add(paragraph, "cannot be aligned: %s", rank->unaligned_reason);
}

void ranks_add_alignment(struct paragraph *paragraph, const struct ranks *ranks)
{
	size_t aligned = 0;

	for (size_t i = 0; i < ranks->count; i++)
		aligned += ranks->all[i].aligned;
	paragraph_add(paragraph,
		"%zu of %zu aligned to the clock of rank %lld, by the ends of collectives", aligned,
		ranks->count, (long long)ranks->all[ranks->reference].number);
	if (ranks->numbered_by_file)
		paragraph_add(
			paragraph, "; numbered in file order, as not all files contain their rank");
	if (ranks->processes_without_collectives)
		paragraph_add(paragraph, "; %u processes without collectives excluded",
			ranks->processes_without_collectives);
}

/* Returns true if at least one trace has the process group of its collectives. Collectives that are
 * ranges on the CPU always belong to a known group. Communicators of a pair are ignored, because
 * their group is made up from its ranks. */
static bool process_groups_are_known(const struct ranks *ranks)
{
	bool known = false;

	for (size_t i = 0; i < ranks->count; i++) {
		const struct collectives *collectives = ranks->all[i].collectives;

		known |= collectives->ranges;
		for (size_t k = 0; k < collectives->communicator_count; k++)
			known |= collectives->communicators[k].group.known &&
				 !communicator_is_pair(&collectives->communicators[k]);
	}
	return known;
}

void ranks_add_matched(struct paragraph *paragraph, const struct ranks *ranks)
{
	uint64_t unmatched = 0, pairs = 0, untimed = 0;

	for (size_t i = 0; i < ranks->count; i++) {
		unmatched += ranks->all[i].sums.unmatched;
		pairs += ranks->all[i].collectives->pairs;
		untimed += ranks->all[i].collectives->untimed;
	}
	paragraph_add(paragraph, "%zu collectives in %zu communicator%s", ranks->outcome_count,
		ranks->group_count, ranks->group_count == 1 ? "" : "s");
	if (ranks->incomplete)
		paragraph_add(paragraph, "; %llu lack a rank (of each, %u %% of the ranks suffice)",
			(unsigned long long)ranks->incomplete, ranks->quorum);
	if (ranks->undecided)
		paragraph_add(paragraph,
			"; in %llu the last two arrived within the clocks' residual",
			(unsigned long long)ranks->undecided);
	if (unmatched)
		paragraph_add(paragraph,
			"; %llu of single ranks have no match, or fewer than %u %% of the ranks "
			"have them (--quorum)",
			(unsigned long long)unmatched, ranks->quorum);
	if (pairs)
		paragraph_add(paragraph,
			"; %llu sends and receives are not compared: the ranges around their "
			"launches do not name the peers",
			(unsigned long long)pairs);
	if (untimed)
		paragraph_add(paragraph, "; %llu have no timestamps", (unsigned long long)untimed);
	if (!process_groups_are_known(ranks))
		paragraph_add(paragraph,
			"; process groups are not named in these traces: each stream is assumed to "
			"be one, and matched with others by kind, order and end");
	if (ranks->all[0].collectives->waits_in_call)
		paragraph_add(paragraph, "; each starts with the call or range it was launched in, "
					 "since the simulated NCCL waits there");
}

void ranks_add_straggler(
	struct paragraph *paragraph, const struct ranks *ranks, const struct straggler *straggler)
{
	const struct rank_process *rank = &ranks->all[straggler->rank];

	paragraph_add(paragraph, "rank %lld was last in ", (long long)rank->number);
	paragraph_percent(paragraph, rank->sums.last, rank->sums.matched);
	paragraph_add(
		paragraph, " of %llu collectives, by ", (unsigned long long)rank->sums.matched);
	paragraph_value(paragraph, UNIT_TIME, rank->sums.late_median_ns);
	paragraph_add(paragraph, " (median), ");
	paragraph_value(paragraph, UNIT_TIME, rank->sums.late_ns);
	paragraph_add(paragraph, " in total; ");
	if (straggler->more_ns) {
		paragraph_add(paragraph, "before them it spent ");
		paragraph_value(paragraph, UNIT_TIME, straggler->more_ns);
		paragraph_add(paragraph, " more %s than the others in `",
			straggler->gpu ? "of GPU work" : "on the CPU");
		ranks_add_path(paragraph, ranks, straggler->place);
		paragraph_add(paragraph, "` (");
		paragraph_value(paragraph, UNIT_TIME, straggler->own_ns);
		paragraph_add(paragraph, ", the others ");
		paragraph_value(paragraph, UNIT_TIME, straggler->others_ns);
		paragraph_add(paragraph, ")");
	} else {
		paragraph_add(paragraph, "nothing recorded took it longer than the others");
	}
}

void ranks_add_no_straggler(struct paragraph *paragraph, const struct ranks *ranks)
{
	paragraph_add(paragraph, ranks->decided ? "none: no rank was last more often than by chance"
						: "unknown: no collective could be compared");
}

void ranks_last_text(
	char *text, size_t room, const struct ranks *ranks, const struct collective_row *row)
{
	if (row->last_rank == UINT32_MAX)
		snprintf(text, room, "undecided");
	else
		snprintf(text, room, "%lld in %llu", (long long)ranks->all[row->last_rank].number,
			(unsigned long long)row->last_count);
}

/* Returns true for the functions of PyTorch that every collective passes through. Their names add
 * nothing to the path. */
static bool is_collective_wrapper(const struct trace_text *name)
{
	static const char *const wrappers[] = { "nccl:", "record_param_comms", "c10d::" };

	for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
		if (name->length >= strlen(wrappers[i]) &&
			!memcmp(name->bytes, wrappers[i], strlen(wrappers[i])))
			return true;
	return false;
}

char *ranks_place_text(const struct ranks *ranks, uint32_t place, bool ascii)
{
	char *text = NULL, *shown;
	size_t count, used = 0, room = 0;
	struct trace_text *path = ranks_path(ranks, place, &count);

	while (count > 1 && is_collective_wrapper(&path[count - 1]))
		count--;
	for (size_t i = 0; i < count; i++) {
		array_grow_zeroed(&text, &room, used + path[i].length + 4, 1);
		memcpy(text + used, " / ", i ? 3 : 0);
		used += i ? 3 : 0;
		memcpy(text + used, path[i].bytes, path[i].length);
		used += path[i].length;
	}
	shown = xcalloc(used * 6 + 1);
	escape_text(shown, used * 6 + 1, text ? text : "", used, ascii);
	free(text);
	free(path);
	return shown;
}
