/* SPDX-License-Identifier: MIT
 *
 * Values of columns that identify a row, or that measure its time and GPU work.
 */
#include "report/table/column_values_macros.h"
#include "report/gpu/occupancy.h"

static bool row_occupancy(const struct row *row, struct occupancy *out)
{
	const struct trace_kernel *shape = row_shape(row);
	const struct trace_device *device = shape ? process_device(row->process, shape->gpu.device)
						  : NULL;

	return device && occupancy_of(device, shape, out);
}

#define LAUNCH_VALUE(name, has, value) \
	COLUMN_VALUE_IF(               \
		name, const struct trace_kernel *shape = row_shape(row), shape && (has), value)

/* A column that only computed rows have. They hold its cell themselves. */
ROW_VALUE(computed, false, no_cell)

ROW_VALUE(id, true, unsigned_cell((uint64_t)(row - rows->rows)))
ROW_VALUE(parent, true, row->parent == NO_ROW ? null_cell : unsigned_cell(row->parent))
ROW_VALUE(depth, true, unsigned_cell(row->depth))
ROW_VALUE(name, true, text_cell(row_name(row)))
ROW_VALUE(label, true, text_cell(row_label(row, false)))

static const char *tree_node_kind(const struct node *node)
{
	return node->kind == NODE_ASYNC ? "range" : node_kind_name(node->kind);
}

COLUMN_VALUE(kind)
{
	switch (row->kind) {
	case ROW_SHAPE:
		return string_cell("kernel");
	case ROW_API:
		return string_cell("api");
	case ROW_PROCESS:
		return string_cell("process");
	case ROW_COMPUTED:
		return no_cell;
	case ROW_LEVEL:
	case ROW_SITE:
		return string_cell("alloc");
	case ROW_DISTRIBUTION:
		return string_cell(distribution_kind_name(row->of.part->kind));
	default:
		return string_cell(tree_node_kind(&row->tree->nodes[row->node]));
	}
}

ROW_VALUE(path, row->tree && row->node, ((struct cell){ .kind = CELL_PATH }))

/* Returns the text, which a node has beside its name, as a cell of the node's row. */
static struct cell node_text_cell(const struct row *row, uint32_t text)
{
	return text && (row->kind == ROW_NODE || row->kind == ROW_INSTANCE)
		       ? text_cell(string_table_get(row->process->texts, text))
		       : no_cell;
}

/* Returns whether the row is of a sampled function, whose domain is its library. */
static bool is_function_row(const struct row *row)
{
	const struct node *node = row_node(row);

	return node && (node->kind == NODE_FUNCTION || node->kind == NODE_PYTHON);
}

ROW_VALUE(domain, row->tree && row->node && !is_function_row(row),
	node_text_cell(row, row->tree->nodes[row->node].domain))
ROW_VALUE(function_module, is_function_row(row),
	node_text_cell(row, row->tree->nodes[row->node].domain))
ROW_VALUE(class, row->tree && row->node, node_text_cell(row, row->tree->nodes[row->node].class))

/* Returns whether the row is of start/end ranges or of the section around them. In the call tree,
 * NODE_ASYNC is the section (profile->async_ranges, 0: none) and its children are the ranges. In
 * `table`, NODE_ASYNC is such a range. */
static bool is_async_row(const struct row *row)
{
	const struct profile *profile = row->process->profile;
	const struct node *node = row_node(row);

	if (!node || !profile->async_ranges)
		return false;
	return node->kind == NODE_ASYNC ||
	       (row->tree == profile->tree && node->parent == profile->async_ranges);
}

COLUMN_VALUE(section)
{
	(void)rows;
	return is_async_row(row) ? string_cell("start/end") : no_cell;
}

/* Returns whether the node is the section of start/end ranges, which is not a range itself and has
 * no calls. */
static bool is_async_section(const struct node *node)
{
	return node->kind == NODE_ASYNC && !node->calls;
}

static bool node_has_calls(const struct tree *tree, const struct node *node)
{
	return !node->is_group && !node->captured && node->kind != NODE_UNATTRIBUTED &&
	       !is_async_section(node) && !(tree->is_grouped && !node->calls);
}

COLUMN_VALUE(calls)
{
	const struct memory_flow *flow = row_memory_flow(row);
	const struct node *node = row_node(row);

	if (node)
		return node_has_calls(row->tree, node) ? unsigned_cell(node->calls) : no_cell;
	if (row->kind == ROW_SHAPE)
		return unsigned_cell(row->of.shape->calls);
	if (row->kind == ROW_API)
		return unsigned_cell(row->of.api->calls);
	if (row->kind == ROW_INSTANCE)
		return unsigned_cell(row->of.instance->times);
	if (row_part(row) && row_part(row)->kind != DISTRIBUTION_OUTLIER)
		return unsigned_cell(row_part(row)->count);
	return flow ? unsigned_cell(flow->allocs) : no_cell;
}

static bool is_range_node(const struct node *node)
{
	return node_kind_class(node->kind) == NODE_RANGES;
}

static bool is_work_node(const struct node *node)
{
	return node_kind_class(node->kind) == NODE_WORK;
}

COLUMN_VALUE(cpu_total)
{
	const struct node *node = row_node(row);

	if (row->kind == ROW_API)
		return unsigned_cell(row->of.api->total_ns);
	return node && !is_work_node(node) && node->kind != NODE_MARK &&
			       (node->calls || node->total_ns)
		       ? unsigned_cell(node->total_ns)
		       : no_cell;
}

/* Start/end ranges overlap and cross threads, so they have no self time on a thread. */
static bool has_self_time(const struct row *row, const struct node *node)
{
	return is_range_node(node) && !is_async_row(row) && (node->calls || node->self_ns);
}

NODE_VALUE(cpu_self, has_self_time(row, node), unsigned_cell(node->self_ns))
NODE_VALUE(cpu_self_share, has_self_time(row, node) && row->process->profile->totals.cpu_self_ns,
	real_cell((double)node->self_ns / (double)row->process->profile->totals.cpu_self_ns))
NODE_VALUE(cpu_self_x, has_self_time(row, node) && node->calls,
	unsigned_cell(node->self_ns > node->call_ns ? node->self_ns - node->call_ns : 0))

COLUMN_VALUE(gpu_total)
{
	const struct node_gpu *gpu = row_gpu(row);

	if (row->kind == ROW_SHAPE)
		return unsigned_cell(row->of.shape->total_ns);
	if (row->kind == ROW_INSTANCE && row->process->metric == METRIC_GPU)
		return unsigned_cell(row->of.instance->gpu_ns);
	return gpu && gpu->total_calls ? unsigned_cell(gpu->total_ns) : no_cell;
}

GPU_VALUE(gpu_self, gpu->total_calls, unsigned_cell(gpu->self_ns))
GPU_VALUE(gpu_self_again, gpu->total_calls, unsigned_cell(gpu->duplicate_ns))
GPU_VALUE(gpu_self_share, gpu->total_calls && row->process->profile->totals.gpu_sum_ns,
	real_cell((double)gpu->self_ns / (double)row->process->profile->totals.gpu_sum_ns))

static struct cell average_cell(const struct row *row, struct cell total)
{
	const struct node *node = row_node(row);
	const uint64_t calls = row->kind == ROW_API      ? row->of.api->calls
			       : node && !node->is_group ? node->calls
							 : 0;

	return total.kind == CELL_UNSIGNED && calls
		       ? unsigned_cell((total.unsigned_value + calls / 2) / calls)
		       : no_cell;
}

ROW_VALUE(cpu_average, true, average_cell(row, column_value_cpu_total(row, rows)))
ROW_VALUE(gpu_average, true, average_cell(row, column_value_gpu_total(row, rows)))
GPU_VALUE(gpu_calls, gpu->total_calls, unsigned_cell(gpu->total_calls))
COLUMN_VALUE_IF(untimed, const struct node_gpu *gpu = row_gpu(row);
		const struct launch_config *kernel = row_kernel(row),
		kernel || (gpu && gpu->untimed),
		unsigned_cell(kernel ? kernel->untimed : gpu->untimed))
GPU_VALUE(copied_bytes, gpu->bytes, unsigned_cell(gpu->bytes))
COLUMN_VALUE_IF(idle, const struct node *node = row_node(row),
	(node && is_range_node(node) && node->calls && row->process->profile->timeline &&
		!row->tree->is_grouped),
	unsigned_cell(node->gpu ? node->gpu->idle_ns : 0))

/* Whether the row is of the tree of a whole trace. Values of parts and of rows grouped by name are
 * incomplete. */
static bool is_in_tree(const struct row *row)
{
	return row->kind == ROW_NODE && row->tree == row->process->profile->tree;
}

#define PHASE_VALUE(name, part)                                                     \
	COLUMN_VALUE_IF(name, const struct node_gpu *gpu = row_gpu(row),            \
		gpu && is_in_tree(row) && row->tree->has_parts && gpu->total_calls, \
		unsigned_cell(gpu->part_ns[part]))
PHASE_VALUE(gpu_forward, PART_FORWARD)
PHASE_VALUE(gpu_backward, PART_BACKWARD)
PHASE_VALUE(gpu_recompute, PART_RECOMPUTE)
PHASE_VALUE(gpu_optimizer, PART_OPTIMIZER)
COLUMN_VALUE_IF(idle_before, const struct node_gpu *gpu = row_gpu(row),
	gpu &&is_in_tree(row) && !row->process->windows &&
		!row->process->profile->options.no_owners_and_delays &&
		(gpu->total_calls || gpu->idle_before_ns),
	unsigned_cell(gpu->idle_before_ns))

static struct cell delay_cell(const struct row *row, unsigned per_mille)
{
	uint64_t value;

	return is_in_tree(row) && launch_delays_percentile(row->tree, row->node, per_mille, &value)
		       ? unsigned_cell(value)
		       : no_cell;
}

ROW_VALUE(delay_p50, true, delay_cell(row, 500))
ROW_VALUE(delay_p95, true, delay_cell(row, 950))

static const struct trace_source *row_source(const struct row *row)
{
	const struct node *node = row_node(row);
	const uint32_t trace_node = row->kind == ROW_INSTANCE ? row->of.instance->trace_node
				    : node                    ? node->longest_trace_node
							      : 0;

	return trace_node ? reader_source(row->process->reader, trace_node) : NULL;
}

COLUMN_VALUE_IF(source, const struct trace_source *source = row_source(row), source,
	((struct cell){ .kind = CELL_SOURCE, .unsigned_value = source->head.node }))

COLUMN_VALUE(device)
{
	const struct memory_level *level = row_memory_level(row);
	const struct trace_kernel *shape = row_shape(row);

	if (level)
		return level->device != UINT32_MAX ? unsigned_cell(level->device) : no_cell;
	return shape ? unsigned_cell(shape->gpu.device) : no_cell;
}

static struct cell triple_cell(const uint32_t *value)
{
	return (struct cell){ .kind = CELL_TRIPLE, .triple = { value[0], value[1], value[2] } };
}

LAUNCH_VALUE(grid, shape->grid[0], triple_cell(shape->grid)) /* grid 0: not in the trace */
LAUNCH_VALUE(block, shape->block[0], triple_cell(shape->block))
LAUNCH_VALUE(shared_bytes, true,
	unsigned_cell((uint64_t)shape->static_shared_bytes + shape->dynamic_shared_bytes))
LAUNCH_VALUE(registers, true, unsigned_cell(shape->registers))
COLUMN_VALUE_IF(
	waves, struct occupancy known, row_occupancy(row, &known), real_cell(known.waves_per_sm))
COLUMN_VALUE_IF(theoretical, struct occupancy known, row_occupancy(row, &known),
	real_cell(known.theoretical))
COLUMN_VALUE_IF(limited_by, struct occupancy known, row_occupancy(row, &known),
	string_cell(occupancy_limit_text(known.limits)))

static bool has_method(const struct row *row)
{
	const struct node *node = row_node(row);

	return node && is_work_node(node) && node->kind != NODE_STREAM &&
	       node->kind != NODE_STACK && node->gpu;
}

COLUMN_VALUE_IF(method, const struct node_gpu *gpu = row_gpu(row), has_method(row),
	string_cell(method_name(gpu->method)))
COLUMN_VALUE_IF(confidence, const struct node_gpu *gpu = row_gpu(row), has_method(row),
	string_cell(method_confidence(gpu->method)))

COLUMN_VALUE(provenance)
{
	const struct node_gpu *gpu = row_gpu(row);
	const bool of_gpu = row->kind == ROW_SHAPE || row->kind == ROW_LEVEL ||
			    row->kind == ROW_SITE || row->kind == ROW_INSTANCE ||
			    row->kind == ROW_COMPUTED ||
			    (row_part(row) && row_part(row)->of->of_gpu) || row_memory(row) ||
			    row_tensors(row) || (gpu && (gpu->total_calls || gpu->idle_ns));

	if (of_gpu && row->process->simulated)
		return string_cell("simulated");
	return row_node(row) && row_node(row)->is_counted ? string_cell("counted") : no_cell;
}

NODE_VALUE(labels, row_labels(node) > 1, unsigned_cell(row_labels(node)))
NODE_VALUE(left_open, node->left_open, ((struct cell){ .kind = CELL_BOOL, .boolean = true }))

NODE_VALUE(elsewhere, node->ran_elsewhere, ((struct cell){ .kind = CELL_BOOL, .boolean = true }))

/* Returns the instance at the root of the row's tree. */
static const struct instance *root_instance(const struct row *row, const struct rows *rows)
{
	if (!row->process->instance_count)
		return row->process->critical->target;
	while (row->parent != NO_ROW && rows->rows[row->parent].kind == ROW_INSTANCE)
		row = &rows->rows[row->parent];
	return row->of.instance;
}

static struct cell ratio_cell(long double part, long double whole)
{
	return whole > 0 ? real_cell((double)(part / whole)) : no_cell;
}

static struct cell shape_share(const struct row *row)
{
	const double whole = (double)row->process->gpu_ns;

	return whole > 0 ? real_cell((double)row->of.shape->total_ns / whole) : no_cell;
}

static struct cell instance_share(const struct row *row, const struct rows *rows, long double base)
{
	const struct instance *root = root_instance(row, rows);

	/* A single row, which is an instance of its node. */
	if (row->tree == row->process->profile->tree && row->process->instance_count)
		return ratio_cell(row->of.instance->value, base);
	return real_cell(root->value != 0 ? (double)(row->of.instance->value / root->value) : 0);
}

/* Returns the outermost node around a row's node; 0: the row has no node of the call tree. */
static uint32_t outermost_node(const struct row *row, const struct rows *rows)
{
	const struct tree *tree = row->process->profile->tree;
	uint32_t node = 0;

	assert(tree);
	if (row->kind == ROW_NODE && row->tree == tree)
		node = row->node;
	else if (row->kind == ROW_NODE && row->tree == row->process->extra_rows &&
		 row->parent != NO_ROW)
		node = rows->rows[row->parent].node;
	while (node && tree->nodes[node].parent)
		node = tree->nodes[node].parent;
	return node;
}

/* Returns what a row has of the metric. */
static struct cell metric_cell(const struct row *row, const struct rows *rows)
{
	switch (row->process->metric) {
	case METRIC_GPU:
		return column_value_gpu_total(row, rows);
	case METRIC_CPU:
	case METRIC_WALL:
		return column_value_cpu_total(row, rows);
	case METRIC_ALLOC:
		return column_value_alloc_bytes(row, rows);
	case METRIC_TENSORS:
		return column_value_tensor_alloc_bytes(row, rows);
	case METRIC_CALLS:
		return row_node(row) ? unsigned_cell(row_node(row)->calls) : no_cell;
	default:
		return no_cell;
	}
}

/* Returns the whole of which rows are parts. Rows that add up nodes by name or key are parts of
 * all CPU time, because they do not keep steps apart from the time outside of steps. */
static long double whole_of_row(const struct row *row, bool of_cpu)
{
	const struct profile_totals *totals = &row->process->profile->totals;
	const bool is_flat = row->tree ? row->tree == row->process->flat : row->kind == ROW_API;

	if (!of_cpu || !is_flat)
		return row->process->whole;
	return (long double)totals->cpu_self_ns +
	       (row->tree && row->tree->is_grouped ? 0 : totals->outside_call_ns);
}

/* Returns whether CPU time at `outermost`, a root, is outside of the whole. */
static bool is_outside_whole(const struct node *outermost)
{
	return outermost->outside || outermost->kind == NODE_UNATTRIBUTED;
}

long double row_share_whole(const struct row *row)
{
	const enum metric metric = row->process->metric;

	return row->kind == ROW_SHAPE
		       ? (long double)row->process->gpu_ns
		       : whole_of_row(row, metric == METRIC_CPU || metric == METRIC_WALL);
}

COLUMN_VALUE(share)
{
	const struct profile *profile = row->process->profile;
	const bool of_cpu = row->process->metric == METRIC_CPU ||
			    row->process->metric == METRIC_WALL;
	const long double base = whole_of_row(row, of_cpu);
	const uint32_t outermost = outermost_node(row, rows);
	struct cell part;
	long double number;

	if (row_part(row))
		return real_cell((double)row_part(row)->count / (double)row_part(row)->of->count);
	if (row->kind == ROW_INSTANCE && !metric_is_level(row))
		return instance_share(row, rows, base);
	if (outermost && of_cpu && is_outside_whole(&profile->tree->nodes[outermost]))
		return no_cell;
	if (is_async_row(row)) /* they overlap, so they are no parts of a whole */
		return no_cell;
	if (row->kind == ROW_SHAPE)
		return shape_share(row);
	part = metric_cell(row, rows);
	/* Ranges of imported files may overlap on one thread, and a range has more calls inside it
	 * than the roots, which are the whole. What is more than the whole is no part of it. */
	if (!cell_number(&part, &number) || number > base)
		return no_cell;
	return ratio_cell(number, base);
}

ROW_VALUE(pid, row->kind == ROW_PROCESS, unsigned_cell(row->process->pid))
ROW_VALUE(
	rank, row->kind == ROW_PROCESS && row->process->rank >= 0, integer_cell(row->process->rank))
