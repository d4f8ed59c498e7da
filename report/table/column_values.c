/* SPDX-License-Identifier: MIT
 * figures.c: the values of columns: what a row is, its time and its work. Of memory: figures_memory.c; of how durations are
 * spread, and of instances: figures_spread.c.
 */
#include "report/table/column_values_macros.h"
#include "report/profile/launch_delays.h"
#include "report/gpu/occupancy.h"

static bool occupancy(const struct row *row, struct occupancy *out)
{
	const struct trace_kernel *shape = row_shape(row);
	const struct trace_device *device = shape ? process_device(row->process, shape->gpu.device) : NULL;

	return device && occupancy_of(device, shape, out);
}

#define OF_SHAPE(name, has, value) \
	FIGURE(name, const struct trace_kernel *shape = row_shape(row), shape && (has), value)

/* Of a tally only (tally.h), which has it itself. */
VALUE(reckoned)
{
	(void)row;
	(void)rows;
	return none;
}

VALUE(id)
{
	return count((uint64_t)(row - rows->rows));
}

VALUE(parent)
{
	(void)rows;
	return row->parent == NO_ROW ? unknown : count(row->parent);
}

FIGURE(depth, (void)row, true, count(row->depth))

FIGURE(name, (void)row, true, text(row_name(row)))
FIGURE(label, (void)row, true, text(row_label(row, false)))

VALUE(kind)
{
	(void)rows;
	switch (row->kind) {
	case ROW_SHAPE:
		return words("kernel");
	case ROW_API:
		return words("api");
	case ROW_PROCESS:
		return words("process");
	case ROW_TALLY:
		return none;
	case ROW_LEVEL:
	case ROW_SITE:
		return words("alloc");
	case ROW_PART:
		return words(distribution_kind_name(row->of.part->kind));
	default:
		return words(row->tree->nodes[row->node].kind == NODE_SPANS
				     ? "range"
				     : node_kind_name(row->tree->nodes[row->node].kind));
	}
}

FIGURE(path, (void)row, row->tree && row->node, ((struct cell){ .kind = CELL_PATH }))

VALUE(domain)
{
	const uint32_t domain = row->tree && row->node ? row->tree->nodes[row->node].domain : 0;

	(void)rows;
	return domain && (row->kind == ROW_NODE || row->kind == ROW_INSTANCE)
		       ? text(text_of(row->process->texts, domain))
		       : none;
}

VALUE(class)
{
	const uint32_t class = row->tree && row->node ? row->tree->nodes[row->node].class : 0;

	(void)rows;
	return class && (row->kind == ROW_NODE || row->kind == ROW_INSTANCE) ? text(text_of(row->process->texts, class))
									    : none;
}

VALUE(section)
{
	const struct fold *fold = row->process->fold;
	const struct node *node = node_of(row);

	(void)rows;
	return node && row->tree == fold->tree && fold->spans &&
			       (row->node == fold->spans || node->parent == fold->spans)
		       ? words("start/end")
		       : none;
}

VALUE(calls)
{
	const struct memory_flow *flow = flow_of(row);

	(void)rows;
	if (row->kind == ROW_NODE)
		return row->tree->nodes[row->node].is_group || row->tree->nodes[row->node].captured ||
				       row->tree->nodes[row->node].kind == NODE_UNATTRIBUTED ||
				       row->tree->nodes[row->node].kind == NODE_SPANS ||
				       (row->tree->is_keyed && !row->tree->nodes[row->node].calls)
			       ? none
			       : count(row->tree->nodes[row->node].calls);
	if (row->kind == ROW_SHAPE)
		return count(row->of.shape->calls);
	if (row->kind == ROW_API)
		return count(row->of.api->calls);
	if (row->kind == ROW_INSTANCE)
		return count(row->of.instance->times);
	if (part_of(row) && part_of(row)->kind != DISTRIBUTION_OUTLIER)
		return count(part_of(row)->count);
	return flow ? count(flow->allocs) : none;
}

static bool is_ranges(const struct node *node)
{
	return node_kind_class(node->kind) == NODE_RANGES;
}

static bool is_work(const struct node *node)
{
	return node_kind_class(node->kind) == NODE_WORK;
}

VALUE(cpu_total)
{
	const struct node *node = node_of(row);

	(void)rows;
	if (row->kind == ROW_API)
		return count(row->of.api->total_ns);
	return node && !is_work(node) && node->kind != NODE_MARK && (node->calls || node->total_ns)
		       ? count(node->total_ns)
		       : none;
}

/* Ranges that overlap and cross threads have no time of a thread for themselves. */
static bool has_self(const struct node *node)
{
	return is_ranges(node) && node->kind != NODE_SPANS && (node->calls || node->self_ns);
}

OF_NODE(cpu_self, has_self(node), count(node->self_ns))
OF_NODE(cpu_self_share, has_self(node) && row->process->fold->totals.cpu_self_ns,
	real((double)node->self_ns / (double)row->process->fold->totals.cpu_self_ns))
OF_NODE(cpu_self_x, is_ranges(node) && node->calls,
	count(node->self_ns > node->call_ns ? node->self_ns - node->call_ns : 0))

VALUE(gpu_total)
{
	const struct node_gpu *gpu = gpu_of(row);

	(void)rows;
	if (row->kind == ROW_SHAPE)
		return count(row->of.shape->total_ns);
	if (row->kind == ROW_INSTANCE && row->process->metric == METRIC_GPU)
		return count(row->of.instance->gpu_ns);
	return gpu && gpu->total_calls ? count(gpu->total_ns) : none;
}

OF_GPU(gpu_self, gpu->total_calls, count(gpu->self_ns))
OF_GPU(gpu_self_again, gpu->total_calls, count(gpu->again_ns))
OF_GPU(gpu_self_share, gpu->total_calls && row->process->fold->totals.gpu_sum_ns,
	real((double)gpu->self_ns / (double)row->process->fold->totals.gpu_sum_ns))

static struct cell average(const struct row *row, struct cell total)
{
	const struct node *node = node_of(row);
	const uint64_t calls = row->kind == ROW_API ? row->of.api->calls : node && !node->is_group ? node->calls : 0;

	return total.kind == CELL_UNSIGNED && calls ? count((total.number + calls / 2) / calls) : none;
}

FIGURE(cpu_average, (void)row, true, average(row, figure_cpu_total(row, rows)))
FIGURE(gpu_average, (void)row, true, average(row, figure_gpu_total(row, rows)))
OF_GPU(gpu_calls, gpu->total_calls, count(gpu->total_calls))
FIGURE(untimed, const struct node_gpu *gpu = gpu_of(row); const struct kernel *kernel = kernel_of(row),
	kernel || (gpu && gpu->untimed), count(kernel ? kernel->untimed : gpu->untimed))
OF_GPU(copied_bytes, gpu->bytes, count(gpu->bytes))
FIGURE(idle, const struct node *node = node_of(row),
	(node && is_ranges(node) && node->calls && row->process->fold->timeline && !row->tree->is_keyed),
	count(node->gpu ? node->gpu->idle_ns : 0))

/* Of the tree of a whole trace: not of parts, where some of it is not known, nor of what is put together by name. */
static bool in_tree(const struct row *row)
{
	return row->kind == ROW_NODE && row->tree == row->process->fold->tree;
}

#define OF_PART(name, part)                                                                              \
	FIGURE(name, const struct node_gpu *gpu = gpu_of(row),                                           \
		gpu && in_tree(row) && row->tree->has_parts && gpu->total_calls, count(gpu->part_ns[part]))
OF_PART(gpu_forward, PART_FORWARD)
OF_PART(gpu_backward, PART_BACKWARD)
OF_PART(gpu_recompute, PART_RECOMPUTE)
OF_PART(gpu_optimizer, PART_OPTIMIZER)
FIGURE(idle_before, const struct node_gpu *gpu = gpu_of(row),
	gpu && in_tree(row) && !row->process->windows && !row->process->fold->options.no_owners && (gpu->total_calls || gpu->idle_before_ns), count(gpu->idle_before_ns))

static struct cell delay(const struct row *row, unsigned per_mille)
{
	uint64_t value;

	return in_tree(row) && delays_percentile(row->tree, row->node, per_mille, &value) ? count(value) : none;
}

VALUE(delay_p50)
{
	(void)rows;
	return delay(row, 500);
}

VALUE(delay_p95)
{
	(void)rows;
	return delay(row, 950);
}

static const struct trace_source *source_of(const struct row *row)
{
	const struct node *node = node_of(row);
	const uint32_t place = row->kind == ROW_INSTANCE ? row->of.instance->place : node ? node->longest_place : 0;

	return place ? reader_source(row->process->reader, place) : NULL;
}

FIGURE(source, const struct trace_source *source = source_of(row), source,
	((struct cell){ .kind = CELL_SOURCE, .number = source->head.node }))

VALUE(device)
{
	const struct memory_level *level = level_of(row);
	const struct trace_kernel *shape = row_shape(row);

	(void)rows;
	if (level)
		return level->device != UINT32_MAX ? count(level->device) : none;
	return shape ? count(shape->gpu.device) : none;
}

static struct cell triple(const uint32_t *value)
{
	return (struct cell){ .kind = CELL_TRIPLE, .triple = { value[0], value[1], value[2] } };
}

OF_SHAPE(grid, shape->grid[0], triple(shape->grid)) /* 0: the trace does not say */
OF_SHAPE(block, shape->block[0], triple(shape->block))
OF_SHAPE(shared_bytes, true, count((uint64_t)shape->static_shared_bytes + shape->dynamic_shared_bytes))
OF_SHAPE(registers, true, count(shape->registers))
FIGURE(waves, struct occupancy known, occupancy(row, &known), real(known.waves_per_sm))
FIGURE(theoretical, struct occupancy known, occupancy(row, &known), real(known.theoretical))
FIGURE(limited_by, struct occupancy known, occupancy(row, &known), words(occupancy_limit_text(known.limits)))

static bool has_method(const struct row *row)
{
	const struct node *node = node_of(row);

	return node && is_work(node) && node->kind != NODE_STREAM && node->kind != NODE_STACK && node->gpu;
}

FIGURE(method, const struct node_gpu *gpu = gpu_of(row), has_method(row), words(method_name(gpu->method)))
FIGURE(confidence, const struct node_gpu *gpu = gpu_of(row), has_method(row), words(method_confidence(gpu->method)))

VALUE(provenance)
{
	const struct node_gpu *gpu = gpu_of(row);
	const bool of_gpu = row->kind == ROW_SHAPE || row->kind == ROW_LEVEL || row->kind == ROW_SITE ||
			    row->kind == ROW_INSTANCE || row->kind == ROW_TALLY || (part_of(row) && part_of(row)->of->of_gpu) || memory_of(row) || tensors_of(row) || (gpu && (gpu->total_calls || gpu->idle_ns));

	(void)rows;
	if (of_gpu && row->process->simulated)
		return words("simulated");
	return node_of(row) && node_of(row)->is_counted ? words("counted") : none;
}

OF_NODE(labels, row_labels(node) > 1, count(row_labels(node)))
OF_NODE(left_open, node->left_open, ((struct cell){ .kind = CELL_BOOL, .truth = true }))

OF_NODE(elsewhere, node->elsewhere, ((struct cell){ .kind = CELL_BOOL, .truth = true }))

/* The instance that its tree is of. */
static const struct instance *root_of(const struct row *row, const struct rows *rows)
{
	if (!row->process->instance_count)
		return row->process->critical->target;
	while (row->parent != NO_ROW && rows->rows[row->parent].kind == ROW_INSTANCE)
		row = &rows->rows[row->parent];
	return row->of.instance;
}

VALUE(share)
{
	const enum metric metric = row->process->metric;
	const struct node *node = node_of(row);
	const struct fold *fold = row->process->fold;
	const bool is_keyed = row->tree && row->tree->is_keyed && (metric == METRIC_CPU || metric == METRIC_WALL);
	const long double base = is_keyed ? fold->totals.cpu_self_ns : row->process->whole;
	const struct tree *tree = fold->tree;
	uint32_t outermost = 0;
	struct cell part = none;
	long double number;

	if (part_of(row))
		return real((double)part_of(row)->count / (double)part_of(row)->of->count);
	if (row->kind == ROW_INSTANCE && !has_levels(row)) {
		const struct instance *root = root_of(row, rows);

		if (row->tree == tree && row->process->instance_count) /* a row alone, which is its place's instance */
			return base > 0 ? real((double)(row->of.instance->value / base)) : none;
		return real(root->value != 0 ? (double)(row->of.instance->value / root->value) : 0);
	}
	if (row->kind == ROW_NODE && row->tree == tree)
		outermost = row->node;
	else if (row->kind == ROW_NODE && row->tree == row->process->asides && row->parent != NO_ROW)
		outermost = rows->rows[row->parent].node;
	while (outermost && tree->nodes[outermost].parent)
		outermost = tree->nodes[outermost].parent;
	if (outermost && tree->nodes[outermost].outside && (metric == METRIC_CPU || metric == METRIC_WALL))
		return none;
	if (metric == METRIC_GPU || row->kind == ROW_SHAPE)
		part = figure_gpu_total(row, rows);
	else if (metric == METRIC_CPU || metric == METRIC_WALL)
		part = figure_cpu_total(row, rows);
	else if (metric == METRIC_ALLOC)
		part = figure_alloc_bytes(row, rows);
	else if (metric == METRIC_TENSORS)
		part = figure_tensor_alloc_bytes(row, rows);
	else if (metric == METRIC_CALLS && node)
		part = count(node->calls);
	if (row->kind == ROW_SHAPE)
		return row->process->gpu_ns ? real((double)row->of.shape->total_ns / (double)row->process->gpu_ns)
					    : none;
	return base > 0 && cell_number(&part, &number) ? real((double)(number / base)) : none;
}

VALUE(pid)
{
	(void)rows;
	return row->kind == ROW_PROCESS ? count(row->process->pid) : none;
}

VALUE(rank)
{
	(void)rows;
	return row->kind == ROW_PROCESS && row->process->rank >= 0 ? whole(row->process->rank) : none;
}
