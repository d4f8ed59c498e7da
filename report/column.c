/* SPDX-License-Identifier: MIT */
#include "report/column.h"
#include "report/occupancy.h"
#include <stdio.h>
#include <string.h>

static const struct cell none;

static struct cell whole(int64_t value)
{
	return (struct cell){ .kind = CELL_WHOLE, .whole = value };
}

static struct cell count(uint64_t value)
{
	return (struct cell){ .kind = CELL_UNSIGNED, .number = value };
}

static struct cell real(double value)
{
	return (struct cell){ .kind = CELL_REAL, .real = value };
}

static struct cell text(struct text value)
{
	return (struct cell){ .kind = CELL_TEXT, .text = value };
}

static struct cell words(const char *value)
{
	return text((struct text){ .bytes = value, .length = (uint32_t)strlen(value) });
}

/* A figure that may be no integer: of a program's own counter. */
static struct cell figure(long double value)
{
	return value >= -9e18L && value <= 9e18L && value == (long double)(int64_t)value ? whole((int64_t)value)
											 : real((double)value);
}

static const struct node *node_of(const struct row *row)
{
	return row->kind == ROW_NODE ? &row->tree->nodes[row->node] : NULL;
}

static const struct node_gpu *gpu_of(const struct row *row)
{
	const struct node *node = node_of(row);

	return node ? node->gpu : NULL;
}

static const struct node_memory *memory_of(const struct row *row)
{
	const struct node *node = node_of(row);

	return node ? node->memory : NULL;
}

static const struct memory_flow *flow_of(const struct row *row)
{
	return row->kind == ROW_LEVEL ? &row->of.level->flow : row->kind == ROW_SITE ? &row->of.site->flow : NULL;
}

static const struct memory_level *level_of(const struct row *row)
{
	return row->kind == ROW_LEVEL  ? row->of.level
	       : row->kind == ROW_SITE ? &row->process->fold->memory->levels[row->of.site->level]
				       : NULL;
}

static const struct kernel *kernel_of(const struct row *row)
{
	return row->kind == ROW_SHAPE ? row->of.shape : NULL;
}

static bool occupancy(const struct row *row, struct occupancy *out)
{
	const struct trace_kernel *shape = row_shape(row);
	const struct trace_device *device = shape ? process_device(row->process, shape->gpu.device) : NULL;

	return device && occupancy_of(device, shape, out);
}

#define VALUE(name) static struct cell name(const struct row *row, const struct rows *rows)
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
#define OF_WORST(name, has, value)                           \
	FIGURE(name, const struct node *node = node_of(row); \
		const struct node_worst *worst = node ? node->worst : NULL, worst && worst->found && (has), value)
#define OF_INSTANCE(name, has, value)                                                                       \
	FIGURE(name, const struct instance *instance = row->kind == ROW_INSTANCE ? row->of.instance : NULL, \
		instance && (has), value)
#define OF_SHAPE(name, has, value) \
	FIGURE(name, const struct trace_kernel *shape = row_shape(row), shape && (has), value)

static bool has_levels(const struct row *row)
{
	return metrics[row->process->metric].nature == METRIC_LEVEL;
}

static struct text metric_key(const struct row *row)
{
	const char *key = row->process->metric == METRIC_USER ? row->process->fold->options.counter
							      : metrics[row->process->metric].key;

	return (struct text){ .bytes = key, .length = (uint32_t)strlen(key) };
}

VALUE(row_id)
{
	return count((uint64_t)(row - rows->rows));
}

VALUE(row_parent)
{
	(void)rows;
	return row->parent == NO_ROW ? (struct cell){ .kind = CELL_NULL } : count(row->parent);
}

FIGURE(row_depth, (void)row, true, count(row->depth))

FIGURE(name_cell, (void)row, true, text(row_name(row)))
FIGURE(row_label_cell, (void)row, true, text(row_label(row, false)))

VALUE(row_kind)
{
	(void)rows;
	switch (row->kind) {
	case ROW_SHAPE:
		return words("kernel");
	case ROW_API:
		return words("api");
	case ROW_PROCESS:
		return words("process");
	case ROW_LEVEL:
	case ROW_SITE:
		return words("alloc");
	default:
		return words(row->tree->nodes[row->node].kind == NODE_SPANS
				     ? "range"
				     : node_kind_name(row->tree->nodes[row->node].kind));
	}
}

FIGURE(row_path_cell, (void)row, row->tree && row->node, ((struct cell){ .kind = CELL_PATH }))

VALUE(row_domain)
{
	const uint32_t domain = row->tree && row->node ? row->tree->nodes[row->node].domain : 0;

	(void)rows;
	return domain && (row->kind == ROW_NODE || row->kind == ROW_INSTANCE)
		       ? text(text_of(row->process->texts, domain))
		       : none;
}

VALUE(row_section)
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
		return row->tree->nodes[row->node].kind == NODE_UNATTRIBUTED ||
				       row->tree->nodes[row->node].kind == NODE_SPANS
			       ? none
			       : count(row->tree->nodes[row->node].calls);
	if (row->kind == ROW_SHAPE)
		return count(row->of.shape->calls);
	if (row->kind == ROW_API)
		return count(row->of.api->calls);
	if (row->kind == ROW_INSTANCE)
		return count(1);
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

OF_NODE(cpu_self, is_ranges(node) && node->calls, count(node->self_ns))
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
OF_GPU(gpu_calls, gpu->total_calls, count(gpu->total_calls))
FIGURE(untimed, const struct node_gpu *gpu = gpu_of(row); const struct kernel *kernel = kernel_of(row),
	kernel || (gpu && gpu->untimed), count(kernel ? kernel->untimed : gpu->untimed))
OF_GPU(copied_bytes, gpu->bytes, count(gpu->bytes))
FIGURE(idle, const struct node *node = node_of(row),
	(node && is_ranges(node) && node->calls && row->process->fold->timeline),
	count(node->gpu ? node->gpu->idle_ns : 0))

static bool has_times(const struct node *node)
{
	return node->min_ns != UINT64_MAX;
}

FIGURE(shortest, const struct node *node = node_of(row); const struct kernel *kernel = kernel_of(row),
	(node && has_times(node)) || (kernel && kernel->min_ns != UINT64_MAX),
	count(node ? node->min_ns : kernel->min_ns))
FIGURE(longest, const struct node *node = node_of(row); const struct kernel *kernel = kernel_of(row),
	(node && has_times(node)) || (kernel && kernel->min_ns != UINT64_MAX),
	count(node ? node->max_ns : kernel->max_ns))

/* Within what was seen: the middle of a histogram's step may lie outside. */
static struct cell percentile(const struct row *row, unsigned per_mille)
{
	const struct node *node = node_of(row);
	const struct kernel *kernel = kernel_of(row);
	const uint64_t least = node     ? node->min_ns
			       : kernel ? kernel->min_ns
					: UINT64_MAX,
		       most = node     ? node->max_ns
			      : kernel ? kernel->max_ns
				       : 0;
	struct samples *samples = (struct samples *)(uintptr_t)(node     ? &node->samples
								: kernel ? &kernel->samples
									 : NULL);
	uint64_t value;

	if (!samples || least == UINT64_MAX)
		return none;
	value = samples_percentile(samples, per_mille);
	return count(value < least ? least : value > most ? most : value);
}

VALUE(p50)
{
	(void)rows;
	return percentile(row, 500);
}

VALUE(p95)
{
	(void)rows;
	return percentile(row, 950);
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
FIGURE(most_held, const struct memory_flow *flow = flow_of(row), flow, count(flow->most))
FIGURE(at_peak, const struct memory_flow *flow = flow_of(row), flow, count(flow->at_peak))
FIGURE(memory_kind, const struct memory_level *level = level_of(row), level, words(memory_kind_name(level->kind)))
FIGURE(stack, (void)row, row->kind == ROW_SITE && row->of.site->stack,
	((struct cell){ .kind = CELL_FRAMES, .number = row->of.site->stack }))

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

OF_SHAPE(grid, true, triple(shape->grid))
OF_SHAPE(block, true, triple(shape->block))
OF_SHAPE(shared_bytes, true, count((uint64_t)shape->static_shared_bytes + shape->dynamic_shared_bytes))
OF_SHAPE(registers, true, count(shape->registers))
FIGURE(waves, struct occupancy known, occupancy(row, &known), real(known.waves_per_sm))
FIGURE(theoretical, struct occupancy known, occupancy(row, &known), real(known.theoretical))
FIGURE(limited_by, struct occupancy known, occupancy(row, &known), words(occupancy_limit_text(known.limits)))

static bool has_method(const struct row *row)
{
	const struct node *node = node_of(row);

	return node && is_work(node) && node->gpu;
}

FIGURE(method, const struct node_gpu *gpu = gpu_of(row), has_method(row), words(method_name(gpu->method)))
FIGURE(confidence, const struct node_gpu *gpu = gpu_of(row), has_method(row), words(method_confidence(gpu->method)))

VALUE(provenance)
{
	const struct node_gpu *gpu = gpu_of(row);
	const bool of_gpu = row->kind == ROW_SHAPE || row->kind == ROW_LEVEL || row->kind == ROW_SITE ||
			    row->kind == ROW_INSTANCE || memory_of(row) || (gpu && (gpu->total_calls || gpu->idle_ns));

	(void)rows;
	return of_gpu && row->process->simulated ? words("simulated") : none;
}

OF_NODE(labels, row_labels(node) > 1, count(row_labels(node)))
OF_NODE(left_open, node->left_open, ((struct cell){ .kind = CELL_BOOL, .truth = true }))

OF_WORST(worst_metric, true, text(metric_key(row)))
OF_WORST(worst_label, true, text(text_of(row->process->texts, worst->label)))
OF_WORST(worst_start, true, count(worst->begin_ns))
OF_WORST(worst_value, !has_levels(row), figure(worst->value))
OF_WORST(worst_before, has_levels(row), figure(worst->before))
OF_WORST(worst_after, has_levels(row), figure(worst->after))
OF_WORST(worst_delta, has_levels(row), figure(worst->after - worst->before))

OF_INSTANCE(start, true, count(instance->begin_ns))
OF_INSTANCE(duration, true, count(instance->end_ns - instance->begin_ns))
OF_INSTANCE(value, !has_levels(row), figure(instance->value))
OF_INSTANCE(before, has_levels(row), figure(instance->before))
OF_INSTANCE(after, has_levels(row), figure(instance->after))
OF_INSTANCE(delta, has_levels(row), figure(instance->after - instance->before))

VALUE(unit)
{
	static const char *const names[] = { [UNIT_COUNT] = "", [UNIT_TIME] = "ns", [UNIT_BYTES] = "bytes" };

	(void)rows;
	if (row->kind != ROW_INSTANCE)
		return none;
	return row->process->metric == METRIC_USER
		       ? text(text_of(row->process->texts, row->process->fold->counter_unit))
		       : words(names[metrics[row->process->metric].unit]);
}

VALUE(share)
{
	const enum metric metric = row->process->metric;
	const struct node *node = node_of(row);
	const long double base = row->process->whole;
	struct cell part = none;
	long double number;

	if (row->kind == ROW_INSTANCE && !has_levels(row)) {
		const struct instance *root = row->process->critical->target;

		return real(root->value != 0 ? (double)(row->of.instance->value / root->value) : 0);
	}
	if (metric == METRIC_GPU || row->kind == ROW_SHAPE)
		part = gpu_total(row, rows);
	else if (metric == METRIC_CPU || metric == METRIC_WALL)
		part = cpu_total(row, rows);
	else if (metric == METRIC_ALLOC)
		part = alloc_bytes(row, rows);
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

const struct column all_columns[] = {
#define COLUMN(name, heading, in, function, text)                                                 \
	{                                                                                         \
		.key = name, .title = heading, .unit = UNIT_##in, .value = function, .help = text \
	}
	COLUMN("id", "", COUNT, row_id, "number of the row"),
	COLUMN("parent", "", COUNT, row_parent, "the row it lies in"),
	COLUMN("depth", "", COUNT, row_depth, "rows around it"),
	COLUMN("name", "name", TEXT, name_cell, "the name; of folded labels with * for each number"),
	COLUMN("label", "name", TEXT, row_label_cell,
		"the name as text shows it: with the number of labels that fold into it, a kernel's grid and block"),
	COLUMN("kind", "kind", TEXT, row_kind,
		"process, step, range, module, op, backward, optimizer, api, sync, alloc, graph, kernel, memcpy, "
		"memset, mark, unattributed"),
	COLUMN("section", "section", TEXT, row_section,
		"start/end: a range that may overlap others and cross threads; it owns no GPU work"),
	COLUMN("path", "path", TEXT, row_path_cell, "the names from the root to it"),
	COLUMN("domain", "domain", TEXT, row_domain, "the NVTX domain, if not the default one"),
	COLUMN("pid", "pid", COUNT, pid, "process id"),
	COLUMN("rank", "rank", COUNT, rank, "rank of the process"),
	COLUMN("share", "%", PERCENT, share, "part of the whole, of what rows are ordered by"),
	COLUMN("calls", "calls", COUNT, calls, "instances: times it was entered, called, run"),
	COLUMN("gpu_total_ns", "gpu", TIME, gpu_total,
		"GPU work (kernels, copies, sets) launched in it and below; a sum over streams"),
	COLUMN("gpu_self_ns", "gpu self", TIME, gpu_self,
		"GPU work launched directly in it; of a kernel, copy, set or graph: its own"),
	COLUMN("gpu_calls", "gpu calls", COUNT, gpu_calls, "kernels, copies and sets in gpu_total"),
	COLUMN("cpu_total_ns", "cpu", TIME, cpu_total, "wall time inside, on its thread"),
	COLUMN("cpu_self_ns", "cpu self", TIME, cpu_self, "cpu_total without the ranges inside; CUDA calls stay in"),
	COLUMN("cpu_self_x_ns", "cpu self x", TIME, cpu_self_x, "cpu_self without the CUDA calls too"),
	COLUMN("idle_ns", "idle", TIME, idle,
		"the GPU had nothing to do while it was open (between the device's first and last work)"),
	COLUMN("min_ns", "min", TIME, shortest, "the shortest instance; of GPU work: on the GPU"),
	COLUMN("p50_ns", "p50", TIME, p50, "the median instance (nearest rank)"),
	COLUMN("p95_ns", "p95", TIME, p95, "95 of 100 instances took no longer"),
	COLUMN("max_ns", "max", TIME, longest, "the longest instance"),
	COLUMN("untimed", "untimed", COUNT, untimed, "GPU work that CUPTI could not time; it counts in calls only"),
	COLUMN("bytes", "bytes", BYTES, copied_bytes, "bytes copied or set by the GPU"),
	COLUMN("reserved_delta_bytes", "reserved", BYTES, reserved_delta,
		"change of the device memory held, from begin to end, summed over instances (self + other threads)"),
	COLUMN("reserved_peak_bytes", "peak", BYTES, reserved_peak,
		"the highest level of device memory held in any instance"),
	COLUMN("alloc_bytes", "alloc", BYTES, alloc_bytes, "device memory taken in it and below"),
	COLUMN("free_bytes", "free", BYTES, free_bytes,
		"of what was taken in it and below: given back since, by whoever"),
	COLUMN("allocs", "allocs", COUNT, allocs, "allocations that worked"),
	COLUMN("frees", "frees", COUNT, frees, "releases"),
	COLUMN("failed", "failed", COUNT, failed, "calls that failed; they take nothing"),
	COLUMN("at_peak_bytes", "at peak", BYTES, at_peak,
		"held when the memory of that kind and device was at its highest"),
	COLUMN("held_bytes", "at end", BYTES, held, "held at the end of the trace"),
	COLUMN("most_bytes", "most", BYTES, most_held, "the most that was held at one time"),
	COLUMN("memory_kind", "kind", TEXT, memory_kind,
		"device, managed, pinned, array ...; only device memory counts as reserved"),
	COLUMN("device", "device", COUNT, device, "number of the GPU"),
	COLUMN("stack", "call stack", TEXT, stack, "who called, innermost first (PPERF_STACKS)"),
	COLUMN("grid", "grid", TEXT, grid, "blocks of the launch; absent where launches differ"),
	COLUMN("block", "block", TEXT, block, "threads of a block"),
	COLUMN("shared_bytes", "shared", BYTES, shared_bytes, "shared memory of a block, static and dynamic"),
	COLUMN("registers", "regs", COUNT, registers, "registers of a thread"),
	COLUMN("waves_per_sm", "waves", RATIO, waves, "blocks of the grid / blocks that all SMs hold at once"),
	COLUMN("occupancy_theoretical", "occ", PERCENT, theoretical,
		"warps that the launch lets an SM hold / warps that it could hold; not what was reached"),
	COLUMN("occupancy_limit", "limited by", TEXT, limited_by, "what keeps further blocks off the SM"),
	COLUMN("start_ns", "start", TIME, start, "when it began, since the trace's start"),
	COLUMN("duration_ns", "duration", TIME, duration, "from its begin to its end"),
	COLUMN("before", "before", USER, before, "the level when it began"),
	COLUMN("after", "after", USER, after, "the level when it ended"),
	COLUMN("delta", "delta", USER, delta, "after - before"),
	COLUMN("value", "value", USER, value, "what it has of the metric"),
	COLUMN("unit", "unit", TEXT, unit, "of before, after, delta, value"),
	COLUMN("labels", "labels", COUNT, labels, "distinct labels that fold into the name"),
	COLUMN("left_open", "open", COUNT, left_open,
		"an instance was still open at the end of the trace, and counts up to there"),
	COLUMN("method", "method", TEXT, method,
		"how the GPU's record found its launch: correlation, graph-level (the graph is known, the operator in "
		"it not), none"),
	COLUMN("confidence", "confidence", TEXT, confidence, "high, medium, low, none"),
	COLUMN("provenance", "provenance", TEXT, provenance, "only where figures are not measured: simulated"),
	COLUMN("worst.metric", "worst", TEXT, worst_metric, "what the worst instance is worst in"),
	COLUMN("worst.label", "worst", TEXT, worst_label, "its own label"),
	COLUMN("worst.start_ns", "worst at", TIME, worst_start, "when it began, since the trace's start"),
	COLUMN("worst.value", "worst value", USER, worst_value, "how much of the metric; flows and times only"),
	COLUMN("worst.before", "worst before", USER, worst_before, "levels only: when it began"),
	COLUMN("worst.after", "worst after", USER, worst_after, "when it ended"),
	COLUMN("worst.delta", "worst delta", USER, worst_delta, "after - before"),
#undef COLUMN
};
const size_t all_column_count = sizeof all_columns / sizeof *all_columns;

const struct column *column_find(const char *key, size_t length)
{
	for (size_t i = 0; i < all_column_count; i++)
		if (strlen(all_columns[i].key) == length && memcmp(all_columns[i].key, key, length) == 0)
			return &all_columns[i];
	return NULL;
}

const struct column *column_next(const char **keys)
{
	const char *key = *keys + strspn(*keys, " ");
	const size_t length = strcspn(key, " ");

	*keys = key + length;
	return length ? column_find(key, length) : NULL;
}
