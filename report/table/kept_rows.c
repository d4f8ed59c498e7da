/* SPDX-License-Identifier: MIT */
#include "report/table/kept_rows.h"
#include "report/base/alloc.h"
#include "report/base/temporary_file.h"
#include "report/base/text_builder.h"
#include "report/import/open_trace.h"
#include "report/table/computed_row.h"
#include "report/trace/trace_header.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIND "rows"
#define NO_LENGTH UINT32_MAX

/* ---- what is kept ---- */

struct kept_row {
	uint32_t parent, depth, node, stack, cells;
	/* lengths of the texts that follow; NO_LENGTH: the row has no name */
	uint32_t name, last_call, next_operation;
	uint8_t skips_rows, is_call_path, is_second_place, is_duplicate;
};

struct kept_cell {
	uint32_t kind, key, text; /* enum cell_kind; lengths of the texts that follow */
	int64_t integer;
	uint64_t unsigned_value;
	double real;
};

struct kept_head {
	uint64_t rows, hidden_by_percent, hidden_by_depth, hidden_by_top, beyond_max;
	uint64_t empty_explained, warnings;
};

/* Returns true if the options select all of a trace and name it as usual. Options that change only
 * what is printed of the rows may be anything. */
static bool selects_all(const struct options *options)
{
	const bool has_texts = options->categories || options->peaks || options->focus ||
			       options->step_marker || options->kinds || options->at ||
			       options->snapshot || options->graphs || options->subject ||
			       options->metric_name;

	return !has_texts && !options->steps && !options->no_steps && options->device < 0 &&
	       !options->no_fold && !options->redact && !options->sources && !options->map &&
	       !options->over_time && !options->growth && !options->ledger && !options->functions &&
	       options->assumed == ELEMENT_UNKNOWN && options->by == BY_NAME &&
	       options->instances == INSTANCES_SUM && options->demangle == DEMANGLE_SHORT;
}

/* Returns the key of the rows; all zero if they are not kept. */
static struct cache_key rows_key(const struct options *options, const struct process *process,
	const char *view, bool is_arranged)
{
	const struct profile_options *profile = &process->profile->options;
	struct cache_key key = { { 0 } };
	uint64_t percent;

	if (!selects_all(options) || process->symbols)
		return key;
	key = open_trace_key(process->path, process->reader);
	cache_key_add_text(&key, view);
	cache_key_add(&key, options->style.ascii);
	cache_key_add(&key, options->style.iec);
	/* Findings have commands, which name the traces and select the same. */
	for (size_t i = 0; i < options->file_count; i++)
		cache_key_add_text(&key, options->files[i]);
	cache_key_add(&key, options->all);
	cache_key_add(&key, (uint64_t)options->rank);
	cache_key_add(&key, profile->metric);
	cache_key_add(&key, profile->no_owners_and_delays);
	cache_key_add(&key, profile->no_percentiles);
	if (!is_arranged)
		return key;
	memcpy(&percent, &options->min_percent, sizeof percent);
	cache_key_add(&key, percent);
	cache_key_add(&key, options->format);
	cache_key_add(&key, options->top);
	cache_key_add(&key, options->depth);
	cache_key_add(&key, options->rows_max);
	cache_key_add_text(&key, options->sort);
	return key;
}

/* ---- writing ---- */

static void put_text(struct text_builder *out, const char *bytes, uint32_t length)
{
	if (length && length != NO_LENGTH)
		text_add_bytes(out, bytes, length);
}

static bool put_cell(struct text_builder *out, const struct computed_cell *at)
{
	const struct cell *cell = &at->cell;
	const bool is_text = cell->kind == CELL_TEXT;
	struct kept_cell kept;

	if (cell->kind != CELL_NULL && cell->kind != CELL_INTEGER && cell->kind != CELL_UNSIGNED &&
		cell->kind != CELL_REAL && !is_text)
		return false;
	memset(&kept, 0, sizeof kept);
	kept.kind = cell->kind;
	kept.key = (uint32_t)strlen(at->column->key);
	kept.text = is_text ? cell->text.length : 0;
	kept.integer = cell->integer;
	kept.unsigned_value = cell->unsigned_value;
	kept.real = cell->real;
	text_add_bytes(out, (const char *)&kept, sizeof kept);
	put_text(out, at->column->key, kept.key);
	put_text(out, cell->text.bytes, kept.text);
	return true;
}

static bool put_row(struct text_builder *out, const struct row *row, size_t first)
{
	const struct computed_row *computed = row->of.computed;
	const struct process *process = row->process;
	struct string_view last, next;
	struct kept_row kept;

	if (row->kind != ROW_COMPUTED || (row->node && row->tree != process->profile->tree) ||
		(row->parent != NO_ROW && row->parent < first))
		return false;
	last = string_table_get(process->texts, computed->last_call);
	next = string_table_get(process->texts, computed->next_operation);
	memset(&kept, 0, sizeof kept);
	kept.parent = row->parent == NO_ROW ? NO_ROW : row->parent - (uint32_t)first;
	kept.depth = row->depth;
	kept.node = row->node;
	kept.stack = computed->launch_stack;
	kept.cells = (uint32_t)computed->count;
	kept.name = computed->name ? computed->name_bytes : NO_LENGTH;
	kept.last_call = last.length;
	kept.next_operation = next.length;
	kept.skips_rows = row->skips_rows;
	kept.is_call_path = computed->is_call_path;
	kept.is_second_place = computed->is_second_place;
	kept.is_duplicate = computed->is_duplicate;
	text_add_bytes(out, (const char *)&kept, sizeof kept);
	put_text(out, computed->name, kept.name);
	put_text(out, last.bytes, kept.last_call);
	put_text(out, next.bytes, kept.next_operation);
	for (size_t i = 0; i < computed->count; i++)
		if (!put_cell(out, &computed->cells[i]))
			return false;
	return out->used <= KEPT_ROWS_BYTES_MAX;
}

/* Appends the warnings, each with its length before it. Returns false if one was moved to the
 * first ones. */
static bool put_warnings(struct text_builder *out, const struct kept_rows *kept)
{
	const struct processes *processes = kept->processes;

	if (!processes)
		return true;
	for (size_t i = kept->warnings; i < processes->warning_count; i++) {
		const uint32_t length = (uint32_t)strlen(processes->warnings[i]);

		text_add_bytes(out, (const char *)&length, sizeof length);
		put_text(out, processes->warnings[i], length);
	}
	return processes->warnings_first <= kept->warnings;
}

char *kept_rows_encode(const struct kept_rows *kept, size_t *bytes)
{
	const struct rows *rows = kept->rows, *before = &kept->before;
	const struct kept_head head = { rows->count - before->count,
		rows->hidden_by_percent - before->hidden_by_percent,
		rows->hidden_by_depth - before->hidden_by_depth,
		rows->hidden_by_top - before->hidden_by_top, rows->beyond_max - before->beyond_max,
		rows->empty_explained,
		kept->processes ? kept->processes->warning_count - kept->warnings : 0 };
	struct text_builder out = { .text = NULL };
	bool good = before->empty_explained == rows->empty_explained;

	text_add_bytes(&out, (const char *)&head, sizeof head);
	for (size_t i = before->count; good && i < rows->count; i++)
		good = put_row(&out, &rows->rows[i], before->count);
	good = good && put_warnings(&out, kept);
	*bytes = out.used;
	if (good)
		return out.text;
	free(out.text);
	return NULL;
}

/* ---- reading ---- */

struct kept_bytes {
	const char *at, *end;
};

/* Returns the next `count` bytes, or NULL if there are fewer. */
static const char *take(struct kept_bytes *from, size_t count)
{
	const char *at = from->at;

	if ((size_t)(from->end - at) < count)
		return NULL;
	from->at += count;
	return at;
}

static bool take_struct(struct kept_bytes *from, void *into, size_t bytes)
{
	const char *at = take(from, bytes);

	if (at)
		memcpy(into, at, bytes);
	return at != NULL;
}

static bool take_cell(struct kept_bytes *from, struct computed_row *computed)
{
	const struct column *column;
	const char *key, *text;
	struct kept_cell kept;

	if (!take_struct(from, &kept, sizeof kept) || !(key = take(from, kept.key)) ||
		!(text = take(from, kept.text)) || !(column = column_find(key, kept.key)))
		return false;
	switch (kept.kind) {
	case CELL_NULL:
		computed_row_set_unknown(computed, column->key);
		return true;
	case CELL_INTEGER:
		computed_row_set_integer(computed, column->key, kept.integer);
		return true;
	case CELL_UNSIGNED:
		computed_row_set_unsigned(computed, column->key, kept.unsigned_value);
		return true;
	case CELL_REAL:
		computed_row_set_real(computed, column->key, kept.real);
		return true;
	case CELL_TEXT:
		computed_row_set_text(computed, column->key, text, kept.text);
		return true;
	default:
		return false;
	}
}

/* `index`: of the row among those that are kept; its parent is before it. */
static bool take_row(struct kept_bytes *from, struct process *process, struct rows *rows,
	size_t first, size_t index)
{
	struct computed_row *computed;
	struct kept_row kept;
	const char *name, *last, *next;
	bool good = take_struct(from, &kept, sizeof kept);

	if (!good || kept.node >= process->profile->tree->count || kept.depth > index ||
		(kept.parent != NO_ROW && kept.parent >= index) ||
		!(name = take(from, kept.name == NO_LENGTH ? 0 : kept.name)) ||
		!(last = take(from, kept.last_call)) || !(next = take(from, kept.next_operation)))
		return false;
	computed = computed_row_new(process, kept.node, "");
	if (kept.name != NO_LENGTH)
		computed_row_set_name(computed, name, kept.name);
	computed->last_call = string_table_intern(process->texts, last, kept.last_call);
	computed->next_operation = string_table_intern(process->texts, next, kept.next_operation);
	computed->launch_stack = kept.stack;
	computed->is_call_path = kept.is_call_path;
	computed->is_second_place = kept.is_second_place;
	computed->is_duplicate = kept.is_duplicate;
	computed->row.skips_rows = kept.skips_rows;
	computed->row.parent = kept.parent == NO_ROW ? NO_ROW : (uint32_t)first + kept.parent;
	computed->row.depth = kept.depth;
	for (uint32_t i = 0; good && i < kept.cells; i++)
		good = take_cell(from, computed);
	if (good)
		rows_add(rows, &computed->row);
	return good;
}

/* Adds the warnings if `add`; else only looks whether they are whole. */
static bool take_warnings(
	struct kept_bytes from, uint64_t count, struct processes *processes, bool add)
{
	for (uint64_t i = 0; i < count; i++) {
		uint32_t length;
		const char *text;

		if (!take_struct(&from, &length, sizeof length) || !(text = take(&from, length)) ||
			length > INT_MAX)
			return false;
		if (add)
			processes_warn(processes, "%.*s", (int)length, text);
	}
	return from.at == from.end && (!count || processes);
}

bool kept_rows_decode(const struct kept_rows *kept, const char *bytes, size_t count)
{
	struct kept_bytes from = { bytes, bytes + count };
	struct rows *rows = kept->rows;
	const size_t first = rows->count;
	struct kept_head head;
	bool good = take_struct(&from, &head, sizeof head);

	for (uint64_t i = 0; good && i < head.rows; i++)
		good = take_row(&from, kept->process, rows, first, (size_t)i);
	if (!good || !take_warnings(from, head.warnings, kept->processes, false)) {
		rows->count = first;
		return false;
	}
	take_warnings(from, head.warnings, kept->processes, true);
	rows->hidden_by_percent += head.hidden_by_percent;
	rows->hidden_by_depth += head.hidden_by_depth;
	rows->hidden_by_top += head.hidden_by_top;
	rows->beyond_max += head.beyond_max;
	return true;
}

/* ---- the cache ---- */

static bool read_kept(struct kept_rows *kept)
{
	struct cache_part part;
	const int fd = cache_open(&kept->key, KIND, 0, &part);
	char *bytes;
	bool good;

	if (fd < 0)
		return false;
	bytes = part.bytes <= KEPT_ROWS_BYTES_MAX ? xcalloc(part.bytes + 1) : NULL;
	good = bytes && pread_all(fd, bytes, part.bytes, 0) == (int64_t)part.bytes &&
	       kept_rows_decode(kept, bytes, part.bytes);
	free(bytes);
	close(fd);
	return good;
}

struct kept_rows kept_rows_begin(const struct options *options, struct process *process,
	struct rows *rows, const char *view, bool is_arranged, struct processes *processes)
{
	struct kept_rows kept = { .process = process,
		.processes = processes,
		.warnings = processes ? processes->warning_count : 0,
		.rows = rows,
		.before = *rows,
		.key = rows_key(options, process, view, is_arranged) };

	kept.found = read_kept(&kept);
	return kept;
}

void kept_rows_end(const struct kept_rows *kept)
{
	struct cache_part part = { .count = 1 };
	size_t bytes;
	char *text;
	int fd;

	if (!cache_key_is_set(&kept->key) || kept->process->symbols)
		return;
	text = kept_rows_encode(kept, &bytes);
	fd = text && open_trace_key_is_current(&kept->key, kept->process->path)
		     ? temporary_file_create()
		     : -1;
	part.bytes = bytes;
	if (fd >= 0 && pwrite(fd, text, bytes, 0) == (ssize_t)bytes)
		cache_store(&kept->key, KIND, &part, fd);
	if (fd >= 0)
		close(fd);
	free(text);
}
