/* SPDX-License-Identifier: MIT
 * Reads CPU samples. COMPOSITE_EVENTS has their times and threads, SAMPLING_CALLCHAINS a row for
 * each function of their call chains. Only the innermost function is kept.
 */
#include "report/base/alloc.h"
#include "report/import/nsys/nsys.h"
#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((unsigned)(sizeof(array) / sizeof *(array)))

struct sample_reader {
	struct nsys_reader *nsys;
	struct nsys_id_map row_of_id; /* by id of a sample: its row + 1 */
	uint32_t *depths;             /* by row: depth of the function it has; UINT32_MAX: none */
	size_t depth_room;
	uint64_t other_threads; /* samples of threads that have neither ranges nor calls */
};

enum { S_ID, S_TIME, S_THREAD };
static const char *const sample_columns[] = { "id", "start", "globalTid" };

static void add_nsys_sample(struct sample_reader *reader, const struct nsys_rows *rows)
{
	struct event_rows *imported = reader->nsys->imported;
	const int64_t time = nsys_rows_number(rows, S_TIME), far = INT64_MAX / 4;
	const uint32_t thread = nsys_id_map_value(
		&reader->nsys->thread_of_id, (uint64_t)nsys_rows_number(rows, S_THREAD));
	const size_t row = imported->sample_count;
	uint32_t *of_id;

	imported->events++;
	if (!nsys_rows_has_value(rows, S_TIME) || time > far || time < -far) {
		imported->unreadable++;
		return;
	}
	if (!thread || row >= UINT32_MAX) {
		reader->other_threads++;
		return;
	}
	ARRAY_GROW(reader->depths, reader->depth_room, row + 1);
	reader->depths[row] = UINT32_MAX;
	*EVENT_ROWS_ADD(imported, sample, samples) = (struct imported_sample){ .time = time,
		.thread = thread - 1 };
	of_id = nsys_id_map_slot(&reader->row_of_id, (uint64_t)nsys_rows_number(rows, S_ID));
	if (!*of_id)
		*of_id = (uint32_t)row + 1;
}

enum { F_ID, F_DEPTH, F_FUNCTION, F_MODULE, F_UNRESOLVED, F_SPECIAL };
static const char *const frame_columns[] = { "id", "stackDepth", "symbol", "module", "unresolved",
	"specialEntry" };

/* Returns the text of a path without its folder. */
static uint32_t file_name(struct string_table *texts, uint32_t path)
{
	const struct string_view view = string_table_get(texts, path);
	const char *slash = view.length ? memrchr(view.bytes, '/', view.length) : NULL;

	return slash ? string_table_intern(
			       texts, slash + 1, view.length - (size_t)(slash + 1 - view.bytes))
		     : path;
}

/* Keeps a function of a call chain if it is the innermost so far. Entries that nsys made up are
 * no functions. */
static void add_nsys_frame(struct sample_reader *reader, const struct nsys_rows *rows)
{
	const uint32_t row = nsys_id_map_value(
		&reader->row_of_id, (uint64_t)nsys_rows_number(rows, F_ID));
	const int64_t depth = nsys_rows_number(rows, F_DEPTH);
	struct imported_sample *sample;

	if (!row || !reader->depths || depth < 0 || depth >= reader->depths[row - 1] ||
		nsys_rows_number(rows, F_SPECIAL))
		return;
	reader->depths[row - 1] = (uint32_t)depth;
	sample = &reader->nsys->imported->samples[row - 1];
	sample->function = nsys_rows_number(rows, F_UNRESOLVED)
				   ? 0
				   : nsys_string_column(reader->nsys, rows, F_FUNCTION);
	sample->module = file_name(
		reader->nsys->imported->texts, nsys_string_column(reader->nsys, rows, F_MODULE));
}

static void read_sample_table(struct sample_reader *reader, const char *table,
	const char *const *columns, unsigned count,
	void (*add)(struct sample_reader *, const struct nsys_rows *))
{
	struct nsys_rows *rows = nsys_rows_open(reader->nsys->db, table, columns, count);

	while (nsys_rows_next(rows))
		add(reader, rows);
	nsys_rows_close(rows);
}

void nsys_samples_read(struct nsys_reader *nsys)
{
	struct sample_reader reader = { .nsys = nsys };

	read_sample_table(
		&reader, NSYS_SAMPLES, sample_columns, COUNT(sample_columns), add_nsys_sample);
	read_sample_table(&reader, "SAMPLING_CALLCHAINS", frame_columns, COUNT(frame_columns),
		add_nsys_frame);
	if (reader.other_threads)
		nsys_skip(nsys, "CPU samples of threads without ranges or calls",
			reader.other_threads);
	nsys_id_map_free(&reader.row_of_id);
	free(reader.depths);
}
