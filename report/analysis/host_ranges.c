/* SPDX-License-Identifier: MIT */
#include "report/analysis/host_ranges.h"
#include "report/gpu/work_categories.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <stdlib.h>

struct host_ranges_pass {
	const struct process *process;
	struct host_ranges *found;
	/* By node: enum host_range_kind of the outermost nodes of a kind, and that of the outermost
	 * node around a node, or its own. Both have `known` nodes. */
	uint8_t *kinds, *around;
	size_t known, kinds_room, around_room;
};

enum host_range_kind host_range_kind(struct string_view name)
{
	static const char *const compilers[] = { "torch.compile *", "*compile_inner*",
		"*_compile.compile*", "*dynamo_timed*", "*compile_fx*", "*create_aot_dispatcher*",
		"*aot_module_simplified*", NULL };

	if (category_matches("enumerate(DataLoader)#*", name.bytes, name.length))
		return HOST_RANGE_DATA;
	for (const char *const *pattern = compilers; *pattern; pattern++)
		if (category_matches(*pattern, name.bytes, name.length))
			return HOST_RANGE_COMPILATION;
	return HOST_RANGE_NONE;
}

/* Finds the outermost nodes of each kind among the nodes that are not known yet. Returns their
 * number. */
static uint32_t find_host_nodes(struct host_ranges_pass *pass)
{
	const struct tree *tree = pass->process->profile->tree;
	uint32_t count = 0;

	ARRAY_GROW(pass->kinds, pass->kinds_room, tree->count);
	ARRAY_GROW(pass->around, pass->around_room, tree->count);
	for (; pass->known < tree->count; pass->known++) {
		const struct node *node = &tree->nodes[pass->known];
		const uint8_t outer = pass->around[node->parent];
		const enum host_range_kind kind = node_kind_class(node->kind) == NODE_RANGES
							  ? host_range_kind(string_table_get(
								    pass->process->texts,
								    node->name))
							  : HOST_RANGE_NONE;

		pass->around[pass->known] = outer ? outer : (uint8_t)kind;
		pass->kinds[pass->known] = outer ? HOST_RANGE_NONE : (uint8_t)kind;
		count += pass->kinds[pass->known] != HOST_RANGE_NONE;
	}
	return count;
}

/* Returns the thread id of the stream with this id in the trace; 0: there is none. */
static uint32_t thread_of_stream(const struct trace_reader *reader, uint32_t id)
{
	for (uint32_t i = 0; i < reader_stream_count(reader); i++)
		if (reader_stream(reader, i)->stream == id)
			return reader_stream(reader, i)->tid;
	return 0;
}

static void restart_host_ranges(void *context)
{
	struct host_ranges_pass *pass = context;

	pass->found->count = 0;
	if (pass->process->profile->is_new)
		pass->known = 1;
}

static void add_host_range(void *context, const struct observed_instance *instance)
{
	struct host_ranges_pass *pass = context;
	struct host_ranges *found = pass->found;

	if (instance->node >= pass->known)
		find_host_nodes(pass);
	if (!pass->kinds[instance->node])
		return;
	array_grow_zeroed(&found->ranges, &found->room, found->count + 1, sizeof *found->ranges);
	found->ranges[found->count++] = (struct host_range){ .begin_ns = instance->begin_ns,
		.end_ns = instance->end_ns,
		.tid = thread_of_stream(pass->process->reader, instance->stream),
		.node = instance->node,
		.kind = pass->kinds[instance->node] };
}

static int by_thread_and_begin(const void *a, const void *b)
{
	const struct host_range *left = a, *right = b;

	return left->tid != right->tid ? COMPARE(left->tid, right->tid)
				       : COMPARE(left->begin_ns, right->begin_ns);
}

static const char host_ranges_key; /* the key of process_attach() */

static void release_host_ranges(void *data)
{
	struct host_ranges *ranges = data;

	free(ranges->ranges);
	free(ranges);
}

static void free_pass(struct host_ranges_pass *pass)
{
	free(pass->kinds);
	free(pass->around);
	free(pass);
}

struct host_ranges_pass *host_ranges_begin(
	struct process *process, struct profile_observer *observer)
{
	struct host_ranges_pass *pass;

	if (process_attached(process, &host_ranges_key))
		return NULL;
	pass = xcalloc(sizeof *pass);
	pass->process = process;
	pass->found = xcalloc(sizeof *pass->found);
	pass->known = 1;
	process_attach(process, &host_ranges_key, pass->found, release_host_ranges);
	*observer = (struct profile_observer){
		.context = pass, .restart = restart_host_ranges, .closed = add_host_range
	};
	if (process->profile->is_new)
		return pass;
	if (!find_host_nodes(pass)) {
		free_pass(pass);
		return NULL;
	}
	observer->closed_nodes = pass->kinds;
	observer->closed_node_count = process->profile->tree->count;
	return pass;
}

void host_ranges_end(struct host_ranges_pass *pass)
{
	if (!pass)
		return;
	if (pass->found->count)
		qsort(pass->found->ranges, pass->found->count, sizeof *pass->found->ranges,
			by_thread_and_begin);
	free_pass(pass);
}

const struct host_ranges *host_ranges_of(struct process *process)
{
	struct profile_observer observer;
	struct host_ranges_pass *pass = host_ranges_begin(process, &observer);

	if (pass) {
		const struct profile_options options = profile_options_for_observer(
			process->profile, &observer);

		profile_free(profile_build(process->reader, process->texts, &options));
		host_ranges_end(pass);
	}
	return process_attached(process, &host_ranges_key);
}

const struct host_range *host_ranges_first(
	const struct host_ranges *ranges, uint32_t tid, uint64_t from_ns, uint64_t to_ns)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		const size_t middle = (low + high) / 2;
		const struct host_range *range = &ranges->ranges[middle];

		if (range->tid < tid || (range->tid == tid && range->end_ns <= from_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low < ranges->count && ranges->ranges[low].tid == tid &&
			       ranges->ranges[low].begin_ns < to_ns
		       ? &ranges->ranges[low]
		       : NULL;
}
