/* SPDX-License-Identifier: MIT
 *
 * Groups by keys that the call tree does not have: what an event used, or where it ran. One more
 * pass over the trace; the observer receives each range and each GPU operation.
 */
#include "report/run/call_stack.h"
#include "report/base/alloc.h"
#include "report/base/text_builder.h"
#include "report/analysis/group_by.h"
#include "report/trace/op_inputs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX 16u /* of a call stack, in the name of its row */

struct event_grouping {
	struct process *process;
	enum rows_by by;
	struct tree *flat;
	uint32_t *key_of; /* BY_SHAPE: by trace node; BY_STACK: by stack */
	size_t key_room;
	uint32_t *step_keys; /* BY_STEP: by step */
	/* BY_SHAPE, by trace node: 0 not computed yet, 1 no, 2 an ancestor has the same key. */
	uint8_t *inner;
	uint32_t tid, tid_key; /* BY_THREAD: the last thread; tid_key 0: none yet */
	size_t inner_room, step;
	bool has_key; /* the trace has at least one value of the key */
};

static uint32_t find_key_named(struct event_grouping *events, const char *name, enum node_kind kind)
{
	return tree_child(events->flat, 0,
		string_table_intern(events->process->texts, name, strlen(name)), 0, kind);
}

static uint32_t thread_key(struct event_grouping *events, uint32_t tid)
{
	char name[32];

	if (events->tid == tid && events->tid_key)
		return events->tid_key;
	snprintf(name, sizeof name, "thread %u", tid);
	events->tid = tid;
	return events->tid_key = find_key_named(events, name, NODE_THREAD);
}

static uint32_t stream_key(struct event_grouping *events, const struct trace_gpu *gpu)
{
	char name[64];

	snprintf(name, sizeof name, "device %u, stream %u", gpu->device, gpu->stream);
	return find_key_named(events, name, NODE_STREAM);
}

/* Returns the index of the first step that ends after `at_ns`. Threads are slightly out of order,
 * so this may be a step before the one found last. */
static size_t key_step_at(struct event_grouping *events, uint64_t at_ns)
{
	const struct steps *steps = events->process->steps;

	while (events->step > 0 && steps->steps[events->step - 1].end_ns > at_ns)
		events->step--;
	while (events->step < steps->count && steps->steps[events->step].end_ns <= at_ns)
		events->step++;
	return events->step;
}

static const char *const step_kind_suffixes[] = { [STEP_USUAL] = "",
	[STEP_WARM_UP] = " (warm-up)",
	[STEP_UNFINISHED] = " (unfinished)",
	[STEP_CAPTURE] = " (capture)",
	[STEP_AT_EDGE] = " (recording edge)" };

/* The name of the section in which `at_ns` is, outside steps. `thread`: one of those that have
 * steps. */
static const char *thread_section_name(
	const struct steps *steps, const struct steps_thread *thread, uint64_t at_ns)
{
	if (!thread)
		return "(threads without steps)";
	if (at_ns < steps->by_thread[thread->first]->begin_ns)
		return "(before first step)";
	return at_ns < steps->by_thread[thread->first + thread->count - 1]->begin_ns
		       ? "(between steps)"
		       : "(after last step)";
}

/* Returns the index of the step of thread `tid` at `at_ns`, or SIZE_MAX with the name of the
 * section. */
static size_t step_or_section_at(
	struct event_grouping *events, uint32_t tid, uint64_t at_ns, const char **section)
{
	const struct steps *steps = events->process->steps;
	const struct step *step;
	size_t index;

	if (steps_overlap(steps)) {
		step = steps_step_of_thread(steps, tid, at_ns);
		*section = thread_section_name(steps, steps_find_steps_thread(steps, tid), at_ns);
		return step ? (size_t)(step - steps->steps) : SIZE_MAX;
	}
	index = key_step_at(events, at_ns);
	*section = index == steps->count ? "(after last step)"
		   : index               ? "(between steps)"
					 : "(before first step)";
	return index < steps->count && at_ns >= steps->steps[index].begin_ns ? index : SIZE_MAX;
}

static uint32_t step_key(struct event_grouping *events, uint32_t tid, uint64_t at_ns)
{
	const struct steps *steps = events->process->steps;
	const char *section;
	const size_t index = step_or_section_at(events, tid, at_ns, &section);
	char name[64];

	if (index == SIZE_MAX)
		return find_key_named(events, section, NODE_SECTION);
	if (!events->step_keys[index]) {
		snprintf(name, sizeof name, "step %llu%s",
			(unsigned long long)steps->steps[index].number,
			step_kind_suffixes[steps->steps[index].kind]);
		events->step_keys[index] = find_key_named(events, name, NODE_STEP);
		events->flat->nodes[events->step_keys[index]].calls++;
	}
	return events->step_keys[index];
}

/* Makes the key of a node: the operator with the shapes of its inputs, or the name of a range. */
static uint32_t make_shape_key(struct event_grouping *events, const struct trace_node_info *at)
{
	struct trace_reader *reader = events->process->reader;
	const struct trace_text name = reader_name(reader, at->name),
				given = reader_name(reader, at->detail);
	const bool is_op = at->kind == TRACE_NODE_OP && given.known;
	struct text_builder text = { .text = NULL };
	uint32_t key;

	events->has_key |= is_op;
	text_add_bytes(&text, name.bytes, name.length);
	if (is_op) {
		text_add(&text, "  ");
		text_add_bytes(
			&text, given.bytes, op_inputs_shapes_length(given.bytes, given.length));
	}
	key = string_table_intern(events->process->texts, text.text, text.used);
	free(text.text);
	return tree_child(events->flat, 0, key, 0, is_op ? NODE_OP : NODE_RANGE);
}

/* The key is a name with shapes, such as `aten::mm  [[2, 3], [3, 4]]`. */
static uint32_t shape_key(struct event_grouping *events, uint32_t trace_node)
{
	if (!trace_node)
		return find_key_named(events, "(no range)", NODE_RANGE);
	ARRAY_GROW(events->key_of, events->key_room, (size_t)trace_node + 1);
	if (!events->key_of[trace_node])
		events->key_of[trace_node] = make_shape_key(
			events, reader_node(events->process->reader, trace_node));
	return events->key_of[trace_node];
}

/* Appends the frames from `first` up to `end`, each after the one that it called. */
static void add_frames(struct text_builder *text, struct process *process, uint32_t stack,
	uint32_t first, uint32_t end)
{
	char *frame = xcalloc(CALL_STACK_TEXT);

	for (uint32_t i = first; i < end && i - first < FRAMES_MAX; i++) {
		call_stack_frame(process, stack, i, true, frame, CALL_STACK_TEXT);
		text_add(text, "%s%.1024s", i > first ? " < " : "", frame);
	}
	free(frame);
}

/* Writes a call stack as one text, which the caller frees: the user's innermost frame and its
 * callers, then in brackets the frames of libraries that it called, the innermost first. Without a
 * frame of the user, all frames, the innermost first. */
static char *call_stack_text(struct process *process, uint32_t stack, uint32_t frames)
{
	const uint32_t own = call_stack_own_frame(process, stack, 0),
		       first = own < frames ? own : 0;
	struct text_builder text = { .text = NULL };

	add_frames(&text, process, stack, first, frames);
	if (first) {
		text_add(&text, " (through ");
		add_frames(&text, process, stack, 0, first);
		text_add(&text, ")");
	}
	return text.text;
}

static uint32_t stack_key(struct event_grouping *events, uint32_t stack)
{
	const uint32_t frames = call_stack_frames(events->process, stack);
	char *text;

	if (!frames)
		return find_key_named(events, "(no call stack)", NODE_STACK);
	events->has_key = true;
	ARRAY_GROW(events->key_of, events->key_room, (size_t)stack + 1);
	if (events->key_of[stack])
		return events->key_of[stack];
	text = call_stack_text(events->process, stack, frames);
	events->key_of[stack] = find_key_named(events, text, NODE_STACK);
	free(text);
	return events->key_of[stack];
}

static bool lies_in_key(struct event_grouping *events, uint32_t trace_node, uint32_t key)
{
	for (; trace_node; trace_node = reader_node(events->process->reader, trace_node)->parent)
		if (shape_key(events, trace_node) == key)
			return true;
	return false;
}

static bool is_inner(struct event_grouping *events, uint32_t trace_node)
{
	const uint32_t key = shape_key(events, trace_node),
		       outer = reader_node(events->process->reader, trace_node)->parent;

	array_grow_zeroed(&events->inner, &events->inner_room, (size_t)trace_node + 1, 1);
	if (!events->inner[trace_node])
		events->inner[trace_node] = lies_in_key(events, outer, key) ? 2 : 1;
	return events->inner[trace_node] == 2;
}

static void add_segment_to_key(void *context, const struct observed_segment *part)
{
	struct event_grouping *events = context;
	const uint32_t key = events->by == BY_THREAD ? thread_key(events, part->thread->tid)
			     : events->by == BY_STEP
				     ? step_key(events, part->thread->tid, part->begin_ns)
				     : shape_key(events, part->trace_node);
	struct node *node = &events->flat->nodes[key];

	node->self_ns += part->self_ns;
	if (events->by != BY_SHAPE) {
		node->total_ns += part->self_ns;
		return;
	}
	node->calls++;
	if (part->trace_node && !is_inner(events, part->trace_node))
		events->flat->nodes[key].total_ns += part->total_ns;
	else if (!part->trace_node)
		events->flat->nodes[key].total_ns += part->self_ns;
}

static void add_key_total(struct event_grouping *events, uint32_t key, uint64_t duration_ns)
{
	struct node_gpu *gpu = tree_gpu(events->flat, key);

	gpu->total_ns += duration_ns;
	gpu->total_calls++;
}

/* Adds a duration to each key around the launch, to each key once. */
static void add_to_outer_keys(
	struct event_grouping *events, uint32_t trace_node, uint64_t duration_ns)
{
	if (!trace_node)
		add_key_total(events, shape_key(events, 0), duration_ns);
	for (; trace_node; trace_node = reader_node(events->process->reader, trace_node)->parent)
		if (!is_inner(events, trace_node))
			add_key_total(events, shape_key(events, trace_node), duration_ns);
}

static uint32_t work_key(struct event_grouping *events, const struct observed_gpu_work *work)
{
	const struct gpu_launch *launch = work->launch;

	switch (events->by) {
	case BY_STREAM:
		return stream_key(events, work->gpu);
	case BY_STACK:
		return stack_key(events, launch ? launch->stack : 0);
	case BY_THREAD:
		return launch ? thread_key(events, launch->tid)
			      : find_key_named(events, "(launch not in the trace)", NODE_THREAD);
	case BY_STEP:
		return step_key(events, launch ? launch->tid : 0,
			launch ? launch->begin_ns : work->begin_ns);
	default:
		return shape_key(events, launch ? launch->trace_node : 0);
	}
}

static void count_in_key(
	struct event_grouping *events, uint32_t key, bool timed, uint64_t duration_ns)
{
	if (events->by != BY_STREAM && events->by != BY_STACK)
		return;
	if (!timed)
		events->flat->nodes[key].calls++;
	else
		tree_count(events->flat, key, duration_ns);
}

static void add_work_to_key(void *context, const struct observed_gpu_work *work)
{
	struct event_grouping *events = context;
	const struct trace_gpu *gpu = work->gpu;
	const bool has_duration = work->timed && gpu->end_ns > gpu->start_ns;
	const uint64_t duration_ns = has_duration ? gpu->end_ns - gpu->start_ns : 0;
	const struct node_gpu piece = {
		.self_ns = duration_ns, .self_calls = 1, .untimed = !work->timed
	};
	uint32_t key;

	if (!work->counts)
		return;
	key = work_key(events, work);
	group_by_add_work(events->flat, key, &piece);
	if (events->by == BY_SHAPE)
		add_to_outer_keys(events, work->launch ? work->launch->trace_node : 0, duration_ns);
	else
		add_key_total(events, key, duration_ns);
	count_in_key(events, key, work->timed, duration_ns);
}

static void restart_grouping(void *context)
{
	struct event_grouping *events = context;
	const struct steps *steps = events->process->steps;

	tree_free(events->flat);
	events->flat = tree_new();
	events->flat->is_grouped = true;
	events->step = 0;
	events->tid_key = 0;
	events->has_key = false;
	if (events->key_of)
		memset(events->key_of, 0, events->key_room * sizeof *events->key_of);
	if (events->inner)
		memset(events->inner, 0, events->inner_room);
	if (events->step_keys)
		memset(events->step_keys, 0, (steps->count + 1) * sizeof *events->step_keys);
}

static bool has_steps(const struct process *process)
{
	return process->steps && process->steps->count;
}

static void explain_missing_key(
	const struct process *process, enum rows_by by, char reason[GROUP_BY_REASON_BYTES])
{
	const bool own = !process_meta(process, "import.format").known;

	if (by == BY_SHAPE && own)
		snprintf(reason, GROUP_BY_REASON_BYTES,
			"this trace has no input shapes; record them with PPERF_SHAPES=1");
	else if (by == BY_SHAPE)
		snprintf(reason, GROUP_BY_REASON_BYTES,
			"this trace has no input shapes; record them with record_shapes=True in "
			"torch.profiler");
	else if (by == BY_STACK && own)
		snprintf(reason, GROUP_BY_REASON_BYTES,
			"no launch in this trace has a call stack; record Python stacks with "
			"PPERF_PYSTACKS=launch, native stacks with PPERF_STACKS=launch");
	else if (by == BY_STACK)
		snprintf(reason, GROUP_BY_REASON_BYTES,
			"no launch in this trace has a call stack; record them with "
			"with_stack=True in torch.profiler");
	else if (by == BY_STEP)
		snprintf(reason, GROUP_BY_REASON_BYTES,
			"no steps were found%s%s; set --step-marker NAME to the name of the ranges "
			"that are steps",
			process->steps && *process->steps->reason ? ": " : "",
			process->steps ? process->steps->reason : "");
	else if (by == BY_STREAM)
		snprintf(reason, GROUP_BY_REASON_BYTES,
			"this trace has no GPU work; pperf-report info shows which sources were "
			"on");
	else
		snprintf(reason, GROUP_BY_REASON_BYTES, "this trace has no ranges and no GPU work");
}

/* Returns false if the first pass or the dictionary already shows that the trace lacks the key. */
static bool may_have_key(const struct process *process, enum rows_by by)
{
	if (by == BY_STACK && !reader_dictionary_count(process->reader, TRACE_STACK) &&
		!reader_dictionary_count(process->reader, TRACE_PYTHON_STACK))
		return false;
	if (by == BY_STREAM || by == BY_STACK)
		return process_has_records(process);
	for (uint32_t trace_node = 1;
		by == BY_SHAPE && trace_node < reader_node_count(process->reader); trace_node++)
		if (reader_node(process->reader, trace_node)->kind == TRACE_NODE_OP &&
			reader_node(process->reader, trace_node)->detail)
			return true;
	return by != BY_SHAPE;
}

static void add_threads(struct event_grouping *events)
{
	const struct profile *profile = events->process->profile;

	for (size_t i = 0; i < profile->thread_count; i++) {
		struct node *node =
			&events->flat->nodes[thread_key(events, profile->threads[i].tid)];

		node->self_ns += profile->threads[i].self_ns;
		node->total_ns += profile->threads[i].self_ns;
	}
}

struct tree *group_by_events(
	struct process *process, enum rows_by by, char reason[GROUP_BY_REASON_BYTES])
{
	struct event_grouping events = { .process = process, .by = by };
	const bool of_work = by == BY_STREAM || by == BY_STACK;
	const struct profile_observer observer = { .context = &events,
		.restart = restart_grouping,
		.segment = of_work ? NULL : add_segment_to_key,
		.work = add_work_to_key };
	const struct profile_options options = profile_options_for_observer(
		process->profile, &observer);

	if (!may_have_key(process, by) || (by == BY_STEP && !has_steps(process))) {
		explain_missing_key(process, by, reason);
		return NULL;
	}
	if (by == BY_STEP)
		events.step_keys = xcalloc((process->steps->count + 1) * sizeof *events.step_keys);
	restart_grouping(&events);
	if (by == BY_THREAD && !process_has_records(process))
		add_threads(&events);
	else
		profile_free(profile_build(process->reader, process->texts, &options));
	free(events.key_of);
	free(events.inner);
	free(events.step_keys);
	if (events.flat->count > 1 && (events.has_key || (by != BY_SHAPE && by != BY_STACK)))
		return events.flat;
	explain_missing_key(process, by, reason);
	tree_free(events.flat);
	return NULL;
}
