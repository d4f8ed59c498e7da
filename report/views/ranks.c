/* SPDX-License-Identifier: MIT
 *
 * Prints the view `ranks` as text.
 */
#include "report/text/shorten_names.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/print/next_command.h"
#include "report/text/paragraph.h"
#include "report/print/print.h"
#include "report/views/ranks_columns.h"
#include "report/views/ranks.h"
#include "report/views/ranks_words.h"
#include "report/views/views.h"
#include "report/base/error.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_rank_clock(
	const struct ranks *ranks, const struct rank_process *rank, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	ranks_add_clock(&paragraph, ranks, rank);
	paragraph_print(&paragraph, "clock");
}

/* clocks that are printed; of more, the worst ones and those that could not be aligned */
#define CLOCKS 8

static void put_clocks(const struct ranks *ranks, const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	uint64_t worst = 0;
	size_t shown = 0, left_out = 0, unaligned = 0;

	for (uint32_t i = 0; i < ranks->count; i++) {
		const struct rank_process *rank = &ranks->all[i];

		if (i == ranks->reference)
			continue;
		if (shown < CLOCKS || (!rank->aligned && unaligned < CLOCKS)) {
			put_rank_clock(ranks, rank, style);
			unaligned += !rank->aligned;
			shown++;
			continue;
		}
		left_out++;
		worst = max_u64(worst, rank->fit.residual_ns);
	}
	if (!left_out)
		return;
	paragraph_add(&paragraph, "%zu more, residual ", left_out);
	paragraph_value(&paragraph, UNIT_TIME, worst);
	paragraph_add(&paragraph, " median at most (-f json lists each)");
	paragraph_print(&paragraph, "");
}

static void put_ranks_title(const struct ranks *ranks, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	ranks_add_alignment(&paragraph, ranks);
	paragraph_print(&paragraph, "ranks");
	put_clocks(ranks, style);
	ranks_add_matched(&paragraph, ranks);
	paragraph_print(&paragraph, "matched");
}

/* Says which ranks have clocks that are not aligned with the reference, but with each other. */
static void put_islands(const struct ranks *ranks, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	if (ranks->island_count < 2)
		return;
	paragraph_add(&paragraph,
		"the ranks are %zu islands that share no communicator; waits are measured in each "
		"by a clock of its own:",
		ranks->island_count);
	for (size_t i = 0; i < ranks->island_count && i < CLOCKS; i++)
		paragraph_add(&paragraph, "%s %zu ranks by that of rank %lld", i ? "," : "",
			ranks->islands[i].count,
			(long long)ranks->all[ranks->islands[i].reference].number);
	if (ranks->island_count > CLOCKS)
		paragraph_add(&paragraph, " and %zu more", ranks->island_count - CLOCKS);
	paragraph_print(&paragraph, "islands");
}

#define EXPOSED_PLACES 3

static void put_exposed(const struct ranks *ranks, const struct style *style)
{
	size_t count;
	const struct collective_row **rows = ranks_exposed_rows(ranks, &count);
	struct paragraph paragraph = { .style = style };

	if (!count) {
		free(rows);
		return;
	}
	paragraph_value(&paragraph, UNIT_TIME, ranks_exposed_ns(ranks));
	paragraph_add(&paragraph, " of communication in all ranks while their GPUs compute "
				  "nothing");
	for (size_t i = 0; i < count && i < EXPOSED_PLACES; i++) {
		paragraph_add(&paragraph, "%s ", i ? "," : ":");
		paragraph_value(&paragraph, UNIT_TIME, rows[i]->exposed_ns);
		paragraph_add(&paragraph, " in %s", collective_name(rows[i]->kind));
		if (!rows[i]->place)
			continue;
		paragraph_add(&paragraph, " of `");
		ranks_add_path(&paragraph, ranks, rows[i]->place);
		paragraph_add(&paragraph, "`");
	}
	if (count > EXPOSED_PLACES)
		paragraph_add(&paragraph, " (-f json lists %zu more)", count - EXPOSED_PLACES);
	paragraph_print(&paragraph, "exposed");
	free(rows);
}

static void put_stragglers(const struct ranks *ranks, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	for (size_t i = 0; i < ranks->straggler_count; i++) {
		ranks_add_straggler(&paragraph, ranks, &ranks->stragglers[i]);
		paragraph_print(&paragraph, "straggler");
	}
	if (ranks->straggler_count)
		return;
	ranks_add_no_straggler(&paragraph, ranks);
	paragraph_print(&paragraph, "straggler");
}

#define CELL 11

/* Prints a value or, if that is not NULL, the word `instead` of it. */
static void put_rank_cell(
	const struct style *style, size_t cell, enum unit unit, const char *instead, int64_t value)
{
	char text[FORMAT_NUMBER_BYTES];
	size_t points = 0;

	if (instead)
		snprintf(text, sizeof text, "%s", instead);
	else
		format_with_unit(text, unit, value, style->iec, style->ascii);
	for (const char *at = text; *at; at++)
		points += ((unsigned char)*at & 0xc0) != 0x80;
	print_line(style, "%*s%s", points < cell ? (int)(cell - points) : 1, "", text);
}

static void put_rank_line(
	const struct style *style, const struct rank_process *rank, size_t column_count)
{
	int64_t value = 0;

	print_line(style, "%6lld", (long long)rank->number);
	for (size_t column = 0; column < column_count; column++) {
		const bool known = rank_column_value(rank, column, &value);

		put_rank_cell(style, CELL, rank_columns[column].unit,
			known ? NULL : rank_column_unknown(rank, column), value);
	}
	output_char(style->out, '\n');
}

static void put_ranks(
	const struct ranks *ranks, const struct options *options, const struct style *style)
{
	const size_t room = style->width > 6 ? (style->width - 6) / CELL : 1,
		     shown = room < RANK_COLUMN_COUNT ? room : RANK_COLUMN_COUNT;

	print_line(style, "\n%6s", "rank");
	for (size_t column = 0; column < shown; column++)
		print_line(style, "%*s", CELL, rank_columns[column].title);
	output_char(style->out, '\n');
	for (size_t i = 0; i < ranks->count; i++)
		if (rank_is_wanted(options, &ranks->all[i]))
			put_rank_line(style, &ranks->all[i], shown);
}

/* The columns before a collective's name, the most important first. As many are printed as leave
 * the name NAME_MIN columns. */
static const struct {
	const char *title;
	size_t columns;
} before_names[] = { { "wait", 11 }, { "transfer", 10 }, { "calls", 8 }, { "rank last", 13 },
	{ "bus rate", 11 } };

enum { RANK_LAST = 3, RATE, BEFORE_NAMES };
static_assert(sizeof before_names / sizeof *before_names == BEFORE_NAMES, "a column is missing");
#define NAME_MIN 24u

/* The table of collectives. */
struct collective_table {
	const struct ranks *ranks;
	const struct style *style;
	size_t shown; /* columns before the name */
	size_t room;  /* for the name */
	bool on_bus;  /* the rate is that on the bus */
};

static void fit_columns(struct collective_table *table)
{
	const struct ranks *ranks = table->ranks;
	bool has_rate = false;
	size_t used = 2;

	for (size_t i = 0; i < ranks->row_count; i++) {
		has_rate |= collective_row_rate(&ranks->rows[i], false) > 0;
		table->on_bus |= collective_row_rate(&ranks->rows[i], true) > 0;
	}
	while (table->shown + !has_rate < BEFORE_NAMES &&
		(!table->shown || used + before_names[table->shown].columns + NAME_MIN <=
					  table->style->width))
		used += before_names[table->shown++].columns;
	table->room = table->style->width > used ? table->style->width - used : 1;
}

/* Shortens the paths of the places so that collectives of one kind remain distinct. */
static struct shortened_name *shorten_places(
	const struct ranks *ranks, size_t count, size_t room, const struct style *style)
{
	struct shortened_name *names = xcalloc((count + 1) * sizeof *names);

	for (size_t i = 0; i < count; i++) {
		const size_t kind = strlen(collective_name(ranks->rows[i].kind)) + strlen(" in ");

		names[i].whole = ranks_place_text(ranks, ranks->rows[i].place, style->ascii);
		names[i].columns = style->whole_names ? SIZE_MAX : room > kind ? room - kind : 1;
		names[i].group = ranks->rows[i].kind;
		names[i].is_path = true;
	}
	shorten_names(names, count, style->ascii);
	return names;
}

static void put_collective_cell(
	const struct collective_table *table, const struct collective_row *row, size_t column)
{
	const uint64_t values[BEFORE_NAMES] = { row->wait_ns, row->transfer_ns, row->count,
		row->last_count, collective_row_rate(row, table->on_bus) };
	static const enum unit units[BEFORE_NAMES] = { UNIT_TIME, UNIT_TIME, UNIT_COUNT, UNIT_COUNT,
		UNIT_BYTE_RATE };
	char last[48];

	ranks_last_text(last, sizeof last, table->ranks, row);
	put_rank_cell(table->style, before_names[column].columns, units[column],
		column == RANK_LAST                 ? last
		: column == RATE && !values[column] ? "unknown"
						    : NULL,
		clamp_to_i64(values[column]));
}

static void put_collective_row(const struct collective_table *table,
	const struct collective_row *row, const char *path_text)
{
	const struct style *style = table->style;

	for (size_t i = 0; i < table->shown; i++)
		put_collective_cell(table, row, i);
	print_line(style, "  %s", collective_name(row->kind));
	if (*path_text) {
		output_string(style->out, " in ");
		output_string(style->out, path_text);
	}
	output_char(style->out, '\n');
}

static void put_collective_rows(
	const struct ranks *ranks, const struct options *options, const struct style *style)
{
	const size_t top = options->top ? options->top : 20,
		     count = ranks->row_count < top ? ranks->row_count : top;
	struct collective_table table = { .ranks = ranks, .style = style };
	struct shortened_name *names;

	fit_columns(&table);
	names = shorten_places(ranks, count, table.room, style);
	output_char(style->out, '\n');
	for (size_t i = 0; i < table.shown; i++)
		print_line(style, "%*s", (int)before_names[i].columns,
			i == RATE && !table.on_bus ? "rate" : before_names[i].title);
	print_line(style, "  collective\n");
	for (size_t i = 0; i < count; i++)
		put_collective_row(&table, &ranks->rows[i], names[i].text);
	if (ranks->row_count > top)
		print_line(style, "%zu more (-n 0 shows all)\n", ranks->row_count - top);
	shorten_names_free(names, count);
}

/* Adds what shows the node of a straggler in the tree of its rank. */
static void add_straggler_focus(struct shell_command *command, const struct ranks *ranks,
	const struct straggler *straggler, bool no_fold)
{
	const struct rank_process *rank = &ranks->all[straggler->rank];
	size_t count;
	struct trace_text *path = ranks_path(ranks, straggler->place, &count);

	shell_command_add_file(command, rank->process->path);
	if (rank->process->rank >= 0)
		text_add(&command->built, " --rank %lld", (long long)rank->process->rank);
	/* Ranks are profiled without steps, so the path needs --no-steps. */
	text_add(&command->built, no_fold ? " --no-steps --no-fold" : " --no-steps");
	next_command_add_focus(command, path, count);
	free(path);
}

/* Suggests the tree of the node that made the straggler late, or else the trees of all ranks. */
static void put_ranks_next(
	const struct ranks *ranks, const struct options *options, const struct style *style)
{
	struct shell_command command = { .ascii = style->ascii };

	next_command_begin(&command, "tree");
	if (ranks->straggler_count && ranks->stragglers[0].more_ns) {
		add_straggler_focus(&command, ranks, &ranks->stragglers[0], options->no_fold);
	} else {
		next_command_add_files(&command, options);
		text_add(&command.built, options->rank < 0 ? " --all" : "");
	}
	next_command_put(&command, style);
}

#define WARNINGS 20 /* that are printed */

static void put_rank_warnings(const struct ranks *ranks, const struct style *style)
{
	bool simulated = false;

	for (size_t i = 0; i < ranks->count; i++)
		simulated |= ranks->all[i].process->simulated;
	if (simulated)
		output_string(style->out, "simulated device: GPU figures are not measurements\n");
	for (size_t i = 0; i < ranks->processes.warning_count && i < WARNINGS; i++) {
		const char *warning = ranks->processes.warnings[i];

		output_string(style->out, "warning: ");
		print_escaped(style, warning, strlen(warning), 0);
		output_char(style->out, '\n');
	}
	if (ranks->processes.warning_count > WARNINGS)
		print_line(style, "%zu more warnings (-f json lists all)\n",
			ranks->processes.warning_count - WARNINGS);
}

static void print_ranks(
	const struct ranks *ranks, const struct options *options, struct output *out)
{
	const struct style style = style_of(&options->style, out);

	put_ranks_title(ranks, &style);
	put_islands(ranks, &style);
	ranks_print_hangs(ranks, &style);
	put_stragglers(ranks, &style);
	put_exposed(ranks, &style);
	put_ranks(ranks, options, &style);
	if (ranks->row_count)
		put_collective_rows(ranks, options, &style);
	put_rank_warnings(ranks, &style);
	put_ranks_next(ranks, options, &style);
}

static bool ranks_print(const struct ranks *ranks, const struct options *options)
{
	struct output *out = output_open(options->output);

	if (options->format == FORMAT_JSON)
		ranks_print_json(ranks, options, out);
	else if (options->format == FORMAT_CSV)
		ranks_print_csv(ranks, options, out);
	else
		print_ranks(ranks, options, out);
	return output_close(out, options->output);
}

static bool has_wanted_rank(const struct ranks *ranks, const struct options *options)
{
	for (size_t i = 0; i < ranks->count; i++)
		if (rank_is_wanted(options, &ranks->all[i]))
			return true;
	return false;
}

int ranks_view(const struct options *options)
{
	struct ranks ranks;
	bool printed, is_whole;

	if (!ranks_read(&ranks, options))
		fatal(STATUS_USAGE, "%s", ranks.problem.text);
	if (!has_wanted_rank(&ranks, options))
		fatal(STATUS_USAGE, "no trace with collectives is of rank %lld",
			(long long)options->rank);
	printed = ranks_print(&ranks, options);
	is_whole = ranks_are_whole(&ranks);
	ranks_free(&ranks);
	return printed && (is_whole || !options->strict) ? STATUS_OK : STATUS_UNREADABLE;
}
