/* SPDX-License-Identifier: MIT
 *
 * Arranges each kind of memory on each device and, below it, the nodes that allocated it.
 */
#include "report/views/views.h"
#include "report/views/memory_growth.h"
#include "report/views/memory_snapshot.h"
#include "report/base/compare.h"
#include "report/table/column.h"
#include "report/table/computed_row.h"
#include "report/base/alloc.h"
#include "report/analysis/allocation_sites.h"
#include <stdlib.h>
#include <string.h>

/* Sorts by memory live at the last time that memory ran out. Kinds without such a time are sorted
 * by memory live at their peak. */
static const struct column *site_sort_column(const struct options *options,
	const struct process *process, const struct memory_level *level)
{
	const char *peak = "at_peak_bytes";

	return options->sort || level->ooms ? view_sort(options, process)
					    : column_find(peak, strlen(peak));
}

/* Text has one row for a node. With --sources, or a column of stacks, and in JSON and CSV, each
 * allocation site has its own. */
static bool merges_sites(const struct options *options)
{
	return options->format == FORMAT_TEXT && !options->sources &&
	       !(options->columns && strstr(options->columns, "stack"));
}

/* Adds a row for tensors that were allocated in no record, so that the rows of the level add up. */
static void add_unrecorded(
	struct process *process, struct rows *rows, const struct memory_level *level)
{
	const struct memory_pool *pool = &level->pool;
	struct computed_row *computed;

	if (!pool->before_at_peak && !pool->before_at_oom && !pool->before_at_end)
		return;
	computed = computed_row_new(process, 0, "alloc");
	computed_row_format_name(computed, "(allocated %s)",
		process->windows ? "while nothing was recorded" : "before the trace began");
	computed_row_set_string(computed, "memory_kind", memory_kind_name(level->kind));
	computed_row_set_unsigned(computed, "device", level->device);
	computed_row_set_unsigned(computed, "at_peak_bytes", pool->before_at_peak);
	computed_row_set_unsigned(computed, "held_bytes", pool->before_at_end);
	if (level->ooms)
		computed_row_set_unsigned(computed, "at_oom_bytes", pool->before_at_oom);
	computed_row_add(rows, computed, (uint32_t)rows->count - 1);
}

/* Adds a row for what was allocated and released in a time after the end, so that the rows of the
 * level add up. */
static void add_after_end(struct process *process, struct rows *rows, uint32_t parent,
	const struct memory_sums *after, const char *name)
{
	const struct memory_level *level = rows->rows[parent].of.level;
	struct computed_row *computed;

	if (!after->allocs && !after->frees)
		return;
	computed = computed_row_new(process, 0, "alloc");
	computed_row_set_name(computed, name, strlen(name));
	computed_row_set_string(computed, "memory_kind", memory_kind_name(level->kind));
	computed_row_set_unsigned(computed, "device", level->device);
	computed_row_set_unsigned(computed, "alloc_bytes", after->alloc_bytes);
	computed_row_set_unsigned(computed, "free_bytes", after->free_bytes);
	computed_row_set_unsigned(computed, "allocs", after->allocs);
	computed_row_set_unsigned(computed, "frees", after->frees);
	computed_row_add(rows, computed, parent);
}

/* Leaves out sites that held nothing at the peak, at the end and when memory ran out, unless an
 * option chooses the rows. */
static void hide_empty_sites(const struct options *options, struct rows *rows, size_t first)
{
	size_t kept = first;

	if (!merges_sites(options) || options->sort || options->top || options->min_percent >= 0)
		return;
	for (size_t i = first; i < rows->count; i++) {
		const struct row *row = &rows->rows[i];
		const struct memory_flow *flow = row->kind == ROW_SITE ? &row->of.site->flow : NULL;

		if (flow && !flow->at_peak && !flow->held && !flow->at_oom && !flow->failed)
			rows->hidden_by_top++;
		else
			rows->rows[kept++] = rows->rows[i];
	}
	rows->count = kept;
}

static void add_sites(
	const struct options *options, struct process *process, struct rows *rows, uint32_t level)
{
	const struct memory_owners *memory = process->profile->memory;
	const uint32_t parent = (uint32_t)rows->count - 1;
	const size_t first = rows->count;
	const struct memory_site *sites;
	uint32_t count;
	const struct column *sort = site_sort_column(options, process, &memory->levels[level]);

	if (merges_sites(options))
		allocation_sites_merge(process);
	sites = merges_sites(options) ? memory->merged : memory->sites;
	count = merges_sites(options) ? memory->merged_count : memory->site_count;
	add_unrecorded(process, rows, &memory->levels[level]);
	for (uint32_t i = 0; i < count; i++)
		if (sites[i].level == level)
			rows_add(rows, &(struct row){ .process = process,
					       .kind = ROW_SITE,
					       .parent = parent,
					       .depth = 1,
					       .node = sites[i].node,
					       .tree = process->profile->tree,
					       .of.site = &sites[i] });
	rows_sort(rows->rows + first, rows->count - first, sort);
	if (options->depth < 2) {
		rows->hidden_by_depth += rows->count - first;
		rows->count = first;
	}
	hide_empty_sites(options, rows, first);
	rows_prune(rows, first, sort, view_min_percent(options), view_top(options));
	if (options->depth < 2)
		return;
	add_after_end(process, rows, parent, &memory->levels[level].after_end, "(after last step)");
	add_after_end(process, rows, parent, &memory->levels[level].shutdown, "(shutdown)");
}

/* Orders tensors first, then device memory, then by kind and device. */
static int by_memory_kind(const void *a, const void *b)
{
	const struct memory_level *left = *(struct memory_level *const *)a,
				  *right = *(struct memory_level *const *)b;

	if ((left->kind == MEMORY_TENSOR) != (right->kind == MEMORY_TENSOR))
		return left->kind == MEMORY_TENSOR ? -1 : 1;
	if (memory_is_device(left->kind) != memory_is_device(right->kind))
		return memory_is_device(left->kind) ? -1 : 1;
	if (left->kind != right->kind)
		return left->kind < right->kind ? -1 : 1;
	return COMPARE(left->device, right->device);
}

static void arrange_owners(
	const struct options *options, struct process *process, struct rows *rows)
{
	const struct memory_owners *memory = process->profile->memory;
	const struct memory_level **levels = xcalloc(
		(memory->level_count + 1) * sizeof(struct memory_level *));

	for (uint32_t i = 0; i < memory->level_count; i++)
		levels[i] = &memory->levels[i];
	qsort(levels, memory->level_count, sizeof(struct memory_level *), by_memory_kind);
	for (uint32_t i = 0; i < memory->level_count; i++) {
		if (options->device >= 0 && levels[i]->device != (uint32_t)options->device &&
			levels[i]->device != UINT32_MAX)
			continue;
		rows_add(rows, &(struct row){ .process = process,
				       .kind = ROW_LEVEL,
				       .parent = NO_ROW,
				       .of.level = levels[i] });
		add_sites(options, process, rows, (uint32_t)(levels[i] - memory->levels));
	}
	free(levels);
}

void arrange_memory(const struct options *options, struct process *process, struct rows *rows)
{
	if (options->snapshot)
		memory_snapshot_write(options, process);
	if (options->growth)
		arrange_memory_growth(options, process, rows);
	else if (options->by == BY_CLASS)
		arrange_memory_classes(options, process, rows);
	else
		arrange_owners(options, process, rows);
}
