/* SPDX-License-Identifier: MIT
 * figure_cells.h: what the functions of figures.h are made with. For figures.c, figures_memory.c and figures_spread.c alone.
 */
#ifndef PPERF_REPORT_TABLE_COLUMN_VALUES_MACROS_H
#define PPERF_REPORT_TABLE_COLUMN_VALUES_MACROS_H

#include "report/analysis/duration_distribution.h"
#include "report/table/column_values.h"
#include <string.h>

static const struct cell none, unknown = { .kind = CELL_NULL };

static inline struct cell whole(int64_t value)
{
	return (struct cell){ .kind = CELL_WHOLE, .whole = value };
}

static inline struct cell count(uint64_t value)
{
	return (struct cell){ .kind = CELL_UNSIGNED, .number = value };
}

static inline struct cell real(double value)
{
	return (struct cell){ .kind = CELL_REAL, .real = value };
}

static inline struct cell text(struct text value)
{
	return (struct cell){ .kind = CELL_TEXT, .text = value };
}

static inline struct cell words(const char *value)
{
	return text((struct text){ .bytes = value, .length = (uint32_t)strlen(value) });
}

/* A figure that may be no integer: of a program's own counter. */
static inline struct cell level(long double value)
{
	return value >= -9e18L && value <= 9e18L && value == (long double)(int64_t)value ? whole((int64_t)value)
											 : real((double)value);
}

static inline const struct node *node_of(const struct row *row)
{
	return row->kind == ROW_NODE ? &row->tree->nodes[row->node] : NULL;
}

static inline const struct node_gpu *gpu_of(const struct row *row)
{
	const struct node *node = node_of(row);

	return node ? node->gpu : NULL;
}

static inline const struct node_memory *memory_of(const struct row *row)
{
	const struct node *node = node_of(row);

	return node ? node->memory : NULL;
}

static inline const struct node_tensors *tensors_of(const struct row *row)
{
	const struct node *node = node_of(row);

	return node ? node->tensors : NULL;
}

static inline const struct memory_flow *flow_of(const struct row *row)
{
	return row->kind == ROW_LEVEL ? &row->of.level->flow : row->kind == ROW_SITE ? &row->of.site->flow : NULL;
}

static inline const struct memory_level *level_of(const struct row *row)
{
	return row->kind == ROW_LEVEL  ? row->of.level
	       : row->kind == ROW_SITE ? &row->process->fold->memory->levels[row->of.site->level]
				       : NULL;
}

static inline const struct kernel *kernel_of(const struct row *row)
{
	return row->kind == ROW_SHAPE ? row->of.shape : NULL;
}

/* Of a row of a distribution; of: the whole, if the row is of that. */
static inline const struct distribution_part *part_of(const struct row *row)
{
	return row->kind == ROW_PART ? row->of.part : NULL;
}

static inline bool has_levels(const struct row *row)
{
	return metrics[row->process->metric].nature == METRIC_LEVEL;
}

#define VALUE(name) struct cell figure_##name(const struct row *row, const struct rows *rows)
/* One that only needs its row, and has a value where `has` holds. */
#define FIGURE(name, setup, has, value)      \
	VALUE(name)                          \
	{                                    \
		setup;                       \
		(void)rows;                  \
		return (has) ? value : none; \
	}
#define OF_NODE(name, has, value) FIGURE(name, const struct node *node = node_of(row), node && (has), value)
#define OF_GPU(name, has, value) FIGURE(name, const struct node_gpu *gpu = gpu_of(row), gpu && (has), value)

#endif
