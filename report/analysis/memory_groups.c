/* SPDX-License-Identifier: MIT */
#include "report/analysis/memory_groups.h"
#include "report/analysis/allocation_sites.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/text_builder.h"
#include "report/run/call_stack.h"
#include <stdlib.h>
#include <string.h>

/* What is grouped: a tensor or a segment. */
struct grouped_item {
	uint64_t key;
	uint64_t bytes, since_ns;
	uint32_t node, stack;
	uint32_t index; /* in moment->blocks */
};

struct grouping {
	struct process *process;
	uint32_t *same, *paths; /* by node, of allocation_sites.h */
};

#define STEP_BETWEEN UINT64_MAX
#define STEP_BEFORE (UINT64_MAX - 1)
#define STEP_AFTER (UINT64_MAX - 2)

size_t memory_line(struct process *process, uint32_t stack, char *out, size_t room)
{
	const uint32_t frames = call_stack_frames(process, stack),
		       own = frames ? call_stack_own_frame(process, stack, 0) : 0;

	*out = '\0';
	return own < frames ? call_stack_frame(process, stack, own, true, out, room) : 0;
}

/* Returns the node that represents the call path of `node` in all steps. */
static uint32_t path_key(const struct grouping *grouping, uint32_t node)
{
	const uint32_t same = grouping->same[node];

	return grouping->paths[same] ? grouping->paths[same] : same;
}

static uint32_t module_key(const struct grouping *grouping, uint32_t node)
{
	const struct tree *tree = grouping->process->profile->tree;

	while (node && tree->nodes[node].kind != NODE_MODULE)
		node = tree->nodes[node].parent;
	return node ? path_key(grouping, node) : 0;
}

/* Returns the number of the step in which something was allocated, or one of STEP_*. */
static uint64_t step_key(const struct process *process, uint64_t at_ns)
{
	const struct steps *steps = process->steps;
	const struct step *step = steps_step_at(steps, at_ns);

	if (step)
		return step->number;
	if (!steps || !steps->count || at_ns < steps->steps[0].begin_ns)
		return STEP_BEFORE;
	return at_ns >= steps->steps[steps->count - 1].end_ns ? STEP_AFTER : STEP_BETWEEN;
}

static uint32_t line_key(struct process *process, uint32_t stack)
{
	char *line = xcalloc(CALL_STACK_TEXT);
	const size_t length = memory_line(process, stack, line, CALL_STACK_TEXT);
	const uint32_t text = length ? string_table_intern(process->texts, line, length) : 0;

	free(line);
	return text;
}

/* Whether the file is a part of CUDA's runtime or driver, or of pperf. Every allocation passes
 * through these. */
static bool is_cuda_file(const char *name, size_t length)
{
	static const char *const parts[] = { "libcuda", "libcudart", "libpperf", "libcupti" };

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (length >= strlen(parts[i]) && !memcmp(name, parts[i], strlen(parts[i])))
			return true;
	return false;
}

/* Returns the text of the file name of the loaded object with the address; 0: not known. */
static uint32_t object_of_address(struct process *process, uint64_t address)
{
	const struct trace_module *module, *found = NULL;
	const char *path, *slash;
	size_t length;

	for (uint32_t i = 0; (module = reader_dictionary(process->reader, TRACE_MODULE, i)); i++)
		if (address >= module->start && address < module->end)
			found = module;
	if (!found)
		return 0;
	path = (const char *)(found + 1);
	slash = memrchr(path, '/', found->path_bytes);
	length = found->path_bytes - (slash ? (size_t)(slash + 1 - path) : 0);
	path = slash ? slash + 1 : path;
	return is_cuda_file(path, length) ? 0 : string_table_intern(process->texts, path, length);
}

uint32_t memory_library(struct process *process, uint32_t stack)
{
	const struct trace_stack *native = reader_stack(process->reader, stack);
	uint32_t library = 0;

	for (uint32_t i = 0; stack && native && i < native->frames && !library; i++) {
		uint64_t address;

		memcpy(&address, (const char *)(native + 1) + i * sizeof address, sizeof address);
		library = object_of_address(process, address - 1);
	}
	return library;
}

/* Returns what identifies the group of an item. A further key of --by has its case here and in
 * memory_group_name. */
static uint64_t group_key(
	const struct grouping *grouping, const struct grouped_item *item, enum rows_by by)
{
	switch (by) {
	case BY_MODULE:
		return module_key(grouping, item->node);
	case BY_STEP:
		return step_key(grouping->process, item->since_ns);
	case BY_LINE:
		return line_key(grouping->process, item->stack);
	case BY_SIZE:
		return item->bytes;
	case BY_LIBRARY:
		return memory_library(grouping->process, item->stack);
	default:
		return path_key(grouping, item->node);
	}
}

/* Keys of stacks are looked up once for each stack. */
static void set_group_keys(
	const struct grouping *grouping, struct grouped_item *items, size_t count, enum rows_by by)
{
	uint32_t last_stack = 0;
	uint64_t last_key = 0;

	for (size_t i = 0; i < count; i++) {
		const bool of_stack = by == BY_LINE || by == BY_LIBRARY;

		if (of_stack && i && items[i].stack == last_stack)
			items[i].key = last_key;
		else
			items[i].key = group_key(grouping, &items[i], by);
		last_stack = items[i].stack;
		last_key = items[i].key;
	}
}

COMPARE_BY_TWO(by_stack_and_index, struct grouped_item, stack, index)
COMPARE_BY_TWO(by_key_and_index, struct grouped_item, key, index)
COMPARE_BY_LARGEST(by_group_bytes, struct memory_group, bytes, key)

static void add_to_group(struct memory_group *group, const struct grouped_item *item)
{
	if (!group->count || item->since_ns < group->since_ns)
		group->since_ns = item->since_ns;
	if (!group->count || item->bytes > group->largest) {
		group->largest = item->bytes;
		group->node = item->node;
		group->stack = item->stack;
	}
	group->key = item->key;
	group->bytes += item->bytes;
	group->count++;
}

static struct memory_groups group_items(
	struct process *process, struct grouped_item *items, size_t count, enum rows_by by)
{
	const struct tree *tree = process->profile->tree;
	struct grouping grouping = { .process = process,
		.same = nodes_in_any_step(tree),
		.paths = nodes_by_call_path(tree) };
	struct memory_groups groups = { .count = 0 };
	size_t room = 0;

	qsort(items, count, sizeof *items, by_stack_and_index);
	set_group_keys(&grouping, items, count, by);
	qsort(items, count, sizeof *items, by_key_and_index);
	for (size_t i = 0; i < count; i++) {
		if (!i || items[i].key != items[i - 1].key)
			ARRAY_GROW(groups.groups, room, ++groups.count);
		add_to_group(&groups.groups[groups.count - 1], &items[i]);
	}
	if (groups.count)
		qsort(groups.groups, groups.count, sizeof *groups.groups, by_group_bytes);
	free(grouping.same);
	free(grouping.paths);
	return groups;
}

/* Returns the index of the group with this key. There is one. */
static uint32_t group_of_key(
	const struct memory_group *sorted, const uint32_t *order, size_t count, uint64_t key)
{
	size_t low = 0, high = count;

	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		*(sorted[order[middle]].key <= key ? &low : &high) = middle;
	}
	return order[low];
}

struct key_order {
	uint64_t key;
	uint32_t index;
};

COMPARE_BY(by_order_key, struct key_order, key)

/* Sets group_of_block. `items` are the blocks of the moment. */
static void note_groups_of_blocks(
	struct memory_groups *groups, const struct grouped_item *items, size_t count)
{
	struct key_order *keys = xcalloc((groups->count + 1) * sizeof *keys);
	uint32_t *order = xcalloc((groups->count + 1) * sizeof *order);

	for (size_t i = 0; i < groups->count; i++)
		keys[i] = (struct key_order){ groups->groups[i].key, (uint32_t)i };
	qsort(keys, groups->count, sizeof *keys, by_order_key);
	for (size_t i = 0; i < groups->count; i++)
		order[i] = keys[i].index;
	groups->group_of_block = xcalloc((count + 1) * sizeof *groups->group_of_block);
	for (size_t i = 0; i < count; i++)
		groups->group_of_block[items[i].index] = group_of_key(
			groups->groups, order, groups->count, items[i].key);
	free(keys);
	free(order);
}

/* Adds the free bytes of each segment whose blocks are all of one group to that group. */
static void add_pinned(struct memory_groups *groups, const struct memory_moment *moment)
{
	for (size_t i = 0; i < moment->segment_count; i++) {
		const struct moment_segment *segment = &moment->segments[i];
		const uint32_t *group = &groups->group_of_block[segment->first_block];
		bool is_one = segment->block_count > 0;

		for (size_t j = 1; is_one && j < segment->block_count; j++)
			is_one = group[j] == group[0];
		if (is_one)
			groups->groups[group[0]].pinned += segment->in_gaps;
	}
}

struct memory_groups memory_groups_of_tensors(
	struct process *process, const struct memory_moment *moment, enum rows_by by)
{
	struct grouped_item *items = xcalloc((moment->block_count + 1) * sizeof *items);
	struct memory_groups groups;

	for (size_t i = 0; i < moment->block_count; i++)
		items[i] = (struct grouped_item){ .bytes = moment->blocks[i].bytes,
			.since_ns = moment->blocks[i].since_ns,
			.node = moment->blocks[i].node,
			.stack = moment->blocks[i].stack,
			.index = (uint32_t)i };
	groups = group_items(process, items, moment->block_count, by);
	note_groups_of_blocks(&groups, items, moment->block_count);
	add_pinned(&groups, moment);
	free(items);
	return groups;
}

struct memory_groups memory_groups_of_unknown(
	struct process *process, const struct memory_moment *moment, enum rows_by by)
{
	struct grouped_item *items = xcalloc((moment->segment_count + 1) * sizeof *items);
	struct memory_groups groups;
	size_t count = 0;

	for (size_t i = 0; i < moment->segment_count; i++) {
		const struct memory_segment *segment = &moment->segments[i].segment;

		if (!moment->segments[i].has_blocks_known)
			items[count++] = (struct grouped_item){ .bytes = segment->bytes,
				.since_ns = segment->since_ns,
				.node = segment->node,
				.stack = segment->stack,
				.index = (uint32_t)i };
	}
	groups = group_items(process, items, count, by);
	free(items);
	return groups;
}

void memory_groups_free(struct memory_groups *groups)
{
	free(groups->groups);
	free(groups->group_of_block);
	*groups = (struct memory_groups){ .count = 0 };
}

/* ---- names ---- */

static struct text_builder group_name;

static void add_class_name(const struct process *process, const struct node *node)
{
	const struct string_view class = string_table_get(process->texts, node->class);

	if (!node->class)
		return;
	text_add(&group_name, " (");
	text_add_bytes(&group_name, class.bytes, class.length);
	text_add(&group_name, ")");
}

/* Appends the call path without steps and sections of the run. */
static void add_group_path(const struct process *process, uint32_t node)
{
	const struct tree *tree = process->profile->tree;
	const struct node *of = &tree->nodes[node];
	struct string_view name;

	if (!node)
		return;
	add_group_path(process, of->parent);
	if (of->kind == NODE_STEP || of->kind == NODE_SECTION || of->kind == NODE_UNATTRIBUTED)
		return;
	name = string_table_get(process->texts, of->name);
	text_add(&group_name, group_name.used ? " / " : "");
	text_add_bytes(&group_name, name.bytes, name.length);
	if (name.length == 1 && name.bytes[0] == '*')
		add_class_name(process, of);
}

static void add_step_name(uint64_t step)
{
	if (step == STEP_BETWEEN || step == STEP_BEFORE || step == STEP_AFTER)
		text_add(&group_name, "%s",
			step == STEP_BETWEEN  ? "(between steps)"
			: step == STEP_BEFORE ? "(before the steps)"
					      : "(after the steps)");
	else
		text_add(&group_name, "step %llu", (unsigned long long)step);
}

struct string_view memory_group_name(
	struct process *process, const struct memory_group *group, enum rows_by by)
{
	struct string_view text;

	group_name.used = 0;
	switch (by) {
	case BY_STEP:
		add_step_name(group->key);
		break;
	case BY_SIZE:
		text_add(&group_name, "%llu bytes", (unsigned long long)group->key);
		break;
	case BY_LINE:
	case BY_LIBRARY:
		text = string_table_get(process->texts, (uint32_t)group->key);
		text_add_bytes(&group_name, text.bytes, group->key ? text.length : 0);
		break;
	default:
		add_group_path(process, (uint32_t)group->key);
	}
	if (!group_name.used)
		text_add(&group_name, "%s",
			by == BY_MODULE                     ? "(in no module)"
			: by == BY_LINE || by == BY_LIBRARY ? "(no call stack)"
							    : "(no range)");
	return (struct string_view){ group_name.text, (uint32_t)group_name.used };
}
