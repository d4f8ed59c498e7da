/* SPDX-License-Identifier: MIT */
#include "report/diagnose/run_bound.h"
#include "report/analysis/event_sweep.h"
#include "report/analysis/host_ranges.h"
#include "report/analysis/idle_parts.h"
#include "report/analysis/tree_categories.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/search.h"
#include "report/diagnose/diagnosis_internal.h"
#include "report/table/computed_row.h"
#include "report/views/views.h"
#include <stdlib.h>
#include <string.h>

/* Percent of the compute time that a model must know, and of that what memory must limit. */
#define MODELLED_MIN 50u
#define MEMORY_LIMITED_MIN 67u

struct bound_device {
	uint32_t device;
	uint64_t running[BOUND_COUNT]; /* operations of each class that run now */
	uint64_t since_ns;             /* trace time up to which the device is accounted */
	uint64_t first_ns, last_ns;    /* begin of the first operation, end of the last */
	uint32_t first_tid;            /* thread that launched the first; 0: unknown */
	bool begun;
};

struct bound_pass {
	const struct process *process;
	struct run_bound *result;
	const struct host_ranges *host;
	struct bound_device devices[TIMELINE_DEVICES];
	size_t device_count;
	int64_t clock_offset; /* trace time - Unix time, of the latest operation */
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

/* Returns the number of examined steps, which are the steady-state ones (STEP_USUAL). 0: all time
 * counts, because there are none, they overlap, or --steps selects some. */
static size_t examined_steps(const struct process *process)
{
	const struct steps *steps = process->steps;
	size_t count = 0;

	if (process->profile->options.steps || steps_overlap(steps))
		return 0;
	for (size_t i = 0; steps && i < steps->count; i++)
		count += steps->steps[i].kind == STEP_USUAL;
	return count;
}

DEFINE_COUNT_WHILE(steps_ended, struct step, item->window_end_ns <= limit)

/* Returns how much of an interval is in examined steps. */
static uint64_t examined_ns(const struct bound_pass *pass, uint64_t from_ns, uint64_t to_ns)
{
	const struct steps *steps = pass->process->steps;
	uint64_t sum = 0;

	if (to_ns <= from_ns)
		return 0;
	if (!steps || !pass->result->steps)
		return to_ns - from_ns;
	for (size_t i = steps_ended(steps->steps, steps->count, from_ns);
		i < steps->count && steps->steps[i].window_begin_ns < to_ns; i++) {
		const uint64_t from = max_u64(from_ns, steps->steps[i].window_begin_ns),
			       to = min_u64(to_ns, steps->steps[i].window_end_ns);

		if (steps->steps[i].kind == STEP_USUAL && to > from)
			sum += to - from;
	}
	return sum;
}

static enum bound class_of_work(const struct activity *work)
{
	return work->kind == ACTIVITY_COPY ? BOUND_COPIES
	       : work->communicates        ? BOUND_COMMUNICATION
					   : BOUND_COMPUTE;
}

/* Accounts the time since the last event to what has run since. */
static void account(struct bound_pass *pass, struct bound_device *device, uint64_t at_ns)
{
	const enum bound class = device->running[BOUND_COMPUTE]         ? BOUND_COMPUTE
				 : device->running[BOUND_COMMUNICATION] ? BOUND_COMMUNICATION
									: BOUND_COPIES;

	if (device->running[class])
		pass->result->ns[class] += examined_ns(pass, device->since_ns, at_ns);
	device->since_ns = max_u64(device->since_ns, at_ns);
}

static void begin_work(
	void *context, const struct activity *work, uint64_t at_ns, struct sweep_mark *mark)
{
	struct bound_pass *pass = context;
	struct bound_device *device = device_slot(
		pass->devices, &pass->device_count, sizeof *pass->devices, work->device);
	const enum bound class = class_of_work(work);

	pass->clock_offset = (int64_t)(work->begin_ns - work->start_unix_ns);
	at_ns += (uint64_t)pass->clock_offset;
	if (!device->begun) {
		device->first_ns = device->since_ns = at_ns;
		device->first_tid = work->has_call ? work->tid : 0;
		device->begun = true;
	}
	account(pass, device, at_ns);
	device->running[class]++;
	pass->result->operations += !pass->result->steps || examined_ns(pass, at_ns, at_ns + 1);
	*mark = (struct sweep_mark){ (uint32_t)(device - pass->devices), (uint32_t) class, 0 };
}

static void end_work(void *context, const struct sweep_mark *mark, uint64_t at_ns)
{
	struct bound_pass *pass = context;
	struct bound_device *device = &pass->devices[mark->device];

	account(pass, device, at_ns + (uint64_t)pass->clock_offset);
	device->last_ns = device->since_ns;
	device->running[mark->first]--;
}

static enum bound class_of_cause(enum gap_cause cause)
{
	static const enum bound classes[GAP_CAUSE_COUNT] = { [GAP_LAUNCH] = BOUND_LAUNCH,
		[GAP_DATA] = BOUND_DATA,
		[GAP_COMPILATION] = BOUND_COMPILATION,
		[GAP_SYNC] = BOUND_SYNC,
		[GAP_ALLOCATION] = BOUND_ALLOCATION,
		[GAP_COPY] = BOUND_COPIES,
		[GAP_LATENCY] = BOUND_LAUNCH,
		[GAP_KERNELS] = BOUND_GAPS,
		[GAP_EVENT] = BOUND_WAITING,
		[GAP_QUEUED] = BOUND_WAITING,
		[GAP_UNKNOWN] = BOUND_UNKNOWN };

	return classes[cause];
}

static void add_idle(void *context, const struct idle_part *idle)
{
	struct bound_pass *pass = context;
	const struct gap_part *part = &idle->part;

	pass->result->ns[class_of_cause(part->cause)] +=
		pass->result->steps
			? min_u64(examined_ns(pass, part->begin_ns, part->end_ns), idle->length_ns)
			: idle->length_ns;
}

/* Accounts the time between `from_ns` and `to_ns`, which are before the first operation of a device
 * or after its last: to data loading or compilation while thread `tid` did that, else to launch.
 * Only time in examined steps counts. `tid`: the thread that launched the first operation; 0:
 * unknown. */
static void add_time_without_work(
	struct bound_pass *pass, uint32_t tid, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t ns[BOUND_CLASSES] = { [BOUND_LAUNCH] = examined_ns(pass, from_ns, to_ns) };
	const struct host_range *range;

	while (tid && (range = host_ranges_first(pass->host, tid, from_ns, to_ns))) {
		const uint64_t until = min_u64(range->end_ns, to_ns),
			       length = examined_ns(pass, max_u64(range->begin_ns, from_ns), until);

		ns[range->kind == HOST_RANGE_DATA ? BOUND_DATA : BOUND_COMPILATION] += length;
		ns[BOUND_LAUNCH] -= length;
		from_ns = until;
	}
	for (enum bound class = BOUND_COMPUTE; class < BOUND_CLASSES; class ++) {
		pass->result->ns[class] += ns[class];
		pass->result->ends_ns[class] += ns[class];
	}
}

/* Accounts the time of the examined steps before the first operation of each device and after its
 * last. */
static void add_time_outside_work(struct bound_pass *pass)
{
	const uint64_t end_ns = pass->process->profile->totals.wall_ns;

	for (size_t i = 0; i < pass->device_count && pass->result->steps; i++) {
		const struct bound_device *device = &pass->devices[i];

		add_time_without_work(pass, device->first_tid, 0, device->first_ns);
		add_time_without_work(pass, device->first_tid, device->last_ns, end_ns);
	}
}

/* Accounts the time in which it is unknown whether the devices were busy. */
static void add_unknown(struct bound_pass *pass)
{
	const struct profile *profile = pass->process->profile;
	const struct steps *steps = pass->process->steps;
	const struct timeline_device *devices;
	const size_t count = timeline_devices(profile->timeline, &devices);

	for (size_t i = 0; i < count && !pass->result->steps; i++)
		pass->result->ns[BOUND_UNKNOWN] += devices[i].unknown_ns;
	for (size_t i = 0; i < count && pass->result->steps; i++)
		for (size_t step = 0; step < steps->count; step++)
			if (steps->steps[step].kind == STEP_USUAL)
				pass->result->ns[BOUND_UNKNOWN] += timeline_unknown_within(
					profile->timeline, devices[i].device, HANDOVER_TRACE_TIME,
					steps->steps[step].window_begin_ns,
					steps->steps[step].window_end_ns);
}

/* Reads which of the operators that a model knows are limited by memory, from the rows of the view
 * `roofline`. */
static void read_limits(
	const struct options *options, struct process *process, struct run_bound *bound)
{
	const struct options roofline = diagnose_row_options(options, "roofline", UINT32_MAX);
	struct processes only = { .all = process, .count = 1, .shown = 1 };
	struct rows rows = { .count = 0 };

	arrange_roofline(&roofline, &only, &rows);
	for (size_t i = 0; i < rows.count; i++) {
		const struct row *row = &rows.rows[i];
		const bool memory = computed_row_is(row, "roof", "memory");

		if (!computed_row_is(row, "kind", "op") ||
			(!memory && !computed_row_is(row, "roof", "compute")))
			continue;
		bound->modelled_ns += computed_row_number(row, "gpu_total_ns");
		bound->memory_limited_ns += memory ? computed_row_number(row, "gpu_total_ns") : 0;
	}
	free(rows.rows);
}

static bool is_percent(uint64_t part, uint64_t whole, unsigned percent)
{
	return part && (long double)part * 100 >= (long double)whole * percent;
}

static enum bound largest_but_compute(const struct run_bound *bound)
{
	enum bound most = BOUND_COMMUNICATION;

	for (enum bound class = BOUND_COMMUNICATION; class < BOUND_CLASSES; class ++)
		if (bound->ns[class] > bound->ns[most])
			most = class;
	return most;
}

static void judge(struct run_bound *bound)
{
	const enum bound most = largest_but_compute(bound);

	bound->confidence = CONFIDENCE_HIGH;
	if (bound->operations < BOUND_OPERATIONS_MIN || !bound->whole_ns) {
		bound->bound = BOUND_UNJUDGED;
		bound->confidence = CONFIDENCE_LOW;
	} else if (is_percent(bound->ns[most], bound->whole_ns, BOUND_SHARE_MIN)) {
		bound->bound = most;
		if (most == BOUND_UNKNOWN)
			bound->confidence = CONFIDENCE_LOW;
		else if (most == BOUND_WAITING || !is_percent(bound->ns[most], bound->whole_ns, 50))
			bound->confidence = CONFIDENCE_MEDIUM;
	} else if (is_percent(bound->ns[BOUND_COMPUTE], bound->whole_ns, 50)) {
		bound->bound = BOUND_COMPUTE;
		if (!is_percent(bound->ns[BOUND_COMPUTE], bound->whole_ns, 70))
			bound->confidence = CONFIDENCE_MEDIUM;
	} else {
		bound->bound = BOUND_NOTHING;
		bound->confidence = CONFIDENCE_LOW;
	}
}

/* Replaces compute by memory bandwidth where a model knows most of the compute time, and memory
 * limits most of that. */
static void judge_bandwidth(
	const struct options *options, struct process *process, struct run_bound *bound)
{
	if (bound->bound != BOUND_COMPUTE)
		return;
	read_limits(options, process, bound);
	if (!is_percent(bound->modelled_ns, process->profile->totals.gpu_sum_ns, MODELLED_MIN) ||
		!is_percent(bound->memory_limited_ns, bound->modelled_ns, MEMORY_LIMITED_MIN))
		return;
	bound->ns[BOUND_BANDWIDTH] = bound->ns[BOUND_COMPUTE];
	bound->ns[BOUND_COMPUTE] = 0;
	bound->bound = BOUND_BANDWIDTH;
	bound->confidence = CONFIDENCE_MEDIUM;
}

struct run_bound run_bound_read(const struct options *options, struct process *process)
{
	struct run_bound bound = { .bound = BOUND_UNJUDGED, .steps = examined_steps(process) };
	struct bound_pass *pass = xcalloc(sizeof *pass);
	const struct event_sweep_visitor visitor = {
		.context = pass, .begins = begin_work, .ends = end_work
	};
	struct activities *activities = activities_read(process);

	pass->process = process;
	pass->result = &bound;
	pass->host = host_ranges_of(process);
	event_sweep_run(activities, &visitor, false);
	idle_parts_visit(process, activities, add_idle, pass);
	add_time_outside_work(pass);
	add_unknown(pass);
	for (enum bound class = BOUND_COMPUTE; class < BOUND_CLASSES; class ++)
		bound.whole_ns += bound.ns[class];
	judge(&bound);
	activities_free(activities);
	free(pass);
	judge_bandwidth(options, process, &bound);
	return bound;
}

/* The verdict in words: what bounds the run, and what the GPU does. %s: share of the time. */
static const char *const sentences[BOUND_COUNT] = {
	[BOUND_COMPUTE] = "The run is bound by the GPU's kernels, which compute for %s of the time",
	[BOUND_BANDWIDTH] = "The run is bound by the GPU's memory bandwidth: kernels run for %s of "
			    "the time, and memory limits most of them",
	[BOUND_COMMUNICATION] = "The run is bound by exposed communication: for %s of the time the "
				"GPU communicates and computes nothing",
	[BOUND_COPIES] = "The run is bound by copies: for %s of the time the GPU only copies, or "
			 "waits for a copy call of the host",
	[BOUND_LAUNCH] = "The run is launch-bound: for %s of the time the GPU is idle because the "
			 "host has not launched its next operation",
	[BOUND_GAPS] = "The run is bound by gaps between kernels: for %s of the time the GPU is "
		       "idle for microseconds between operations that were launched in time",
	[BOUND_DATA] = "The run is bound by data loading: for %s of the time the GPU is idle while "
		       "the next batch is fetched",
	[BOUND_COMPILATION] = "The run is bound by compilation: for %s of the time the GPU is idle "
			      "while the host compiles",
	[BOUND_ALLOCATION] = "The run is bound by allocation: for %s of the time the GPU is idle "
			     "while the host allocates or frees memory",
	[BOUND_SYNC] = "The run is bound by synchronisation: for %s of the time the GPU is idle, "
		       "as the host had waited for it before it launched more",
	[BOUND_WAITING] = "Launched work does not start for %s of the time: it waits for an event, "
			  "for something that the trace does not show, or for another process",
	[BOUND_UNKNOWN] = "What bounds the run cannot be said: for %s of the time the trace does "
			  "not show what the GPU did, or why it was idle",
	[BOUND_NOTHING] = "Nothing in particular bounds the run; the kernels compute for %s of the "
			  "time",
};

/* Words of the command that shows more, between `pperf-report` and the trace. */
static const char *const views[BOUND_COUNT] = { [BOUND_COMPUTE] = "categories",
	[BOUND_BANDWIDTH] = "roofline",
	[BOUND_COMMUNICATION] = "overlap",
	[BOUND_COPIES] = "overlap",
	[BOUND_LAUNCH] = "idle",
	[BOUND_GAPS] = "idle",
	[BOUND_DATA] = "idle",
	[BOUND_COMPILATION] = "idle",
	[BOUND_ALLOCATION] = "api",
	[BOUND_SYNC] = "idle",
	[BOUND_WAITING] = "queue",
	[BOUND_UNKNOWN] = "idle",
	[BOUND_NOTHING] = "categories",
	[BOUND_UNJUDGED] = "info" };

/* Writes the shares of all classes with 1 % or more, the largest first. */
static void list_shares(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	bool listed[BOUND_CLASSES] = { false };
	size_t used = strlen(text->evidence);

	for (unsigned n = 0; n < BOUND_CLASSES; n++) {
		enum bound most = BOUND_COUNT;

		for (enum bound class = BOUND_COMPUTE; class < BOUND_CLASSES; class ++)
			if (!listed[class] && is_percent(bound->ns[class], bound->whole_ns, 1) &&
				(most == BOUND_COUNT || bound->ns[class] > bound->ns[most]))
				most = class;
		if (most == BOUND_COUNT)
			return;
		listed[most] = true;
		finding_set_text(text->evidence + used, sizeof text->evidence - used, "%s%s %s",
			n ? ", " : "", bound_name(most),
			diagnose_share(diagnosis, bound->ns[most], bound->whole_ns));
		used += strlen(text->evidence + used);
	}
}

#define CATEGORIES_LISTED 3u

/* Adds the categories of kernels with most GPU time: what a run that is bound by kernels is bound
 * by. */
static void list_categories(struct diagnosis *diagnosis, struct finding *text)
{
	const struct profile *profile = diagnosis->profile;
	const struct categories *categories = diagnosis->process->categories;
	uint8_t *of_node = categories_of_tree(categories, profile->tree, diagnosis->process->texts);
	uint64_t ns[CATEGORIES_MAX] = { 0 };
	size_t used = strlen(text->evidence);

	for (uint32_t id = 1; id < profile->tree->count; id++) {
		const struct node *node = &profile->tree->nodes[id];

		if (node->kind == NODE_KERNEL && node->gpu && !node->captured &&
			of_node[id] != CATEGORY_OTHER)
			ns[of_node[id]] += node->gpu->self_ns;
	}
	for (unsigned n = 0; n < CATEGORIES_LISTED; n++) {
		unsigned most = 0;

		for (unsigned category = 1; category < CATEGORIES_MAX; category++)
			most = ns[category] > ns[most] ? category : most;
		if (!is_percent(ns[most], profile->totals.gpu_sum_ns, 5))
			break;
		finding_set_text(text->evidence + used, sizeof text->evidence - used, "%s%s %s",
			n ? ", " : "; of all GPU time: ", categories_name(categories, most),
			diagnose_share(diagnosis, ns[most], profile->totals.gpu_sum_ns));
		used += strlen(text->evidence + used);
		ns[most] = 0;
	}
	free(of_node);
}

static void explain_confidence(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	if (bound->bound == BOUND_BANDWIDTH)
		SET_TEXT(text->reason,
			"modelled: of %s in operators whose operations and bytes are known, %s are "
			"limited by memory bandwidth",
			diagnose_time(diagnosis, bound->modelled_ns),
			diagnose_time(diagnosis, bound->memory_limited_ns));
	else if (bound->bound == BOUND_NOTHING)
		SET_TEXT(text->reason, "no class takes %u %% of the time", BOUND_SHARE_MIN);
	else if (bound->bound == BOUND_COMPUTE && bound->confidence == CONFIDENCE_MEDIUM)
		SET_TEXT(text->reason, "measured; the other classes take more than 30 %% together");
	else if (bound->bound == BOUND_UNKNOWN)
		SET_TEXT(text->reason, "the trace lacks most of what would show it");
	else if (bound->bound == BOUND_WAITING)
		SET_TEXT(text->reason, "measured, but the trace may not show what was waited for");
	else if (bound->confidence == CONFIDENCE_MEDIUM)
		SET_TEXT(text->reason, "measured: the largest class besides compute, but less than "
				       "half of the time");
	else
		SET_TEXT(text->reason,
			"measured: each nanosecond of the GPUs' time is in one class");
}

/* Returns true if the run is bound by something that takes less time than the kernels do. */
static bool kernels_take_more(const struct run_bound *bound)
{
	return bound->bound != BOUND_UNKNOWN && bound->bound < BOUND_CLASSES &&
	       bound->ns[bound->bound] < bound->ns[BOUND_COMPUTE];
}

void run_bound_explain(
	struct diagnosis *diagnosis, const struct run_bound *bound, struct finding *text)
{
	const enum bound shown = bound->bound == BOUND_NOTHING ? BOUND_COMPUTE : bound->bound;

	SET_TEXT(text->view, "%s", views[bound->bound]);
	if (bound->bound == BOUND_UNJUDGED) {
		SET_TEXT(text->sentence, "There is too little GPU work in the trace to say what "
					 "bounds the run.");
		SET_TEXT(text->reason, "%s; at least %u are needed",
			diagnose_plural(diagnosis, bound->operations, "GPU operation"),
			BOUND_OPERATIONS_MIN);
		return;
	}
	finding_set_text(text->sentence, sizeof text->sentence, sentences[bound->bound],
		diagnose_share(diagnosis, bound->ns[shown], bound->whole_ns));
	strncat(text->sentence,
		kernels_take_more(bound) ? ", which no faster kernel shortens." : ".",
		sizeof text->sentence - strlen(text->sentence) - 1);
	if (bound->steps)
		SET_TEXT(text->evidence, "%s in %s: ", diagnose_time(diagnosis, bound->whole_ns),
			bound->steps == 1
				? "1 step"
				: diagnose_plural(diagnosis, bound->steps, "steady-state step"));
	else if (is_percent(bound->whole_ns, diagnosis->facts.run_ns, 90))
		SET_TEXT(text->evidence, "%s from the first GPU operation to the last: ",
			diagnose_time(diagnosis, bound->whole_ns));
	else
		SET_TEXT(text->evidence,
			"%s from the first GPU operation to the last, of a run of %s: ",
			diagnose_time(diagnosis, bound->whole_ns),
			diagnose_time(diagnosis, diagnosis->facts.run_ns));
	list_shares(diagnosis, bound, text);
	if (shown == BOUND_COMPUTE || shown == BOUND_BANDWIDTH)
		list_categories(diagnosis, text);
	explain_confidence(diagnosis, bound, text);
}
