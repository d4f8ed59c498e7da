/* SPDX-License-Identifier: MIT
 * Handles GPU records, joined by correlation id to the call that launched the work.
 */
#include "report/base/alloc.h"
#include "report/profile/profile_state.h"
#include <stdlib.h>
#include <string.h>

/* A decoded GPU record. */
struct gpu_work {
	const struct trace_gpu *gpu;
	enum node_kind kind;
	uint32_t name;
	uint64_t start_ns, end_ns; /* since the trace's start */
	uint64_t duration_ns;      /* in CUPTI's own nanoseconds */
	/* set once it has an owner: nodes; index in profile.kernels */
	uint32_t leaf, owner, kernel;
	bool untimed;
};

static uint32_t copy_name(struct profile *profile, const struct trace_gpu_copy *copy)
{
	static const char *const names[] = { "memcpy", "memcpy HtoD", "memcpy DtoH", "memcpy HtoA",
		"memcpy AtoH", "memcpy AtoA", "memcpy AtoD", "memcpy DtoA", "memcpy DtoD",
		"memcpy HtoH", "memcpy PtoP" };
	const char *name =
		names[copy->copy_kind < sizeof names / sizeof *names ? copy->copy_kind : 0];

	return string_table_intern(profile->texts, name, strlen(name));
}

/* `work` must be zeroed. */
static void decode_gpu_work(
	struct profile *profile, const struct trace_gpu *gpu, struct gpu_work *work)
{
	work->gpu = gpu;
	if (gpu->head.kind == TRACE_KERNEL) {
		work->kind = NODE_KERNEL;
		work->name = node_names_kernel(
			profile->names, ((const struct trace_kernel *)gpu)->name);
	} else if (gpu->head.kind == TRACE_GPU_COPY) {
		work->kind = NODE_MEMCPY;
		work->name = copy_name(profile, (const struct trace_gpu_copy *)gpu);
	} else {
		work->kind = NODE_MEMSET;
		work->name = string_table_intern(profile->texts, "memset", 6);
	}
	work->untimed = !reader_gpu_times(
		profile->reader, gpu->start_ns, gpu->end_ns, &work->start_ns, &work->end_ns);
	if (!work->untimed && gpu->end_ns > gpu->start_ns)
		work->duration_ns = gpu->end_ns - gpu->start_ns;
}

static void add_work_details(struct node_gpu *gpu, const struct gpu_work *work)
{
	const struct trace_kernel *kernel = (const struct trace_kernel *)work->gpu;

	if (work->kind != NODE_KERNEL) {
		gpu->bytes += ((const struct trace_gpu_copy *)work->gpu)->bytes;
		return;
	}
	if (gpu->shape)
		gpu->several_shapes |= !launch_config_equal(gpu->shape, kernel);
	else
		gpu->shape = xcalloc(sizeof *gpu->shape);
	*gpu->shape = *kernel;
}

static void add_work_time(struct node_gpu *gpu, const struct gpu_work *work, enum method method)
{
	gpu->self_ns += work->duration_ns;
	gpu->self_calls++;
	gpu->untimed += work->untimed;
	gpu->method = method;
}

/* Adds the work to its leaf below `parent`, which is the owner or a node of a graph. Returns the
 * leaf. */
static uint32_t work_leaf(
	struct profile *profile, uint32_t parent, const struct gpu_work *work, enum method method)
{
	const uint32_t leaf = tree_child(profile->tree, parent, work->name, 0, work->kind);

	add_work_details(tree_gpu(profile->tree, leaf), work);
	add_work_time(tree_gpu(profile->tree, leaf), work, method);
	if (work->untimed)
		profile->tree->nodes[leaf].calls++;
	else
		tree_count(profile->tree, leaf, work->duration_ns);
	return leaf;
}

/* Adds the work to the graph, and to the node that shows where it was captured. Returns the
 * parent of the work's leaf. */
static uint32_t add_work_to_graph(
	struct profile *profile, uint32_t graph, const struct gpu_work *work, enum method *method)
{
	const uint32_t parent = profile_graph_parent(profile, graph, work->gpu, method);

	add_work_time(tree_gpu(profile->tree, graph), work, *method);
	profile->tree->nodes[graph].total_ns += work->duration_ns;
	if (parent != graph)
		add_work_time(tree_gpu(profile->tree, parent), work, *method);
	return parent;
}

static void add_work_to_instance(
	struct profile *profile, struct instance *owner, uint32_t leaf, const struct gpu_work *work)
{
	struct instance *instance;

	if (!profile->options.target) {
		owner->gpu_ns += work->duration_ns;
		return;
	}
	instance = instance_new(&profile->state->instances, owner, leaf, work->start_ns);
	instance->end_ns = work->start_ns + work->duration_ns;
	instance->gpu_ns = work->duration_ns;
	if (work->kind == NODE_KERNEL) {
		instance->kernel = xcalloc(sizeof *instance->kernel);
		memcpy(instance->kernel, work->gpu, sizeof *instance->kernel);
	}
	instance_release(&profile->state->instances, instance);
}

/* Adds the delay from the call to the begin of its work. It is 0 if the work seems to begin
 * before the call, because two clocks may differ a little. */
static void add_launch_delay(
	struct profile *profile, uint32_t node, uint64_t launch_ns, uint64_t start_ns)
{
	if (!profile->options.no_owners_and_delays)
		percentiles_add(&tree_gpu(profile->tree, node)->delays,
			start_ns > launch_ns ? start_ns - launch_ns : 0,
			&profile->tree->delay_budget);
}

static void note_work_start(struct profile *profile, struct gpu_launch *launch, uint32_t leaf,
	const struct gpu_work *work)
{
	if (!launch->graph_node)
		add_launch_delay(profile, leaf, launch->begin_ns, work->start_ns);
	else if (!launch->first_ns || work->start_ns < launch->first_ns)
		launch->first_ns = work->start_ns;
}

static void attribute_work(
	struct profile *profile, struct gpu_launch *launch, struct gpu_work *work)
{
	const bool in_range = launch && launch->in_range;
	const uint32_t owner = launch ? launch->node : profile_unattributed_node(profile, 0);
	enum method method = work->gpu->head.flags & TRACE_GPU_ENCLOSED ? METHOD_ENCLOSURE
									: METHOD_CORRELATION;
	uint32_t parent = owner, leaf;

	if (launch && launch->graph_node)
		parent = add_work_to_graph(profile, launch->graph_node, work, &method);
	if (!in_range)
		method = METHOD_NONE;
	leaf = work_leaf(profile, parent, work, method);
	if (!work->untimed)
		profile_observe_leaf(profile, leaf, launch ? launch->begin_ns : work->start_ns,
			work->duration_ns);
	if (!work->untimed && launch)
		note_work_start(profile, launch, leaf, work);
	add_work_time(tree_gpu(profile->tree, owner), work, method);
	node_names_module_group(profile->names)->all[launch ? launch->module : 0].gpu_ns +=
		work->duration_ns;
	profile->totals.gpu_sum_ns += work->duration_ns;
	profile->totals.method_ns[method] += work->duration_ns;
	profile->totals.method_records[method]++;
	*(in_range ? &profile->totals.attributed_ns
		   : &profile->totals.unattributed_ns) += work->duration_ns;
	if (work->kind == NODE_KERNEL)
		work->kernel = launch_configs_add(profile->kernels,
			(const struct trace_kernel *)work->gpu, work->name, parent, work->start_ns,
			work->duration_ns, work->untimed, &profile->tree->budget);
	work->leaf = leaf;
	work->owner = owner;
	if (launch && launch->instance)
		add_work_to_instance(profile, launch->instance, leaf, work);
}

static bool starts_before_launch(const struct gpu_work *work, const struct gpu_launch *launch)
{
	return launch && !work->untimed && work->start_ns + CLOCK_TOLERANCE_NS < launch->begin_ns;
}

static void observe_gpu_work(struct profile *profile, const struct gpu_launch *launch,
	const struct gpu_work *work, bool counts)
{
	const struct profile_observer *observer = profile->options.observer;
	const struct observed_gpu_work seen = { .gpu = work->gpu,
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

static void count_graph_work(struct profile_counts *counts, enum node_kind kind)
{
	counts->graph_kernels += kind == NODE_KERNEL;
	counts->graph_copies += kind == NODE_MEMCPY;
	counts->graph_sets += kind != NODE_KERNEL && kind != NODE_MEMCPY;
}

/* `launch`: NULL if the launch is not in the trace. */
static void finish_gpu_work(
	struct profile *profile, struct gpu_launch *launch, const struct trace_gpu *gpu)
{
	const bool is_counted = launch ? launch->counts : profile->state->counting;
	struct gpu_work work = { .gpu = NULL };
	struct profile_counts *counts = &profile->counts;

	decode_gpu_work(profile, gpu, &work);
	*(launch && launch->in_range ? &counts->attributed : &counts->unattributed) += 1;
	counts->without_launch += !launch;
	counts->untimed += work.untimed;
	counts->backwards += !work.untimed && gpu->end_ns < gpu->start_ns;
	counts->early += starts_before_launch(&work, launch);
	if (launch && launch->graph_node)
		count_graph_work(counts, work.kind);
	if (profile->options.device >= 0 && gpu->device != profile->options.device)
		return;
	if (is_counted)
		attribute_work(profile, launch, &work);
	if (launch && !work.untimed)
		steps_add_gpu_work(
			profile->options.found_steps, launch->begin_ns, work.start_ns, work.end_ns);
	idle_gaps_add(profile, work.leaf, gpu);
	if (profile->options.observer && profile->options.observer->work)
		observe_gpu_work(profile, launch, &work, is_counted);
}

static struct gpu_launch *match_launch(struct profile_state *state, uint32_t slot)
{
	state->launches[slot].has_record = true;
	return &state->launches[slot];
}

#define LAUNCHES_AHEAD 16
#define INSTANCES_AHEAD 8

/* Prefetches what the next records need. Inlined: the compiler drops a call without effects. */
static inline __attribute__((always_inline)) void prefetch_next_launches(
	const struct profile *profile)
{
	const struct trace_event *event = reader_peek(profile->reader, LAUNCHES_AHEAD);

	if (event && event->kind == TRACE_KERNEL && event->slot < profile->state->launch_room)
		__builtin_prefetch(&profile->state->launches[event->slot], 1);
	event = reader_peek(profile->reader, INSTANCES_AHEAD);
	if (event && event->kind == TRACE_KERNEL && event->slot < profile->state->launch_room)
		__builtin_prefetch(profile->state->launches[event->slot].instance, 1);
}

static void join_gpu_work(struct profile *profile, const struct trace_event *event)
{
	const struct trace_gpu *gpu = event->record;
	struct gpu_launch *launch;

	if (!profile->timeline && !profile->options.no_timeline && (gpu->start_ns || gpu->end_ns) &&
		(profile->options.device < 0 || gpu->device == profile->options.device)) {
		profile->state->needs_timeline = true;
		return;
	}
	profile_require_instances(profile);
	profile->counts.kernels += gpu->head.kind == TRACE_KERNEL;
	profile->counts.copies += gpu->head.kind == TRACE_GPU_COPY;
	profile->counts.sets += gpu->head.kind == TRACE_GPU_SET;
	launch = event->slot != JOIN_NO_SLOT ? match_launch(profile->state, event->slot) : NULL;
	prefetch_next_launches(profile);
	if (launch || !gpu->correlation)
		finish_gpu_work(profile, launch, gpu);
	if (event->steps)
		profile_apply_join_steps(profile, reader_join_steps(profile->reader, event));
}

/* Counts an unmatched record, and whether it was launched before the trace began. */
static void count_unmatched(struct profile *profile, const struct trace_gpu *gpu)
{
	struct profile_state *state = profile->state;

	if (state->first_correlation == UINT64_MAX)
		state->before_any_launch++;
	else
		profile->counts.launched_before += gpu->correlation < state->first_correlation;
}

static void finish_launch(struct profile *profile, struct gpu_launch *launch)
{
	*(launch->empty ? &profile->counts.empty_calls
			: &profile->counts.missing_records) += !launch->has_record;
	if (launch->first_ns)
		add_launch_delay(profile, launch->graph_node, launch->begin_ns, launch->first_ns);
	instance_release(&profile->state->instances, launch->instance);
	launch->instance = NULL;
}

/* Finishes the launches that `step` and the next steps evict, at most EVICTED_TOGETHER. Their
 * instances and those around them are no longer in the caches, so all are prefetched before the
 * first is used. Returns the step after them. */
#define EVICTED_TOGETHER 32u
static const struct join_step *finish_evicted_launches(
	struct profile *profile, const struct join_step *step)
{
	struct gpu_launch *launches[EVICTED_TOGETHER];
	unsigned count = 0;

	for (; count < EVICTED_TOGETHER && step->action == JOIN_LAUNCH_EVICTED; step++) {
		launches[count] = &profile->state->launches[step->slot];
		if (launches[count]->instance)
			instance_prefetch(launches[count]->instance);
		count++;
	}
	for (unsigned i = 0; i < count; i++)
		if (launches[i]->instance && launches[i]->instance->parent)
			instance_prefetch(launches[i]->instance->parent);
	for (unsigned i = 0; i < count; i++)
		finish_launch(profile, launches[i]);
	return step;
}

void profile_apply_join_steps(struct profile *profile, const struct join_step *step)
{
	while (step->action != JOIN_STEPS_END) {
		if (step->action == JOIN_LAUNCH_EVICTED) {
			step = finish_evicted_launches(profile, step);
			continue;
		}
		if (step->action == JOIN_RECORD_UNMATCHED)
			count_unmatched(profile, step->record);
		finish_gpu_work(profile,
			step->action == JOIN_RECORD_MATCHED
				? match_launch(profile->state, step->slot)
				: NULL,
			step->record);
		step++;
	}
}

void profile_gpu_finish(struct profile *profile)
{
	if (profile->state->skipped_rest)
		return;
	profile_apply_join_steps(profile, reader_join_end(profile->reader));
	/* What was finished before the first launch came has a lower id than that launch. */
	if (profile->state->first_correlation != UINT64_MAX) {
		profile->counts.launched_before += profile->state->before_any_launch;
		profile->state->before_any_launch = 0;
	}
}

#define LAUNCHES_FIRST 1024u /* room at first */

struct gpu_launch *profile_launch_in(struct profile_state *state, uint32_t slot)
{
	if (slot >= state->launch_room) {
		const size_t room = (size_t)slot * 2 + LAUNCHES_FIRST;

		state->launches = mapped_grow(state->launches,
			state->launch_room * sizeof *state->launches,
			room * sizeof *state->launches);
		state->launch_room = room;
	}
	return &state->launches[slot];
}

void profile_drop_launches(struct profile_state *state)
{
	for (size_t slot = 0; slot < state->launch_room; slot++)
		instance_release(&state->instances, state->launches[slot].instance);
	mapped_free(state->launches, state->launch_room * sizeof *state->launches);
	state->launches = NULL;
	state->launch_room = 0;
}

static void add_api_time(struct profile *profile, const struct trace_api *record)
{
	struct profile_state *state = profile->state;
	const uint32_t name = node_names_text(profile->names, record->name);
	struct api_time *api;

	ARRAY_GROW(state->api_of, state->api_of_room, (size_t)name + 1);
	if (!state->api_of[name]) {
		ARRAY_GROW(profile->apis, state->api_room, (size_t)profile->api_count + 1);
		profile->apis[profile->api_count].name = name;
		state->api_of[name] = ++profile->api_count;
	}
	api = &profile->apis[state->api_of[name] - 1];
	api->calls++;
	api->total_ns += record->end_ns > record->start_ns ? record->end_ns - record->start_ns : 0;
	api->failed += record->result != 0;
}

static void add_overhead_record(struct profile *profile, const struct trace_overhead *overhead)
{
	const uint64_t ns = overhead->end_ns > overhead->start_ns
				    ? overhead->end_ns - overhead->start_ns
				    : 0;
	const bool is_driver = trace_overhead_is_driver(overhead->type);

	*(is_driver ? &profile->counts.driver_overhead_records
		    : &profile->counts.overhead_records) += 1;
	*(is_driver ? &profile->totals.driver_overhead_ns : &profile->totals.overhead_ns) += ns;
}

void profile_gpu_record(struct profile *profile, const struct trace_event *event)
{
	const struct trace_gpu_batch *batch = event->record;

	if (event->kind == TRACE_API || event->kind == TRACE_GPU_SYNC ||
		event->kind == TRACE_OBJECT)
		profile_observe_record(profile, event);
	switch (event->kind) {
	case TRACE_KERNEL:
	case TRACE_GPU_COPY:
	case TRACE_GPU_SET:
		join_gpu_work(profile, event);
		break;
	case TRACE_GPU_BATCH:
		profile->counts.dropped += batch->dropped;
		profile->counts.unread_buffers += batch->unread;
		break;
	case TRACE_OVERHEAD:
		add_overhead_record(profile, event->record);
		break;
	case TRACE_API:
		add_api_time(profile, event->record);
		break;
	}
}
