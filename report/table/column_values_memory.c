/* SPDX-License-Identifier: MIT
 * figures_memory.c: the values of columns of memory, of places and of the view `memory`.
 */
#include "report/table/column_values_macros.h"

static const struct memory_pool *pool_of(const struct row *row)
{
	return row->kind == ROW_LEVEL && row->of.level->kind == MEMORY_TENSOR ? &row->of.level->pool : NULL;
}

FIGURE(reserved_delta, const struct node_memory *memory = memory_of(row),
	memory && (memory->has_level || memory->reserved_delta), whole(memory->reserved_delta))
FIGURE(reserved_peak, const struct node_memory *memory = memory_of(row), memory && memory->has_level,
	whole(memory->reserved_peak))

static bool has_flow(const struct node_memory *memory)
{
	return memory->alloc_bytes || memory->free_bytes || memory->allocs || memory->frees;
}

FIGURE(alloc_bytes, const struct node_memory *memory = memory_of(row); const struct memory_flow *flow = flow_of(row),
	flow || (memory && has_flow(memory)), count(flow ? flow->alloc_bytes : memory->alloc_bytes))
FIGURE(free_bytes, const struct node_memory *memory = memory_of(row); const struct memory_flow *flow = flow_of(row),
	flow || (memory && has_flow(memory)), count(flow ? flow->free_bytes : memory->free_bytes))
FIGURE(allocs, const struct node_memory *memory = memory_of(row); const struct memory_flow *flow = flow_of(row),
	flow || (memory && memory->allocs), count(flow ? flow->allocs : memory->allocs))
FIGURE(frees, const struct node_memory *memory = memory_of(row); const struct memory_flow *flow = flow_of(row),
	flow || (memory && memory->frees), count(flow ? flow->frees : memory->frees))
FIGURE(failed, const struct node_memory *memory = memory_of(row); const struct memory_flow *flow = flow_of(row),
	flow || row->kind == ROW_API || (memory && memory->failed),
	count(flow                     ? flow->failed
		: row->kind == ROW_API ? row->of.api->failed
				       : memory->failed))
FIGURE(held, const struct memory_flow *flow = flow_of(row), flow, count(flow->held))
FIGURE(most_held, const struct memory_flow *flow = flow_of(row), flow && !(row->kind == ROW_SITE && row->of.site->is_several), count(flow->most))
FIGURE(at_peak, const struct memory_flow *flow = flow_of(row); const struct node_tensors *tensors = tensors_of(row),
	flow || (tensors && tensors->total.at_peak), count(flow ? flow->at_peak : tensors->total.at_peak))
FIGURE(at_oom, const struct memory_level *level = level_of(row); const struct node_tensors *tensors = tensors_of(row),
	(level && level->ooms) || (tensors && tensors->total.at_oom),
	count(level ? flow_of(row)->at_oom : tensors->total.at_oom))
FIGURE(allocated_delta, const struct node_tensors *tensors = tensors_of(row),
	tensors && (tensors->has_level || tensors->allocated_delta), whole(tensors->allocated_delta))
FIGURE(allocated_peak, const struct node_tensors *tensors = tensors_of(row), tensors && tensors->has_level,
	whole(tensors->allocated_peak))

static bool has_tensor_flow(const struct node_tensors *tensors)
{
	return tensors->total.alloc_bytes || tensors->total.free_bytes || tensors->allocs || tensors->frees;
}

FIGURE(tensor_alloc_bytes, const struct node_tensors *tensors = tensors_of(row), tensors && has_tensor_flow(tensors),
	count(tensors->total.alloc_bytes))
FIGURE(tensor_free_bytes, const struct node_tensors *tensors = tensors_of(row), tensors && has_tensor_flow(tensors),
	count(tensors->total.free_bytes))
FIGURE(tensor_allocs, const struct node_tensors *tensors = tensors_of(row), tensors && tensors->allocs,
	count(tensors->allocs))
FIGURE(tensor_frees, const struct node_tensors *tensors = tensors_of(row), tensors && tensors->frees,
	count(tensors->frees))
FIGURE(reserved_at_peak, const struct memory_pool *pool = pool_of(row), pool, count(pool->reserved_at_peak))
FIGURE(unused_at_peak, const struct memory_pool *pool = pool_of(row), pool && pool->reserved_at_peak >= pool->peak,
	count(pool->reserved_at_peak - pool->peak))
FIGURE(outside_at_peak, const struct memory_pool *pool = pool_of(row), pool && pool->outside_at_peak >= 0,
	whole(pool->outside_at_peak))
FIGURE(memory_kind, const struct memory_level *level = level_of(row), level, words(memory_kind_name(level->kind)))
FIGURE(stack, (void)row, row->kind == ROW_SITE && row->of.site->stack,
	((struct cell){ .kind = CELL_FRAMES, .number = row->of.site->stack }))
