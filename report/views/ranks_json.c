/* SPDX-License-Identifier: MIT
 *
 * Prints the view `ranks` as JSON and CSV.
 */
#include "report/text/json_writer.h"
#include "report/analysis/ranks/rank_hang.h"
#include "report/views/ranks_columns.h"
#include "report/views/ranks.h"
#include <stdlib.h>

static void ranks_json_path(struct json_writer *json, const struct ranks *ranks, uint32_t place)
{
	size_t count;
	struct trace_text *path = ranks_path(ranks, place, &count);

	json_put_begin(json, "path", '[');
	for (size_t i = 0; i < count; i++)
		json_write_text(json, trace_text_or_null(path[i]));
	json_write_end(json, ']');
	free(path);
}

static void ranks_json_columns(struct json_writer *json, const struct rank_process *rank)
{
	int64_t value = 0;

	for (size_t column = 0; column < RANK_COLUMN_COUNT; column++) {
		const bool known = rank_column_value(rank, column, &value);

		json_put_known_signed(json, rank_columns[column].key, value, known);
	}
}

static void ranks_json_rank(struct json_writer *json, const struct rank_process *rank)
{
	json_write_begin(json, '{');
	json_put_unsigned(json, "rank", (uint64_t)rank->number);
	json_put_string(json, "file", rank->process->path);
	json_put_unsigned(json, "pid", rank->process->pid);
	json_put_bool(json, "simulated", rank->process->simulated);
	json_put_bool(json, "aligned", rank->aligned);
	json_put_string(json, "not_aligned_because", rank->aligned ? NULL : rank->unaligned_reason);
	ranks_json_columns(json, rank);
	json_put_known_double(json, "drift_ppm", rank->fit.drift * 1e6, rank->fit.pairs);
	json_put_unsigned(json, "aligned_by", rank->fit.pairs);
	json_write_end(json, '}');
}

/* Returns what made a straggler late. NULL: unknown. */
static const char *straggler_cause(const struct straggler *straggler)
{
	if (!straggler->more_ns)
		return NULL;
	return straggler->gpu ? "gpu" : "cpu";
}

static void ranks_json_straggler(
	struct json_writer *json, const struct ranks *ranks, const struct straggler *straggler)
{
	const struct rank_process *rank = &ranks->all[straggler->rank];

	json_write_begin(json, '{');
	json_put_unsigned(json, "rank", (uint64_t)rank->number);
	json_put_unsigned(json, "last", rank->sums.last);
	json_put_unsigned(json, "of", rank->sums.matched);
	json_put_double(json, "by_chance", straggler->expected);
	json_put_unsigned(json, "late_median_ns", rank->sums.late_median_ns);
	json_put_unsigned(json, "late_ns", rank->sums.late_ns);
	json_put_string(json, "meanwhile", straggler_cause(straggler));
	ranks_json_path(json, ranks, straggler->place);
	json_put_unsigned(json, "more_ns", straggler->more_ns);
	json_put_unsigned(json, "own_ns", straggler->own_ns);
	json_put_unsigned(json, "others_ns", straggler->others_ns);
	json_write_end(json, '}');
}

static void put_rate(
	struct json_writer *json, const char *key, const struct collective_row *row, bool on_bus)
{
	const uint64_t rate = collective_row_rate(row, on_bus);

	json_put_known_signed(json, key, clamp_to_i64(rate), rate > 0);
}

static void ranks_json_collective(
	struct json_writer *json, const struct ranks *ranks, const struct collective_row *row)
{
	json_write_begin(json, '{');
	json_put_string(json, "name", collective_name(row->kind));
	ranks_json_path(json, ranks, row->place);
	json_put_unsigned(json, "calls", row->count);
	json_put_unsigned(json, "wait_ns", row->wait_ns);
	json_put_unsigned(json, "transfer_ns", row->transfer_ns);
	json_put_unsigned(json, "decided", row->decided);
	json_put_unsigned(json, "last", row->last_count);
	json_put_known_signed(json, "last_rank",
		row->last_rank != UINT32_MAX ? ranks->all[row->last_rank].number : 0,
		row->last_rank != UINT32_MAX);
	put_rate(json, "message_bytes_per_s", row, false);
	put_rate(json, "bus_bytes_per_s", row, true);
	json_write_end(json, '}');
}

/* ---- traces, ranks and clocks ---- */

static void ranks_json_fault(struct json_writer *json, const struct rank_input *input)
{
	json_write_begin(json, '{');
	json_put_string(json, "file", input->process.path);
	json_put_known_signed(json, "rank", input->process.rank, input->process.rank >= 0);
	json_put_string(json, "status", rank_input_status_name(input->status));
	json_put_string(json, "why", input->why);
	json_write_end(json, '}');
}

static void ranks_json_inputs(struct json_writer *json, const struct ranks *ranks)
{
	json_put_begin(json, "traces", '{');
	for (size_t i = 0; i < RANK_INPUT_STATUS_COUNT; i++)
		json_put_unsigned(json, rank_input_status_name((enum rank_input_status)i),
			ranks->input_counts[i]);
	json_write_end(json, '}');
	json_put_begin(json, "faults", '[');
	for (size_t i = 0; i < ranks->inputs.count; i++)
		if (rank_input_is_fault(ranks->inputs.all[i]))
			ranks_json_fault(json, ranks->inputs.all[i]);
	json_write_end(json, ']');
	json_put_begin(json, "missing_ranks", '[');
	for (size_t i = 0; i < ranks->missing_count; i++)
		json_write_unsigned(json, (uint64_t)ranks->missing[i]);
	json_write_end(json, ']');
	json_put_known_signed(json, "world_size", ranks->world_size, ranks->world_size > 0);
	json_put_unsigned(json, "quorum_percent", ranks->quorum);
	json_put_unsigned(json, "incomplete", ranks->incomplete);
	json_put_begin(json, "islands", '[');
	for (size_t i = 0; i < ranks->island_count; i++) {
		json_write_begin(json, '{');
		json_put_unsigned(json, "reference",
			(uint64_t)ranks->all[ranks->islands[i].reference].number);
		json_put_unsigned(json, "ranks", ranks->islands[i].count);
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
}

/* ---- exposed communication ---- */

static void ranks_json_exposed(struct json_writer *json, const struct ranks *ranks)
{
	size_t count;
	const struct collective_row **rows = ranks_exposed_rows(ranks, &count);

	json_put_begin(json, "exposed", '[');
	for (size_t i = 0; i < count; i++) {
		json_write_begin(json, '{');
		json_put_string(json, "name", collective_name(rows[i]->kind));
		ranks_json_path(json, ranks, rows[i]->place);
		json_put_unsigned(json, "calls", rows[i]->count);
		json_put_unsigned(json, "exposed_ns", rows[i]->exposed_ns);
		json_put_unsigned(json, "total_ns", rows[i]->wait_ns + rows[i]->transfer_ns);
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
	json_put_unsigned(json, "exposed_ns", ranks_exposed_ns(ranks));
	free(rows);
}

/* ---- hangs ---- */

static void ranks_json_texts(
	struct json_writer *json, const char *key, char *const *texts, size_t count)
{
	json_put_begin(json, key, '[');
	for (size_t i = 0; i < count; i++)
		json_write_string(json, texts[i]);
	json_write_end(json, ']');
}

static void ranks_json_thread(
	struct json_writer *json, const struct end_thread *thread, uint64_t open_ns)
{
	json_write_begin(json, '{');
	json_put_unsigned(json, "tid", thread->tid);
	ranks_json_texts(json, "path", thread->path, thread->path_count);
	json_put_unsigned(json, "open_ns", open_ns);
	json_put_string(json, "source", thread->source);
	ranks_json_texts(json, "stack", thread->frames, thread->frame_count);
	json_put_string(json, "nccl_call", thread->call);
	json_write_end(json, '}');
}

static void ranks_json_absent(struct json_writer *json, const struct ranks *ranks,
	const struct rank_hangs *hangs, const struct absent_rank *absent)
{
	const struct rank_end *end = absent->input ? absent->input->end : NULL;

	json_write_begin(json, '{');
	json_put_unsigned(json, "rank", (uint64_t)absent->number);
	json_put_bool(json, "ended", absent->input && absent->input->ended);
	json_put_bool(json, "waits_elsewhere", rank_hang_waits_elsewhere(hangs, absent));
	json_put_begin(json, "threads", '[');
	for (size_t i = 0; end && i < end->thread_count; i++)
		ranks_json_thread(json, &end->threads[i],
			rank_hang_open_ns(hangs, ranks, absent, end->threads[i].begin_ns));
	json_write_end(json, ']');
	json_put_bool(json, "has_trace", absent->input != NULL);
	json_write_end(json, '}');
}

static void ranks_json_hang(struct json_writer *json, const struct ranks *ranks,
	const struct rank_hangs *hangs, const struct rank_hang *hang)
{
	json_write_begin(json, '{');
	json_put_string(json, "communicator", hang->communicator);
	json_put_unsigned(json, "number", hang->number);
	json_put_begin(json, "waiting", '[');
	for (size_t i = 0; i < hang->waiting_count; i++)
		json_write_unsigned(json, (uint64_t)ranks->all[hang->waiting[i]].number);
	json_write_end(json, ']');
	json_put_begin(json, "absent", '[');
	for (size_t i = 0; i < hang->absent_count; i++)
		ranks_json_absent(json, ranks, hangs, &hang->absent[i]);
	json_write_end(json, ']');
	json_put_unsigned(json, "absent_unknown", hang->unknown_count);
	json_put_string(json, "operation", hang->operation);
	json_put_known_signed(json, "from", hang->from, hang->from != UINT32_MAX);
	json_put_known_signed(json, "to", hang->to, hang->to != UINT32_MAX);
	json_write_end(json, '}');
}

static void ranks_json_hangs(struct json_writer *json, const struct ranks *ranks)
{
	struct rank_hangs hangs;

	rank_hangs_find(&hangs, ranks);
	json_put_begin(json, "hangs", '[');
	for (size_t i = 0; i < hangs.count; i++)
		ranks_json_hang(json, ranks, &hangs, &hangs.all[i]);
	json_write_end(json, ']');
	rank_hangs_free(&hangs);
}

void ranks_print_json(const struct ranks *ranks, const struct options *options, struct output *out)
{
	struct json_writer json = { .out = out };

	json_write_begin(&json, '{');
	json_put_string(&json, "schema", "pperf.report/1");
	json_put_string(&json, "view", "ranks");
	json_put_unsigned(&json, "reference", (uint64_t)ranks->all[ranks->reference].number);
	json_put_unsigned(&json, "matched", ranks->outcome_count);
	json_put_unsigned(&json, "decided", ranks->decided);
	json_put_unsigned(&json, "undecided", ranks->undecided);
	json_put_unsigned(&json, "communicators", ranks->group_count);
	json_put_unsigned(&json, "without_collectives", ranks->processes_without_collectives);
	json_put_begin(&json, "rows", '[');
	for (size_t i = 0; i < ranks->count; i++)
		if (rank_is_wanted(options, &ranks->all[i]))
			ranks_json_rank(&json, &ranks->all[i]);
	json_write_end(&json, ']');
	json_put_begin(&json, "stragglers", '[');
	for (size_t i = 0; i < ranks->straggler_count; i++)
		ranks_json_straggler(&json, ranks, &ranks->stragglers[i]);
	json_write_end(&json, ']');
	json_put_begin(&json, "collectives", '[');
	for (size_t i = 0; i < ranks->row_count; i++)
		ranks_json_collective(&json, ranks, &ranks->rows[i]);
	json_write_end(&json, ']');
	json_put_begin(&json, "warnings", '[');
	for (size_t i = 0; i < ranks->processes.warning_count; i++)
		json_write_string(&json, ranks->processes.warnings[i]);
	json_write_end(&json, ']');
	/* What was added since is at the end. */
	ranks_json_inputs(&json, ranks);
	ranks_json_exposed(&json, ranks);
	ranks_json_hangs(&json, ranks);
	json_write_end(&json, '}');
	output_char(out, '\n');
}

/* CSV has the rows of ranks only. */

void ranks_print_csv(const struct ranks *ranks, const struct options *options, struct output *out)
{
	int64_t value = 0;

	output_string(out, "rank,file,aligned");
	for (size_t column = 0; column < RANK_COLUMN_COUNT; column++) {
		output_char(out, ',');
		output_string(out, rank_columns[column].key);
	}
	output_string(out, ",drift_ppm\r\n");
	for (size_t i = 0; i < ranks->count; i++) {
		const struct rank_process *rank = &ranks->all[i];

		if (!rank_is_wanted(options, rank))
			continue;
		output_signed(out, rank->number);
		output_char(out, ',');
		output_csv_text(out, rank->process->path, strlen(rank->process->path));
		output_string(out, rank->aligned ? ",true" : ",false");
		for (size_t column = 0; column < RANK_COLUMN_COUNT; column++) {
			output_char(out, ',');
			if (rank_column_value(rank, column, &value))
				output_signed(out, value);
		}
		output_char(out, ',');
		if (rank->fit.pairs)
			output_double(out, rank->fit.drift * 1e6);
		output_string(out, "\r\n");
	}
}
