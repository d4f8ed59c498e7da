/* SPDX-License-Identifier: MIT */
#include "report/profile/profile.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/profile/small_instances.h"
#include "report/profile/profile_state.h"
#include "report/profile/counted_ranges.h"
#include "report/gpu/graph_nodes.h"
#include "report/profile/step_sections.h"
#include <stdlib.h>

static void add_overhead(struct profile *profile, const struct trace_event *event)
{
	const struct trace_self *self = event->record;
	const uint64_t ns = reader_duration(profile->reader, self->stamp, self->duration);
	struct profile_thread *thread = event->stream->user;

	profile->totals.self_ns += ns;
	/* a thread without ranges and calls does not need it */
	if (self->what != TRACE_SELF_SEAL || !thread)
		return;
	thread->pause_ns = ns;
	thread->pause_begin_ns = event->time_ns > ns ? event->time_ns - ns : 0;
}

static void end_stream(struct profile *profile, const struct trace_event *event)
{
	if (event->stream->user)
		step_sections_thread_end(profile, event->stream->user, event->time_ns);
	profile_thread_end(profile, event->stream);
}

static void note_handover(struct profile *profile, const struct trace_away *record)
{
	profile->state->cupti_handed_over = record->edge == TRACE_AWAY_BEGINS;
	profile->counts.yielded += profile->state->cupti_handed_over;
}

/* Adds a record of a call, a tensor or the GPU. */
static void add_counted_record(struct profile *profile, const struct trace_event *event)
{
	profile->counts.records++;
	switch (event->kind) {
	case TRACE_LAUNCH:
	case TRACE_GRAPH_LAUNCH:
	case TRACE_COPY:
	case TRACE_SET:
	case TRACE_SYNC:
	case TRACE_ALLOC:
	case TRACE_FREE:
	case TRACE_MAPPING:
		profile_call_record(profile, event);
		break;
	case TRACE_TENSOR:
		profile_tensor_record(profile, event);
		break;
	case TRACE_TENSOR_OOM:
		profile_tensor_oom_record(profile, event);
		break;
	default:
		profile_gpu_record(profile, event);
	}
}

/* Handles every event that neither opens nor closes a range. */
static void add_record(struct profile *profile, const struct trace_event *event)
{
	switch (event->kind) {
	case EVENT_RESUMED:
		profile_open_range(profile, event);
		break;
	case EVENT_UNENDED:
		profile_drop_range(profile, event);
		break;
	case EVENT_LEFT_OPEN:
		profile_end_open_range(profile, event);
		break;
	case EVENT_STREAM_END:
		end_stream(profile, event);
		break;
	case TRACE_START:
		profile_observe_record(profile, event);
		profile_async_start(profile, event);
		break;
	case TRACE_END:
		profile_observe_record(profile, event);
		profile_async_end(profile, event);
		break;
	case TRACE_MARK:
		profile_mark(profile, event);
		break;
	case TRACE_METRIC:
		profile_counter_value(profile, event);
		break;
	case TRACE_WINDOW:
		profile_recording_window(profile, event);
		break;
	case TRACE_AWAY:
		note_handover(profile, event->record);
		break;
	case TRACE_SELF:
		add_overhead(profile, event);
		break;
	case TRACE_DEVICE_MEMORY:
		reader_run_deferred(profile->reader);
		memory_owners_sample(profile->memory, event->record, event->time_ns);
		memory_owners_device_memory(profile->memory, event->record, event->stream->tid);
		break;
	case TRACE_CPU_SAMPLE:
	case TRACE_SAMPLE:
	case TRACE_SAMPLED_THREAD:
	case TRACE_SAMPLE_PYTHON:
		profile_sample_record(profile, event);
		break;
	case TRACE_COLLECTIVE:
		profile_observe_record(profile, event);
		break;
	case TRACE_CLOCK:
	case EVENT_GAP:
	case EVENT_UNMATCHED:
		break;
	default:
		add_counted_record(profile, event);
	}
}

/* Reads to the end, so that the reader's counts are of the whole trace. */
static int skip_to_end(struct profile *profile)
{
	struct trace_event event;
	int status;

	do {
		struct trace_event next; /* stays in registers: it is not used */

		while (reader_next_decoded(profile->reader, &next))
			;
		status = reader_next_any(profile->reader, &event);
	} while (status > 0);
	return status;
}

#define RECORDS_AHEAD 6

/* Prefetches the record of an event to come, which another thread may have written. Inlined: the
 * compiler drops a call without effects. */
static inline __attribute__((always_inline)) void prefetch_next_record(
	const struct trace_reader *reader)
{
	const struct trace_event *event = reader_peek(reader, RECORDS_AHEAD);

	if (event && event->record)
		__builtin_prefetch(event->record);
}

static void run_events(struct profile *profile)
{
	const struct trace_event *event;
	struct trace_event room;
	/* others: events that the reader derived; the program did not record them. */
	uint64_t events = 0, others = 0;
	int status;

	while ((status = profile_next_event(profile, &room, &event, &events)) > 0) {
		prefetch_next_record(profile->reader);
		if (__builtin_expect(event->time_ns >= profile->state->section_end_ns, 0))
			step_sections_advance(profile, event);
		if (event->kind == TRACE_PUSH) {
			profile_open_range(profile, event);
		} else if (event->kind == EVENT_POP) {
			profile_close_range(profile, event, event->time_ns);
		} else {
			others += event->kind > TRACE_KINDS;
			add_record(profile, event);
			if (profile->state->needs_timeline || profile->state->needs_start_level)
				return;
		}
		events++;
		if (__builtin_expect(profile->target && !profile->options.observer, 0)) {
			status = skip_to_end(profile); /* only the target was requested */
			profile->state->skipped_rest = true;
			break;
		}
	}
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(profile->reader));
	profile->counts.events = events - others;
}

/* Whether the observer needs instances. It does not if the metric is CPU or wall time, which the
 * fast path knows. Nor for GPU time, because there is none before the first launch. */
static bool needs_instances(const struct profile_options *options)
{
	const bool quick = options->metric == METRIC_GPU || options->metric == METRIC_CPU ||
			   options->metric == METRIC_WALL;

	return options->observer &&
	       (options->observer->level ||
		       (profile_observes_values(options) && (options->pick_metric || !quick)));
}

/* Whether instances are not needed before the target begins. */
static bool can_await_target(const struct profile_options *options)
{
	return options->target && !options->observer && !options->pick_metric &&
	       (options->metric == METRIC_CPU || options->metric == METRIC_WALL ||
		       options->metric == METRIC_GPU);
}

static bool has_node_kind(struct trace_reader *reader, enum trace_node_kind kind)
{
	for (uint32_t id = 1; id < reader_node_count(reader); id++)
		if (reader_node(reader, id)->kind == kind)
			return true;
	return false;
}

/* Whether the first recording window began with the program. */
static bool first_window_from_start(const struct profile_options *options)
{
	return options->windows->count && !options->windows->windows->begin_ns;
}

static void make_tables(struct profile *profile)
{
	const struct profile_options *options = &profile->options;

	profile->tree = tree_new();
	profile->names = node_names_new(profile->reader, profile->texts, profile->tree,
		!options->no_fold, options->demangle, options->categories);
	profile->kernels = launch_configs_new();
	profile->memory = memory_owners_new();
	/* the program began before the file did */
	if (reader_meta(profile->reader, "import.format").known ||
		reader_window_begin_ns(profile->reader))
		memory_owners_resume(profile->memory);
}

/* Chooses what has to be known of each instance of a range. */
static void choose_tracking(struct profile *profile)
{
	const struct profile_options *options = &profile->options;
	struct profile_state *state = profile->state;

	state->instances = (struct instances){ .final = profile_instance_final,
		.context = profile,
		.keeps_children = options->target != NULL };
	state->tracks_instances = options->steps || options->windows ||
				  (options->target && !can_await_target(options)) ||
				  needs_instances(options) || options->metric == METRIC_CALLS ||
				  options->metric == METRIC_USER;
	state->tracks_sums = options->target || options->metric == METRIC_CALLS ||
			     options->metric == METRIC_ALLOC || options->metric == METRIC_TENSORS;
	state->target_ns = options->target && !state->tracks_instances ? options->target->begin_ns
								       : UINT64_MAX;
}

static void notify_of_begin(const struct profile *profile, const struct profile_observer *observer)
{
	if (observer->restart)
		observer->restart(observer->context);
	if (observer->counting && profile_is_partial(profile) && profile->state->counting)
		observer->counting(observer->context, true, 0);
}

/* Begins a pass: the profile is empty. */
static void begin_events(struct profile *profile)
{
	const struct profile_options *options = &profile->options;
	struct profile_state *state = xcalloc(sizeof *state);

	profile->state = state;
	profile->totals.level_device = options->device >= 0 ? (uint32_t)options->device
							    : UINT32_MAX;
	state->imported = reader_meta(profile->reader, "import.format").known;
	state->allocated = options->allocated_at_start;
	state->first_correlation = UINT64_MAX;
	state->counting = !options->steps &&
			  !(options->windows && !first_window_from_start(options));
	state->has_step_kind = options->steps && has_node_kind(profile->reader, TRACE_NODE_STEP);
	choose_tracking(profile);
	state->section_end_ns = UINT64_MAX;
	profile_set_root(profile, 0);
	counted_ranges_begin(profile);
	if (options->found_steps && options->found_steps->count && !state->counted_ranges)
		step_sections_begin(profile);
	if (options->windows && first_window_from_start(options) &&
		options->windows->windows->warmup && state->sections && options->found_steps &&
		options->found_steps->own_ranges) {
		state->warming_up = true;
		state->counting = false;
	}
	if (can_await_target(options) && options->metric != METRIC_GPU && !state->sections)
		state->small_instances = small_instances_new(profile);
	profile_find_counter(profile);
	profile_memory_begin(profile);
	profile_tensors_begin(profile);
	if (options->observer)
		notify_of_begin(profile, options->observer);
}

static void free_thread(struct profile_state *state, struct profile_thread *thread)
{
	for (uint32_t depth = thread->details ? thread->depth : 0; depth > 0; depth--) {
		free(thread->details[depth - 1].label);
		instance_release(&state->instances, thread->details[depth - 1].instance);
	}
	free(thread->frames);
	free(thread->details);
	free(thread);
}

static void free_state(struct profile *profile)
{
	struct profile_state *state = profile->state;

	reader_run_deferred(profile->reader); /* if the pass was ended early */
	while (state->thread_count)
		free_thread(state, state->threads[--state->thread_count]);
	profile_async_close_all(profile);
	profile_drop_launches(state);
	free(state->threads);
	free(state->async_ranges);
	free(state->api_of);
	free(state->tensor_totals->freed_bytes);
	free(state->tensor_totals);
	sampled_index_free(state->sampled);
	free(state->counters);
	step_sections_free(state->sections);
	counted_ranges_free(state->counted_ranges);
	idle_gaps_free(state->idle_gaps);
	graph_nodes_free(state->graph_nodes);
	free(state->graph_parents);
	small_instances_free(state->small_instances);
	instances_free_blocks(&state->instances);
	free(state);
	profile->state = NULL;
}

static uint32_t worst_label(
	struct profile *profile, const struct node_worst *worst, uint32_t node_name)
{
	if (worst->own)
		return string_table_intern(profile->texts, worst->own, worst->own_bytes);
	if (!worst->trace_node)
		return node_name;
	return node_names_text(
		profile->names, reader_node(profile->reader, worst->trace_node)->name);
}

static void resolve_worst(struct profile *profile, uint32_t id)
{
	struct node *node = &profile->tree->nodes[id];
	struct node_worst *worst = node->worst;
	const bool by_time = profile->options.metric == METRIC_CPU ||
			     profile->options.metric == METRIC_WALL;

	if (by_time && node->calls && node_kind_class(node->kind) == NODE_RANGES &&
		(!worst || worst->value < node->max_ns)) {
		const struct worst_candidate longest = { .value = node->max_ns,
			.begin_ns = node->longest_begin_ns,
			.end_ns = node->longest_begin_ns + node->max_ns,
			.trace_node = node->longest_trace_node,
			.stream = node->longest_stream };

		profile_offer_worst(profile, id, &longest);
		worst = profile->tree->nodes[id].worst;
	}
	if (!worst)
		return;
	worst->label = worst_label(profile, worst, node->name);
}

static void add_device_times(struct profile_totals *totals, const struct timeline_device *device)
{
	const struct timeline_work *work = &device->all;

	totals->gpu_busy_ns += work->busy_ns;
	totals->gpu_idle_ns += work->last_ns - work->first_ns - work->busy_ns - device->unknown_ns;
	totals->gpu_unknown_ns += device->unknown_ns;
	totals->gpu_computation_ns += work->computation_ns;
	totals->gpu_communication_ns += work->communication_ns;
	totals->gpu_exposed_communication_ns += work->exposed_communication_ns;
	totals->gpu_copy_ns += work->copy_ns;
	totals->gpu_exposed_copy_ns += work->exposed_copy_ns;
}

/* Start/end ranges overlap and cross threads, so they are no time of a thread. CUDA calls outside
 * any range are below a root `unattributed`. */
static void add_cpu_times(struct profile *profile)
{
	const struct node *nodes = profile->tree->nodes;

	for (uint32_t id = 1; id < profile->tree->count; id++) {
		const struct node *node = &nodes[id];

		if (node->kind == NODE_ASYNC || nodes[node->parent].kind == NODE_ASYNC)
			continue;
		if (node_kind_class(node->kind) == NODE_RANGES)
			profile->totals.cpu_self_ns += node->self_ns;
		else if (node_kind_class(node->kind) == NODE_CALLS &&
			 nodes[node->parent].kind == NODE_UNATTRIBUTED &&
			 !nodes[node->parent].parent)
			profile->totals.outside_call_ns += node->total_ns;
	}
}

static void compute_totals(struct profile *profile)
{
	const struct timeline_device *devices;
	const size_t count = timeline_devices(profile->timeline, &devices);

	profile->totals.wall_ns = profile_is_partial(profile) ? profile->state->counted_ns
							      : reader_duration_ns(profile->reader);
	for (size_t i = 0; i < count && !profile_is_partial(profile); i++)
		add_device_times(&profile->totals, &devices[i]);
	add_cpu_times(profile);
	profile->totals.reserved_now = profile->state->reserved;
	profile->totals.allocated_now = profile->state->allocated;
}

/* NULL: the timeline is not needed, or no timed GPU work is expected. */
static struct timeline *open_timeline(
	struct trace_reader *reader, const struct profile_options *options)
{
	if (options->no_timeline)
		return NULL;
	if (options->timeline)
		timeline_rewind(options->timeline);
	else if (reader_dictionary_count(reader, TRACE_DEVICE) || options->metric == METRIC_IDLE)
		return timeline_open(reader, options->device, options->categories);
	return options->timeline;
}

/* Returns the timeline for the pass after `profile`, which needs it or has one. */
static struct timeline *timeline_for_next_pass(const struct profile *profile)
{
	const struct profile_options *options = &profile->options;
	struct timeline *timeline = profile->timeline;

	if (!profile->state->needs_timeline) {
		if (timeline)
			timeline_rewind(timeline);
		return timeline;
	}
	timeline = timeline_open(profile->reader, options->device, options->categories);
	if (!timeline)
		fatal(STATUS_UNREADABLE, "%s: the file changed while it was read; read it again",
			reader_path(profile->reader));
	return timeline;
}

/* Makes the tables, which are empty, and chooses the metric. */
static void make_empty(struct profile *profile)
{
	profile->is_new = true;
	profile->owns_timeline = profile->timeline != profile->options.timeline;
	if (profile->options.pick_metric)
		profile->options.metric = profile->timeline ? METRIC_GPU : METRIC_CPU;
	make_tables(profile);
}

static void free_contents(struct profile *profile)
{
	if (profile->state)
		free_state(profile);
	instance_free(profile->target);
	if (profile->owns_timeline)
		timeline_free(profile->timeline);
	launch_configs_free(profile->kernels);
	memory_owners_free(profile->memory);
	node_names_free(profile->names);
	tree_free(profile->tree);
	free(profile->apis);
	free(profile->threads);
	free(profile->sampled_threads);
	sample_places_free(profile->sample_places);
	free(profile->oom_ranges);
	free(profile->oom_threads);
}

/* Makes the profile empty again, with what the pass has found. */
static void begin_again(struct profile *profile)
{
	struct timeline *timeline = timeline_for_next_pass(profile);

	profile->owns_timeline = false;
	free_contents(profile);
	*profile = (struct profile){ .options = profile->options,
		.reader = profile->reader,
		.texts = profile->texts,
		.timeline = timeline };
	make_empty(profile);
}

/* Makes the pass over the events; again where it finds what it should have known before. */
static void run_passes(struct profile *profile)
{
	for (;;) {
		reader_rewind(profile->reader);
		reader_join(profile->reader);
		if (profile->options.no_samples)
			reader_leave_out_samples(profile->reader);
		begin_events(profile);
		profile->state->tracks_instances |= profile->timeline != NULL;
		run_events(profile);
		if (!profile->state->needs_timeline && !profile->state->needs_start_level)
			return;
		begin_again(profile);
	}
}

static bool has_only_samples(const struct profile *profile)
{
	const struct sample_sums *sums = &profile->sampled;

	for (uint32_t id = 1; id < profile->tree->count; id++) {
		const struct node *node = &profile->tree->nodes[id];

		if (node->calls || node->total_ns || node->gpu || node->memory || node->tensors)
			return false;
	}
	return sums->samples || sums->waits_ns || sums->blocked_ns;
}

struct profile *profile_new(struct trace_reader *reader, struct string_table *texts,
	const struct profile_options *options)
{
	struct profile *profile = xcalloc(sizeof *profile);

	profile->options = *options;
	profile->reader = reader;
	profile->texts = texts;
	profile->timeline = open_timeline(reader, options);
	make_empty(profile);
	return profile;
}

/* Makes the sums and what else is known at the end. */
static void finish_profile(struct profile *profile)
{
	profile_async_close_all(profile);
	if (profile->state->counting && profile_is_partial(profile))
		profile_stop_counting(profile);
	for (size_t i = 0; i < profile->state->thread_count; i++)
		profile_keep_thread_time(profile, profile->state->threads[i]);
	profile_gpu_finish(profile);
	idle_gaps_finish(profile);
	reader_run_deferred(profile->reader);
	profile_memory_finish(profile);
	memory_owners_finish(profile->memory);
	profile_tensors_finish(profile);
	for (uint32_t id = 1; id < profile->tree->count; id++)
		resolve_worst(profile, id);
	counted_ranges_finish(profile);
	profile_samples_finish(profile);
	module_group_finish(node_names_module_group(profile->names));
	tree_sum(profile->tree);
	compute_totals(profile);
	profile->only_samples = has_only_samples(profile);
	free_state(profile);
	if (profile->target)
		instance_finish_children(profile->target, profile_critical_min(profile));
}

void profile_fill(struct profile *profile)
{
	run_passes(profile);
	finish_profile(profile);
	profile->is_new = false;
}

struct profile *profile_build(struct trace_reader *reader, struct string_table *texts,
	const struct profile_options *options)
{
	struct profile *profile = profile_new(reader, texts, options);

	profile_fill(profile);
	return profile;
}

struct profile_options profile_options_for_observer(
	const struct profile *profile, const struct profile_observer *observer)
{
	struct profile_options options = profile->options;

	options.pick_metric = false;
	options.target = NULL;
	options.observer = observer;
	options.no_timeline = options.no_owners_and_delays = options.no_percentiles = true;
	options.sample_places = false;
	options.no_samples = !observer->sample;
	return options;
}

bool profile_root_has_share(const struct profile *profile, uint32_t root, bool of_cpu_time)
{
	const struct node *node = &profile->tree->nodes[root];

	return root != profile->async_ranges &&
	       !(of_cpu_time && (node->ran_elsewhere || node->outside));
}

long double profile_cpu_of_roots(const struct profile *profile)
{
	long double sum = 0;

	for (uint32_t id = profile->tree->nodes[0].first_child; id;
		id = profile->tree->nodes[id].next)
		if (profile_root_has_share(profile, id, true))
			sum += profile->tree->nodes[id].total_ns;
	return sum;
}

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	free_contents(profile);
	free(profile);
}
