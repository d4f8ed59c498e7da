/* SPDX-License-Identifier: MIT */
#include "report/analysis/roofline_model.h"
#include "report/base/compare.h"
#include "report/analysis/activities.h"
#include "report/base/alloc.h"
#include "report/base/text_builder.h"
#include "report/trace/op_inputs.h"
#include <stdlib.h>
#include <string.h>

#define NO_COST UINT32_MAX

/* An operator that is open on a thread and has launched something. */
struct open_operator {
	uint32_t trace_node, tid, device;
	uint64_t launches;
};

struct node_cost {
	/* The outermost trace node with a known cost: an ancestor or the node itself. NO_COST:
	 * none; 0: not computed yet. */
	uint32_t at;
	uint32_t key; /* text of the name and inputs of this node, if its cost is known */
	struct op_cost cost;
	bool assumed;
};

struct roofline_state {
	struct process *process;
	const struct options *options;
	struct roofline made;
	size_t device_room;
	struct node_cost *node_costs;
	size_t node_cost_room;
	struct open_operator *open;
	size_t open_count, open_room;
};

static struct roofline_device *roofline_device_of(struct roofline_state *state, uint32_t device)
{
	for (size_t i = 0; i < state->made.device_count; i++)
		if (state->made.devices[i].device == device)
			return &state->made.devices[i];
	ARRAY_GROW(state->made.devices, state->device_room, state->made.device_count + 1);
	state->made.devices[state->made.device_count] = (struct roofline_device){
		.device = device
	};
	return &state->made.devices[state->made.device_count++];
}

static struct roofline_subject *subject_of(struct roofline_subjects *subjects, uint32_t text)
{
	ARRAY_GROW(subjects->slots, subjects->slot_room, (size_t)text + 1);
	if (!subjects->slots[text]) {
		ARRAY_GROW(subjects->all, subjects->room, subjects->count + 1);
		subjects->all[subjects->count] = (struct roofline_subject){ .name = text };
		subjects->slots[text] = (uint32_t)++subjects->count;
	}
	return &subjects->all[subjects->slots[text] - 1];
}

/* ---- attribution to operators ---- */

static bool compute_node_cost(
	struct roofline_state *state, uint32_t trace_node, struct node_cost *found)
{
	struct trace_reader *reader = state->process->reader;
	const struct trace_node_info *at = reader_node(reader, trace_node);
	const struct trace_text name = reader_name(reader, at->name),
				given = reader_name(reader, at->detail);
	struct text_builder key = { .text = NULL };
	struct op_inputs inputs;

	if (at->kind != TRACE_NODE_OP || !given.known ||
		!op_inputs_read(&inputs, given.bytes, given.length) ||
		!op_cost(&found->cost, name.bytes, name.length, &inputs, state->options->assumed))
		return false;
	found->assumed = !inputs.typed && found->cost.element != ELEMENT_UNKNOWN;
	text_add_bytes(&key, name.bytes, name.length);
	text_add(&key, "\t");
	text_add_bytes(&key, given.bytes, given.length);
	found->key = string_table_intern(state->process->texts, key.text, key.used);
	free(key.text);
	return true;
}

/* Returns the outermost node with a cost: `trace_node` or one around it. Stores the costs on the
 * way. */
static uint32_t find_outermost_cost(struct roofline_state *state, uint32_t trace_node)
{
	uint32_t outermost = NO_COST, at = trace_node;

	for (; at; at = reader_node(state->process->reader, at)->parent)
		if (compute_node_cost(state, at, &state->node_costs[at]))
			outermost = at;
	return outermost;
}

/* Returns the cost of the operator that owns launches at `trace_node`, or NULL if none has a known
 * cost. */
static const struct node_cost *node_cost_at(struct roofline_state *state, uint32_t trace_node)
{
	struct node_cost *node;

	ARRAY_GROW(state->node_costs, state->node_cost_room, (size_t)trace_node + 1);
	node = &state->node_costs[trace_node];
	if (!node->at)
		node->at = find_outermost_cost(state, trace_node);
	return node->at == NO_COST ? NULL : &state->node_costs[node->at];
}

static uint32_t name_of_kernel(struct roofline_state *state, const struct observed_gpu_work *work)
{
	return work->name ? work->name
			  : string_table_intern(state->process->texts, "(not named)", 11);
}

/* ---- observer of the pass ---- */

static void free_roofline(struct roofline *roofline)
{
	for (size_t i = 0; i < roofline->device_count; i++) {
		struct roofline_subjects *all[] = { &roofline->devices[i].operators,
			&roofline->devices[i].copies, &roofline->devices[i].unknown };

		for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
			free(all[k]->all);
			free(all[k]->slots);
		}
	}
	free(roofline->devices);
	*roofline = (struct roofline){ .devices = NULL };
}

static void restart_roofline(void *context)
{
	struct roofline_state *state = context;

	free_roofline(&state->made);
	state->device_room = state->open_count = 0;
}

/* Returns the open operator of a thread, and adds it if it is new. */
static struct open_operator *open_operator_of(
	struct roofline_state *state, uint32_t trace_node, uint32_t tid, uint32_t device)
{
	size_t i = 0;

	while (i < state->open_count &&
		(state->open[i].tid != tid || state->open[i].trace_node != trace_node))
		i++;
	if (i == state->open_count) {
		ARRAY_GROW(state->open, state->open_room, i + 1);
		state->open[state->open_count++] = (struct open_operator){
			.trace_node = trace_node, .tid = tid, .device = device
		};
	}
	return &state->open[i];
}

static void add_device_call(void *context, const struct observed_call *seen)
{
	struct roofline_state *state = context;
	const struct trace_call *record = seen->event->record;
	const struct node_cost *cost;
	struct open_operator *open;

	if (seen->event->kind != TRACE_LAUNCH || !seen->counts || record->result ||
		record->head.flags & TRACE_CALL_CAPTURED)
		return;
	cost = node_cost_at(state, seen->event->node);
	if (!cost)
		return;
	open = open_operator_of(state, (uint32_t)(cost - state->node_costs),
		seen->event->stream->tid, record->device);
	open->launches++;
}

/* Counts a call of an operator that has ended. An operator that launched nothing computed on the
 * CPU, or was captured into a CUDA graph, and is not in `open`. */
static void close_operator(void *context, const struct observed_segment *seen)
{
	struct roofline_state *state = context;

	for (size_t i = 0; i < state->open_count; i++) {
		const struct open_operator *open = &state->open[i];
		struct roofline_subject *subject;

		if (open->trace_node != seen->trace_node || open->tid != seen->thread->tid)
			continue;
		subject = subject_of(&roofline_device_of(state, open->device)->operators,
			state->node_costs[open->trace_node].key);
		subject->calls++;
		subject->launches += open->launches;
		state->open[i] = state->open[--state->open_count];
		return;
	}
}

static bool says_tf32(struct roofline_state *state, const struct trace_gpu *gpu)
{
	const struct trace_text name = reader_name(
		state->process->reader, ((const struct trace_kernel *)gpu)->name);

	return memmem(name.bytes, name.length, "tf32", 4) != NULL;
}

static void add_kernel(struct roofline_state *state, struct roofline_subject *subject,
	const struct node_cost *cost, const struct observed_gpu_work *work)
{
	subject->cost = cost->cost;
	subject->assumed = cost->assumed;
	subject->several_kernels |= subject->operations && subject->kernel != work->name;
	subject->kernel = work->name;
	if (cost->cost.matrix && cost->cost.element == ELEMENT_FP32 && !subject->uses_tf32)
		subject->uses_tf32 = says_tf32(state, work->gpu);
}

/* A copy within a GPU reads and writes each byte. */
static uint64_t bytes_moved(const struct trace_gpu_copy *copy)
{
	const bool within = copy->gpu.head.kind == TRACE_GPU_COPY &&
			    copy->copy_kind == TRACE_COPY_DTOD;

	return copy->bytes << within;
}

static void add_roofline_work(void *context, const struct observed_gpu_work *seen)
{
	struct roofline_state *state = context;
	const struct trace_gpu *gpu = seen->gpu;
	const bool kernel = gpu->head.kind == TRACE_KERNEL,
		   is_own = seen->launch && !gpu->graph_node && !seen->launch->graph_node;
	const struct node_cost *cost = kernel && is_own
					       ? node_cost_at(state, seen->launch->trace_node)
					       : NULL;
	struct roofline_device *device;
	struct roofline_subject *subject;
	const uint64_t ns = seen->timed && gpu->end_ns > gpu->start_ns ? gpu->end_ns - gpu->start_ns
								       : 0;

	if (!seen->counts)
		return;
	device = roofline_device_of(state, gpu->device);
	subject = subject_of(cost     ? &device->operators
			     : kernel ? &device->unknown
				      : &device->copies,
		cost ? cost->key : name_of_kernel(state, seen));
	if (cost)
		add_kernel(state, subject, cost, seen);
	else if (!kernel)
		subject->bytes += bytes_moved((const struct trace_gpu_copy *)gpu);
	if (!subject->operations)
		subject->node = seen->owner;
	subject->operations++;
	subject->untimed += !seen->timed;
	subject->ns += ns;
	device->ns += ns;
	device->operations++;
}

/* Merges calls whose GPU the trace does not name into the GPU that has their work, if there is only
 * one. */
static void merge_unknown(
	struct roofline_state *state, const struct roofline_subjects *from, uint32_t text)
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

static void merge_all_unknown(struct roofline_state *state)
{
	const struct roofline_subjects *from =
		&roofline_device_of(state, ACTIVITY_NO_DEVICE)->operators;

	for (uint32_t text = 0; text < from->slot_room; text++)
		if (from->slots[text])
			merge_unknown(state, from, text);
}

COMPARE_BY(by_device_number, struct roofline_device, device)

static const char roofline_key; /* of process_attach */

static void release_roofline(void *data)
{
	free_roofline(data);
	free(data);
}

/* At the end of the pass. */
static void keep_roofline(void *context, const struct profile *pass)
{
	struct roofline_state *state = context;
	struct roofline *roofline = xcalloc(sizeof *roofline);

	(void)pass;
	merge_all_unknown(state);
	qsort(state->made.devices, state->made.device_count, sizeof *state->made.devices,
		by_device_number);
	free(state->node_costs);
	free(state->open);
	*roofline = state->made;
	process_attach(state->process, &roofline_key, roofline, release_roofline);
	free(state);
}

void roofline_read_in(const struct options *options, struct shared_pass *pass)
{
	struct roofline_state *state;

	if (process_attached(pass->process, &roofline_key))
		return;
	state = xcalloc(sizeof *state);
	*state = (struct roofline_state){ .process = pass->process, .options = options };
	if (process_has_records(pass->process))
		shared_pass_add(pass,
			&(const struct profile_observer){ .context = state,
				.restart = restart_roofline,
				.call = add_device_call,
				.segment = close_operator,
				.work = add_roofline_work },
			keep_roofline);
	else
		keep_roofline(state, NULL);
}

const struct roofline *roofline_of(const struct options *options, struct process *process)
{
	struct shared_pass pass = { .process = process };

	roofline_read_in(options, &pass);
	shared_pass_run(&pass);
	return process_attached(process, &roofline_key);
}
