/* SPDX-License-Identifier: MIT */
#include "report/fold.h"
#include "report/fatal.h"
#include "report/fold_state.h"
#include "report/label.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct thread *new_thread(struct fold *fold, struct trace_stream *stream)
{
	struct fold_state *state = fold->state;
	struct thread *thread = need(sizeof *thread);

	grow(&state->threads, &state->thread_room, state->thread_count + 1, sizeof(struct thread *));
	thread->stream = stream->stream;
	thread->index = (uint32_t)state->thread_count;
	state->threads[state->thread_count++] = thread;
	stream->user = thread;
	return thread;
}

struct thread *fold_thread(struct fold *fold, const struct trace_event *event)
{
	struct thread *thread = event->stream->user;

	return __builtin_expect(thread != NULL, 1) ? thread : new_thread(fold, event->stream);
}

static void end_thread(struct fold *fold, struct trace_stream *stream)
{
	struct fold_state *state = fold->state;
	struct thread *thread = stream->user, *last;

	if (!thread)
		return;
	last = state->threads[--state->thread_count];
	state->threads[thread->index] = last;
	last->index = thread->index;
	free(thread->frames);
	free(thread->more);
	free(thread);
	stream->user = NULL;
}

void fold_become_rich(struct fold *fold)
{
	struct fold_state *state = fold->state;

	for (size_t i = 0; !state->rich && i < state->thread_count; i++) {
		struct thread *thread = state->threads[i];

		grow(&thread->more, &thread->more_room, thread->depth, sizeof *thread->more);
		for (uint32_t depth = 0; depth < thread->depth; depth++)
			thread->more[depth] = (struct frame_more){ .label = NULL };
	}
	state->rich = true;
}

uint32_t fold_unattributed(struct fold *fold)
{
	if (!fold->unattributed)
		fold->unattributed = tree_child(fold->tree, 0, text_id(fold->texts, "unattributed", 12), 0, NODE_UNATTRIBUTED);
	return fold->unattributed;
}

long double fold_level(const struct fold *fold)
{
	if (fold->options.metric == METRIC_RESERVED)
		return fold->state->reserved;
	return fold->options.metric == METRIC_USER ? fold->state->counter : 0;
}

void fold_level_changed(struct fold *fold)
{
	const struct fold_state *state = fold->state;

	for (size_t i = 0; i < state->thread_count; i++) {
		struct thread *thread = state->threads[i];

		if (thread->depth && thread->more[thread->depth - 1].peak < state->reserved)
			thread->more[thread->depth - 1].peak = state->reserved;
	}
}

void fold_offer_worst(struct fold *fold, uint32_t node, const struct fold_candidate *candidate)
{
	struct node_worst *worst = tree_worst(fold->tree, node);

	if (worst->found && (candidate->value < worst->value || (candidate->value == worst->value && candidate->begin_ns < worst->begin_ns)))
		return;
	free(worst->own);
	*worst = (struct node_worst){ .begin_ns = candidate->begin_ns, .end_ns = candidate->end_ns, .value = candidate->value,
		.before = candidate->before, .after = candidate->after, .stream = candidate->stream, .place = candidate->place, .found = true };
	if (candidate->own) {
		worst->own = need(candidate->own_bytes + 1);
		memcpy(worst->own, candidate->own, candidate->own_bytes);
		worst->own_bytes = candidate->own_bytes;
	}
}

/* What began before the steps asked for counts from here. */
static void rebase(struct fold *fold, struct frame *frame, struct frame_more *more)
{
	const struct fold_state *state = fold->state;

	frame->child_ns = 0;
	more->idle_ns = fold->timeline ? timeline_idle(fold->timeline, state->now_ns) : 0;
	more->calls = more->alloc_bytes = 0;
	more->reserved = more->peak = state->reserved;
	more->level = fold_level(fold);
}

static void keep_label(struct fold *fold, const struct trace_event *event, struct frame_more *more)
{
	const struct trace_text text = reader_event_text(fold->reader, event);

	more->label = need(text.length + 1);
	memcpy(more->label, text.bytes, text.length);
	more->label_bytes = text.length;
}

static bool is_target(const struct fold *fold, const struct thread *thread, const struct trace_event *event)
{
	const struct fold_target *target = fold->options.target;

	return target && thread->depth == 1 && thread->stream == target->stream && event->begin_ns == target->begin_ns && thread->frames[0].node == target->node;
}

static void open_rich(struct fold *fold, const struct trace_event *event, struct thread *thread, bool own_label)
{
	struct frame_more *more;
	const uint32_t depth = thread->depth - 1;

	grow(&thread->more, &thread->more_room, thread->depth, sizeof *thread->more);
	more = &thread->more[depth];
	*more = (struct frame_more){ .label = NULL };
	rebase(fold, &thread->frames[depth], more);
	if (own_label)
		keep_label(fold, event, more);
	if (fold->options.target && (is_target(fold, thread, event) || (depth > 0 && more[-1].instance && more[-1].instance->keep)))
		fold_instance(fold, thread, depth)->keep = true;
}

struct instance *fold_instance(struct fold *fold, struct thread *thread, uint32_t depth)
{
	uint32_t known = depth + 1;

	while (known > 0 && !thread->more[known - 1].instance)
		known--;
	for (; known <= depth; known++) {
		struct frame_more *more = &thread->more[known];

		more->instance = instance_new(&fold->state->instances, known ? more[-1].instance : NULL, thread->frames[known].node, thread->frames[known].begin_ns);
		more->instance->stream = thread->stream;
		more->instance->place = thread->frames[known].place;
	}
	return thread->more[depth].instance;
}

/* The figures that every range has. */
static inline void count_range(struct fold *fold, const struct frame *frame, uint64_t end_ns, uint32_t stream)
{
	struct node *node = &fold->tree->nodes[frame->node];
	const uint64_t duration = end_ns - frame->begin_ns;

	node->calls++;
	node->total_ns += duration;
	node->self_ns += duration - frame->child_ns;
	if (duration < node->min_ns)
		node->min_ns = duration;
	if (duration >= node->max_ns) {
		node->max_ns = duration;
		node->longest_begin_ns = frame->begin_ns;
		node->longest_place = frame->place;
		node->longest_stream = stream;
	}
	samples_add(&node->samples, duration, &fold->tree->budget);
}

static long double metric_value(const struct fold *fold, const struct instance *instance)
{
	switch (fold->options.metric) {
	case METRIC_GPU:
		return instance->gpu_ns;
	case METRIC_IDLE:
		return instance->idle_ns;
	case METRIC_CALLS:
		return instance->calls;
	case METRIC_ALLOC:
		return instance->alloc_bytes;
	case METRIC_RESERVED:
	case METRIC_USER:
		return instance->after - instance->before;
	default:
		return instance->end_ns - instance->begin_ns;
	}
}

/* The last part of an instance is known. */
static bool instance_is_final(void *context, struct instance *instance)
{
	struct fold *fold = context;
	const struct fold_target *target = fold->options.target;
	struct fold_candidate worst = { .value = metric_value(fold, instance), .before = instance->before, .after = instance->after,
		.begin_ns = instance->begin_ns, .end_ns = instance->end_ns, .place = instance->place, .stream = instance->stream,
		.own = instance->label, .own_bytes = instance->label_bytes };
	long double size = worst.value < 0 ? -worst.value : worst.value;

	if (!target) {
		if (worst.value > 0)
			fold_offer_worst(fold, instance->node, &worst);
		return false;
	}
	instance->value = target->value < 0 ? -worst.value : worst.value;
	if (!instance->parent) {
		if (instance->end_ns != target->end_ns)
			return false;
		instance_free(fold->target);
		fold->target = instance;
		return true;
	}
	return size > 0 && size * 100 >= (target->value < 0 ? -target->value : target->value);
}

static void close_instance(struct fold *fold, struct frame_more *more, struct instance *seen)
{
	struct instance *instance = more->instance;

	instance->end_ns = seen->end_ns;
	instance->begin_ns = seen->begin_ns;
	instance->idle_ns = seen->idle_ns;
	instance->calls = seen->calls;
	instance->alloc_bytes = seen->alloc_bytes;
	instance->before = seen->before;
	instance->after = seen->after;
	instance->label = more->label;
	instance->label_bytes = more->label_bytes;
	more->label = NULL;
	more->instance = NULL;
	instance_release(&fold->state->instances, instance);
}

static void count_levels(struct fold *fold, uint32_t node, const struct frame_more *more)
{
	struct node_memory *memory = tree_memory(fold->tree, node);

	memory->reserved_delta += fold->state->reserved - more->reserved;
	if (!memory->has_level || memory->reserved_peak < more->peak)
		memory->reserved_peak = more->peak;
	memory->has_level = true;
}

/* All of an instance but its GPU time, which may come later. */
static void count_rich(struct fold *fold, struct thread *thread, uint32_t depth, uint64_t end_ns)
{
	struct frame_more *more = &thread->more[depth];
	const struct frame *frame = &thread->frames[depth];
	struct instance seen = { .begin_ns = frame->begin_ns, .end_ns = end_ns, .calls = more->calls + 1, .alloc_bytes = more->alloc_bytes,
		.before = more->level, .after = fold_level(fold) };
	const bool by_time = fold->options.metric == METRIC_CPU || fold->options.metric == METRIC_WALL;

	if (fold->timeline) {
		seen.idle_ns = timeline_idle(fold->timeline, fold->state->now_ns) - more->idle_ns;
		if (seen.idle_ns)
			tree_gpu(fold->tree, frame->node)->idle_ns += seen.idle_ns;
	}
	if (fold->state->has_reserved)
		count_levels(fold, frame->node, more);
	if (depth > 0) {
		more[-1].calls += seen.calls;
		more[-1].alloc_bytes += seen.alloc_bytes;
		if (more[-1].peak < more->peak)
			more[-1].peak = more->peak;
	}
	if (fold->options.metric != METRIC_GPU && !fold->options.target && (!by_time || more->label)) {
		const struct fold_candidate candidate = { .value = metric_value(fold, &seen), .before = seen.before, .after = seen.after,
			.begin_ns = seen.begin_ns, .end_ns = end_ns, .place = frame->place, .stream = thread->stream,
			.own = more->label, .own_bytes = more->label_bytes };

		fold_offer_worst(fold, frame->node, &candidate);
	}
	if (more->instance)
		close_instance(fold, more, &seen);
}

static inline void close_at(struct fold *fold, struct thread *thread, uint32_t depth, uint64_t end_ns)
{
	struct fold_state *state = fold->state;
	const struct frame *frame = &thread->frames[depth];

	if (end_ns < frame->begin_ns)
		end_ns = frame->begin_ns;
	if (state->counting) {
		count_range(fold, frame, end_ns, thread->stream);
		if (depth > 0)
			thread->frames[depth - 1].child_ns += end_ns - frame->begin_ns;
	}
	if (!state->rich)
		return;
	if (state->counting)
		count_rich(fold, thread, depth, end_ns);
	else
		instance_release(&state->instances, thread->more[depth].instance);
	free(thread->more[depth].label);
	thread->more[depth].label = NULL;
}

/* The last step asked for is over: what is still open counts up to here, and nothing after. */
static void close_window(struct fold *fold)
{
	struct fold_state *state = fold->state;

	for (size_t i = 0; i < state->thread_count; i++) {
		struct thread *thread = state->threads[i];

		for (uint32_t depth = thread->depth; depth > 0; depth--)
			close_at(fold, thread, depth - 1, state->now_ns);
	}
	if (state->counting) {
		state->window_ns += state->now_ns - state->window_begin_ns;
		fold->totals.gpu_busy_ns += fold->timeline ? timeline_busy(fold->timeline, state->now_ns) - state->window_busy : 0;
		fold->totals.gpu_idle_ns += fold->timeline ? timeline_idle(fold->timeline, state->now_ns) - state->window_idle : 0;
	}
	state->counting = false;
}

static void end_step(struct fold *fold, const struct thread *thread, uint32_t depth)
{
	struct fold_state *state = fold->state;

	if (thread != state->step_thread || depth != state->step_depth)
		return;
	state->step_thread = NULL;
	if (state->counting && state->step >= fold->options.last_step)
		close_window(fold);
}

/* A step that is asked for begins, or one that is not. */
static void step_begins(struct fold *fold, const struct trace_event *event, struct thread *thread)
{
	struct fold_state *state = fold->state;
	const struct trace_text text = reader_event_text(fold->reader, event);
	uint64_t number = fold->counts.steps;

	label_number(text.bytes, text.length, &number);
	fold->counts.steps++;
	state->step_thread = thread;
	state->step_depth = event->depth;
	state->step = number;
	if (state->counting && number > fold->options.last_step)
		close_window(fold);
	if (number < fold->options.first_step || number > fold->options.last_step || state->counting)
		return;
	state->counting = true;
	state->window_begin_ns = state->now_ns;
	state->window_busy = fold->timeline ? timeline_busy(fold->timeline, state->now_ns) : 0;
	state->window_idle = fold->timeline ? timeline_idle(fold->timeline, state->now_ns) : 0;
	for (size_t i = 0; i < state->thread_count; i++)
		for (uint32_t depth = 0; depth < state->threads[i]->depth; depth++) {
			state->threads[i]->frames[depth].begin_ns = state->now_ns;
			rebase(fold, &state->threads[i]->frames[depth], &state->threads[i]->more[depth]);
		}
}

/* Where the trace has no ranges of kind step, those are steps whose label begins with such a word. */
static bool is_step(const struct fold *fold, const struct trace_event *event)
{
	static const char *const words[] = { "step", "iter", "profilerstep", "profilestep", "batch", "epoch" };
	struct trace_text text;

	if (fold->state->step_thread)
		return false;
	if (fold->state->step_kinds)
		return reader_place(fold->reader, event->node)->kind == TRACE_NODE_STEP;
	text = reader_event_text(fold->reader, event);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (text.length >= strlen(words[i]) && strncasecmp(text.bytes, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

static inline void open_range(struct fold *fold, const struct trace_event *event)
{
	struct fold_state *state = fold->state;
	struct thread *thread = fold_thread(fold, event);
	uint32_t node = state->nodes[event->node];
	const bool own_label = node == NAMES_OPEN;

	state->now_ns = event->time_ns;
	thread->depth = event->depth;
	if (__builtin_expect(own_label, 0)) {
		fold_become_rich(fold);
		node = names_open_node(fold->names, thread->depth ? thread->frames[thread->depth - 1].node : 0, event->node, event);
	}
	if (__builtin_expect(event->depth >= thread->room, 0))
		grow(&thread->frames, &thread->room, (size_t)event->depth + 1, sizeof *thread->frames);
	if (__builtin_expect(fold->options.steps, 0) && is_step(fold, event))
		step_begins(fold, event, thread);
	thread->frames[event->depth] = (struct frame){ .node = node, .place = event->node, .begin_ns = event->begin_ns };
	thread->depth = event->depth + 1;
	if (state->rich)
		open_rich(fold, event, thread, own_label);
}

/* A range closes that has others inside, of other domains: they stay open and move out by one. Their time up to here was its children's;
 * what they take from here on is its parent's. */
static void close_inner(struct fold *fold, const struct trace_event *event, struct thread *thread)
{
	struct frame *frames = thread->frames;
	const uint32_t depth = event->depth, inner = depth + 1;

	frames[depth].child_ns += event->time_ns - frames[inner].begin_ns;
	close_at(fold, thread, depth, event->time_ns);
	if (depth > 0)
		frames[depth - 1].child_ns -= event->time_ns - frames[inner].begin_ns;
	memmove(&frames[depth], &frames[inner], (thread->depth - inner) * sizeof *frames);
	if (fold->state->rich)
		memmove(&thread->more[depth], &thread->more[inner], (thread->depth - inner) * sizeof *thread->more);
	thread->depth--;
}

static inline void close_range(struct fold *fold, const struct trace_event *event, uint64_t end_ns)
{
	struct thread *thread = fold_thread(fold, event);
	struct fold_state *state = fold->state;

	state->now_ns = event->time_ns;
	if (__builtin_expect(event->depth >= thread->depth, 0))
		return;
	if (__builtin_expect(event->depth + 1 < thread->depth, 0)) {
		close_inner(fold, event, thread);
		return;
	}
	thread->depth = event->depth;
	close_at(fold, thread, event->depth, end_ns);
	if (__builtin_expect(fold->options.steps, 0))
		end_step(fold, thread, event->depth);
}

/* A range whose end was lost: how long it took is not known, so it has no instance. */
static void drop_range(struct fold *fold, const struct trace_event *event)
{
	struct thread *thread = fold_thread(fold, event);
	struct frame_more *more;

	if (event->depth >= thread->depth)
		return;
	thread->depth = event->depth;
	if (!fold->state->rich)
		return;
	end_step(fold, thread, event->depth);
	more = &thread->more[event->depth];
	free(more->label);
	if (more->instance)
		more->instance->begin_ns = more->instance->end_ns;
	instance_release(&fold->state->instances, more->instance);
	*more = (struct frame_more){ .label = NULL };
}

uint32_t fold_place(struct fold *fold, const struct trace_event *event, struct frame_more **innermost)
{
	const uint32_t node = event->node ? fold->state->nodes[event->node] : 0;
	struct thread *thread = fold_thread(fold, event);

	fold_become_rich(fold);
	fold->state->now_ns = event->time_ns;
	*innermost = thread->depth ? &thread->more[thread->depth - 1] : NULL;
	if (!event->node)
		return fold_unattributed(fold);
	if (node == NAMES_OPEN)
		return thread->depth ? thread->frames[thread->depth - 1].node : fold_unattributed(fold);
	return node;
}

static void left_open(struct fold *fold, const struct trace_event *event)
{
	const struct thread *thread = fold_thread(fold, event);

	if (event->depth < thread->depth)
		fold->tree->nodes[thread->frames[event->depth].node].left_open = true;
	close_range(fold, event, event->last_ns);
}

/* Everything but the opening and closing of ranges. */
static void fold_record(struct fold *fold, const struct trace_event *event)
{
	const struct trace_self *self = event->record;

	switch (event->kind) {
	case EVENT_RESUMED:
		open_range(fold, event);
		break;
	case EVENT_UNENDED:
		drop_range(fold, event);
		break;
	case EVENT_LEFT_OPEN:
		left_open(fold, event);
		break;
	case EVENT_STREAM_END:
		end_thread(fold, event->stream);
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
	case TRACE_SELF:
		fold->totals.self_ns += reader_duration(fold->reader, self->stamp, self->duration);
		break;
	case TRACE_LAUNCH:
	case TRACE_GRAPH_LAUNCH:
	case TRACE_COPY:
	case TRACE_SET:
	case TRACE_SYNC:
	case TRACE_ALLOC:
	case TRACE_FREE:
		fold_call(fold, event);
		break;
	default:
		fold_gpu(fold, event);
	}
}

static void run(struct fold *fold)
{
	struct trace_event event;
	uint64_t events = 0;
	int status;

	while ((status = reader_next(fold->reader, &event)) > 0) {
		if (event.kind == TRACE_PUSH)
			open_range(fold, &event);
		else if (event.kind == EVENT_POP)
			close_range(fold, &event, event.time_ns);
		else
			fold_record(fold, &event);
		events += event.kind < TRACE_KINDS || event.kind == EVENT_POP;
		if (__builtin_expect(fold->state->restart, 0))
			return;
	}
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(fold->reader));
	fold->counts.events = events;
}

static bool has_kind(struct trace_reader *reader, enum trace_node_kind kind)
{
	for (uint32_t id = 1; id < reader_nodes(reader); id++)
		if (reader_place(reader, id)->kind == kind)
			return true;
	return false;
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
	fold->names = names_new(reader, texts, fold->tree, !options->no_fold, options->demangle);
	fold->kernels = kernels_new();
	fold->memory = memory_new();
	fold->totals.level_device = options->device >= 0 ? (uint32_t)options->device : UINT32_MAX;
	state->nodes = names_nodes(fold->names);
	state->join = join_new();
	state->instances = (struct instances){ .final = instance_is_final, .context = fold };
	state->counting = !options->steps;
	state->step_kinds = options->steps && has_kind(reader, TRACE_NODE_STEP);
	state->rich = options->steps || options->target || options->metric == METRIC_CALLS || options->metric == METRIC_USER;
	fold_counter_find(fold);
	return fold;
}

static void end_state(struct fold *fold)
{
	struct fold_state *state = fold->state;

	while (state->thread_count) {
		struct thread *thread = state->threads[--state->thread_count];

		for (uint32_t depth = 0; thread->more && depth < thread->depth; depth++)
			free(thread->more[depth].label);
		free(thread->frames);
		free(thread->more);
		free(thread);
	}
	fold_spans_close(fold);
	free(state->threads);
	free(state->spans);
	free(state->api_of);
	free(state->counters);
	join_free(state->join);
	free(state);
	fold->state = NULL;
}

static void resolve_worst(struct fold *fold, uint32_t id)
{
	struct node *node = &fold->tree->nodes[id];
	struct node_worst *worst = node->worst;
	const bool by_time = fold->options.metric == METRIC_CPU || fold->options.metric == METRIC_WALL;

	if (by_time && node->calls && node_kind_class(node->kind) == NODE_RANGES && (!worst || worst->value < node->max_ns)) {
		const struct fold_candidate longest = { .value = node->max_ns, .begin_ns = node->longest_begin_ns,
			.end_ns = node->longest_begin_ns + node->max_ns, .place = node->longest_place, .stream = node->longest_stream };

		fold_offer_worst(fold, id, &longest);
		worst = fold->tree->nodes[id].worst;
	}
	if (!worst)
		return;
	worst->label = worst->own ? text_id(fold->texts, worst->own, worst->own_bytes)
		: worst->place ? names_text(fold->names, reader_place(fold->reader, worst->place)->name) : node->name;
}

static void total_up(struct fold *fold)
{
	const struct timeline_device *devices;
	const size_t count = timeline_devices(fold->timeline, &devices);

	fold->totals.wall_ns = fold->options.steps ? fold->state->window_ns : reader_duration_ns(fold->reader);
	for (size_t i = 0; i < count && !fold->options.steps; i++) {
		fold->totals.gpu_busy_ns += devices[i].busy_ns;
		fold->totals.gpu_idle_ns += devices[i].last_ns - devices[i].first_ns - devices[i].busy_ns;
	}
	fold->totals.reserved_now = fold->state->reserved;
}

struct fold *fold_run(struct trace_reader *reader, struct texts *texts, const struct fold_options *options)
{
	struct timeline *timeline = NULL;
	struct fold *fold;

	if (reader_dictionary_count(reader, TRACE_DEVICE) || options->metric == METRIC_IDLE)
		timeline = timeline_open(reader_path(reader), options->device);
	for (;;) {
		reader_rewind(reader);
		fold = begin(reader, texts, options);
		fold->timeline = timeline;
		fold->state->rich |= timeline != NULL;
		if (options->pick_metric)
			fold->options.metric = timeline ? METRIC_GPU : METRIC_CPU;
		run(fold);
		if (!fold->state->restart)
			break;
		fold_free(fold);
		timeline = timeline_open(reader_path(reader), options->device);
		if (!timeline)
			fatal(STATUS_UNREADABLE, "%s: it changed while it was read; read it again", reader_path(reader));
	}
	fold_spans_close(fold);
	if (fold->state->counting && options->steps)
		close_window(fold);
	fold_gpu_end(fold);
	memory_finish(fold->memory);
	for (uint32_t id = 1; id < fold->tree->count; id++)
		resolve_worst(fold, id);
	tree_sum(fold->tree);
	total_up(fold);
	end_state(fold);
	return fold;
}

void fold_free(struct fold *fold)
{
	if (!fold)
		return;
	if (fold->state)
		end_state(fold);
	instance_free(fold->target);
	timeline_close(fold->timeline);
	kernels_free(fold->kernels);
	memory_free(fold->memory);
	names_free(fold->names);
	tree_free(fold->tree);
	free(fold->apis);
	free(fold);
}
