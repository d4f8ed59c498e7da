/* SPDX-License-Identifier: MIT
 * ranks_data.c: ranks beside each other, as JSON and CSV. See ranks.h.
 */
#include "report/text/json_writer.h"
#include "report/views/ranks_columns.h"
#include "report/views/ranks.h"
#include <stdlib.h>

static void emit_known(struct emit *emit, const char *key, bool known, int64_t value)
{
	emit_key(emit, key);
	if (known)
		emit_signed(emit, value);
	else
		emit_null(emit);
}

static void emit_path(struct emit *emit, const struct rank *rank, uint32_t node)
{
	size_t count;
	struct trace_text *path = ranks_path(rank, node, &count);

	emit_key(emit, "path");
	emit_begin(emit, '[');
	for (size_t i = 0; i < count; i++)
		emit_text(emit, trace_text_or_null(path[i]));
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

		emit_known(emit, rank_columns[column].key, known, value);
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
	emit_known(emit, "last_rank", row->last_rank != UINT32_MAX, row->last_rank != UINT32_MAX ? ranks->ranks[row->last_rank].number : 0);
	emit_end(emit, '}');
}

void ranks_print_json(const struct ranks *ranks, const struct options *options, struct out *out)
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
		if (rank_is_wanted(options, &ranks->ranks[i]))
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

void ranks_print_csv(const struct ranks *ranks, const struct options *options, struct out *out)
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

		if (!rank_is_wanted(options, rank))
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
