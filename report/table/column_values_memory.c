/* SPDX-License-Identifier: MIT
 *
 * Values of columns for memory, in the call tree and in the view `memory`.
 */
#include "report/table/column_values_macros.h"

static const struct memory_pool *row_memory_pool(const struct row *row)
{
	return row->kind == ROW_LEVEL && row->of.level->kind == MEMORY_TENSOR ? &row->of.level->pool
									      : NULL;
}

COLUMN_VALUE_IF(reserved_delta, const struct node_memory *memory = row_memory(row),
	memory && (memory->has_level || memory->reserved_delta),
	integer_cell(memory->reserved_delta))
COLUMN_VALUE_IF(reserved_peak, const struct node_memory *memory = row_memory(row),
	memory && memory->has_level, integer_cell(memory->reserved_peak))

static bool has_flow(const struct node_memory *memory)
{
	return memory->alloc_bytes || memory->free_bytes || memory->allocs || memory->frees;
}

COLUMN_VALUE_IF(alloc_bytes, const struct node_memory *memory = row_memory(row);
		const struct memory_flow *flow = row_memory_flow(row),
		flow || (memory && has_flow(memory)),
		unsigned_cell(flow ? flow->alloc_bytes : memory->alloc_bytes))
COLUMN_VALUE_IF(free_bytes, const struct node_memory *memory = row_memory(row);
		const struct memory_flow *flow = row_memory_flow(row),
		flow || (memory && has_flow(memory)),
		unsigned_cell(flow ? flow->free_bytes : memory->free_bytes))
COLUMN_VALUE_IF(allocs, const struct node_memory *memory = row_memory(row);
		const struct memory_flow *flow = row_memory_flow(row),
		flow || (memory && memory->allocs),
		unsigned_cell(flow ? flow->allocs : memory->allocs))
COLUMN_VALUE_IF(frees, const struct node_memory *memory = row_memory(row);
		const struct memory_flow *flow = row_memory_flow(row),
		flow || (memory && memory->frees),
		unsigned_cell(flow ? flow->frees : memory->frees))
COLUMN_VALUE_IF(failed, const struct node_memory *memory = row_memory(row);
		const struct memory_flow *flow = row_memory_flow(row),
		flow || row->kind == ROW_API || (memory && memory->failed),
		unsigned_cell(flow                   ? flow->failed
			      : row->kind == ROW_API ? row->of.api->failed
						     : memory->failed))
COLUMN_VALUE_IF(held, const struct memory_flow *flow = row_memory_flow(row), flow,
	unsigned_cell(flow->held))
COLUMN_VALUE_IF(held_max, const struct memory_flow *flow = row_memory_flow(row),
	flow && !(row->kind == ROW_SITE && row->of.site->is_several), unsigned_cell(flow->held_max))
COLUMN_VALUE_IF(at_peak, const struct memory_flow *flow = row_memory_flow(row);
		const struct node_tensors *tensors = row_tensors(row),
		flow || (tensors && tensors->total.at_peak),
		unsigned_cell(flow ? flow->at_peak : tensors->total.at_peak))
COLUMN_VALUE_IF(at_oom, const struct memory_level *level = row_memory_level(row);
		const struct node_tensors *tensors = row_tensors(row),
		(level && level->ooms) || (tensors && tensors->total.at_oom),
		unsigned_cell(level ? row_memory_flow(row)->at_oom : tensors->total.at_oom))
COLUMN_VALUE_IF(allocated_delta, const struct node_tensors *tensors = row_tensors(row),
	tensors && (tensors->has_level || tensors->allocated_delta),
	integer_cell(tensors->allocated_delta))
COLUMN_VALUE_IF(allocated_peak, const struct node_tensors *tensors = row_tensors(row),
	tensors && tensors->has_level, integer_cell(tensors->allocated_peak))

static bool has_tensor_flow(const struct node_tensors *tensors)
{
	return tensors->total.alloc_bytes || tensors->total.free_bytes || tensors->allocs ||
	       tensors->frees;
}

COLUMN_VALUE_IF(tensor_alloc_bytes, const struct node_tensors *tensors = row_tensors(row),
	tensors &&has_tensor_flow(tensors), unsigned_cell(tensors->total.alloc_bytes))
COLUMN_VALUE_IF(tensor_free_bytes, const struct node_tensors *tensors = row_tensors(row),
	tensors &&has_tensor_flow(tensors), unsigned_cell(tensors->total.free_bytes))
COLUMN_VALUE_IF(tensor_allocs, const struct node_tensors *tensors = row_tensors(row),
	tensors && tensors->allocs, unsigned_cell(tensors->allocs))
COLUMN_VALUE_IF(tensor_frees, const struct node_tensors *tensors = row_tensors(row),
	tensors && tensors->frees, unsigned_cell(tensors->frees))
ROW_VALUE(peak_time, row->kind == ROW_LEVEL && row->of.level->flow.held_max,
	unsigned_cell(row->of.level->peak_ns))
COLUMN_VALUE_IF(reserved_at_peak, const struct memory_pool *pool = row_memory_pool(row), pool,
	unsigned_cell(pool->reserved_at_peak))
COLUMN_VALUE_IF(unused_at_peak, const struct memory_pool *pool = row_memory_pool(row),
	pool && pool->reserved_at_peak >= pool->peak,
	unsigned_cell(pool->reserved_at_peak - pool->peak))
COLUMN_VALUE_IF(outside_at_peak, const struct memory_pool *pool = row_memory_pool(row),
	pool && pool->outside_at_peak >= 0, integer_cell(pool->outside_at_peak))
COLUMN_VALUE_IF(memory_kind, const struct memory_level *level = row_memory_level(row), level,
	string_cell(memory_kind_name(level->kind)))
ROW_VALUE(stack, row->kind == ROW_SITE && row->of.site->stack,
	((struct cell){ .kind = CELL_FRAMES, .unsigned_value = row->of.site->stack }))
