/* SPDX-License-Identifier: MIT
 *
 * An SQLite database: a row for each range, call, GPU operation, change of memory, idle part, CPU
 * sample and step, and the places of the call tree to which they belong. Its views have the figures
 * of the text views of the same names. Times are nanoseconds since the start of the process's
 * trace.
 */
#include "report/analysis/idle_parts.h"
#include "report/analysis/sample_tree.h"
#include "report/analysis/step_idle.h"
#include "report/analysis/step_stats.h"
#include "report/analysis/tree_amounts.h"
#include "report/base/escape.h"
#include "report/export/export.h"
#include "report/export/record_samples.h"
#include "report/export/sqlite_file.h"
#include "report/export/tree_frames.h"
#include "report/gpu/device_timeline.h"
#include <stdlib.h>
#include <string.h>

/* Ids are unique in the file: a process has those from PROCESS_IDS times its number on. */
#define PROCESS_IDS (UINT64_C(1) << 32)

static const char schema[] =
	"PRAGMA user_version=1;"
	"CREATE TABLE meta(key TEXT, value TEXT);"
	"CREATE TABLE process(id INTEGER PRIMARY KEY, pid, rank, command TEXT, start_unix_ns,"
	" duration_ns, gpu_busy_ns, gpu_idle_ns);"
	"CREATE TABLE thread(process, tid);"
	"CREATE TABLE string(id INTEGER PRIMARY KEY, text TEXT);"
	"CREATE TABLE place(id INTEGER PRIMARY KEY, process, parent, name, kind TEXT,"
	" is_group, graph_launches, allocated_at_peak, reserved_at_peak);"
	"CREATE TABLE launch_config(id INTEGER PRIMARY KEY, place, name, device, grid_x, grid_y,"
	" grid_z, block_x, block_y, block_z, registers, shared_bytes);"
	"CREATE TABLE range(place, tid, begin_ns, duration_ns, self_ns);"
	"CREATE TABLE call(place, tid, begin_ns, duration_ns, correlation, result);"
	"CREATE TABLE gpu(place, device, context, stream, begin_ns, duration_ns, correlation, "
	"bytes,"
	" launch_config, launch_tid, launch_ns);"
	"CREATE TABLE memory(at_ns, place, device, address, allocated_bytes, freed_bytes, kind "
	"TEXT);"
	"CREATE TABLE gap(process, device, begin_ns, end_ns, idle_ns, cause TEXT, place);"
	"CREATE TABLE frame(id INTEGER PRIMARY KEY, process, caller, name, file, line, kind TEXT);"
	"CREATE TABLE sample(place, tid, at_ns, weight_ns, state TEXT, frame);"
	"CREATE TABLE step(process, number, state TEXT, tid, begin_ns, duration_ns, cpu_self_ns,"
	" gpu_total_ns, busy_ns, idle_ns, kernels, gpu_calls, allocated_peak_bytes,"
	" reserved_peak_bytes);";

static const char views[] =
	"CREATE INDEX place_parent ON place(parent);"
	"CREATE VIEW path AS WITH RECURSIVE up(place, path) AS ("
	" SELECT p.id, s.text FROM place p JOIN string s ON s.id = p.name WHERE p.parent IS NULL"
	" UNION ALL SELECT p.id, up.path || ' / ' || s.text FROM up JOIN place p ON"
	" p.parent = up.place JOIN string s ON s.id = p.name) SELECT * FROM up;"
	"CREATE VIEW tree AS WITH RECURSIVE own(place, calls, ns) AS ("
	" SELECT place, count(*), sum(duration_ns) FROM gpu GROUP BY place),"
	" up(place, calls, ns) AS (SELECT * FROM own UNION ALL SELECT p.parent, up.calls, up.ns"
	" FROM up JOIN place p ON p.id = up.place WHERE p.parent IS NOT NULL),"
	" host(place, calls, ns, self_ns) AS ("
	" SELECT place, count(*), sum(duration_ns), sum(self_ns) FROM range GROUP BY place"
	" UNION ALL SELECT place, count(*), sum(duration_ns), NULL FROM call GROUP BY place),"
	" grouped(place, ns) AS (SELECT g.id, sum(r.duration_ns) FROM place g JOIN place p ON"
	" p.parent = g.id JOIN range r ON r.place = p.id WHERE g.is_group GROUP BY g.id),"
	" gpu_sums(place, calls, ns) AS (SELECT place, sum(calls), sum(ns) FROM up GROUP BY place)"
	" SELECT p.id, p.parent, s.text AS name, p.kind, CASE WHEN"
	" p.kind = 'graph' THEN p.graph_launches WHEN p.kind IN ('kernel', 'memcpy', 'memset')"
	" THEN g.calls ELSE h.calls END AS calls,"
	" coalesce(h.ns, u.ns) AS cpu_total_ns, h.self_ns AS cpu_self_ns, g.calls AS gpu_calls,"
	" g.ns AS gpu_total_ns FROM place p JOIN string s ON s.id = p.name LEFT JOIN host h ON"
	" h.place = p.id LEFT JOIN gpu_sums g ON g.place = p.id LEFT JOIN grouped u ON"
	" u.place = p.id WHERE h.place IS NOT NULL OR g.place IS NOT NULL OR u.place IS NOT NULL;"
	"CREATE VIEW kernels AS SELECT c.id, s.text AS name, c.device, count(*) AS calls,"
	" sum(g.duration_ns) AS gpu_total_ns, min(g.duration_ns) AS min_ns,"
	" max(g.duration_ns) AS max_ns, c.grid_x, c.grid_y, c.grid_z, c.block_x, c.block_y,"
	" c.block_z, c.registers, c.shared_bytes FROM gpu g JOIN launch_config c ON"
	" c.id = g.launch_config JOIN string s ON s.id = c.name GROUP BY c.id"
	" ORDER BY gpu_total_ns DESC;"
	"CREATE VIEW idle AS SELECT process, device, cause, sum(idle_ns) AS gap_ns,"
	" count(*) AS gaps, max(idle_ns) AS gap_max_ns FROM gap GROUP BY process, device, cause"
	" ORDER BY gap_ns DESC;"
	"CREATE VIEW functions AS SELECT f.process, n.text AS name, l.text AS file, f.kind,"
	" count(*) AS samples, sum(s.weight_ns) AS cpu_sampled_ns FROM sample s JOIN frame f ON"
	" f.id = s.frame JOIN string n ON n.id = f.name LEFT JOIN string l ON l.id = f.file"
	" WHERE s.state IN ('cpu', 'kernel') GROUP BY f.process, f.name, f.file, f.kind"
	" ORDER BY cpu_sampled_ns DESC, samples DESC;"
	"CREATE VIEW steps AS SELECT * FROM step ORDER BY process, begin_ns;"
	"CREATE VIEW memory_peak AS SELECT p.id, p.process, s.text AS name, p.allocated_at_peak,"
	" p.reserved_at_peak FROM place p JOIN string s ON s.id = p.name WHERE p.allocated_at_peak"
	" OR p.reserved_at_peak ORDER BY p.allocated_at_peak DESC, p.reserved_at_peak DESC;";

struct database {
	struct sqlite_file *file;
	struct sqlite_rows *metas, *processes, *threads, *strings, *places, *configs, *ranges,
		*calls, *works, *memories, *gaps, *frames, *samples, *steps;
	struct string_table *texts; /* of the file */
	uint32_t text_count;        /* written so far */
	const struct process *process;
	uint64_t number; /* of the process, from 0 */
};

static uint64_t place_id(const struct database *database, uint32_t node)
{
	return database->number * PROCESS_IDS + node;
}

/* Sets a column to a place. Node 0 is none. */
static void put_place(struct database *database, struct sqlite_rows *rows, uint32_t node)
{
	if (node)
		sqlite_put_number(rows, place_id(database, node));
	else
		sqlite_put_null(rows);
}

static void put_known(struct sqlite_rows *rows, uint64_t value, bool is_known)
{
	if (is_known)
		sqlite_put_number(rows, value);
	else
		sqlite_put_null(rows);
}

static uint32_t string_id(struct database *database, struct string_view text)
{
	const uint32_t id = string_table_intern(database->texts, text.bytes, text.length);

	if (id < database->text_count)
		return id;
	sqlite_put_number(database->strings, id);
	sqlite_put_text(database->strings, text);
	sqlite_row_end(database->strings);
	database->text_count = id + 1;
	return id;
}

static struct string_view view_of(const char *string)
{
	return (struct string_view){ string, (uint32_t)strlen(string) };
}

static void put_shown_text(struct sqlite_rows *rows, const char *text, size_t length)
{
	char shown[4096];
	const size_t cut = length < sizeof shown / 6 ? length : sizeof shown / 6 - 1;

	sqlite_put_text(
		rows, (struct string_view){ shown,
			      (uint32_t)escape_text(shown, sizeof shown, text, cut, false) });
}

/* ---- events ---- */

static void put_range(void *context, const struct observed_segment *part)
{
	struct database *database = context;
	struct sqlite_rows *rows = database->ranges;

	put_place(database, rows, part->node);
	sqlite_put_number(rows, part->thread->tid);
	sqlite_put_number(rows, part->begin_ns);
	sqlite_put_number(rows, part->total_ns);
	sqlite_put_number(rows, part->self_ns);
	sqlite_row_end(rows);
}

static void put_call(void *context, const struct observed_call *call)
{
	struct database *database = context;
	struct sqlite_rows *rows = database->calls;
	const struct trace_call *record = call->event->record;

	if (!call->counts)
		return;
	put_place(database, rows, call->node);
	sqlite_put_number(rows, call->event->stream->tid);
	sqlite_put_number(rows, call->begin_ns);
	sqlite_put_number(rows, call->duration_ns);
	sqlite_put_number(rows, record->correlation);
	sqlite_put_number(rows, record->result);
	sqlite_row_end(rows);
}

static void put_work(void *context, const struct observed_gpu_work *work)
{
	struct database *database = context;
	struct sqlite_rows *rows = database->works;
	const bool is_kernel = work->gpu->head.kind == TRACE_KERNEL;
	const struct trace_gpu_copy *copy = (const void *)work->gpu;

	if (!work->counts)
		return;
	put_place(database, rows, work->node);
	sqlite_put_number(rows, work->gpu->device);
	sqlite_put_number(rows, work->gpu->context);
	sqlite_put_number(rows, work->gpu->stream);
	sqlite_put_number(rows, work->begin_ns);
	sqlite_put_number(rows, work->gpu->end_ns > work->gpu->start_ns
					? work->gpu->end_ns - work->gpu->start_ns
					: 0);
	sqlite_put_number(rows, work->gpu->correlation);
	if (is_kernel) {
		sqlite_put_null(rows);
		sqlite_put_number(rows, place_id(database, work->kernel));
	} else {
		sqlite_put_number(rows, copy->bytes);
		sqlite_put_null(rows);
	}
	if (work->launch) {
		sqlite_put_number(rows, work->launch->tid);
		sqlite_put_number(rows, work->launch->begin_ns);
	} else {
		sqlite_put_null(rows);
		sqlite_put_null(rows);
	}
	sqlite_row_end(rows);
}

static void put_memory(void *context, const struct observed_memory *memory)
{
	struct database *database = context;
	struct sqlite_rows *rows = database->memories;
	const struct memory_change *change = memory->change;
	const bool allocates = change->allocated_bytes != 0;
	const uint32_t kind = allocates ? change->kind : change->freed_kind;

	sqlite_put_number(rows, memory->at_ns);
	put_place(database, rows, allocates ? change->node : change->freed_node);
	sqlite_put_number(rows, allocates ? change->device : change->freed_device);
	sqlite_put_number(rows, memory->address);
	sqlite_put_number(rows, change->allocated_bytes);
	sqlite_put_number(rows, change->freed_bytes);
	sqlite_put_text(rows, view_of(memory_kind_name(kind)));
	sqlite_row_end(rows);
}

/* ---- what there is once ---- */

static void put_places(struct database *database)
{
	const struct process *process = database->process;
	const struct tree *tree = process->profile->tree;
	struct sqlite_rows *rows = database->places;
	uint64_t sum, *held = tree_amounts_of(process->profile, AMOUNT_HELD, &sum),
		      *reserved = tree_amounts_of(process->profile, AMOUNT_RESERVED, &sum);

	for (uint32_t node = 0; node < tree->count; node++) {
		if (!node && !held[0] && !reserved[0])
			continue;
		sqlite_put_number(rows, place_id(database, node));
		sqlite_put_number(rows, database->number);
		put_place(database, rows, tree->nodes[node].parent);
		sqlite_put_number(rows, string_id(database, frame_name(process, node)));
		sqlite_put_text(
			rows, view_of(node_kind_name((enum node_kind)tree->nodes[node].kind)));
		sqlite_put_number(rows, tree->nodes[node].is_group);
		put_known(rows, tree->nodes[node].calls, tree->nodes[node].kind == NODE_GRAPH);
		sqlite_put_number(rows, held[node]);
		sqlite_put_number(rows, reserved[node]);
		sqlite_row_end(rows);
	}
	free(held);
	free(reserved);
}

static void put_config(struct database *database, uint32_t index)
{
	const struct launch_config *config = &database->process->profile->kernels->kernels[index];
	const struct string_view name = string_table_get(database->process->texts, config->name);
	struct sqlite_rows *rows = database->configs;
	char shown[6 * FRAME_NAME_BYTES + 1];
	const size_t length = escape_text(shown, sizeof shown, name.bytes,
		name.length < FRAME_NAME_BYTES ? name.length : FRAME_NAME_BYTES, false);

	sqlite_put_number(rows, place_id(database, index));
	put_place(database, rows, config->node);
	sqlite_put_number(
		rows, string_id(database, (struct string_view){ shown, (uint32_t)length }));
	sqlite_put_number(rows, config->record.gpu.device);
	for (unsigned i = 0; i < 3; i++)
		sqlite_put_number(rows, config->record.grid[i]);
	for (unsigned i = 0; i < 3; i++)
		sqlite_put_number(rows, config->record.block[i]);
	sqlite_put_number(rows, config->record.registers);
	sqlite_put_number(rows,
		(uint64_t)config->record.static_shared_bytes + config->record.dynamic_shared_bytes);
	sqlite_row_end(rows);
}

static void put_process_row(struct database *database)
{
	const struct process *process = database->process;
	struct sqlite_rows *rows = database->processes;

	sqlite_put_number(rows, database->number);
	sqlite_put_number(rows, process->pid);
	if (process->rank >= 0)
		sqlite_put_signed(rows, process->rank);
	else
		sqlite_put_null(rows);
	put_shown_text(rows, process->command, strlen(process->command));
	sqlite_put_number(rows, process->start_unix_ns);
	sqlite_put_number(rows, process->wall_ns);
	sqlite_put_number(rows, process->profile->totals.gpu_busy_ns);
	sqlite_put_number(rows, process->profile->totals.gpu_idle_ns);
	sqlite_row_end(rows);
	for (uint32_t i = 0; i < reader_stream_count(process->reader); i++) {
		sqlite_put_number(database->threads, database->number);
		sqlite_put_number(database->threads, reader_stream(process->reader, i)->tid);
		sqlite_row_end(database->threads);
	}
}

static void put_metas(struct database *database)
{
	struct trace_reader *reader = database->process->reader;

	for (uint32_t i = 0; i < reader_meta_count(reader); i++) {
		struct trace_text key, value;

		reader_meta_at(reader, i, &key, &value);
		put_shown_text(database->metas, key.bytes, key.length);
		put_shown_text(database->metas, value.bytes, value.length);
		sqlite_row_end(database->metas);
	}
}

/* ---- idle time and steps ---- */

static void put_gap(void *context, const struct idle_part *idle)
{
	struct database *database = context;
	struct sqlite_rows *rows = database->gaps;
	const struct gap_part *part = &idle->part;
	const bool is_long = part->cause == GAP_LAUNCH && idle->length_ns >= STEP_IDLE_LONG_NS;

	sqlite_put_number(rows, database->number);
	sqlite_put_number(rows, idle->ended_by->device);
	sqlite_put_number(rows, part->begin_ns);
	sqlite_put_number(rows, part->end_ns);
	sqlite_put_number(rows, idle->length_ns);
	sqlite_put_text(rows, view_of(is_long ? IDLE_HOST_NAME : gap_cause_name(part->cause)));
	put_place(
		database, rows, part->blocked_owner ? part->blocked_owner : idle->ended_by->owner);
	sqlite_row_end(rows);
}

/* Adds the events of the process, and the gaps between those of its GPUs. */
static void put_events(struct database *database, struct process *process)
{
	const struct profile_observer observer = { .context = database,
		.segment = put_range,
		.call = put_call,
		.work = put_work,
		.memory = put_memory };
	struct activities *activities = activities_read_with(process, &observer);

	if (process->profile->timeline)
		idle_parts_visit(process, activities, put_gap, database);
	activities_free(activities);
}

/* ---- CPU samples ---- */

static void put_frame_text(
	struct database *database, struct sqlite_rows *rows, struct string_view text)
{
	char shown[6 * FRAME_NAME_BYTES + 1];
	const size_t cut = text.length < FRAME_NAME_BYTES ? text.length : FRAME_NAME_BYTES;

	if (!text.length)
		sqlite_put_null(rows);
	else
		sqlite_put_number(
			rows, string_id(database, (struct string_view){ shown,
							  (uint32_t)escape_text(shown, sizeof shown,
								  text.bytes, cut, false) }));
}

static void put_frames(struct database *database, const struct record_samples *samples)
{
	struct sqlite_rows *rows = database->frames;

	for (uint32_t number = 1; number < samples->stacks->count; number++) {
		const struct stack_frame *frame = &samples->stacks->all[number];

		sqlite_put_number(rows, place_id(database, number));
		sqlite_put_number(rows, database->number);
		put_place(database, rows, frame->caller);
		put_frame_text(database, rows, record_frame_name(samples, frame));
		put_frame_text(database, rows, record_frame_file(samples, frame));
		put_known(rows, frame->frame.line, frame->frame.line != 0);
		sqlite_put_text(rows,
			view_of(node_kind_name(sample_node_kind(samples->cells, &frame->frame))));
		sqlite_row_end(rows);
	}
}

static void put_samples(struct database *database, struct process *process)
{
	struct record_samples *samples = record_samples_read(process);
	struct sqlite_rows *rows = database->samples;
	struct record_sample sample;

	if (!samples)
		return;
	put_frames(database, samples);
	while (record_samples_next(samples, &sample)) {
		put_place(database, rows, sample.cell->node);
		sqlite_put_number(rows, sample.tid);
		sqlite_put_number(rows, sample.at_ns);
		put_known(rows, sample.weight_ns, sample.weight_ns != 0);
		sqlite_put_text(rows, view_of(record_sample_state(&sample)));
		put_place(database, rows, sample.frame);
		sqlite_row_end(rows);
	}
	record_samples_free(samples);
}

static const char *step_state(const struct step *step)
{
	static const char *const states[] = { [STEP_USUAL] = "usual",
		[STEP_WARM_UP] = "warm-up",
		[STEP_UNFINISHED] = "unfinished",
		[STEP_CAPTURE] = "capture",
		[STEP_AT_EDGE] = "recording edge" };

	return states[step->kind];
}

static void put_step(
	struct database *database, const struct step_table *table, const struct step_stats *step)
{
	struct sqlite_rows *rows = database->steps;

	sqlite_put_number(rows, database->number);
	sqlite_put_number(rows, step->step->number);
	sqlite_put_text(rows, view_of(step_state(step->step)));
	put_known(rows, step->step->tid, step->step->tid != 0);
	sqlite_put_number(rows, step->step->begin_ns);
	sqlite_put_number(rows, step->step->end_ns - step->step->begin_ns);
	sqlite_put_number(rows, step->cpu_ns);
	put_known(rows, step->gpu_ns, table->has_gpu);
	put_known(rows, step->busy_ns, table->has_gpu);
	put_known(rows, step->idle_ns, table->has_gpu);
	put_known(rows, step->kernels, table->has_gpu);
	put_known(rows, step->gpu_calls, table->has_gpu);
	put_known(rows, (uint64_t)step->allocated_peak, table->has_allocated);
	put_known(rows, (uint64_t)step->reserved_peak, table->has_reserved);
	sqlite_row_end(rows);
}

static void put_steps(struct database *database, struct process *process)
{
	const struct step_table *table;

	if (!process->steps || !process->steps->count)
		return;
	table = step_table_of(process);
	for (size_t i = 0; i < table->count; i++)
		put_step(database, table, &table->steps[i]);
}

/* ---- the file ---- */

static void open_tables(struct database *database)
{
	struct sqlite_file *file = database->file = sqlite_file_new(schema);

	database->metas = sqlite_rows_new(file, "meta", 2);
	database->processes = sqlite_rows_new(file, "process", 8);
	database->threads = sqlite_rows_new(file, "thread", 2);
	database->strings = sqlite_rows_new(file, "string", 2);
	database->places = sqlite_rows_new(file, "place", 9);
	database->configs = sqlite_rows_new(file, "launch_config", 12);
	database->ranges = sqlite_rows_new(file, "range", 5);
	database->calls = sqlite_rows_new(file, "call", 6);
	database->works = sqlite_rows_new(file, "gpu", 11);
	database->memories = sqlite_rows_new(file, "memory", 7);
	database->gaps = sqlite_rows_new(file, "gap", 7);
	database->frames = sqlite_rows_new(file, "frame", 7);
	database->samples = sqlite_rows_new(file, "sample", 6);
	database->steps = sqlite_rows_new(file, "step", 14);
}

static void put_process(struct database *database, struct process *process)
{
	database->process = process;
	put_process_row(database);
	put_metas(database);
	put_places(database);
	for (uint32_t i = 0; i < process->profile->kernels->count; i++)
		put_config(database, i);
	put_events(database, process);
	put_samples(database, process);
	put_steps(database, process);
}

void export_sqlite(const struct options *options, struct processes *processes, struct output *out)
{
	struct database database = { .texts = string_table_new() };

	(void)options;
	open_tables(&database);
	for (size_t i = 0; i < processes->shown && !out->error; i++) {
		database.number = i;
		put_process(&database, &processes->all[i]);
	}
	sqlite_file_end(database.file, views, out);
	string_table_free(database.texts);
}
