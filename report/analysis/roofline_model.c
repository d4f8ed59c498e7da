/* SPDX-License-Identifier: MIT */
#include "report/analysis/roofline_model.h"
#include "report/analysis/activities.h"
#include "report/base/alloc.h"
#include "report/trace/op_inputs.h"
#include <stdlib.h>
#include <string.h>

#define NO_COST UINT32_MAX

/* An operator that is open on a thread, and has launched something. */
struct open_operator {
	uint32_t place, tid, device;
	uint64_t launches;
};

struct place_cost {
	uint32_t at;        /* the outermost place around it with a figure, or itself; NO_COST; 0: not looked at */
	uint32_t key;       /* of that place: text of name and inputs */
	struct op_cost cost;
	bool assumed;
};

struct roofline_state {
	struct process *process;
	const struct options *options;
	struct roofline made;
	size_t device_room;
	struct place_cost *places;
	size_t place_room;
	struct open_operator *open;
	size_t open_count, open_room;
};

static struct roofline_device *device_of(struct roofline_state *state, uint32_t device)
{
	for (size_t i = 0; i < state->made.device_count; i++)
		if (state->made.devices[i].device == device)
			return &state->made.devices[i];
	grow(&state->made.devices, &state->device_room, state->made.device_count + 1, sizeof *state->made.devices);
	state->made.devices[state->made.device_count] = (struct roofline_device){ .device = device };
	return &state->made.devices[state->made.device_count++];
}

static struct roofline_subject *subject_of(struct roofline_subjects *subjects, uint32_t text)
{
	grow(&subjects->slots, &subjects->slot_room, (size_t)text + 1, sizeof *subjects->slots);
	if (!subjects->slots[text]) {
		grow(&subjects->all, &subjects->room, subjects->count + 1, sizeof *subjects->all);
		subjects->all[subjects->count] = (struct roofline_subject){ .name = text };
		subjects->slots[text] = (uint32_t)++subjects->count;
	}
	return &subjects->all[subjects->slots[text] - 1];
}

/* ---- which operator it was ---- */

static bool look_up(struct roofline_state *state, uint32_t place, struct place_cost *found)
{
	struct trace_reader *reader = state->process->reader;
	const struct trace_place *at = reader_place(reader, place);
	const struct trace_text name = reader_name(reader, at->name), given = reader_name(reader, at->detail);
	struct op_inputs inputs;
	char *both;

	if (at->kind != TRACE_NODE_OP || !given.known || !op_inputs_read(&inputs, given.bytes, given.length) ||
		!op_cost(&found->cost, name.bytes, name.length, &inputs, state->options->assumed))
		return false;
	found->assumed = !inputs.typed && found->cost.element != ELEMENT_UNKNOWN;
	both = need((size_t)name.length + given.length + 2);
	memcpy(both, name.bytes, name.length);
	both[name.length] = '\t';
	memcpy(both + name.length + 1, given.bytes, given.length);
	found->key = text_id(state->process->texts, both, (size_t)name.length + 1 + given.length);
	free(both);
	return true;
}

/* Whose the work that was launched there is; NULL: nobody's with a figure. */
static const struct place_cost *cost_at(struct roofline_state *state, uint32_t place)
{
	uint32_t outermost = NO_COST;

	grow(&state->places, &state->place_room, (size_t)place + 1, sizeof *state->places);
	if (!state->places[place].at) {
		for (uint32_t at = place; at; at = reader_place(state->process->reader, at)->parent) {
			struct place_cost found = { .at = at };

			if (!look_up(state, at, &found))
				continue;
			state->places[at].key = found.key;
			state->places[at].cost = found.cost;
			state->places[at].assumed = found.assumed;
			outermost = at;
		}
		state->places[place].at = outermost;
	}
	return state->places[place].at == NO_COST ? NULL : &state->places[state->places[place].at];
}

static uint32_t name_of_kernel(struct roofline_state *state, const struct fold_seen_work *work)
{
	return work->name ? work->name : text_id(state->process->texts, "(not named)", 11);
}

/* ---- what the fold tells ---- */

void roofline_free(struct roofline *roofline)
{
	for (size_t i = 0; i < roofline->device_count; i++) {
		struct roofline_subjects *all[] = { &roofline->devices[i].operators, &roofline->devices[i].moves,
			&roofline->devices[i].unknown };

		for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
			free(all[k]->all);
			free(all[k]->slots);
		}
	}
	free(roofline->devices);
	*roofline = (struct roofline){ .devices = NULL };
}

static void begins(void *context)
{
	struct roofline_state *state = context;

	roofline_free(&state->made);
	state->device_room = state->open_count = 0;
}

static void call(void *context, const struct fold_seen_call *seen)
{
	struct roofline_state *state = context;
	const struct trace_call *record = seen->event->record;
	const struct place_cost *cost;
	struct open_operator *open;
	size_t i = 0;

	if (seen->event->kind != TRACE_LAUNCH || !seen->counts || record->result || record->head.flags & TRACE_CALL_CAPTURED)
		return;
	cost = cost_at(state, seen->event->node);
	if (!cost)
		return;
	open = state->open;
	while (i < state->open_count &&
		(open[i].tid != seen->event->stream->tid || open[i].place != (uint32_t)(cost - state->places)))
		i++;
	if (i == state->open_count) {
		grow(&state->open, &state->open_room, i + 1, sizeof *state->open);
		state->open[state->open_count++] = (struct open_operator){ .place = (uint32_t)(cost - state->places),
			.tid = seen->event->stream->tid,
			.device = record->device };
	}
	state->open[i].launches++;
}

/* A call of the operator is over. One that launched nothing computed on the CPU, or its work is a graph's by now. */
static void part(void *context, const struct fold_part *seen)
{
	struct roofline_state *state = context;

	for (size_t i = 0; i < state->open_count; i++) {
		const struct open_operator *open = &state->open[i];
		struct roofline_subject *subject;

		if (open->place != seen->place || open->tid != seen->thread->tid)
			continue;
		subject = subject_of(
			&device_of(state, open->device)->operators, state->places[open->place].key);
		subject->calls++;
		subject->launches += open->launches;
		state->open[i] = state->open[--state->open_count];
		return;
	}
}

static bool says_tf32(struct roofline_state *state, const struct trace_gpu *gpu)
{
	const struct trace_text name = reader_name(state->process->reader, ((const struct trace_kernel *)gpu)->name);

	return memmem(name.bytes, name.length, "tf32", 4) != NULL;
}

static void add_kernel(struct roofline_state *state, struct roofline_subject *subject, const struct place_cost *cost,
	const struct fold_seen_work *work)
{
	subject->cost = cost->cost;
	subject->assumed = cost->assumed;
	subject->several |= subject->works && subject->kernel != work->name;
	subject->kernel = work->name;
	if (cost->cost.matrix && cost->cost.element == ELEMENT_FP32 && !subject->narrow)
		subject->narrow = says_tf32(state, work->gpu);
}

/* Within a GPU each byte is read and written. */
static uint64_t moved(const struct trace_gpu_copy *copy)
{
	const bool within = copy->gpu.head.kind == TRACE_GPU_COPY && copy->copy_kind == TRACE_COPY_DTOD;

	return copy->bytes << within;
}

static void work(void *context, const struct fold_seen_work *seen)
{
	struct roofline_state *state = context;
	const struct trace_gpu *gpu = seen->gpu;
	const bool kernel = gpu->head.kind == TRACE_KERNEL, own = seen->launch && !gpu->graph_node && !seen->launch->graph_node;
	const struct place_cost *cost = kernel && own ? cost_at(state, seen->launch->place) : NULL;
	struct roofline_device *device;
	struct roofline_subject *subject;
	const uint64_t ns = seen->timed && gpu->end_ns > gpu->start_ns ? gpu->end_ns - gpu->start_ns : 0;

	if (!seen->counts)
		return;
	device = device_of(state, gpu->device);
	subject = subject_of(cost ? &device->operators : kernel ? &device->unknown : &device->moves,
		cost ? cost->key : name_of_kernel(state, seen));
	if (cost)
		add_kernel(state, subject, cost, seen);
	else if (!kernel)
		subject->bytes += moved((const struct trace_gpu_copy *)gpu);
	if (!subject->works)
		subject->node = seen->owner;
	subject->works++;
	subject->untimed += !seen->timed;
	subject->ns += ns;
	device->ns += ns;
	device->works++;
}

/* Calls of which the trace does not say on what GPU: that which has the work, if it is one. */
static void adopt(struct roofline_state *state, const struct roofline_subjects *from, uint32_t text)
{
	const struct roofline_subject *calls = &from->all[from->slots[text] - 1];
	struct roofline_subject *found = NULL;

	for (size_t i = 0; i < state->made.device_count; i++) {
		struct roofline_subjects *operators = &state->made.devices[i].operators;

		if (operators == from || text >= operators->slot_room || !operators->slots[text])
			continue;
		if (found)
			return;
		found = &operators->all[operators->slots[text] - 1];
	}
	if (!found)
		return;
	found->calls += calls->calls;
	found->launches += calls->launches;
}

static void adopt_all(struct roofline_state *state)
{
	const struct roofline_subjects *from = &device_of(state, ACTIVITY_NO_DEVICE)->operators;

	for (uint32_t text = 0; text < from->slot_room; text++)
		if (from->slots[text])
			adopt(state, from, text);
}

static int by_device(const void *a, const void *b)
{
	const struct roofline_device *left = a, *right = b;

	return (left->device > right->device) - (left->device < right->device);
}

struct roofline roofline_read(const struct options *options, struct process *process)
{
	struct roofline_state state = { .process = process, .options = options };
	const struct fold_observer observer = {
		.context = &state, .begins = begins, .call = call, .part = part, .work = work
	};
	const struct fold_options wanted = fold_options_telling(process->fold, &observer);

	if (process_has_records(process))
		fold_free(fold_run(process->reader, process->texts, &wanted));
	adopt_all(&state);
	qsort(state.made.devices, state.made.device_count, sizeof *state.made.devices, by_device);
	free(state.places);
	free(state.open);
	return state.made;
}
