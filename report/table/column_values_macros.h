/* SPDX-License-Identifier: MIT
 *
 * Macros and helpers for the functions of columns. Only column_values*.c include this header.
 */
#ifndef PPERF_REPORT_TABLE_COLUMN_VALUES_MACROS_H
#define PPERF_REPORT_TABLE_COLUMN_VALUES_MACROS_H

#include "report/analysis/duration_distribution.h"
#include "report/table/column_values.h"
#include <assert.h>
#include <string.h>

static const struct cell no_cell, null_cell = { .kind = CELL_NULL };

static inline struct cell integer_cell(int64_t value)
{
	return (struct cell){ .kind = CELL_INTEGER, .integer = value };
}

static inline struct cell unsigned_cell(uint64_t value)
{
	return (struct cell){ .kind = CELL_UNSIGNED, .unsigned_value = value };
}

static inline struct cell real_cell(double value)
{
	return (struct cell){ .kind = CELL_REAL, .real = value };
}

static inline struct cell text_cell(struct string_view value)
{
	return (struct cell){ .kind = CELL_TEXT, .text = value };
}

static inline struct cell string_cell(const char *value)
{
	return text_cell((struct string_view){ .bytes = value, .length = (uint32_t)strlen(value) });
}

/* A value that may not be an integer, because it is of the program's own counter. */
static inline struct cell number_cell(long double value)
{
	return value >= -9e18L && value <= 9e18L && value == (long double)(int64_t)value
		       ? integer_cell((int64_t)value)
		       : real_cell((double)value);
}

static inline const struct node *row_node(const struct row *row)
{
	assert(row->kind != ROW_NODE || row->tree);
	return row->kind == ROW_NODE ? &row->tree->nodes[row->node] : NULL;
}

static inline const struct node_gpu *row_gpu(const struct row *row)
{
	const struct node *node = row_node(row);

	return node ? node->gpu : NULL;
}

static inline const struct node_memory *row_memory(const struct row *row)
{
	const struct node *node = row_node(row);

	return node ? node->memory : NULL;
}

static inline const struct node_tensors *row_tensors(const struct row *row)
{
	const struct node *node = row_node(row);

	return node ? node->tensors : NULL;
}

static inline const struct memory_flow *row_memory_flow(const struct row *row)
{
	return row->kind == ROW_LEVEL  ? &row->of.level->flow
	       : row->kind == ROW_SITE ? &row->of.site->flow
				       : NULL;
}

static inline const struct memory_level *row_memory_level(const struct row *row)
{
	return row->kind == ROW_LEVEL  ? row->of.level
	       : row->kind == ROW_SITE ? &row->process->profile->memory->levels[row->of.site->level]
				       : NULL;
}

static inline const struct launch_config *row_kernel(const struct row *row)
{
	return row->kind == ROW_SHAPE ? row->of.shape : NULL;
}

/* Returns the row of a distribution; its `of` is the distribution. */
static inline const struct distribution_row *row_part(const struct row *row)
{
	return row->kind == ROW_DISTRIBUTION ? row->of.part : NULL;
}

static inline bool metric_is_level(const struct row *row)
{
	return metrics[row->process->metric].nature == METRIC_LEVEL;
}

#define UNUSED __attribute__((unused))
#define COLUMN_VALUE(name)               \
	struct cell column_value_##name( \
		const struct row *row UNUSED, const struct rows *rows UNUSED)
/* These define a column that has a value where `has` is true. */
#define ROW_VALUE(name, has, value)             \
	COLUMN_VALUE(name)                      \
	{                                       \
		return (has) ? value : no_cell; \
	}
#define COLUMN_VALUE_IF(name, setup, has, value) \
	COLUMN_VALUE(name)                       \
	{                                        \
		setup;                           \
		return (has) ? value : no_cell;  \
	}
#define NODE_VALUE(name, has, value) \
	COLUMN_VALUE_IF(name, const struct node *node = row_node(row), node && (has), value)
#define GPU_VALUE(name, has, value) \
	COLUMN_VALUE_IF(name, const struct node_gpu *gpu = row_gpu(row), gpu && (has), value)

#endif
