/* SPDX-License-Identifier: MIT */
#include "report/analysis/first_calls.h"
#include "report/analysis/activities.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <stdlib.h>
#include <string.h>

/* First calls by an index. */
struct call_table {
	struct first_call *calls;
	size_t room;
};

struct first_calls_pass {
	const struct process *process;
	struct call_table by_name, by_node;
};

static void add_to_table(struct call_table *table, uint32_t index, const struct first_call *call)
{
	struct first_call *first;
	uint64_t later_ns = call->end_ns - call->begin_ns;

	ARRAY_GROW(table->calls, table->room, (size_t)index + 1);
	first = &table->calls[index];
	if (!first->name) {
		*first = *call;
		return;
	}
	/* A range that is inside another one of the same name ends before it. */
	if (call->begin_ns < first->begin_ns) {
		later_ns = first->end_ns - first->begin_ns;
		first->begin_ns = call->begin_ns;
		first->end_ns = call->end_ns;
		first->tid = call->tid;
	}
	first->later++;
	first->later_ns += later_ns;
}

static void add_call(struct first_calls_pass *pass, uint32_t node, const struct first_call *call)
{
	add_to_table(&pass->by_name, call->name, call);
	add_to_table(&pass->by_node, node, call);
}

static uint32_t thread_of_stream(const struct trace_reader *reader, uint32_t id)
{
	for (uint32_t i = 0; i < reader_stream_count(reader); i++)
		if (reader_stream(reader, i)->stream == id)
			return reader_stream(reader, i)->tid;
	return 0;
}

static void free_tables(struct first_calls_pass *pass)
{
	free(pass->by_name.calls);
	free(pass->by_node.calls);
	pass->by_name = pass->by_node = (struct call_table){ .calls = NULL };
}

static void restart_first_calls(void *context)
{
	free_tables(context);
}

static void add_range(void *context, const struct observed_instance *instance)
{
	struct first_calls_pass *pass = context;
	const struct tree *tree = pass->process->profile->tree;

	if (!instance->trace_node || instance->node >= tree->count)
		return;
	add_call(pass, instance->node,
		&(struct first_call){ .begin_ns = instance->begin_ns,
			.end_ns = instance->end_ns,
			.name = tree->nodes[instance->node].name,
			.tid = thread_of_stream(pass->process->reader, instance->stream) });
}

static void read_ranges(struct first_calls_pass *pass)
{
	const struct profile_observer observer = {
		.context = pass, .restart = restart_first_calls, .closed = add_range
	};
	const struct profile_options options = profile_options_for_observer(
		pass->process->profile, &observer);

	profile_free(profile_build(pass->process->reader, pass->process->texts, &options));
}

static void read_launches(struct first_calls_pass *pass, struct process *process)
{
	struct activities *activities = activities_read(process);
	const struct activity *one;

	for (activities_rewind(activities); (one = activities_first(activities));
		activities_next(activities))
		if (one->kind == ACTIVITY_KERNEL && one->has_call && !one->of_graph && one->name)
			add_call(pass, one->node,
				&(struct first_call){ .begin_ns = one->call_begin_ns,
					.end_ns = one->call_end_ns,
					.name = one->name,
					.tid = one->tid });
	activities_free(activities);
}

uint64_t first_call_later_mean(const struct first_call *call)
{
	return call->later ? call->later_ns / call->later : 0;
}

static bool is_slow(const struct first_call *call)
{
	return call->later >= FIRST_CALL_LATER_MIN &&
	       call->end_ns - call->begin_ns >= FIRST_CALL_RATIO * first_call_later_mean(call);
}

static void keep_slow_calls(struct first_calls *found, const struct call_table *table)
{
	for (size_t i = 0; i < table->room; i++)
		if (is_slow(&table->calls[i]))
			*ARRAY_ADD(found->calls, found->room, found->count) = table->calls[i];
}

struct first_calls first_calls_read(struct process *process)
{
	struct first_calls found = { .calls = NULL };
	struct first_calls_pass pass = { .process = process };

	read_ranges(&pass);
	read_launches(&pass, process);
	keep_slow_calls(&found, &pass.by_name);
	keep_slow_calls(&found, &pass.by_node);
	free_tables(&pass);
	return found;
}

void first_calls_free(struct first_calls *calls)
{
	free(calls->calls);
	*calls = (struct first_calls){ .calls = NULL };
}

uint64_t first_call_excess(const struct first_call *call, uint64_t from_ns, uint64_t to_ns)
{
	const uint64_t begin = max_u64(call->begin_ns, from_ns), end = min_u64(call->end_ns, to_ns),
		       usual = first_call_later_mean(call);

	return end > begin && end - begin > usual ? end - begin - usual : 0;
}

const struct first_call *first_calls_find(
	const struct first_calls *calls, uint32_t tid, uint64_t from_ns, uint64_t to_ns)
{
	const struct first_call *shortest = NULL;

	for (size_t i = 0; i < calls->count; i++) {
		const struct first_call *call = &calls->calls[i];

		if (call->tid == tid &&
			first_call_excess(call, from_ns, to_ns) >= (to_ns - from_ns + 1) / 2 &&
			(!shortest || call->end_ns - call->begin_ns <
					      shortest->end_ns - shortest->begin_ns))
			shortest = call;
	}
	return shortest;
}
