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

static void fold_self(struct fold *fold, const struct trace_event *event)
{
	const struct trace_self *self = event->record;
	const uint64_t ns = reader_duration(fold->reader, self->stamp, self->duration);
	struct thread *thread = event->stream->user;

	fold->totals.self_ns += ns;
	if (self->what != TRACE_SELF_SEAL || !thread) /* of a thread without ranges and calls nobody asks */
		return;
	thread->pause_ns = ns;
	thread->pause_begin_ns = event->time_ns > ns ? event->time_ns - ns : 0;
}

/* Everything but the opening and closing of ranges. */
static void fold_record(struct fold *fold, const struct trace_event *event)
{
	const struct trace_away *away = event->record;

	switch (event->kind) {
	case EVENT_RESUMED:
		fold_open(fold, event);
		break;
	case EVENT_UNENDED:
		fold_drop(fold, event);
		break;
	case EVENT_LEFT_OPEN:
		fold_left_open(fold, event);
		break;
	case EVENT_STREAM_END:
		if (event->stream->user)
			sections_part(fold, event->stream->user, event->time_ns);
		fold_thread_ends(fold, event->stream);
		break;
	case TRACE_START:
		fold_span_start(fold, event);
		break;
	case TRACE_END:
		fold_span_end(fold, event);
		break;
	case TRACE_MARK:
		fold_mark(fold, event);
		break;
	case TRACE_METRIC:
		fold_metric(fold, event);
		break;
	case TRACE_WINDOW:
		fold_window(fold, event);
		break;
	case TRACE_AWAY:
		fold->state->away = away->edge == TRACE_AWAY_BEGINS;
		fold->counts.yielded += fold->state->away;
		break;
	case TRACE_SELF:
		fold_self(fold, event);
		break;
	case TRACE_LAUNCH:
	case TRACE_GRAPH_LAUNCH:
	case TRACE_COPY:
	case TRACE_SET:
	case TRACE_SYNC:
	case TRACE_ALLOC:
	case TRACE_FREE:
		fold->counts.records++;
		fold_call(fold, event);
		break;
	case TRACE_TENSOR:
		fold->counts.records++;
		fold_tensor(fold, event);
		break;
	case TRACE_TENSOR_OOM:
		fold->counts.records++;
		fold_tensor_oom(fold, event);
		break;
	case TRACE_CLOCK:
	case EVENT_GAP:
	case EVENT_UNMATCHED:
		break;
	default:
		fold->counts.records++;
		fold_gpu(fold, event);
	}
}

/* To the end all the same: what the reader has counted then is of the whole trace. */
static int pass_over(struct fold *fold)
{
	struct trace_event event;
	int status;

	do {
		struct trace_event next; /* in registers: nobody looks at it */

		while (reader_next_short(fold->reader, &next))
			;
		status = reader_next_any(fold->reader, &event);
	} while (status > 0);
	return status;
}

static void run(struct fold *fold)
{
	struct trace_event event;
	uint64_t events = 0, others = 0; /* others: what the reader concluded, not the program recorded */
	int status;

	while ((status = fold_next(fold, &event, &events)) > 0) {
		if (__builtin_expect(event.time_ns >= fold->state->edge_ns, 0))
			sections_go_on(fold, &event);
		if (event.kind == TRACE_PUSH) {
			fold_open(fold, &event);
		} else if (event.kind == EVENT_POP) {
			fold_close(fold, &event, event.time_ns);
		} else {
			others += event.kind > TRACE_KINDS;
			fold_record(fold, &event);
			if (fold->state->restart)
				return;
		}
		events++;
		if (__builtin_expect(fold->target && !fold->options.observer, 0)) {
			status = pass_over(fold); /* nothing else was asked for */
			break;
		}
	}
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(fold->reader));
	fold->counts.events = events - others;
}

/* Who is told what ranges come to leaves them to the quick way only where that is their time, or their GPU time: none
 * before the first launch. */
static bool wants_rich(const struct fold_options *options)
{
	const bool quick = options->metric == METRIC_GPU || options->metric == METRIC_CPU || options->metric == METRIC_WALL;

	return options->observer && (options->observer->level || (fold_tells_values(options) && (options->pick_metric || !quick)));
}

/* Nothing but the target itself needs more, and it begins then. */
static bool can_await_target(const struct fold_options *options)
{
	return options->target && !options->observer && !options->pick_metric &&
	       (options->metric == METRIC_CPU || options->metric == METRIC_WALL || options->metric == METRIC_GPU);
}

static bool has_kind(struct trace_reader *reader, enum trace_node_kind kind)
{
	for (uint32_t id = 1; id < reader_nodes(reader); id++)
		if (reader_place(reader, id)->kind == kind)
			return true;
	return false;
}

/* The first window began with the program. */
static bool begins_recorded(const struct fold_options *options)
{
	return options->windows->count && !options->windows->windows->begin_ns;
}

static struct fold *begin(struct trace_reader *reader, struct texts *texts, const struct fold_options *options)
{
	struct fold *fold = need(sizeof *fold);
	struct fold_state *state = need(sizeof *state);

	fold->options = *options;
	fold->reader = reader;
	fold->texts = texts;
	fold->state = state;
	fold->tree = tree_new();
	if (options->only) {
		fold->tree->only = options->only->nodes;
		fold->tree->only_count = options->only->node_count;
	}
	fold->names = names_new(reader, texts, fold->tree, !options->no_fold, options->demangle);
	fold->kernels = kernels_new();
	fold->memory = memory_new();
	if (reader_meta(reader, "import.format").known)
		memory_resume(fold->memory); /* it began before the file did */
	fold->totals.level_device = options->device >= 0 ? (uint32_t)options->device : UINT32_MAX;
	if (options->only) {
		fold->kernels->only = options->only->kernels;
		fold->kernels->only_count = options->only->kernel_count;
	}
	state->join = join_new();
	state->instances = (struct instances){ .final = fold_instance_is_final,
		.context = fold,
		.plain = !options->target && (options->pick_metric || metrics[options->metric].nature != METRIC_LEVEL) };
	state->counting = !options->steps && !(options->windows && !begins_recorded(options));
	state->step_kinds = options->steps && has_kind(reader, TRACE_NODE_STEP);
	state->rich = options->steps || options->windows || (options->target && !can_await_target(options)) || wants_rich(options) ||
		      options->metric == METRIC_CALLS || options->metric == METRIC_USER;
	state->adds_flows = options->target || options->metric == METRIC_CALLS || options->metric == METRIC_ALLOC ||
			    options->metric == METRIC_TENSORS;
	state->target_ns = options->target && !state->rich ? options->target->begin_ns : UINT64_MAX;
	state->edge_ns = UINT64_MAX;
	fold_go_below(fold, 0);
	counted_begin(fold);
	if (options->found && options->found->count && !state->counted)
		sections_begin(fold);
	if (options->windows && begins_recorded(options) && options->windows->windows->warmup && state->sections && options->found && options->found->own_ranges) {
		state->warming = true;
		state->counting = false;
	}
	if (can_await_target(options) && options->metric != METRIC_GPU && !state->sections)
		state->gather = gather_new(fold);
	fold_counter_find(fold);
	if (options->observer && options->observer->begins)
		options->observer->begins(options->observer->context);
	if (options->observer && options->observer->counting && fold_is_partial(fold) && state->counting)
		options->observer->counting(options->observer->context, true, 0);
	return fold;
}

static void end_state(struct fold *fold)
{
	struct fold_state *state = fold->state;

	while (state->thread_count) {
		struct thread *thread = state->threads[--state->thread_count];

		for (uint32_t depth = thread->more ? thread->depth : 0; depth > 0; depth--) {
			free(thread->more[depth - 1].label);
			instance_release(&state->instances, thread->more[depth - 1].instance);
		}
		free(thread->frames);
		free(thread->more);
		free(thread);
	}
	fold_spans_close(fold);
	fold_gpu_end(fold);
	free(state->threads);
	free(state->spans);
	free(state->api_of);
	free(state->counters);
	sections_free(state->sections);
	counted_free(state->counted);
	fold_gaps_free(state->gaps);
	join_free(state->join);
	graph_nodes_free(state->graph_nodes);
	free(state->graph_seats);
	gather_free(state->gather);
	instances_end(&state->instances);
	free(state);
	fold->state = NULL;
}

static void resolve_worst(struct fold *fold, uint32_t id)
{
	struct node *node = &fold->tree->nodes[id];
	struct node_worst *worst = node->worst;
	const bool by_time = fold->options.metric == METRIC_CPU || fold->options.metric == METRIC_WALL;

	if (by_time && node->calls && node_kind_class(node->kind) == NODE_RANGES &&
		(!worst || worst->value < node->max_ns)) {
		const struct fold_candidate longest = { .value = node->max_ns,
			.begin_ns = node->longest_begin_ns,
			.end_ns = node->longest_begin_ns + node->max_ns,
			.place = node->longest_place,
			.stream = node->longest_stream };

		fold_offer_worst(fold, id, &longest);
		worst = fold->tree->nodes[id].worst;
	}
	if (!worst)
		return;
	worst->label = worst->own     ? text_id(fold->texts, worst->own, worst->own_bytes)
		       : worst->place ? names_text(fold->names, reader_place(fold->reader, worst->place)->name)
				      : node->name;
}

static void total_up(struct fold *fold)
{
	const struct timeline_device *devices;
	const size_t count = timeline_devices(fold->timeline, &devices);

	fold->totals.wall_ns = fold_is_partial(fold) ? fold->state->window_ns : reader_duration_ns(fold->reader);
	for (size_t i = 0; i < count && !fold_is_partial(fold); i++) {
		const struct timeline_work *work = &devices[i].all;

		fold->totals.gpu_busy_ns += work->busy_ns;
		fold->totals.gpu_idle_ns += work->last_ns - work->first_ns - work->busy_ns - devices[i].unknown_ns;
		fold->totals.gpu_unknown_ns += devices[i].unknown_ns;
		fold->totals.gpu_computation_ns += work->computation_ns;
		fold->totals.gpu_communication_ns += work->communication_ns;
		fold->totals.gpu_exposed_communication_ns += work->exposed_communication_ns;
		fold->totals.gpu_copy_ns += work->copy_ns;
		fold->totals.gpu_exposed_copy_ns += work->exposed_copy_ns;
	}
	for (uint32_t id = 1; id < fold->tree->count; id++)
		if (node_kind_class(fold->tree->nodes[id].kind) == NODE_RANGES && fold->tree->nodes[id].kind != NODE_SPANS)
			fold->totals.cpu_self_ns += fold->tree->nodes[id].self_ns;
	fold->totals.reserved_now = fold->state->reserved;
	fold->totals.allocated_now = fold->state->allocated;
}

/* NULL: nobody asks, or a GPU is not expected to have been timed. */
static struct timeline *first_timeline(struct trace_reader *reader, const struct fold_options *options)
{
	if (options->only || options->no_timeline)
		return NULL;
	if (options->timeline)
		timeline_rewind(options->timeline);
	else if (reader_dictionary_count(reader, TRACE_DEVICE) || options->metric == METRIC_IDLE)
		return timeline_open(reader, options->device);
	return options->timeline;
}

struct fold *fold_run(struct trace_reader *reader, struct texts *texts, const struct fold_options *options)
{
	struct timeline *timeline = first_timeline(reader, options);
	struct fold *fold;

	for (;;) {
		reader_rewind(reader);
		fold = begin(reader, texts, options);
		fold->timeline = timeline;
		fold->owns_timeline = timeline != options->timeline;
		fold->state->rich |= timeline != NULL;
		if (options->pick_metric)
			fold->options.metric = timeline ? METRIC_GPU : METRIC_CPU;
		run(fold);
		if (!fold->state->restart)
			break;
		fold_free(fold);
		timeline = timeline_open(reader, options->device);
		if (!timeline)
			fatal(STATUS_UNREADABLE, "%s: it changed while it was read; read it again",
				reader_path(reader));
	}
	fold_spans_close(fold);
	if (fold->state->counting && fold_is_partial(fold))
		fold_window_ends(fold);
	for (size_t i = 0; i < fold->state->thread_count; i++)
		fold_keep_time(fold, fold->state->threads[i]);
	fold_gpu_end(fold);
	fold_gaps_end(fold);
	memory_finish(fold->memory);
	fold_tensors_end(fold);
	for (uint32_t id = 1; id < fold->tree->count; id++)
		resolve_worst(fold, id);
	counted_end(fold);
	members_sum(names_members(fold->names));
	tree_sum(fold->tree);
	total_up(fold);
	end_state(fold);
	if (fold->target)
		instance_settle(fold->target, fold_critical_least(fold));
	return fold;
}

struct fold_options fold_options_telling(const struct fold *fold, const struct fold_observer *observer)
{
	struct fold_options options = fold->options;

	options.pick_metric = false;
	options.target = NULL;
	options.observer = observer;
	options.no_timeline = options.no_owners = options.no_spread = true;
	return options;
}

bool fold_shares(const struct fold *fold, uint32_t root, bool time)
{
	const struct node *node = &fold->tree->nodes[root];

	return root != fold->spans && !(time && (node->elsewhere || node->outside));
}

void fold_free(struct fold *fold)
{
	if (!fold)
		return;
	if (fold->state)
		end_state(fold);
	instance_free(fold->target);
	if (fold->owns_timeline)
		timeline_close(fold->timeline);
	kernels_free(fold->kernels);
	memory_free(fold->memory);
	names_free(fold->names);
	tree_free(fold->tree);
	free(fold->apis);
	free(fold->threads);
	free(fold->oom_ranges);
	free(fold);
}
