/* SPDX-License-Identifier: MIT */
#include "report/analysis/first_calls.h"
#include "report/analysis/activities.h"
#include "report/analysis/slow_launches.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include <stdlib.h>
#include <string.h>

struct kept_call {
	uint64_t begin_ns, end_ns;
	uint32_t tid;
};

/* The first calls of one name, or of one path. */
struct call_history {
	struct kept_call *calls;
	size_t kept, room;
	uint64_t count; /* all calls */
	uint32_t name;
	bool launches; /* they are launches of one kernel */
};

/* Histories by an index. */
struct call_table {
	struct call_history *of;
	size_t room;
};

struct first_calls_pass {
	const struct process *process;
	bool *is_long; /* by name: a range of it took FIRST_CALL_NS_MIN or more */
	struct call_table by_name, by_kernel, by_node;
	struct call_history launches; /* of all kernels */
};

static void add_to_history(struct call_history *history, const struct first_call *call)
{
	history->name = call->name;
	history->launches = call->of_launches;
	history->count++;
	if (history->kept == FIRST_CALLS_KEPT)
		return;
	*ARRAY_ADD(history->calls, history->room, history->kept) = (struct kept_call){
		.begin_ns = call->begin_ns, .end_ns = call->end_ns, .tid = call->tid
	};
}

static void add_to_table(struct call_table *table, uint32_t index, const struct first_call *call)
{
	ARRAY_GROW(table->of, table->room, (size_t)index + 1);
	add_to_history(&table->of[index], call);
}

static uint32_t thread_of_stream(const struct trace_reader *reader, uint32_t id)
{
	for (uint32_t i = 0; i < reader_stream_count(reader); i++)
		if (reader_stream(reader, i)->stream == id)
			return reader_stream(reader, i)->tid;
	return 0;
}

static void free_table(struct call_table *table)
{
	for (size_t i = 0; i < table->room; i++)
		free(table->of[i].calls);
	free(table->of);
	*table = (struct call_table){ .of = NULL };
}

static void free_tables(struct first_calls_pass *pass)
{
	free_table(&pass->by_name);
	free_table(&pass->by_kernel);
	free_table(&pass->by_node);
	free(pass->launches.calls);
	pass->launches = (struct call_history){ .calls = NULL };
}

static void restart_first_calls(void *context)
{
	free_tables(context);
}

/* Ranges of a name, or of a node, of which none is long enough to be slow are not kept. */
static void add_range(void *context, const struct observed_instance *instance)
{
	struct first_calls_pass *pass = context;
	const struct tree *tree = pass->process->profile->tree;
	struct first_call call = { .begin_ns = instance->begin_ns, .end_ns = instance->end_ns };

	if (!instance->trace_node || instance->node >= tree->count)
		return;
	call.name = tree->nodes[instance->node].name;
	if (!pass->is_long[call.name])
		return;
	call.tid = thread_of_stream(pass->process->reader, instance->stream);
	add_to_table(&pass->by_name, call.name, &call);
	if (tree->nodes[instance->node].max_ns >= FIRST_CALL_NS_MIN)
		add_to_table(&pass->by_node, instance->node, &call);
}

/* Sets `is_long`. Returns false if no range is long enough. */
static bool find_long_names(struct first_calls_pass *pass)
{
	const struct tree *tree = pass->process->profile->tree;
	bool is_any = false;

	pass->is_long = xcalloc(string_table_count(pass->process->texts) + 1);
	for (uint32_t node = 0; node < tree->count; node++)
		if (tree->nodes[node].max_ns >= FIRST_CALL_NS_MIN)
			pass->is_long[tree->nodes[node].name] = is_any = true;
	return is_any;
}

static void read_ranges(struct first_calls_pass *pass)
{
	const struct profile_observer observer = {
		.context = pass, .restart = restart_first_calls, .closed = add_range
	};
	const struct profile_options options = profile_options_for_observer(
		pass->process->profile, &observer);

	if (find_long_names(pass))
		profile_free(profile_build(pass->process->reader, pass->process->texts, &options));
	free(pass->is_long);
}

static void read_launches(struct first_calls_pass *pass, struct process *process)
{
	struct activities *activities = activities_read_without_launches(process);
	const struct activity *one;

	for (activities_rewind(activities); (one = activities_first(activities));
		activities_next(activities)) {
		const struct first_call call = { .begin_ns = one->call_begin_ns,
			.end_ns = one->call_end_ns,
			.name = one->name,
			.tid = one->tid,
			.of_launches = true };

		if (one->kind != ACTIVITY_KERNEL || !one->has_call || one->of_graph || !one->name)
			continue;
		add_to_table(&pass->by_kernel, one->name, &call);
		add_to_table(&pass->by_node, one->node, &call);
		add_to_history(&pass->launches, &call);
	}
	activities_free(activities);
}

static uint64_t length_of(const struct kept_call *call)
{
	return call->end_ns > call->begin_ns ? call->end_ns - call->begin_ns : 0;
}

static int by_begin(const void *a, const void *b)
{
	const struct kept_call *left = a, *right = b;

	/* The outer one of two that begin at a time is the first. */
	return left->begin_ns != right->begin_ns ? COMPARE(left->begin_ns, right->begin_ns)
						 : COMPARE(right->end_ns, left->end_ns);
}

static int by_value(const void *a, const void *b)
{
	return COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Returns the median duration of the kept calls from the one numbered `from` on. */
static uint64_t median_from(const struct call_history *history, size_t from)
{
	uint64_t lengths[FIRST_CALLS_KEPT];
	size_t count = 0;

	while (from < history->kept)
		lengths[count++] = length_of(&history->calls[from++]);
	if (!count)
		return 0;
	qsort(lengths, count, sizeof *lengths, by_value);
	return lengths[count / 2];
}

static bool is_slow(const struct kept_call *call, uint64_t median_ns)
{
	return length_of(call) >= FIRST_CALL_NS_MIN &&
	       length_of(call) / FIRST_CALL_RATIO >= median_ns;
}

static void keep_call(struct first_calls *found, const struct call_history *history, size_t number,
	uint64_t median_ns, const struct call_history *launches)
{
	const struct kept_call *call = &history->calls[number];

	*ARRAY_ADD(found->calls, found->room, found->count) = (struct first_call){
		.begin_ns = call->begin_ns,
		.end_ns = call->end_ns,
		.later = launches ? launches->count - 1 : history->count - number - 1,
		.later_median_ns = median_ns,
		.name = history->name,
		.tid = call->tid,
		.of_launches = launches != NULL,
	};
}

/* Keeps the calls at the beginning that are slow, each compared with those after it. A kernel with
 * too few launches is compared with those of all kernels. */
static void keep_slow_calls(struct first_calls *found, const struct call_history *history,
	const struct call_history *launches)
{
	if (history->kept)
		qsort(history->calls, history->kept, sizeof *history->calls, by_begin);
	for (size_t i = 0; i + FIRST_CALL_LATER_MIN < history->kept; i++) {
		const uint64_t median_ns = median_from(history, i + 1);

		if (!is_slow(&history->calls[i], median_ns))
			return;
		keep_call(found, history, i, median_ns, NULL);
	}
	if (history->launches && history->kept && history->kept <= FIRST_CALL_LATER_MIN &&
		launches->count > FIRST_CALL_LATER_MIN &&
		is_slow(&history->calls[0], median_from(launches, 0)))
		keep_call(found, history, 0, median_from(launches, 0), launches);
}

static void keep_slow_calls_of_table(struct first_calls *found, const struct call_table *table,
	const struct call_history *launches)
{
	for (size_t i = 0; i < table->room; i++)
		keep_slow_calls(found, &table->of[i], launches);
}

static int by_thread_and_begin(const void *a, const void *b)
{
	const struct first_call_span *left = a, *right = b;

	return left->tid != right->tid ? COMPARE(left->tid, right->tid)
				       : COMPARE(left->begin_ns, right->begin_ns);
}

/* Unites calls that overlap. */
static void make_spans(struct first_calls *found)
{
	struct first_call_span *spans = xcalloc((found->count + 1) * sizeof *spans);
	size_t count = 0;

	for (size_t i = 0; i < found->count; i++)
		spans[i] = (struct first_call_span){ found->calls[i].begin_ns,
			found->calls[i].end_ns, found->calls[i].tid };
	qsort(spans, found->count, sizeof *spans, by_thread_and_begin);
	for (size_t i = 0; i < found->count; i++)
		if (count && spans[count - 1].tid == spans[i].tid &&
			spans[i].begin_ns <= spans[count - 1].end_ns)
			spans[count - 1].end_ns = max_u64(spans[count - 1].end_ns, spans[i].end_ns);
		else
			spans[count++] = spans[i];
	found->spans = spans;
	found->span_count = count;
}

static const char first_calls_key; /* the key of process_attach() */

static void release_first_calls(void *data)
{
	struct first_calls *calls = data;

	free(calls->calls);
	free(calls->spans);
	free(calls);
}

static void attach_first_calls(struct process *process, struct first_calls *found)
{
	make_spans(found);
	process_attach(process, &first_calls_key, found, release_first_calls);
}

static void read_first_calls(struct process *process)
{
	struct first_calls_pass pass = { .process = process };
	struct first_calls *found = xcalloc(sizeof *found);

	read_ranges(&pass);
	read_launches(&pass, process);
	keep_slow_calls_of_table(found, &pass.by_name, &pass.launches);
	keep_slow_calls_of_table(found, &pass.by_kernel, &pass.launches);
	keep_slow_calls_of_table(found, &pass.by_node, &pass.launches);
	free_tables(&pass);
	attach_first_calls(process, found);
}

static bool compares_steps(const struct steps *steps)
{
	return steps && steps->count >= STEPS_COMPARED_MIN;
}

/* At the end of the pass. */
static void keep_slow_launches(void *context, const struct profile *profile)
{
	struct slow_launches_pass *pass = context;
	struct process *process = slow_launches_process(pass);
	struct first_calls *found = xcalloc(sizeof *found);

	(void)profile;
	slow_launches_end(pass, found);
	attach_first_calls(process, found);
}

void first_calls_read_in(struct shared_pass *pass)
{
	struct profile_observer observer;

	if (process_attached(pass->process, &first_calls_key) ||
		!compares_steps(pass->process->steps))
		return;
	if (!process_has_records(pass->process)) {
		attach_first_calls(pass->process, xcalloc(sizeof(struct first_calls)));
		return;
	}
	slow_launches_begin(pass->process, &observer);
	shared_pass_add(pass, &observer, keep_slow_launches);
}

const struct first_calls *first_calls_of(struct process *process)
{
	struct shared_pass pass = { .process = process };

	if (process_attached(process, &first_calls_key))
		return process_attached(process, &first_calls_key);
	if (compares_steps(process->steps)) {
		first_calls_read_in(&pass);
		shared_pass_run(&pass);
	} else {
		read_first_calls(process);
	}
	return process_attached(process, &first_calls_key);
}

const struct first_call_span *first_calls_span(
	const struct first_calls *calls, uint32_t tid, uint64_t from_ns, uint64_t to_ns)
{
	size_t low = 0, high = calls->span_count;

	while (low < high) {
		const size_t middle = (low + high) / 2;
		const struct first_call_span *span = &calls->spans[middle];

		if (span->tid < tid || (span->tid == tid && span->end_ns <= from_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low < calls->span_count && calls->spans[low].tid == tid &&
			       calls->spans[low].begin_ns < to_ns
		       ? &calls->spans[low]
		       : NULL;
}

const struct first_call *first_calls_find(
	const struct first_calls *calls, uint32_t tid, uint64_t from_ns, uint64_t to_ns)
{
	const struct first_call *shortest = NULL;

	for (size_t i = 0; i < calls->count; i++) {
		const struct first_call *call = &calls->calls[i];

		if (call->tid == tid && call->begin_ns <= from_ns && call->end_ns >= to_ns &&
			(!shortest || call->end_ns - call->begin_ns <
					      shortest->end_ns - shortest->begin_ns))
			shortest = call;
	}
	return shortest;
}
