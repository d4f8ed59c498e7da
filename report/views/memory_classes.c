/* SPDX-License-Identifier: MIT
 *
 * Arranges the lifetime classes of each kind of memory and, below each class, the call paths.
 */
#include "report/views/memory_growth.h"
#include "report/table/column.h"
#include "report/table/computed_row.h"
#include "report/text/format_number.h"
#include <string.h>

/* `freed_bytes`: what of a class that is held at the end was freed before. */
static void set_sum(struct computed_row *computed, const struct lifetime_sum *sum,
	enum memory_lifetime class, uint64_t freed_bytes)
{
	computed_row_set_unsigned(computed, "allocs", sum->blocks);
	computed_row_set_unsigned(computed, "alloc_bytes", sum->bytes);
	computed_row_set_unsigned(computed, "held_bytes",
		class < MEMORY_GROWING ? 0
		: class == MEMORY_ONCE ? sum->bytes - freed_bytes
				       : sum->bytes);
}

static void add_class_paths(const struct options *options, struct process *process,
	struct rows *rows, const struct memory_held *held, enum memory_lifetime class)
{
	const struct memory_lifetimes *lifetimes = memory_lifetimes_of(process);
	const struct column *bytes = options->sort
					     ? view_sort(options, process)
					     : column_find("alloc_bytes", strlen("alloc_bytes"));
	const uint32_t parent = (uint32_t)rows->count - 1;
	const size_t first = rows->count;

	for (size_t i = 0; i < lifetimes->path_count && options->depth > 2; i++) {
		const struct memory_path *path = &lifetimes->paths[i];
		struct computed_row *computed;

		if (path->kind != held->kind || path->device != held->device ||
			!path->lived[class].blocks)
			continue;
		computed = computed_row_new(process, path->node, "path");
		set_sum(computed, &path->lived[class], class, path->once_freed_bytes);
		if (path->line)
			computed_row_set_text(computed, "line",
				string_table_get(process->texts, path->line).bytes,
				string_table_get(process->texts, path->line).length);
		computed->is_call_path = true;
		computed_row_add(rows, computed, parent);
	}
	rows_sort(rows->rows + first, rows->count - first, bytes);
	rows_prune(rows, first, bytes, view_min_percent(options), view_top(options));
}

/* Without steps, blocks that were freed are in the rows of their age. */
static void add_classes(const struct options *options, struct process *process, struct rows *rows,
	const struct memory_held *held, uint32_t parent)
{
	const bool has_steps = memory_lifetimes_of(process)->has_steps;
	char name[64];

	for (int class = has_steps ? 0 : MEMORY_GROWING;
		class < MEMORY_LIFETIMES && options->depth > 1; class ++) {
		struct computed_row *computed;

		if (!held->lived[class].blocks)
			continue;
		computed = computed_row_new(process, 0, "class");
		memory_lifetime_name((enum memory_lifetime) class, held->across_max, has_steps,
			name, sizeof name);
		computed_row_format_name(computed, "%s", name);
		set_sum(computed, &held->lived[class], (enum memory_lifetime) class,
			held->once_freed_bytes);
		computed_row_set_share(computed, "class_share", held->lived[class].bytes,
			memory_held_total(held).bytes);
		computed_row_add(rows, computed, parent);
		add_class_paths(options, process, rows, held, (enum memory_lifetime) class);
	}
}

/* Adds, for a trace without steps, how old the blocks were that were freed. */
static void add_octaves(const struct options *options, struct process *process, struct rows *rows,
	const struct memory_held *held, uint32_t parent)
{
	for (unsigned octave = 0; octave < LIFETIME_OCTAVES && options->depth > 1; octave++) {
		const struct lifetime_sum *sum = &held->octaves[octave];
		char from[FORMAT_NUMBER_BYTES], to[FORMAT_NUMBER_BYTES];
		struct computed_row *computed;

		if (!sum->blocks)
			continue;
		computed = computed_row_new(process, 0, "age");
		format_with_unit(from, UNIT_TIME, octave ? (int64_t)1 << octave : 0, false,
			options->style.ascii);
		format_with_unit(to, UNIT_TIME, clamp_to_i64(2.0L * (long double)(1ull << octave)),
			false, options->style.ascii);
		computed_row_format_name(computed, "freed after %s to %s", from, to);
		set_sum(computed, sum, MEMORY_TEMPORARY, 0);
		computed_row_set_share(
			computed, "class_share", sum->bytes, memory_held_total(held).bytes);
		computed_row_add(rows, computed, parent);
	}
}

void arrange_memory_classes(
	const struct options *options, struct process *process, struct rows *rows)
{
	const struct memory_lifetimes *lifetimes = memory_lifetimes_of(process);

	for (size_t i = 0; i < lifetimes->held_count; i++) {
		const struct memory_held *held = &lifetimes->held[i];
		struct computed_row *computed;
		uint32_t parent;

		if (!memory_held_total(held).blocks)
			continue;
		computed = computed_row_new(process, 0, "memory");
		memory_growth_set_name(computed, held);
		computed_row_set_string(computed, "memory_kind", memory_kind_name(held->kind));
		computed_row_set_unsigned(computed, "device", held->device);
		computed_row_set_unsigned(computed, "allocs", memory_held_total(held).blocks);
		computed_row_set_unsigned(computed, "alloc_bytes", memory_held_total(held).bytes);
		computed_row_set_unsigned(computed, "held_bytes",
			held->lived[MEMORY_GROWING].bytes + held->lived[MEMORY_AT_END].bytes +
				held->lived[MEMORY_ONCE].bytes - held->once_freed_bytes);
		parent = computed_row_add(rows, computed, NO_ROW);
		add_octaves(options, process, rows, held, parent);
		add_classes(options, process, rows, held, parent);
	}
}
