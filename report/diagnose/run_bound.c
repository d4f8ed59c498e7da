/* SPDX-License-Identifier: MIT */
#include "report/diagnose/run_bound.h"
#include "report/analysis/event_sweep.h"
#include "report/analysis/host_ranges.h"
#include "report/analysis/step_idle.h"
#include "report/analysis/tree_categories.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/table/computed_row.h"
#include "report/views/views.h"
#include <stdlib.h>
#include <string.h>

_Static_assert(LIMIT_LONG_GAP_NS == STEP_IDLE_LONG_NS, "the findings and the verdict agree");

/* The nodes that launched the operations of one class that run now, in the order of their begin. */
struct running_nodes {
	uint32_t *all;
	size_t count, room;
};

struct bound_device {
	uint32_t device;
	uint64_t running[BOUND_COUNT]; /* operations of each class that run now */
	uint64_t since_ns;             /* trace time up to which the device is accounted */
	uint64_t first_ns, last_ns;    /* begin of the first operation, end of the last */
	struct running_nodes communicating, copying;
	bool begun;
};

struct bound_pass {
	struct process *process;
	struct run_bound *result;
	struct step_idle idle;
	size_t near; /* of step_idle_counted_near */
	struct bound_device devices[TIMELINE_DEVICES];
	size_t device_count;
	struct critical_path_graph *path; /* while its nodes are made; NULL: it is not read */
	int64_t clock_offset;             /* trace time - Unix time, of the latest operation */
};

const char *bound_name(enum bound bound)
{
	static const char *const names[BOUND_COUNT] = {
#define X(bound, name) [BOUND_##bound] = name,
		BOUNDS(X)
#undef X
	};

	return names[bound];
}

/* Returns NULL for classes whose nodes are not kept. */
static struct running_nodes *nodes_of_class(struct bound_device *device, enum bound class)
{
	return class == BOUND_COMMUNICATION ? &device->communicating
	       : class == BOUND_COPIES      ? &device->copying
					    : NULL;
}

static enum bound class_of_work(const struct activity *work)
{
	return work->kind == ACTIVITY_COPY ? BOUND_COPIES
	       : work->communicates        ? BOUND_COMMUNICATION
					   : BOUND_COMPUTE;
}

static void add_to_node(struct run_bound *bound, enum bound class, uint32_t node, uint64_t ns)
{
	if (!ns || node >= bound->nodes)
		return;
	if (!bound->node_ns[class])
		bound->node_ns[class] = xcalloc(bound->nodes * sizeof *bound->node_ns[class]);
	bound->node_ns[class][node] += ns;
}

/* Accounts the time since the last event to what has run since. */
static void account(struct bound_pass *pass, struct bound_device *device, uint64_t at_ns)
{
	const enum bound class = device->running[BOUND_COMPUTE]         ? BOUND_COMPUTE
				 : device->running[BOUND_COMMUNICATION] ? BOUND_COMMUNICATION
									: BOUND_COPIES;

	if (device->running[class]) {
		const uint64_t ns = step_idle_counted_near(
			&pass->idle, &pass->near, device->since_ns, at_ns);
		const struct running_nodes *nodes = nodes_of_class(device, class);

		pass->result->ns[class] += ns;
		if (nodes)
			add_to_node(pass->result, class, nodes->all[nodes->count - 1], ns);
	}
	device->since_ns = max_u64(device->since_ns, at_ns);
}

/* Adds the time of an operation in the examined steps. */
static void add_gpu_time(struct bound_pass *pass, const struct activity *work)
{
	const struct steps *steps = pass->process->steps;
	const uint64_t ns = pass->idle.steps ? step_idle_counted_near(&pass->idle, &pass->near,
						       work->begin_ns, work->end_ns)
					     : 0;
	const bool own = work->has_call && work->step != ACTIVITY_NO_STEP &&
			 steps->steps[work->step].kind == STEP_USUAL;

	pass->result->gpu_ns += ns;
	pass->result->gpu_of_others_ns += own || !ns ? 0 : ns;
}

static void begin_work(
	void *context, const struct activity *work, uint64_t at_ns, struct sweep_mark *mark)
{
	struct bound_pass *pass = context;
	struct bound_device *device = device_slot(
		pass->devices, &pass->device_count, sizeof *pass->devices, work->device);
	const enum bound class = class_of_work(work);
	struct running_nodes *nodes = nodes_of_class(device, class);

	pass->clock_offset = (int64_t)(work->begin_ns - work->start_unix_ns);
	at_ns += (uint64_t)pass->clock_offset;
	if (!device->begun) {
		device->first_ns = device->since_ns = at_ns;
		device->begun = true;
	}
	account(pass, device, at_ns);
	add_gpu_time(pass, work);
	device->running[class]++;
	if (nodes)
		*ARRAY_ADD(nodes->all, nodes->room, nodes->count) = work->owner;
	pass->result->operations += step_idle_counted_near(
		&pass->idle, &pass->near, at_ns, at_ns + 1);
	*mark = (struct sweep_mark){ (uint32_t)(device - pass->devices), (uint32_t) class,
		work->owner };
}

/* Removes one operation of the node. */
static void end_of_node(struct running_nodes *nodes, uint32_t owner)
{
	size_t at = 0;

	while (nodes->all[at] != owner)
		at++;
	nodes->count--;
	memmove(&nodes->all[at], &nodes->all[at + 1], (nodes->count - at) * sizeof *nodes->all);
}

static void end_work(void *context, const struct sweep_mark *mark, uint64_t at_ns)
{
	struct bound_pass *pass = context;
	struct bound_device *device = &pass->devices[mark->device];
	struct running_nodes *nodes = nodes_of_class(device, (enum bound)mark->first);

	account(pass, device, at_ns + (uint64_t)pass->clock_offset);
	device->last_ns = device->since_ns;
	device->running[mark->first]--;
	if (nodes)
		end_of_node(nodes, mark->second);
}

enum bound run_bound_class_of(enum gap_cause cause)
{
	static const enum bound classes[GAP_CAUSE_COUNT] = { [GAP_LAUNCH] = BOUND_LAUNCH,
		[GAP_DATA] = BOUND_DATA,
		[GAP_COMPILATION] = BOUND_COMPILATION,
		[GAP_FIRST] = BOUND_FIRST,
		[GAP_SYNC] = BOUND_SYNC,
		[GAP_ALLOCATION] = BOUND_ALLOCATION,
		[GAP_COPY] = BOUND_COPY_CALLS,
		[GAP_LATENCY] = BOUND_LAUNCH,
		[GAP_KERNELS] = BOUND_GAPS,
		[GAP_EVENT] = BOUND_EVENT,
		[GAP_UNEXPLAINED] = BOUND_UNEXPLAINED,
		[GAP_UNKNOWN] = BOUND_UNKNOWN };

	return classes[cause];
}

static void add_idle_to_node(void *context, enum gap_cause cause, uint32_t node, uint64_t ns)
{
	add_to_node(context, run_bound_class_of(cause), node, ns);
}

void run_bound_add_idle(struct bound_pass *pass, const struct idle_part *idle)
{
	step_idle_add(&pass->idle, idle);
}

struct activity_visitor run_bound_work(struct bound_pass *pass)
{
	return event_sweep_begin(
		&(struct event_sweep_visitor){
			.context = pass, .begins = begin_work, .ends = end_work },
		false);
}

struct activity_visitor run_bound_ends(struct bound_pass *pass)
{
	return step_idle_ends_begin(&pass->idle, pass->process);
}

static bool wants_path(const struct process *process)
{
	return !process->profile->options.steps && !process->profile->options.windows;
}

bool run_bound_needs_launches(const struct process *process, const struct timeline *timeline)
{
	const struct timeline_device *devices;
	const size_t count = timeline ? timeline_devices(timeline, &devices) : 0;
	uint64_t operations = 0;

	for (size_t i = 0; i < count; i++)
		operations += devices[i].all.records;
	return wants_path(process) && operations <= 2 * (uint64_t)BOUND_PATH_OPERATIONS_MAX;
}

/* If there may be too many operations, the path is read later, if at all. */
struct activity_visitor run_bound_path(struct bound_pass *pass)
{
	const struct profile *profile = pass->process->profile;
	const struct profile_counts *counts = &profile->counts;

	if (counts->kernels + counts->copies + counts->sets > BOUND_PATH_OPERATIONS_MAX ||
		!run_bound_needs_launches(pass->process, profile->timeline))
		return (struct activity_visitor){ .add = NULL };
	pass->path = critical_path_graph_new(pass->process);
	return critical_path_graph_visitor(pass->path);
}

/* Accounts the idle time: of gaps, and in steps before the first operation of each device and after
 * its last. */
static void account_idle(struct bound_pass *pass)
{
	struct run_bound *result = pass->result;

	for (enum gap_cause cause = 0; cause < GAP_CAUSE_COUNT; cause++) {
		const enum bound class = run_bound_class_of(cause);

		result->ns[class] += pass->idle.ns[cause] + pass->idle.ends_ns[cause];
		result->ends_ns[class] += pass->idle.ends_ns[cause];
		result->idle_ns += pass->idle.ns[cause] + pass->idle.ends_ns[cause];
	}
	result->ns[BOUND_HOST] = pass->idle.long_ns;
	result->ns[BOUND_LAUNCH] -= pass->idle.long_ns;
	result->launch_parts = (struct launch_parts){
		.launch_ns = pass->idle.ns[GAP_LAUNCH] - pass->idle.long_launch_ns,
		.host_ns = pass->idle.long_launch_ns,
		.latency_ns = pass->idle.ns[GAP_LATENCY],
		.ends_ns = pass->idle.ends_ns[GAP_LAUNCH],
	};
	result->long_gaps = pass->idle.long_gaps;
	result->longest_gap_ns = pass->idle.longest_ns;
}

/* Accounts the time in which it is unknown whether the devices were busy. */
static void add_unknown(struct bound_pass *pass)
{
	const struct profile *profile = pass->process->profile;
	const struct steps *steps = pass->process->steps;
	const struct timeline_device *devices;
	const size_t count = timeline_devices(profile->timeline, &devices);

	for (size_t i = 0; i < count && !pass->result->steps; i++)
		pass->result->not_recorded_ns += devices[i].unknown_ns;
	for (size_t i = 0; i < count && pass->result->steps; i++)
		for (size_t step = 0; step < steps->count; step++)
			if (steps->steps[step].kind == STEP_USUAL)
				pass->result->not_recorded_ns += timeline_unknown_within(
					profile->timeline, devices[i].device, HANDOVER_TRACE_TIME,
					steps->steps[step].window_begin_ns,
					steps->steps[step].window_end_ns);
	pass->result->ns[BOUND_UNKNOWN] += pass->result->not_recorded_ns;
}

/* Reads which of the operators that a model knows are near a roof, from the rows of the view
 * `roofline`. Which roof is the lower one for an operator does not say that it limits it: one that
 * is far below both is slow for another reason. */
static void read_limits(
	const struct options *options, struct process *process, struct run_bound *bound)
{
	const struct options roofline = diagnose_row_options(options, "roofline", UINT32_MAX);
	struct processes only = { .all = process, .count = 1, .shown = 1 };
	struct rows rows = { .count = 0 };

	arrange_roofline(&roofline, &only, &rows);
	for (size_t i = 0; i < rows.count; i++) {
		const struct row *row = &rows.rows[i];
		const uint64_t ns = computed_row_number(row, "gpu_total_ns");
		const bool memory = computed_row_is(row, "roof", "memory"),
			   near = 100 * computed_row_real(row, "roof_share") >= BOUND_ROOF_MIN;

		if (!computed_row_is(row, "kind", "op") ||
			(!memory && !computed_row_is(row, "roof", "compute")))
			continue;
		bound->modelled_ns += ns;
		bound->memory_limited_ns += memory && near ? ns : 0;
		bound->arithmetic_limited_ns += !memory && near ? ns : 0;
	}
	free(rows.rows);
}

bool run_bound_is_percent(uint64_t part, uint64_t whole, unsigned percent)
{
	return part && (long double)part * 100 >= (long double)whole * percent;
}

const char *run_bound_time_name(const struct run_bound *bound)
{
	return !bound->steps       ? "the GPU span"
	       : bound->steps == 1 ? "the step"
				   : "the steady-state steps";
}

enum bound run_bound_partner(enum bound class)
{
	static const enum bound partners[BOUND_CLASSES] = { [BOUND_LAUNCH] = BOUND_HOST,
		[BOUND_HOST] = BOUND_LAUNCH,
		[BOUND_COPIES] = BOUND_COPY_CALLS,
		[BOUND_COPY_CALLS] = BOUND_COPIES,
		[BOUND_EVENT] = BOUND_UNEXPLAINED,
		[BOUND_UNEXPLAINED] = BOUND_EVENT };

	return partners[class];
}

uint64_t run_bound_ns(const struct run_bound *bound, enum bound class)
{
	const enum bound partner = run_bound_partner(class);

	return bound->ns[class] + (partner ? bound->ns[partner] : 0);
}

/* Returns the class with the most time. Two that are judged together have that of both, and the
 * larger one names them. */
static enum bound largest_but_compute(const struct run_bound *bound)
{
	enum bound most = BOUND_COMMUNICATION;

	for (enum bound class = BOUND_COMMUNICATION; class < BOUND_CLASSES; class ++) {
		const uint64_t ns = run_bound_ns(bound, class), most_ns = run_bound_ns(bound, most);

		if (ns > most_ns || (ns == most_ns && bound->ns[class] > bound->ns[most]))
			most = class;
	}
	return most;
}

static void judge(struct run_bound *bound)
{
	const enum bound most = largest_but_compute(bound);
	const uint64_t most_ns = run_bound_ns(bound, most);

	bound->confidence = CONFIDENCE_HIGH;
	if (bound->operations < BOUND_OPERATIONS_MIN || !bound->whole_ns) {
		bound->bound = BOUND_UNJUDGED;
		bound->confidence = CONFIDENCE_LOW;
	} else if (run_bound_is_percent(most_ns, bound->whole_ns, BOUND_SHARE_MIN)) {
		bound->bound = most;
		if (most == BOUND_UNKNOWN)
			bound->confidence = CONFIDENCE_LOW;
		else if (most == BOUND_EVENT || most == BOUND_UNEXPLAINED ||
			 !run_bound_is_percent(most_ns, bound->whole_ns, 50))
			bound->confidence = CONFIDENCE_MEDIUM;
	} else if (run_bound_is_percent(bound->ns[BOUND_COMPUTE], bound->whole_ns, 50)) {
		bound->bound = BOUND_COMPUTE;
		if (!run_bound_is_percent(bound->ns[BOUND_COMPUTE], bound->whole_ns, 70))
			bound->confidence = CONFIDENCE_MEDIUM;
	} else {
		bound->bound = BOUND_NOTHING;
		bound->confidence = CONFIDENCE_LOW;
	}
}

/* Replaces compute by memory bandwidth where a model shows that memory limits more than half of all
 * GPU time: what no model knows may be limited by anything. */
static void judge_bandwidth(
	const struct options *options, struct process *process, struct run_bound *bound)
{
	if (bound->bound != BOUND_COMPUTE)
		return;
	read_limits(options, process, bound);
	if (bound->memory_limited_ns <= process->profile->totals.gpu_sum_ns / 2)
		return;
	bound->bound = BOUND_BANDWIDTH;
	bound->confidence = CONFIDENCE_MEDIUM;
}

/* Returns from when to when GPUs had work. */
static void span_of_work(const struct bound_pass *pass, uint64_t *from_ns, uint64_t *to_ns)
{
	*from_ns = pass->device_count ? UINT64_MAX : 0;
	*to_ns = 0;
	for (size_t i = 0; i < pass->device_count; i++) {
		*from_ns = min_u64(*from_ns, pass->devices[i].first_ns);
		*to_ns = max_u64(*to_ns, pass->devices[i].last_ns);
	}
}

static uint64_t examined_time(const struct bound_pass *pass)
{
	uint64_t from_ns, to_ns;

	span_of_work(pass, &from_ns, &to_ns);
	return pass->idle.steps ? pass->idle.steps_ns : to_ns - from_ns;
}

/* The critical path that is being summed. */
struct path_pass {
	const struct bound_pass *of;
	const struct critical_path_graph *path;
	const struct host_ranges *host;
	uint64_t from_ns, to_ns; /* of the GPUs' work */
	uint64_t *wait_ns;       /* by node: PATH_EVENT and PATH_UNEXPLAINED */
};

/* Returns how much of an interval is in the examined steps or, without steps, while GPUs have
 * work. */
static uint64_t examined_ns(const struct path_pass *pass, uint64_t begin_ns, uint64_t end_ns)
{
	const bool in_steps = pass->of->result->steps;

	return step_idle_counted(&pass->of->idle,
		in_steps ? begin_ns : max_u64(begin_ns, pass->from_ns),
		in_steps ? end_ns : min_u64(end_ns, pass->to_ns));
}

/* Adds what the thread did in a segment between two calls, as far as it has a class. */
static void add_host_ranges(struct path_pass *pass, const struct path_segment *segment)
{
	struct run_bound *bound = pass->of->result;
	const uint32_t tid = critical_path_graph_tid(pass->path, segment->node);
	const struct host_range *range = host_ranges_first(
		pass->host, tid, segment->begin_ns, segment->end_ns);
	const struct host_range *const end = pass->host->ranges + pass->host->count;

	for (; range && range < end && range->tid == tid && range->begin_ns < segment->end_ns;
		range++)
		*(range->kind == HOST_RANGE_DATA ? &bound->path_data_ns
						 : &bound->path_compilation_ns) += examined_ns(pass,
			max_u64(range->begin_ns, segment->begin_ns),
			min_u64(range->end_ns, segment->end_ns));
}

static void add_path_segment(void *context, const struct path_segment *segment)
{
	struct path_pass *pass = context;
	struct run_bound *bound = pass->of->result;
	const uint64_t length_ns = examined_ns(pass, segment->begin_ns, segment->end_ns);

	bound->path_ns += length_ns;
	bound->path_of_kind[segment->kind] += length_ns;
	if (segment->kind != PATH_HOST && segment->kind != PATH_CALL)
		bound->whole_path_others_ns += segment->end_ns - segment->begin_ns;
	if (segment->kind == PATH_HOST || segment->kind == PATH_CALL)
		bound->path_host_ns += length_ns;
	else if (segment->kind <= PATH_MEMSET)
		bound->path_gpu_ns += length_ns;
	if (segment->kind == PATH_HOST && pass->host->count)
		add_host_ranges(pass, segment);
	if (segment->kind == PATH_EVENT || segment->kind == PATH_UNEXPLAINED)
		pass->wait_ns[path_node(pass->path, segment->node)->owner] += length_ns;
}

static void find_wait_node(struct path_pass *pass, uint32_t nodes)
{
	struct run_bound *bound = pass->of->result;

	for (uint32_t node = 1; node < nodes; node++)
		if (pass->wait_ns[node] > bound->path_wait_node_ns) {
			bound->path_wait_node = node;
			bound->path_wait_node_ns = pass->wait_ns[node];
		}
}

/* Sums the critical path in the examined steps or, without steps, while GPUs have work. */
static void read_path(struct process *process, struct bound_pass *of)
{
	const uint32_t nodes = process->profile->tree->count;
	struct path_pass pass = { .of = of, .host = host_ranges_of(process) };
	const struct critical_path_visitor visitor = { .context = &pass,
		.segment = add_path_segment };
	struct critical_path_graph *path = of->path;

	if (of->result->operations > BOUND_PATH_OPERATIONS_MAX || !wants_path(process))
		return;
	if (path)
		critical_path_graph_finish(path);
	else
		path = critical_path_graph_read(process);
	pass.path = path;
	pass.wait_ns = xcalloc(nodes * sizeof *pass.wait_ns);
	span_of_work(of, &pass.from_ns, &pass.to_ns);
	if (path->last != PATH_NONE)
		critical_path_graph_walk(path, &visitor);
	find_wait_node(&pass, nodes);
	free(pass.wait_ns);
	of->result->path = path;
	of->path = NULL;
}

bool run_bound_host_on_path(const struct run_bound *bound)
{
	return run_bound_is_percent(bound->path_host_ns, bound->path_ns, 50);
}

uint64_t run_bound_gain_max(const struct run_bound *bound, uint64_t whole_ns)
{
	return !bound->path_ns               ? UINT64_MAX
	       : whole_ns == bound->whole_ns ? bound->path_ns - bound->path_host_ns
					     : bound->whole_path_others_ns;
}

static void bound_pass_free(struct bound_pass *pass)
{
	for (size_t i = 0; i < pass->device_count; i++) {
		free(pass->devices[i].communicating.all);
		free(pass->devices[i].copying.all);
	}
	if (pass->path)
		critical_path_graph_free(pass->path);
	free(pass->result);
	free(pass);
}

void run_bound_drop(struct bound_pass *pass)
{
	if (!pass)
		return;
	run_bound_free(pass->result);
	bound_pass_free(pass);
}

void run_bound_free(struct run_bound *bound)
{
	for (enum bound class = BOUND_COMPUTE; class < BOUND_CLASSES; class ++)
		free(bound->node_ns[class]);
	if (bound->path)
		critical_path_graph_free(bound->path);
	*bound = (struct run_bound){ .bound = BOUND_UNJUDGED };
}

struct bound_pass *run_bound_begin(struct process *process)
{
	struct bound_pass *pass = xcalloc(sizeof *pass);

	pass->process = process;
	pass->result = xcalloc(sizeof *pass->result);
	pass->result->bound = BOUND_UNJUDGED;
	pass->result->nodes = process->profile->tree->count;
	pass->idle = step_idle_begin(process);
	pass->idle.counted = add_idle_to_node;
	pass->idle.context = pass->result;
	pass->result->steps = pass->idle.steps;
	return pass;
}

struct run_bound run_bound_finish(const struct options *options, struct bound_pass *pass)
{
	struct process *process = pass->process;
	struct run_bound bound;

	account_idle(pass);
	add_unknown(pass);
	pass->result->time_ns = examined_time(pass);
	for (enum bound class = BOUND_COMPUTE; class < BOUND_CLASSES; class ++)
		pass->result->whole_ns += pass->result->ns[class];
	judge(pass->result);
	read_path(process, pass);
	bound = *pass->result;
	bound_pass_free(pass);
	judge_bandwidth(options, process, &bound);
	return bound;
}
