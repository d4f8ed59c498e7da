/* SPDX-License-Identifier: MIT */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/scene/scene_internal.h"
#include <stdlib.h>
#include <string.h>

/* What a device holds now, and how far the columns of each span are. */
struct device_memory_state {
	uint32_t device;
	bool is_tensors, has_begun;
	struct scene_memory_column now; /* without level */
	uint64_t allocated;             /* tensors: PyTorch's total */
	uint64_t held;                  /* by records: of owners and others */
	uint64_t device_held;           /* device memory by records; tensors: beside `held` */
	bool has_device_records;
	uint8_t *owner_of; /* by node; SCENE_OWNERS_MAX: others */
	uint32_t node_count;
	size_t next[SCENE_SPANS_MAX]; /* the first column that has not begun */
};

struct memory_builder {
	struct process *process;
	struct span_builder *spans;
	size_t span_count;
	struct device_memory_state devices[SCENE_MEMORIES_MAX];
	size_t device_count;
};

static bool belongs_to(const struct device_memory_state *state, uint32_t kind, uint32_t device)
{
	return state->device == device &&
	       (state->is_tensors ? kind == MEMORY_TENSOR : memory_is_device(kind));
}

static struct scene_memory_column *column_of(
	const struct memory_builder *memory, size_t device, size_t span, size_t column)
{
	return &memory->spans[span].span->memories[device].columns[column];
}

/* Sets what is known of the level from the parts. */
static struct scene_memory_column current_state(
	const struct device_memory_state *state, uint64_t at_ns)
{
	struct scene_memory_column now = state->now;

	now.at_ns = at_ns;
	now.before = state->is_tensors && state->allocated > state->held
			     ? state->allocated - state->held
			     : 0;
	now.level = state->held + now.before;
	if (state->has_device_records || !state->is_tensors)
		now.reserved = state->device_held;
	return now;
}

/* Stores the state in a column if its level is higher than before. */
static void offer_state(
	struct scene_memory_column *column, const struct scene_memory_column *now, bool is_first)
{
	const uint64_t most = max_u64(is_first ? 0 : column->reserved_max, now->reserved);

	if (is_first || now->level > column->level)
		*column = *now;
	column->reserved_max = most;
}

/* Begins the columns of a span up to `until_ns` with the state that they begin with. */
static void begin_columns(struct memory_builder *memory, size_t device, size_t index,
	uint64_t until_ns, const struct scene_memory_column *state)
{
	const struct scene_span *span = memory->spans[index].span;
	size_t *next = &memory->devices[device].next[index];

	while (*next < span->columns &&
		span->origin_ns + ((uint64_t)*next << span->shift) <= until_ns) {
		struct scene_memory_column now = *state;

		now.at_ns = span->origin_ns + ((uint64_t)*next << span->shift);
		offer_state(column_of(memory, device, index, *next), &now, true);
		++*next;
	}
}

static void begin_all_columns(struct memory_builder *memory, size_t device, uint64_t until_ns)
{
	const struct scene_memory_column now = current_state(&memory->devices[device], until_ns);

	for (size_t i = 0; i < memory->span_count; i++)
		begin_columns(memory, device, i, until_ns, &now);
}

/* Offers the state to the columns at `at_ns`, which have begun. */
static void offer_to_spans(struct memory_builder *memory, size_t device, uint64_t at_ns)
{
	const struct scene_memory_column now = current_state(&memory->devices[device], at_ns);

	for (size_t i = 0; i < memory->span_count; i++) {
		const struct span_builder *builder = &memory->spans[i];

		if (at_ns < builder->span->origin_ns ||
			(builder->is_window && at_ns >= builder->span->end_ns))
			continue;
		offer_state(column_of(memory, device, i, scene_column_at(builder->span, at_ns)),
			&now, false);
	}
}

static uint64_t *share_of_node(struct device_memory_state *state, uint32_t node)
{
	const unsigned owner = node < state->node_count ? state->owner_of[node] : SCENE_OWNERS_MAX;

	return owner < SCENE_OWNERS_MAX ? &state->now.owners[owner] : &state->now.others;
}

static void free_bytes(struct device_memory_state *state, uint32_t node, uint64_t bytes)
{
	uint64_t *share = share_of_node(state, node);
	const uint64_t freed = min_u64(bytes, *share);

	*share -= freed;
	state->held -= freed;
}

/* Applies what a record changed for one device. */
static void apply_change(struct device_memory_state *state, const struct memory_change *change)
{
	if (change->freed_bytes && belongs_to(state, change->freed_kind, change->freed_device))
		free_bytes(state, change->freed_node, change->freed_bytes);
	if (change->allocated_bytes && belongs_to(state, change->kind, change->device)) {
		*share_of_node(state, change->node) += change->allocated_bytes;
		state->held += change->allocated_bytes;
	}
	if (change->freed_bytes && memory_is_device(change->freed_kind) &&
		change->freed_device == state->device)
		state->device_held -= min_u64(change->freed_bytes, state->device_held);
	if (change->allocated_bytes && memory_is_device(change->kind) &&
		change->device == state->device) {
		state->device_held += change->allocated_bytes;
		state->has_device_records = true;
	}
}

/* Before the first tensor of a record there was what PyTorch's total says without it. */
static void begin_tensors(
	struct device_memory_state *state, const struct trace_tensor *record, uint64_t changed)
{
	if (state->has_begun)
		return;
	state->has_begun = true;
	state->allocated = record->allocated > changed ? record->allocated - changed : 0;
}

/* Returns the record if it is one of the device's tensors. */
static const struct trace_tensor *tensor_record(
	const struct device_memory_state *state, const struct trace_event *event)
{
	const struct trace_tensor *record = event->record;

	return state->is_tensors && event->kind == TRACE_TENSOR && record->device == state->device
		       ? record
		       : NULL;
}

static void add_to_device(
	struct memory_builder *memory, size_t index, const struct observed_memory *seen)
{
	struct device_memory_state *state = &memory->devices[index];
	const struct trace_tensor *record = tensor_record(state, seen->event);

	if (record)
		begin_tensors(state, record, record->bytes > 0 ? (uint64_t)record->bytes : 0);
	begin_all_columns(memory, index, seen->at_ns);
	apply_change(state, seen->change);
	if (record) {
		state->allocated = record->allocated;
		state->now.reserved = record->reserved;
	}
	offer_to_spans(memory, index, seen->at_ns);
}

static bool concerns(const struct device_memory_state *state, const struct observed_memory *seen)
{
	const struct memory_change *change = seen->change;

	if (tensor_record(state, seen->event))
		return true;
	if (!change->allocated_bytes && !change->freed_bytes)
		return false;
	return (change->device == state->device && memory_is_device(change->kind)) ||
	       (change->freed_bytes && change->freed_device == state->device &&
		       memory_is_device(change->freed_kind)) ||
	       belongs_to(state, change->kind, change->device);
}

void memory_builder_add(struct memory_builder *memory, const struct observed_memory *seen)
{
	for (size_t i = 0; i < memory->device_count; i++)
		if (concerns(&memory->devices[i], seen))
			add_to_device(memory, i, seen);
}

void memory_builder_forget_tensors(struct memory_builder *memory)
{
	for (size_t i = 0; i < memory->device_count; i++) {
		struct device_memory_state *state = &memory->devices[i];

		if (!state->is_tensors)
			continue;
		memset(state->now.owners, 0, sizeof state->now.owners);
		state->now.others = state->held = 0;
	}
}

/* Returns whether a node is a part of the run, such as a warm-up step. */
static bool is_part_of_run(const struct node *node)
{
	return node->kind == NODE_STEP || node->kind == NODE_SECTION;
}

/* Returns whether two nodes are the same place in different parts of the run. */
static bool is_same_place(const struct tree *tree, uint32_t one, uint32_t other)
{
	while (one && other && one != other) {
		const struct node *a = &tree->nodes[one], *b = &tree->nodes[other];

		if (is_part_of_run(a) && is_part_of_run(b))
			return a->parent == b->parent;
		if (a->name != b->name || a->kind != b->kind)
			return false;
		one = a->parent;
		other = b->parent;
	}
	return one == other;
}

/* Memory of the same places in other steps has the same owner: the peak may be in a warm-up step,
 * whose nodes are apart from those of steady-state steps. */
static void find_owner_of_nodes(
	struct device_memory_state *state, const struct tree *tree, const struct scene_memory *lane)
{
	state->node_count = tree->count;
	state->owner_of = xcalloc(tree->count + 1);
	for (uint32_t id = 0; id < tree->count; id++) {
		state->owner_of[id] = id ? state->owner_of[tree->nodes[id].parent]
					 : SCENE_OWNERS_MAX;
		for (size_t i = 0; i < lane->owner_count; i++)
			if (lane->owners[i].node == id ||
				(!is_part_of_run(&tree->nodes[lane->owners[i].node]) &&
					lane->owners[i].node &&
					is_same_place(tree, id, lane->owners[i].node)))
				state->owner_of[id] = (uint8_t)i;
	}
}

/* Selects the owners of a device's memory by what their nodes held at the peak. */
static void select_owners(const struct memory_builder *memory,
	const struct device_memory_state *state, struct scene_memory *lane)
{
	const struct tree *tree = memory->process->profile->tree;
	const struct memory_owners *sites = memory->process->profile->memory;
	uint64_t *at_peak = xcalloc((tree->count + 1) * sizeof *at_peak);

	for (uint32_t i = 0; i < sites->site_count; i++) {
		const struct memory_site *site = &sites->sites[i];
		const struct memory_level *level = &sites->levels[site->level];

		if (belongs_to(state, level->kind, level->device) && site->node < tree->count)
			at_peak[site->node] += site->flow.at_peak;
	}
	lane->owner_count = scene_owners_select(tree, at_peak, lane->owners);
	free(at_peak);
}

static bool has_memory_of(const struct memory_owners *memory, uint32_t device, bool tensors)
{
	for (uint32_t i = 0; i < memory->level_count; i++)
		if (memory->levels[i].device == device &&
			(tensors ? memory->levels[i].kind == MEMORY_TENSOR
				 : memory_is_device(memory->levels[i].kind)))
			return true;
	return false;
}

/* Lists the devices with memory by their number. */
static void find_devices(struct memory_builder *memory)
{
	const struct memory_owners *of = memory->process->profile->memory;
	const int64_t only = memory->process->profile->options.device;
	uint32_t devices[SCENE_MEMORIES_MAX];
	size_t count = 0;

	for (uint32_t i = 0; i < of->level_count && count < SCENE_MEMORIES_MAX; i++) {
		const uint32_t device = of->levels[i].device;
		size_t known = 0;

		if ((of->levels[i].kind != MEMORY_TENSOR &&
			    !memory_is_device(of->levels[i].kind)) ||
			(only >= 0 && device != (uint32_t)only))
			continue;
		while (known < count && devices[known] != device)
			known++;
		if (known == count)
			devices[count++] = device;
	}
	if (count)
		qsort(devices, count, sizeof *devices, compare_u32);
	for (size_t i = 0; i < count; i++)
		memory->devices[i] = (struct device_memory_state){ .device = devices[i],
			.is_tensors = has_memory_of(of, devices[i], true) };
	memory->device_count = count;
}

struct memory_builder *memory_builder_new(
	struct process *process, struct span_builder *spans, size_t span_count)
{
	struct memory_builder *memory = xcalloc(sizeof *memory);

	memory->process = process;
	memory->spans = spans;
	memory->span_count = span_count;
	find_devices(memory);
	for (size_t i = 0; i < span_count; i++) {
		struct scene_span *span = spans[i].span;

		span->memory_count = memory->device_count;
		span->memories = xcalloc((memory->device_count + 1) * sizeof *span->memories);
		for (size_t at = 0; at < memory->device_count; at++) {
			struct scene_memory *lane = &span->memories[at];

			lane->device = memory->devices[at].device;
			lane->is_tensors = memory->devices[at].is_tensors;
			lane->columns = xcalloc(SCENE_COLUMNS * sizeof *lane->columns);
			select_owners(memory, &memory->devices[at], lane);
			if (!i)
				find_owner_of_nodes(
					&memory->devices[at], process->profile->tree, lane);
		}
	}
	return memory;
}

void memory_builder_restart(struct memory_builder *memory)
{
	for (size_t i = 0; i < memory->device_count; i++) {
		struct device_memory_state *state = &memory->devices[i];

		state->now = (struct scene_memory_column){ .at_ns = 0 };
		state->allocated = state->held = state->device_held = 0;
		state->has_begun = state->has_device_records = false;
		memset(state->next, 0, sizeof state->next);
	}
}

/* Sets the figures of the peak: of the highest column of the whole run. */
static void set_peak(struct scene_memory *lane, const struct scene_memory *whole)
{
	const struct scene_memory_column *most = &whole->columns[0];

	for (size_t i = 0; i < SCENE_COLUMNS; i++) {
		if (whole->columns[i].level > most->level)
			most = &whole->columns[i];
		lane->has_reserved |= whole->columns[i].reserved_max > 0;
	}
	lane->peak = most->level;
	lane->peak_ns = most->at_ns;
	lane->others_at_peak = most->others;
	lane->before_at_peak = most->before;
	for (size_t i = 0; i < lane->owner_count; i++)
		lane->owners[i].at_peak = most->owners[i];
}

void memory_builder_finish(struct memory_builder *memory)
{
	for (size_t i = 0; i < memory->device_count; i++)
		begin_all_columns(memory, i, UINT64_MAX);
	for (size_t i = 0; i < memory->span_count; i++)
		for (size_t at = 0; at < memory->device_count; at++)
			set_peak(&memory->spans[i].span->memories[at],
				&memory->spans[0].span->memories[at]);
}

void memory_builder_free(struct memory_builder *memory)
{
	for (size_t i = 0; i < memory->device_count; i++)
		free(memory->devices[i].owner_of);
	free(memory);
}
