/* SPDX-License-Identifier: MIT
 * ranks_print.c: ranks beside each other, as text, JSON, CSV. See ranks.h.
 */
#include "report/emit.h"
#include "report/fatal.h"
#include "report/next.h"
#include "report/paragraph.h"
#include "report/print.h"
#include "report/rank_columns.h"
#include "report/ranks.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_wanted(const struct options *options, const struct rank *rank)
{
	return options->rank < 0 || options->rank == rank->number;
}

/* The names from the root to a node, as --focus takes them apart; to be freed with the list. */
static struct trace_text *path_of(const struct rank *rank, uint32_t node, size_t *count)
{
	const struct tree *tree = rank->fold->tree;
	struct trace_text *path = need((tree->nodes[node].depth + 2u) * sizeof *path);

	*count = 0;
	for (uint32_t at = node; at; at = tree->nodes[at].parent)
		++*count;
	for (size_t i = *count; node; node = tree->nodes[node].parent) {
		const struct text name = text_of(rank->process->texts, tree->nodes[node].name);

		path[--i] = (struct trace_text){ name.bytes, name.length, true };
	}
	return path;
}

/* ---- text ---- */

static void add_path(struct paragraph *paragraph, const struct rank *rank, uint32_t node)
{
	size_t count;
	struct trace_text *path = path_of(rank, node, &count);

	for (size_t i = 0; i < count; i++) {
		if (i)
			paragraph_add(paragraph, " / ");
		paragraph_text(paragraph, path[i].bytes, path[i].length);
	}
	free(path);
}

static void add_time(struct paragraph *paragraph, int64_t ns)
{
	char text[NUMBER_BYTES];

	number_scaled(text, UNIT_TIME, ns, false, paragraph->style->ascii);
	paragraph_add(paragraph, "%s%s", ns > 0 ? "+" : "", text);
}

static void put_clock(const struct ranks *ranks, const struct rank *rank, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	paragraph_add(&paragraph, "rank %lld ", (long long)rank->number);
	if (!rank->aligned) {
		paragraph_add(&paragraph, "cannot be aligned: %s", rank->why);
	} else {
		paragraph_add(&paragraph, "offset ");
		add_time(&paragraph, rank->fit.offset_ns);
		if (rank->fit.drift != 0)
			paragraph_add(&paragraph, ", drift %+.2f ppm", rank->fit.drift * 1e6);
		paragraph_add(&paragraph, ", residual ");
		paragraph_figure(&paragraph, UNIT_TIME, rank->fit.residual_ns);
		paragraph_add(&paragraph, " in the median, ");
		paragraph_figure(&paragraph, UNIT_TIME, rank->fit.residual_most_ns);
		paragraph_add(&paragraph, " at most, over %zu ends", rank->fit.moments);
		if (rank->by)
			paragraph_add(&paragraph, " shared with rank %lld", (long long)ranks->ranks[rank->by].number);
	}
	paragraph_put(&paragraph, "clock");
}

#define CLOCKS 8 /* that are written out; of more, the worst and those that are not aligned */

static void put_clocks(const struct ranks *ranks, const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	uint64_t worst = 0;
	size_t left_out = 0;

	for (size_t i = 1; i < ranks->count; i++) {
		if (i <= CLOCKS || !ranks->ranks[i].aligned) {
			put_clock(ranks, &ranks->ranks[i], style);
			continue;
		}
		left_out++;
		worst = ranks->ranks[i].fit.residual_ns > worst ? ranks->ranks[i].fit.residual_ns : worst;
	}
	if (!left_out)
		return;
	paragraph_add(&paragraph, "%zu more, residual ", left_out);
	paragraph_figure(&paragraph, UNIT_TIME, worst);
	paragraph_add(&paragraph, " in the median at most (-f json has each)");
	paragraph_put(&paragraph, "");
}

/* Whether any trace says which process group a stream is of; ranges on the CPU are one anyway. */
static bool names_groups(const struct ranks *ranks)
{
	bool named = false;

	for (size_t i = 0; i < ranks->count; i++) {
		const struct collectives *collectives = &ranks->ranks[i].collectives;

		named |= collectives->ranges;
		for (size_t k = 0; k < collectives->communicator_count; k++)
			named |= collectives->communicators[k].group.known && !collectives->communicators[k].high;
	}
	return named;
}

static void put_head(const struct ranks *ranks, const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	uint64_t unmatched = 0, pairs = 0, untimed = 0;
	size_t aligned = 0;

	for (size_t i = 0; i < ranks->count; i++) {
		aligned += ranks->ranks[i].aligned;
		unmatched += ranks->ranks[i].sums.unmatched;
		pairs += ranks->ranks[i].collectives.pairs;
		untimed += ranks->ranks[i].collectives.untimed;
	}
	paragraph_add(&paragraph, "%zu of %zu on the clock of rank %lld, by the ends of collectives", aligned, ranks->count,
		(long long)ranks->ranks[0].number);
	if (ranks->counted)
		paragraph_add(&paragraph, "; numbered in their order, as not all files say which rank they are");
	if (ranks->without)
		paragraph_add(&paragraph, "; %u processes without collectives left out", ranks->without);
	paragraph_put(&paragraph, "ranks");
	put_clocks(ranks, style);
	paragraph_add(&paragraph, "%zu collectives in %zu communicator%s", ranks->outcome_count, ranks->group_count,
		ranks->group_count == 1 ? "" : "s");
	if (ranks->undecided)
		paragraph_add(&paragraph, "; in %llu the last two came within the clocks' residual", (unsigned long long)ranks->undecided);
	if (unmatched)
		paragraph_add(&paragraph, "; %llu of single ranks match nothing", (unsigned long long)unmatched);
	if (pairs)
		paragraph_add(&paragraph, "; %llu sends and receives are not compared: no range around their launches says between whom",
			(unsigned long long)pairs);
	if (untimed)
		paragraph_add(&paragraph, "; %llu have no times", (unsigned long long)untimed);
	if (!names_groups(ranks))
		paragraph_add(&paragraph, "; process groups are not named in these traces: each stream is taken for one, and matched "
					  "with others' by kinds, order and ends");
	if (ranks->ranks[0].collectives.in_call)
		paragraph_add(&paragraph, "; each begins with the range it was launched in, since the simulated NCCL waits there");
	paragraph_put(&paragraph, "matched");
}

static void put_straggler(const struct ranks *ranks, const struct straggler *straggler, const struct style *style)
{
	const struct rank *rank = &ranks->ranks[straggler->rank];
	struct paragraph paragraph = { .style = style };

	paragraph_add(&paragraph, "rank %lld was last in ", (long long)rank->number);
	paragraph_percent(&paragraph, rank->sums.last, rank->sums.matched);
	paragraph_add(&paragraph, " of %llu collectives, by ", (unsigned long long)rank->sums.matched);
	paragraph_figure(&paragraph, UNIT_TIME, rank->sums.late_median_ns);
	paragraph_add(&paragraph, " in the median, ");
	paragraph_figure(&paragraph, UNIT_TIME, rank->sums.late_ns);
	paragraph_add(&paragraph, " altogether; ");
	if (straggler->more_ns) {
		paragraph_add(&paragraph, "before them it spent ");
		paragraph_figure(&paragraph, UNIT_TIME, straggler->more_ns);
		paragraph_add(&paragraph, " more %s than the others in `", straggler->gpu ? "of GPU work" : "on the CPU");
		add_path(&paragraph, rank, straggler->node);
		paragraph_add(&paragraph, "` (");
		paragraph_figure(&paragraph, UNIT_TIME, straggler->own_ns);
		paragraph_add(&paragraph, ", the others ");
		paragraph_figure(&paragraph, UNIT_TIME, straggler->others_ns);
		paragraph_add(&paragraph, ")");
	} else {
		paragraph_add(&paragraph, "nothing that was recorded took it longer than the others");
	}
	paragraph_put(&paragraph, "straggler");
}

static void put_stragglers(const struct ranks *ranks, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	for (size_t i = 0; i < ranks->straggler_count; i++)
		put_straggler(ranks, &ranks->stragglers[i], style);
	if (ranks->straggler_count)
		return;
	paragraph_add(&paragraph, ranks->decided ? "none: no rank was last more often than chance has it"
						 : "not known: no collective could be compared");
	paragraph_put(&paragraph, "straggler");
}

#define CELL 11

static void put_cell(const struct style *style, enum unit unit, bool known, int64_t value)
{
	char text[NUMBER_BYTES] = "-";
	size_t points = 0;

	if (known)
		number_scaled(text, unit, value, style->iec, style->ascii);
	for (const char *at = text; *at; at++)
		points += ((unsigned char)*at & 0xc0) != 0x80;
	print_line(style, "%*s%s", points < CELL ? (int)(CELL - points) : 1, "", text);
}

static void put_ranks(const struct ranks *ranks, const struct options *options, const struct style *style)
{
	const size_t room = style->width > 6 ? (style->width - 6) / CELL : 1, shown = room < RANK_COLUMN_COUNT ? room : RANK_COLUMN_COUNT;

	print_line(style, "\n%6s", "rank");
	for (size_t column = 0; column < shown; column++)
		print_line(style, "%*s", CELL, rank_columns[column].title);
	out_char(style->out, '\n');
	for (size_t i = 0; i < ranks->count; i++) {
		int64_t value = 0;

		if (!is_wanted(options, &ranks->ranks[i]))
			continue;
		print_line(style, "%6lld", (long long)ranks->ranks[i].number);
		for (size_t column = 0; column < shown; column++) {
			const bool known = rank_column_value(&ranks->ranks[i], column, &value);

			put_cell(style, rank_columns[column].unit, known, value);
		}
		out_char(style->out, '\n');
	}
}

static void put_row(const struct ranks *ranks, const struct collective_row *row, const struct style *style)
{
	char last[48] = "-";

	put_cell(style, UNIT_TIME, true, (int64_t)row->wait_ns);
	put_cell(style, UNIT_TIME, true, (int64_t)row->transfer_ns);
	put_cell(style, UNIT_COUNT, true, (int64_t)row->count);
	if (row->last_rank != UINT32_MAX)
		snprintf(last, sizeof last, "%lld in %llu", (long long)ranks->ranks[row->last_rank].number, (unsigned long long)row->last);
	print_line(style, "%14s  %s", last, collective_name(row->kind));
	if (row->node) {
		size_t count;
		struct trace_text *path = path_of(&ranks->ranks[0], row->node, &count);

		out_string(style->out, " in ");
		for (size_t i = count > 3 ? count - 3 : 0; i < count; i++) {
			out_string(style->out, !i ? "" : i + 3 == count ? ".. / " : " / ");
			print_visible(style, path[i].bytes, path[i].length, 0);
		}
		free(path);
	}
	out_char(style->out, '\n');
}

static void put_rows(const struct ranks *ranks, const struct options *options, const struct style *style)
{
	const size_t top = options->top ? options->top : 20;

	print_line(style, "\n%*s%*s%*s%14s  collective\n", CELL, "wait", CELL, "transfer", CELL, "calls", "rank last");
	for (size_t i = 0; i < ranks->row_count && i < top; i++)
		put_row(ranks, &ranks->rows[i], style);
	if (ranks->row_count > top)
		print_line(style, "%zu more (-n 0 shows all)\n", ranks->row_count - top);
}

/* Into the place that made the straggler late, else all ranks' trees. */
static void put_next(const struct ranks *ranks, const struct options *options, const struct style *style)
{
	const struct straggler *straggler = ranks->straggler_count && ranks->stragglers[0].more_ns ? &ranks->stragglers[0] : NULL;
	struct command command = { .ascii = style->ascii };
	struct trace_text *path;
	char rank[40];
	size_t count;

	next_begin(&command, "tree");
	if (straggler) {
		/* Places are without steps here. */
		path = path_of(&ranks->ranks[straggler->rank], straggler->node, &count);
		command_file(&command, ranks->ranks[straggler->rank].process->path);
		if (ranks->ranks[straggler->rank].process->rank >= 0) {
			snprintf(rank, sizeof rank, " --rank %lld", (long long)ranks->ranks[straggler->rank].process->rank);
			command_add(&command, rank);
		}
		command_add(&command, options->no_fold ? " --no-steps --no-fold" : " --no-steps");
		next_focus(&command, path, count);
		free(path);
	} else {
		next_files(&command, options);
		command_add(&command, options->rank < 0 ? " --all" : "");
	}
	next_put(&command, style);
}

static void print_ranks(const struct ranks *ranks, const struct options *options, struct out *out)
{
	const struct style style = style_of(options, out);
	bool simulated = false;

	put_head(ranks, &style);
	put_stragglers(ranks, &style);
	put_ranks(ranks, options, &style);
	if (ranks->row_count)
		put_rows(ranks, options, &style);
	for (size_t i = 0; i < ranks->count; i++)
		simulated |= ranks->ranks[i].process->simulated;
	if (simulated)
		out_string(out, "simulated device: no figure of the GPU here is a measurement\n");
	for (size_t i = 0; i < ranks->processes.warning_count; i++) {
		out_string(out, "warning: ");
		print_visible(&style, ranks->processes.warnings[i], strlen(ranks->processes.warnings[i]), 0);
		out_char(out, '\n');
	}
	put_next(ranks, options, &style);
}

/* ---- JSON ---- */

static void emit_signed(struct emit *emit, const char *key, bool known, int64_t value)
{
	emit_key(emit, key);
	if (!known)
		emit_null(emit);
	else if (value >= 0)
		emit_unsigned(emit, (uint64_t)value);
	else
		emit_double(emit, (double)value);
}

static void emit_path(struct emit *emit, const struct rank *rank, uint32_t node)
{
	size_t count;
	struct trace_text *path = path_of(rank, node, &count);

	emit_key(emit, "path");
	emit_begin(emit, '[');
	for (size_t i = 0; i < count; i++)
		emit_text(emit, path[i]);
	emit_end(emit, ']');
	free(path);
}

static void emit_rank(struct emit *emit, const struct rank *rank)
{
	int64_t value = 0;

	emit_begin(emit, '{');
	emit_put_unsigned(emit, "rank", (uint64_t)rank->number);
	emit_put_string(emit, "file", rank->process->path);
	emit_put_unsigned(emit, "pid", rank->process->pid);
	emit_put_bool(emit, "simulated", rank->process->simulated);
	emit_put_bool(emit, "aligned", rank->aligned);
	emit_put_string(emit, "not_aligned_because", rank->aligned ? NULL : rank->why);
	for (size_t column = 0; column < RANK_COLUMN_COUNT; column++) {
		const bool known = rank_column_value(rank, column, &value);

		emit_signed(emit, rank_columns[column].key, known, value);
	}
	emit_key(emit, "drift_ppm");
	if (rank->fit.moments)
		emit_double(emit, rank->fit.drift * 1e6);
	else
		emit_null(emit);
	emit_put_unsigned(emit, "aligned_by", rank->fit.moments);
	emit_end(emit, '}');
}

static void emit_straggler(struct emit *emit, const struct ranks *ranks, const struct straggler *straggler)
{
	const struct rank *rank = &ranks->ranks[straggler->rank];

	emit_begin(emit, '{');
	emit_put_unsigned(emit, "rank", (uint64_t)rank->number);
	emit_put_unsigned(emit, "last", rank->sums.last);
	emit_put_unsigned(emit, "of", rank->sums.matched);
	emit_key(emit, "by_chance");
	emit_double(emit, straggler->expected);
	emit_put_unsigned(emit, "late_median_ns", rank->sums.late_median_ns);
	emit_put_unsigned(emit, "late_ns", rank->sums.late_ns);
	emit_put_string(emit, "meanwhile", !straggler->more_ns ? NULL : straggler->gpu ? "gpu" : "cpu");
	emit_path(emit, rank, straggler->node);
	emit_put_unsigned(emit, "more_ns", straggler->more_ns);
	emit_put_unsigned(emit, "own_ns", straggler->own_ns);
	emit_put_unsigned(emit, "others_ns", straggler->others_ns);
	emit_end(emit, '}');
}

static void emit_collective(struct emit *emit, const struct ranks *ranks, const struct collective_row *row)
{
	emit_begin(emit, '{');
	emit_put_string(emit, "name", collective_name(row->kind));
	emit_path(emit, &ranks->ranks[0], row->node);
	emit_put_unsigned(emit, "calls", row->count);
	emit_put_unsigned(emit, "wait_ns", row->wait_ns);
	emit_put_unsigned(emit, "transfer_ns", row->transfer_ns);
	emit_put_unsigned(emit, "decided", row->decided);
	emit_put_unsigned(emit, "last", row->last);
	emit_signed(emit, "last_rank", row->last_rank != UINT32_MAX, row->last_rank != UINT32_MAX ? ranks->ranks[row->last_rank].number : 0);
	emit_end(emit, '}');
}

static void print_ranks_json(const struct ranks *ranks, const struct options *options, struct out *out)
{
	struct emit emit = { .out = out };

	emit_begin(&emit, '{');
	emit_put_string(&emit, "schema", "pperf.report/1");
	emit_put_string(&emit, "view", "ranks");
	emit_put_unsigned(&emit, "reference", (uint64_t)ranks->ranks[0].number);
	emit_put_unsigned(&emit, "matched", ranks->outcome_count);
	emit_put_unsigned(&emit, "decided", ranks->decided);
	emit_put_unsigned(&emit, "undecided", ranks->undecided);
	emit_put_unsigned(&emit, "communicators", ranks->group_count);
	emit_put_unsigned(&emit, "without_collectives", ranks->without);
	emit_key(&emit, "rows");
	emit_begin(&emit, '[');
	for (size_t i = 0; i < ranks->count; i++)
		if (is_wanted(options, &ranks->ranks[i]))
			emit_rank(&emit, &ranks->ranks[i]);
	emit_end(&emit, ']');
	emit_key(&emit, "stragglers");
	emit_begin(&emit, '[');
	for (size_t i = 0; i < ranks->straggler_count; i++)
		emit_straggler(&emit, ranks, &ranks->stragglers[i]);
	emit_end(&emit, ']');
	emit_key(&emit, "collectives");
	emit_begin(&emit, '[');
	for (size_t i = 0; i < ranks->row_count; i++)
		emit_collective(&emit, ranks, &ranks->rows[i]);
	emit_end(&emit, ']');
	emit_key(&emit, "warnings");
	emit_begin(&emit, '[');
	for (size_t i = 0; i < ranks->processes.warning_count; i++)
		emit_string(&emit, ranks->processes.warnings[i]);
	emit_end(&emit, ']');
	emit_end(&emit, '}');
	out_char(out, '\n');
}

/* ---- CSV: of ranks ---- */

static void print_ranks_csv(const struct ranks *ranks, const struct options *options, struct out *out)
{
	int64_t value = 0;

	out_string(out, "rank,file,aligned");
	for (size_t column = 0; column < RANK_COLUMN_COUNT; column++) {
		out_char(out, ',');
		out_string(out, rank_columns[column].key);
	}
	out_string(out, ",drift_ppm\r\n");
	for (size_t i = 0; i < ranks->count; i++) {
		const struct rank *rank = &ranks->ranks[i];

		if (!is_wanted(options, rank))
			continue;
		out_signed(out, rank->number);
		out_char(out, ',');
		out_csv_text(out, rank->process->path, strlen(rank->process->path));
		out_string(out, rank->aligned ? ",true" : ",false");
		for (size_t column = 0; column < RANK_COLUMN_COUNT; column++) {
			out_char(out, ',');
			if (rank_column_value(rank, column, &value))
				out_signed(out, value);
		}
		out_char(out, ',');
		if (rank->fit.moments)
			out_double(out, rank->fit.drift * 1e6);
		out_string(out, "\r\n");
	}
}

bool ranks_print(const struct ranks *ranks, const struct options *options)
{
	struct out *out = out_open(options->output);

	if (options->format == FORMAT_JSON)
		print_ranks_json(ranks, options, out);
	else if (options->format == FORMAT_CSV)
		print_ranks_csv(ranks, options, out);
	else
		print_ranks(ranks, options, out);
	return out_close(out, options->output);
}
