/* SPDX-License-Identifier: MIT
 *
 * Writes all that a trace knows of one node as lines. They have every figure, the launch
 * configurations of a kernel, and the memory allocated there.
 */
#include "report/base/compare.h"
#include "report/run/call_stack.h"
#include "report/base/alloc.h"
#include "report/base/text_builder.h"
#include "report/tui/model.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SITES_MAX 20u  /* call stacks that allocated memory there, the largest first */
#define SHAPES_MAX 40u /* launch configurations of a kernel */

/* Appends the names from the root, one per line, indented. */
static void put_detail_path(
	struct tui_lines *lines, const struct style *style, const struct row *row)
{
	const size_t length = row_path(row, NULL, 0);
	uint32_t *nodes = xcalloc((length + 1) * sizeof *nodes);

	row_path(row, nodes, length);
	for (size_t i = 0; i < length; i++) {
		const struct row at = tree_row(row->process, row->tree, nodes[i]);
		const struct string_view label = row_label(&at, style->ascii);
		const int indent = 2 * (int)(i < 12 ? i : 12);
		struct text_builder line = { .text = NULL };

		text_add(&line, "%*s", indent, "");
		text_add_bytes(&line, label.bytes, label.length);
		tui_line(lines, style, line.text, line.used);
		free(line.text);
	}
	free(nodes);
}

static bool is_detail_column(const struct column *column)
{
	static const char *const elsewhere[] = { "id", "parent", "depth", "name", "label", "path" };

	for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
		if (strcmp(column->key, elsewhere[i]) == 0)
			return false;
	return true;
}

static void put_detail_value(struct tui_lines *lines, const struct style *style,
	const struct column *column, const struct row *first, const struct row *second)
{
	struct rows rows[2] = { { .rows = (struct row *)(uintptr_t)first, .count = first != NULL },
		{ .rows = (struct row *)(uintptr_t)second, .count = second != NULL } };
	char text[2][CELL_TEXT_BYTES] = { "", "" }, line[3 * CELL_TEXT_BYTES];
	size_t width;

	for (unsigned which = 0; which < 2; which++)
		if (rows[which].rows)
			cell_text(text[which], style, column, rows[which].rows, &rows[which]);
	if (!*text[0] && !*text[1])
		return;
	width = escaped_width(text[0], strlen(text[0]));
	if (second || !first)
		snprintf(line, sizeof line, "  %-22s %s%*s  %s", column->key, text[0],
			width < 14 ? (int)(14 - width) : 0, "", text[1]);
	else
		snprintf(line, sizeof line, "  %-22s %s", column->key, text[0]);
	tui_line(lines, style, line, strlen(line));
}

/* Appends every figure of one row, or of two rows side by side. Figures that neither has are left
 * out. */
static void put_detail_values(struct tui_lines *lines, const struct style *style,
	const struct row *first, const struct row *second)
{
	const char *keys = view_find("tree")->columns;
	const struct column *column;

	while ((column = column_next(&keys)))
		if (is_detail_column(column))
			put_detail_value(lines, style, column, first, second);
}

static void put_detail_source(
	struct tui_lines *lines, const struct style *style, const struct row *row)
{
	const struct node *node = &row->tree->nodes[row->node];
	char text[CALL_STACK_TEXT], line[CALL_STACK_TEXT + 32];
	size_t length;

	if (!node->longest_trace_node)
		return;
	length = call_stack_source(
		row->process, node->longest_trace_node, false, text, sizeof text);
	if (length)
		tui_line(lines, style, line,
			(size_t)snprintf(
				line, sizeof line, "first entered at %.*s", (int)length, text));
}

COMPARE_POINTERS_BY_LARGEST(by_kernel_time, struct launch_config, total_ns)

static const char launch_shape_keys[] =
	"calls gpu_total_ns min_ns p50_ns p95_ns max_ns grid block registers shared_bytes "
	"occupancy_theoretical occupancy_limit waves_per_sm device untimed";

static void put_launch_shape(struct tui_lines *lines, const struct style *style,
	const struct row *row, const struct launch_config *kernel)
{
	struct row shape = tree_row(row->process, row->process->profile->tree, kernel->node);
	const struct rows rows = { .rows = &shape, .count = 1 };
	const struct column *column;
	const char *rest = launch_shape_keys;
	struct text_builder line = { .text = NULL };

	shape.kind = ROW_SHAPE;
	shape.of.shape = kernel;
	while ((column = column_next(&rest))) {
		char text[CELL_TEXT_BYTES];

		if (cell_text(text, style, column, &shape, &rows) && strcmp(text, "0") != 0)
			text_add(&line, "%s%s %s", line.used ? ", " : "  ", column->title, text);
	}
	tui_line(lines, style, line.text ? line.text : "  ", line.text ? line.used : 2);
	free(line.text);
}

/* Appends the launch configurations of a kernel at all nodes, because they are counted by name. */
static void put_launch_shapes(
	struct tui_lines *lines, const struct style *style, const struct row *row)
{
	const struct launch_configs *kernels = row->process->profile->kernels;
	const struct node *node = &row->tree->nodes[row->node];
	const struct launch_config **shapes = xcalloc((kernels->count + 1) * sizeof *shapes);
	size_t count = 0;

	for (uint32_t i = 0; node->kind == NODE_KERNEL && i < kernels->count; i++)
		if (kernels->kernels[i].name == node->name)
			shapes[count++] = &kernels->kernels[i];
	if (count) {
		qsort(shapes, count, sizeof *shapes, by_kernel_time);
		tui_linef(lines, "%s", "");
		tui_linef(lines, "launch configurations of this kernel, at all nodes: %zu", count);
		for (size_t i = 0; i < count && i < SHAPES_MAX; i++)
			put_launch_shape(lines, style, row, shapes[i]);
		if (count > SHAPES_MAX)
			tui_linef(lines, "  %zu more: pperf-report kernels", count - SHAPES_MAX);
	}
	free(shapes);
}

COMPARE_POINTERS_BY_LARGEST(by_site_bytes, struct memory_site, flow.alloc_bytes)

static void put_memory_site(struct tui_lines *lines, const struct style *style,
	const struct row *row, const struct memory_site *site)
{
	char text[CALL_STACK_TEXT], taken[FORMAT_NUMBER_BYTES], held[FORMAT_NUMBER_BYTES],
		line[CALL_STACK_TEXT + 8];
	const uint32_t frames = call_stack_frames(row->process, site->stack);

	format_with_unit(
		taken, UNIT_BYTES, (int64_t)site->flow.alloc_bytes, style->iec, style->ascii);
	format_with_unit(held, UNIT_BYTES, (int64_t)site->flow.held, style->iec, style->ascii);
	tui_linef(lines, "  %s memory: %s allocated in %llu allocations, %s held at the end",
		memory_kind_name(row->process->profile->memory->levels[site->level].kind), taken,
		(unsigned long long)site->flow.allocs, held);
	for (uint32_t i = 0; i < frames; i++) {
		const size_t length = call_stack_frame(
			row->process, site->stack, i, false, text, sizeof text);

		tui_line(lines, style, line,
			(size_t)snprintf(line, sizeof line, "      %.*s", (int)length, text));
	}
}

static void put_memory_sites(
	struct tui_lines *lines, const struct style *style, const struct row *row)
{
	const struct memory_owners *memory = row->process->profile->memory;
	const bool of_profile = row->tree == row->process->profile->tree;
	const struct memory_site **sites = xcalloc((memory->site_count + 1) * sizeof *sites);
	size_t count = 0;

	for (uint32_t i = 0; of_profile && i < memory->site_count; i++)
		if (memory->sites[i].node == row->node)
			sites[count++] = &memory->sites[i];
	if (count) {
		qsort(sites, count, sizeof *sites, by_site_bytes);
		tui_linef(lines, "%s", "");
		tui_linef(lines, "%s", "memory allocated directly here");
		for (size_t i = 0; i < count && i < SITES_MAX; i++)
			put_memory_site(lines, style, row, sites[i]);
		if (count > SITES_MAX)
			tui_linef(lines, "  %zu more: pperf-report memory", count - SITES_MAX);
	}
	free(sites);
}

void tui_details(struct tui_lines *lines, const struct style *style, const struct row *row)
{
	if (row->kind != ROW_NODE) {
		tui_line(lines, style, row_name(row).bytes, row_name(row).length);
		return;
	}
	put_detail_path(lines, style, row);
	put_detail_source(lines, style, row);
	put_launch_shapes(lines, style, row);
	tui_linef(lines, "%s", "");
	put_detail_values(lines, style, row, NULL);
	put_memory_sites(lines, style, row);
}

void tui_details_diff(struct tui_lines *lines, const struct style *style, const struct row *before,
	const struct row *after)
{
	if (!before && !after)
		return;
	put_detail_path(lines, style, after ? after : before);
	tui_linef(lines, "%s", "");
	tui_linef(lines, "  %-22s %-14s  %s", "for the whole run", "before", "after");
	put_detail_values(lines, style, before, after);
	if (before) {
		tui_linef(lines, "%s", "");
		tui_linef(lines, "%s", "before");
		put_launch_shapes(lines, style, before);
	}
	if (after) {
		tui_linef(lines, "%s", "");
		tui_linef(lines, "%s", "after");
		put_launch_shapes(lines, style, after);
	}
}
