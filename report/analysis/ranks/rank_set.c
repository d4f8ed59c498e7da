/* SPDX-License-Identifier: MIT */
#include "report/analysis/ranks/rank_set.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/error.h"
#include "report/import/open_trace.h"
#include <stdlib.h>
#include <string.h>

#define MISSING_NAMED 8 /* missing ranks that a warning lists */

/* ---- reading one trace after the other ---- */

static void read_input(struct ranks *ranks, struct rank_input *input, const struct options *options)
{
	if (!rank_input_read(input, ranks->processes.categories, options, rank_input_read_in))
		return;
	ranks->has_incomplete |= !input->process.complete;
	process_close(&input->process);
}

static bool is_input(const struct rank_inputs *inputs, const char *path)
{
	for (size_t i = 0; i < inputs->count; i++)
		if (!strcmp(inputs->all[i]->process.path, path))
			return true;
	return false;
}

/* Reads the other processes in a file of another tool, as far as they were not named. */
static void read_other_processes(
	struct ranks *ranks, const char *path, const struct options *options)
{
	const size_t count = open_trace_process_count(path);

	for (size_t i = 1; i < count; i++) {
		char *other = open_trace_process_path(path, i);

		if (!is_input(&ranks->inputs, other))
			read_input(ranks, rank_inputs_add(&ranks->inputs, other), options);
		free(other);
	}
}

static void read_inputs(struct ranks *ranks, const struct options *given)
{
	const size_t count = ranks->inputs.count;
	struct options options = *given;

	options.all = true;
	options.rank = -1;
	/* The figures of a rank need neither the owners of idle gaps nor percentiles. */
	options.format = FORMAT_TEXT;
	options.columns = options.sort = NULL;
	options.charges_idle = false;
	options.no_percentiles = true;
	options.no_cache = true; /* of thousands of ranks */
	for (size_t i = 0; i < count; i++) {
		struct rank_input *input = ranks->inputs.all[i];

		if (input->status != RANK_INPUT_OK)
			continue;
		read_input(ranks, input, &options);
		read_other_processes(ranks, input->process.path, &options);
		rank_inputs_forget(&ranks->inputs, input->process.path);
	}
}

/* ---- the ranks ---- */

COMPARE_BY_TWO(by_number, struct rank_process, number, input)

/* Numbers the ranks. If a file does not say its rank, all are numbered in the order given. */
static void number_ranks(struct ranks *ranks)
{
	for (size_t i = 0; i < ranks->count; i++)
		ranks->numbered_by_file |= ranks->all[i].process->rank < 0;
	for (size_t i = 0; i < ranks->count; i++)
		ranks->all[i].number = ranks->numbered_by_file ? (int64_t)i
							       : ranks->all[i].process->rank;
	if (ranks->count)
		qsort(ranks->all, ranks->count, sizeof *ranks->all, by_number);
}

static bool has_two_ranks(struct ranks *ranks)
{
	const char *refused = NULL;

	for (size_t i = 0; i < ranks->inputs.count && !refused; i++)
		if (ranks->inputs.all[i]->status != RANK_INPUT_NO_COLLECTIVES)
			refused = ranks->inputs.all[i]->why;
	if (ranks->count < 2 && refused)
		text_add(&ranks->problem, "%s", refused);
	else if (!ranks->count)
		text_add(&ranks->problem, "these traces contain no collective: neither NCCL or "
					  "RCCL kernels nor ranges such as gloo:all_reduce");
	else if (ranks->count < 2)
		text_add(&ranks->problem,
			"only %s has collectives; give several ranks: pperf-report ranks TRACE "
			"TRACE ...",
			ranks->all[0].process->path);
	return ranks->count >= 2;
}

static int by_start(const void *a, const void *b)
{
	return process_compare_start(&(*(struct rank_input *const *)a)->process,
		&(*(struct rank_input *const *)b)->process);
}

/* Selects the processes with collectives. Data loaders and compilers of a rank have its number too,
 * but no collectives. Returns false if the ranks cannot be compared. */
static bool select_ranks(struct ranks *ranks)
{
	struct rank_inputs *inputs = &ranks->inputs;

	if (inputs->count)
		qsort(inputs->all, inputs->count, sizeof *inputs->all, by_start);
	ranks->all = xcalloc((inputs->count + 1) * sizeof *ranks->all);
	for (size_t i = 0; i < inputs->count; i++) {
		struct rank_input *input = inputs->all[i];

		ranks->input_counts[input->status]++;
		if (rank_input_is_used(input) &&
			(input->collectives.count || input->requests.count))
			ranks->all[ranks->count++] = (struct rank_process){ .input = input,
				.process = &input->process,
				.collectives = &input->collectives };
	}
	ranks->processes_without_collectives =
		(uint32_t)ranks->input_counts[RANK_INPUT_NO_COLLECTIVES];
	number_ranks(ranks);
	return has_two_ranks(ranks);
}

/* ---- what is missing ---- */

/* Lists the numbers that no trace has, if at least half of them have one. Otherwise some ranks were
 * selected on purpose. */
static void find_missing_ranks(struct ranks *ranks)
{
	int64_t number = 0, end = ranks->all[ranks->count - 1].number + 1;

	for (size_t i = 0; i < ranks->count; i++)
		if (ranks->all[i].input->world_size > ranks->world_size)
			ranks->world_size = ranks->all[i].input->world_size;
	end = ranks->world_size > end ? ranks->world_size : end;
	if (ranks->numbered_by_file || end > 2 * (int64_t)ranks->count)
		return;
	for (size_t i = 0; number < end; number++)
		if (i < ranks->count && ranks->all[i].number == number)
			i++;
		else
			*ARRAY_ADD(
				ranks->missing, ranks->missing_room, ranks->missing_count) = number;
}

static void warn_of_missing_ranks(struct ranks *ranks)
{
	struct text_builder list = { .text = NULL };

	for (size_t i = 0; i < ranks->missing_count && i < MISSING_NAMED; i++)
		text_add(&list, "%s%lld", i ? ", " : "", (long long)ranks->missing[i]);
	if (ranks->missing_count > MISSING_NAMED)
		text_add(&list, " and %zu more", ranks->missing_count - MISSING_NAMED);
	if (ranks->world_size)
		text_add(&list, " of %lld", (long long)ranks->world_size);
	if (ranks->missing_count)
		processes_warn(&ranks->processes, "rank%s %s %s no usable trace",
			ranks->missing_count == 1 ? "" : "s", list.text,
			ranks->missing_count == 1 ? "has" : "have");
	free(list.text);
}

static void warn_of_inputs(struct ranks *ranks)
{
	for (size_t i = 0; i < ranks->inputs.count; i++) {
		const struct rank_input *input = ranks->inputs.all[i];

		if (rank_input_is_fault(input))
			processes_warn(&ranks->processes, "%s", input->why);
	}
}

bool ranks_are_whole(const struct ranks *ranks)
{
	size_t faults = ranks->missing_count + ranks->has_incomplete;

	for (size_t i = 0; i < ranks->inputs.count; i++)
		faults += rank_input_is_fault(ranks->inputs.all[i]);
	return !faults;
}

bool rank_is_wanted(const struct options *options, const struct rank_process *rank)
{
	return options->rank < 0 || options->rank == rank->number;
}

/* Sets `name` to the name of a place, and returns the place around it. */
static uint32_t outer_place(const struct ranks *ranks, uint32_t place, struct trace_text *name)
{
	const struct string_view text = string_table_get(ranks->places, place);
	char *end;
	const uint32_t outer = (uint32_t)strtoul(text.bytes, &end, 10);

	strtoul(end, &end, 10); /* its kind */
	end++;
	*name = (struct trace_text){ end, text.length - (uint32_t)(end - text.bytes), true };
	return outer;
}

struct trace_text *ranks_path(const struct ranks *ranks, uint32_t place, size_t *count)
{
	struct trace_text name, *path;

	*count = 0;
	for (uint32_t at = place; at; at = outer_place(ranks, at, &name))
		++*count;
	path = xcalloc((*count + 1) * sizeof *path);
	for (size_t i = *count; i-- > 0;)
		place = outer_place(ranks, place, &path[i]);
	return path;
}

struct process *ranks_open(const struct ranks *ranks, uint32_t rank, const struct options *options)
{
	struct process *process = ranks->all[rank].process;
	char error[READER_ERROR_BYTES];
	struct options all;

	ranks_close(ranks, rank);
	if (!options) {
		if (!process_open(process, error))
			fatal(STATUS_UNREADABLE, "%s", error);
		return process;
	}
	all = *options;
	all.all = true;
	all.rank = -1;
	if (!process_read(process, &all, error))
		fatal(STATUS_UNREADABLE, "%s", error);
	process->shown = true;
	return process;
}

void ranks_close(const struct ranks *ranks, uint32_t rank)
{
	struct process *process = ranks->all[rank].process;

	if (!process->reader)
		return;
	process_close(process);
	rank_inputs_forget(&ranks->inputs, process->path);
}

void ranks_free(struct ranks *ranks)
{
	for (uint32_t i = 0; i < ranks->count; i++) {
		ranks_close(ranks, i);
		free(ranks->all[i].unaligned_reason);
	}
	for (size_t i = 0; i < ranks->group_count; i++)
		free(ranks->groups[i].members);
	if (ranks->places)
		string_table_free(ranks->places);
	free(ranks->groups);
	free(ranks->islands);
	free(ranks->outcomes);
	free(ranks->rows);
	free(ranks->missing);
	free(ranks->all);
	free(ranks->problem.text);
	rank_inputs_free(&ranks->inputs);
	processes_free(&ranks->processes);
}

bool ranks_read(struct ranks *ranks, const struct options *options)
{
	*ranks = (struct ranks){ .quorum = options->quorum ? options->quorum : RANKS_QUORUM };
	ranks->processes.categories = categories_read(options->categories);
	rank_inputs_find(&ranks->inputs, options);
	read_inputs(ranks, options);
	rank_inputs_choose(&ranks->inputs, options);
	if (!select_ranks(ranks))
		return false;
	warn_of_inputs(ranks);
	find_missing_ranks(ranks);
	warn_of_missing_ranks(ranks);
	ranks_group(ranks);
	ranks_align_clocks(ranks);
	ranks_compute_waits(ranks);
	ranks_find_stragglers(ranks, options);
	ranks_make_rows(ranks);
	return true;
}
