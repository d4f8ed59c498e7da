/* SPDX-License-Identifier: MIT
 * fold_gpu.c: what the GPU did, joined to the call that asked for it by correlation id.
 */
#include "report/base/alloc.h"
#include "report/profile/profile_state.h"
#include <stdlib.h>
#include <string.h>

/* A GPU record, read. */
struct work {
	const struct trace_gpu *gpu;
	enum node_kind kind;
	uint32_t name;
	uint64_t start_ns, end_ns; /* since the trace's start */
	uint64_t duration_ns; /* in CUPTI's own nanoseconds */
	uint32_t leaf, owner, kernel; /* once it is owned: nodes; index in fold.kernels */
	bool untimed;
};

static uint32_t copy_name(struct fold *fold, const struct trace_gpu_copy *copy)
{
	static const char *const names[] = { "memcpy", "memcpy HtoD", "memcpy DtoH", "memcpy HtoA", "memcpy AtoH",
		"memcpy AtoA", "memcpy AtoD", "memcpy DtoA", "memcpy DtoD", "memcpy HtoH", "memcpy PtoP" };
	const char *name = names[copy->copy_kind < sizeof names / sizeof *names ? copy->copy_kind : 0];

	return text_id(fold->texts, name, strlen(name));
}

static struct work read_work(struct fold *fold, const struct trace_gpu *gpu)
{
	struct work work = { .gpu = gpu };

	if (gpu->head.kind == TRACE_KERNEL) {
		work.kind = NODE_KERNEL;
		work.name = names_kernel(fold->names, ((const struct trace_kernel *)gpu)->name);
	} else if (gpu->head.kind == TRACE_GPU_COPY) {
		work.kind = NODE_MEMCPY;
		work.name = copy_name(fold, (const struct trace_gpu_copy *)gpu);
	} else {
		work.kind = NODE_MEMSET;
		work.name = text_id(fold->texts, "memset", 6);
	}
	work.untimed = !reader_gpu_times(fold->reader, gpu->start_ns, gpu->end_ns, &work.start_ns, &work.end_ns);
	if (!work.untimed && gpu->end_ns > gpu->start_ns)
		work.duration_ns = gpu->end_ns - gpu->start_ns;
	return work;
}

static void describe(struct node_gpu *gpu, const struct work *work)
{
	const struct trace_kernel *kernel = (const struct trace_kernel *)work->gpu;

	if (work->kind != NODE_KERNEL) {
		gpu->bytes += ((const struct trace_gpu_copy *)work->gpu)->bytes;
		return;
	}
	if (gpu->shape)
		gpu->several_shapes |= !kernel_same_shape(gpu->shape, kernel);
	else
		gpu->shape = need(sizeof *gpu->shape);
	*gpu->shape = *kernel;
}

static void add_to(struct node_gpu *gpu, const struct work *work, enum method method)
{
	gpu->self_ns += work->duration_ns;
	gpu->self_calls++;
	gpu->untimed += work->untimed;
	gpu->method = method;
}

/* The leaf of the work, in its owner or in what lies between them. */
static uint32_t work_leaf(struct fold *fold, uint32_t parent, const struct work *work, enum method method)
{
	const uint32_t leaf = tree_child(fold->tree, parent, work->name, 0, work->kind);

	describe(tree_gpu(fold->tree, leaf), work);
	add_to(tree_gpu(fold->tree, leaf), work, method);
	if (work->untimed)
		fold->tree->nodes[leaf].calls++;
	else
		tree_count(fold->tree, leaf, work->duration_ns);
	return leaf;
}

/* The graph has all that was done in it; what was captured, what was directly in that. Returns where the work's leaf
 * is. */
static uint32_t add_to_graph(struct fold *fold, uint32_t graph, const struct work *work, enum method *method)
{
	const uint32_t parent = fold_graph_place(fold, graph, work->gpu, method);

	add_to(tree_gpu(fold->tree, graph), work, *method);
	fold->tree->nodes[graph].total_ns += work->duration_ns;
	if (parent != graph)
		add_to(tree_gpu(fold->tree, parent), work, *method);
	return parent;
}

static void add_to_instance(struct fold *fold, struct instance *owner, uint32_t leaf, const struct work *work)
{
	struct instance *instance;

	if (!fold->options.target) {
		owner->gpu_ns += work->duration_ns;
		return;
	}
	instance = instance_new(&fold->state->instances, owner, leaf, work->start_ns);
	instance->end_ns = work->start_ns + work->duration_ns;
	instance->gpu_ns = work->duration_ns;
	if (work->kind == NODE_KERNEL) {
		instance->kernel = need(sizeof *instance->kernel);
		memcpy(instance->kernel, work->gpu, sizeof *instance->kernel);
	}
	instance_release(&fold->state->instances, instance);
}

/* From the call to the begin of what it launched; two clocks that are a little apart may have it end before it began. */
static void add_delay(struct fold *fold, uint32_t node, uint64_t launch_ns, uint64_t start_ns)
{
	if (!fold->options.only && !fold->options.no_owners)
		samples_add(&tree_gpu(fold->tree, node)->delays, start_ns > launch_ns ? start_ns - launch_ns : 0,
			&fold->tree->delay_budget);
}

static void wait_for_start(struct fold *fold, struct launch *launch, uint32_t leaf, const struct work *work)
{
	if (!launch->graph_node)
		add_delay(fold, leaf, launch->begin_ns, work->start_ns);
	else if (!launch->first_ns || work->start_ns < launch->first_ns)
		launch->first_ns = work->start_ns;
}

static void own(struct fold *fold, struct launch *launch, struct work *work)
{
	const bool in_range = launch && launch->in_range;
	const uint32_t owner = launch ? launch->node : fold_unattributed(fold, 0);
	enum method method = work->gpu->head.flags & TRACE_GPU_ENCLOSED ? METHOD_ENCLOSURE : METHOD_CORRELATION;
	uint32_t parent = owner, leaf;

	if (launch && launch->graph_node)
		parent = add_to_graph(fold, launch->graph_node, work, &method);
	if (!in_range)
		method = METHOD_NONE;
	leaf = work_leaf(fold, parent, work, method);
	if (!work->untimed)
		fold_observe(fold, leaf, launch ? launch->begin_ns : work->start_ns, work->duration_ns);
	if (!work->untimed && launch)
		wait_for_start(fold, launch, leaf, work);
	add_to(tree_gpu(fold->tree, owner), work, method);
	names_members(fold->names)->all[launch ? launch->member : 0].gpu_ns += work->duration_ns;
	fold->totals.gpu_sum_ns += work->duration_ns;
	fold->totals.method_ns[method] += work->duration_ns;
	fold->totals.method_records[method]++;
	*(in_range ? &fold->totals.attributed_ns : &fold->totals.unattributed_ns) += work->duration_ns;
	if (work->kind == NODE_KERNEL)
		work->kernel = kernels_add(fold->kernels, (const struct trace_kernel *)work->gpu, work->name, parent, work->start_ns,
			work->duration_ns, work->untimed, &fold->tree->budget);
	work->leaf = leaf;
	work->owner = owner;
	if (launch && launch->instance)
		add_to_instance(fold, launch->instance, leaf, work);
}

static bool is_early(const struct work *work, const struct launch *launch)
{
	return launch && !work->untimed && work->start_ns + CLOCKS_APART_NS < launch->begin_ns;
}

static void tell(struct fold *fold, const struct launch *launch, const struct work *work, bool counts)
{
	const struct fold_observer *observer = fold->options.observer;
	const struct fold_seen_work seen = { .gpu = work->gpu,
		.launch = launch,
		.begin_ns = work->start_ns,
		.end_ns = work->end_ns,
		.node = work->leaf,
		.owner = work->owner,
		.name = work->name,
		.kernel = work->kernel,
		.timed = !work->untimed,
		.counts = counts };

	observer->work(observer->context, &seen);
}

/* A record whose launch is known, or never will be (NULL). */
static void settle(struct fold *fold, struct launch *launch, const struct trace_gpu *gpu)
{
	const bool is_counted = launch ? launch->counts : fold->state->counting;
	struct work work = read_work(fold, gpu);
	struct fold_counts *counts = &fold->counts;

	*(launch && launch->in_range ? &counts->attributed : &counts->unattributed) += 1;
	counts->without_launch += !launch;
	counts->untimed += work.untimed;
	counts->backwards += !work.untimed && gpu->end_ns < gpu->start_ns;
	counts->early += is_early(&work, launch);
	if (launch && launch->graph_node)
		*(work.kind == NODE_KERNEL         ? &counts->graph_kernels
			: work.kind == NODE_MEMCPY ? &counts->graph_copies
						   : &counts->graph_sets) += 1;
	if (fold->options.device >= 0 && gpu->device != fold->options.device)
		return;
	if (is_counted)
		own(fold, launch, &work);
	fold_gaps_add(fold, work.leaf, gpu);
	if (fold->options.observer && fold->options.observer->work)
		tell(fold, launch, &work, is_counted);
}

static void deliver(struct fold *fold, const struct trace_event *event)
{
	const struct trace_gpu *gpu = event->record;
	struct launch *launch;

	if (!fold->timeline && !fold->options.only && !fold->options.no_timeline && (gpu->start_ns || gpu->end_ns) &&
		(fold->options.device < 0 || gpu->device == fold->options.device)) {
		fold->state->restart = true;
		return;
	}
	fold_become_rich(fold);
	fold->counts.kernels += gpu->head.kind == TRACE_KERNEL;
	fold->counts.copies += gpu->head.kind == TRACE_GPU_COPY;
	fold->counts.sets += gpu->head.kind == TRACE_GPU_SET;
	launch = gpu->correlation ? join_match(fold->state->join, gpu->correlation) : NULL;
	if (launch || !gpu->correlation)
		settle(fold, launch, gpu);
	else
		join_hold(fold->state->join, gpu);
	fold_gpu_go_on(fold);
}

void fold_gpu_try_held(struct fold *fold, uint64_t correlation)
{
	struct trace_gpu *held;

	while ((held = join_take_held(fold->state->join, correlation))) {
		settle(fold, join_match(fold->state->join, correlation), held);
		free(held);
	}
}

/* Launches and records that nothing more is expected of. */
void fold_gpu_gone(struct fold *fold, bool all)
{
	struct trace_gpu *lone;
	struct launch launch;

	while ((lone = join_next_lone(fold->state->join, all))) {
		settle(fold, NULL, lone);
		free(lone);
	}
	while (join_next_gone(fold->state->join, all, &launch)) {
		fold->counts.missing_records += launch.records == 0;
		if (launch.first_ns)
			add_delay(fold, launch.graph_node, launch.begin_ns, launch.first_ns);
		instance_release(&fold->state->instances, launch.instance);
	}
}

void fold_gpu_end(struct fold *fold)
{
	fold_gpu_gone(fold, true);
}

static void count_api(struct fold *fold, const struct trace_api *record)
{
	struct fold_state *state = fold->state;
	const uint32_t name = names_text(fold->names, record->name);
	struct fold_api *api;

	grow(&state->api_of, &state->api_of_room, (size_t)name + 1, sizeof *state->api_of);
	if (!state->api_of[name]) {
		grow(&fold->apis, &state->api_room, (size_t)fold->api_count + 1, sizeof *fold->apis);
		fold->apis[fold->api_count].name = name;
		state->api_of[name] = ++fold->api_count;
	}
	api = &fold->apis[state->api_of[name] - 1];
	api->calls++;
	api->total_ns += record->end_ns > record->start_ns ? record->end_ns - record->start_ns : 0;
	api->failed += record->result != 0;
}

void fold_gpu(struct fold *fold, const struct trace_event *event)
{
	const struct trace_gpu_batch *batch = event->record;
	const struct trace_overhead *overhead = event->record;
	const struct fold_observer *observer = fold->options.observer;

	if ((event->kind == TRACE_API || event->kind == TRACE_GPU_SYNC || event->kind == TRACE_OBJECT) && observer &&
		observer->told)
		observer->told(observer->context, event);
	switch (event->kind) {
	case TRACE_KERNEL:
	case TRACE_GPU_COPY:
	case TRACE_GPU_SET:
		deliver(fold, event);
		break;
	case TRACE_GPU_BATCH:
		fold->counts.batches++;
		fold->counts.dropped += batch->dropped;
		fold->counts.unread_buffers += batch->unread;
		break;
	case TRACE_OVERHEAD:
		fold->counts.overhead_records++;
		fold->totals.overhead_ns += overhead->end_ns > overhead->start_ns
						    ? overhead->end_ns - overhead->start_ns
						    : 0;
		break;
	case TRACE_API:
		fold->counts.api_records++;
		count_api(fold, event->record);
		break;
	case TRACE_GPU_MEMORY:
		fold->counts.gpu_memory_records++;
		break;
	default:
		break;
	}
}
