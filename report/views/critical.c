/* SPDX-License-Identifier: MIT
 *
 * Arranges the critical tree: an instance and the instances inside it that were kept.
 */
#include "report/views/critical_stayed.h"
#include "report/views/views.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/table/view.h"
#include <stdlib.h>

void arrange_instance(const struct options *options, struct process *process, struct rows *rows,
	const struct tree *tree, const struct instance *root)
{
	struct row *stack = NULL, row = { .process = process,
		.kind = ROW_INSTANCE,
		.parent = NO_ROW,
		.node = root->node,
		.tree = tree,
		.of.instance = root };
	size_t count = 0, room = 0;

	for (;;) {
		const size_t first = count;
		uint32_t index = 0;

		rows_add(rows, &row);
		row.parent = (uint32_t)rows->count - 1;
		row.depth++;
		for (const struct instance *kid = row.of.instance->children; kid;
			kid = kid->next, index++) {
			const bool deep = row.depth >= options->depth || row.depth > TREE_DEPTH_MAX;

			if (deep || index >= view_top(options)) {
				*(deep ? &rows->hidden_by_depth : &rows->hidden_by_top) += 1;
				continue;
			}
			ARRAY_GROW(stack, room, count + 1);
			stack[count] = row;
			stack[count].node = kid->node;
			stack[count++].of.instance = kid;
		}
		for (size_t low = first, high = count; low + 1 < high;
			low++) { /* The reversed entries are popped in the order of the children. */
			const struct row swap = stack[low];

			stack[low] = stack[--high];
			stack[high] = swap;
		}
		if (!count)
			break;
		row = stack[--count];
	}
	free(stack);
}

void arrange_critical(const struct options *options, struct processes *processes, struct rows *rows)
{
	for (size_t i = 0; i < processes->shown; i++) {
		const struct instance *root = process_critical(&processes->all[i]);

		if (!root)
			continue;
		arrange_instance(
			options, &processes->all[i], rows, processes->all[i].critical->tree, root);
		if (options->format != FORMAT_TEXT)
			critical_add_stayed_row(options, &processes->all[i], rows);
	}
}

struct row_size {
	long double size;
	uint32_t row;
};

/* The largest value first. */
COMPARE_BY_LARGEST(by_row_size, struct row_size, size, row)

void critical_keep_largest(struct rows *rows, size_t most)
{
	struct row_size *order = xcalloc((rows->count + 1) * sizeof *order);
	/* by row: its new position + 1; 0: left out */
	uint32_t *positions = xcalloc((rows->count + 1) * sizeof *positions);
	size_t taken = 0, count = 0;

	for (size_t i = 0; i < rows->count; i++) {
		const long double value = rows->rows[i].of.instance->value;

		order[i] = (struct row_size){ .size = value < 0 ? -value : value,
			.row = (uint32_t)i };
	}
	qsort(order, rows->count, sizeof *order, by_row_size);
	for (size_t i = 0; i < rows->count && taken < most; i++) {
		const uint32_t row = order[i].row, parent = rows->rows[row].parent;

		positions[row] = parent == NO_ROW || positions[parent];
		taken += positions[row];
	}
	for (size_t i = 0; i < rows->count; i++) {
		if (!positions[i])
			continue;
		rows->rows[count] = rows->rows[i];
		if (rows->rows[i].parent != NO_ROW)
			rows->rows[count].parent = positions[rows->rows[i].parent] - 1;
		positions[i] = (uint32_t)++count;
	}
	rows->hidden_by_top += rows->count - count;
	rows->count = count;
	free(order);
	free(positions);
}
