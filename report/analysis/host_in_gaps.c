/* SPDX-License-Identifier: MIT */
#include "report/analysis/host_in_gaps.h"
#include "report/analysis/host_events.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/hash_index.h"
#include <stdlib.h>

/* A begin or an end of a gap, and the sum of all such times up to it. */
struct gap_edge {
	uint64_t at_ns;
	long double sum_ns;
};

/* A range that has closed, inside one that has not. */
struct closed_range {
	uint64_t begin_ns, in_gaps_ns;
};

struct host_gap_thread {
	uint32_t tid;
	struct gap_edge *begins, *ends; /* sorted by host_in_gaps_read */
	size_t count, begin_room, end_room;
	struct closed_range *closed; /* by begin, the last one on top */
	size_t closed_count, closed_room;
	/* Samples in the gaps that are in a call of which the record has not come: their number,
	 * the times of the first and the last. */
	uint64_t in_call, first_in_call_ns, last_in_call_ns;
};

struct host_gap_pass {
	struct host_in_gaps *host;
	/* of the last range: thread of the gaps, or NULL */
	struct host_gap_thread *last;
	uint32_t last_stream;
	bool has_last;
	struct hash_index functions; /* of host->functions */
};

struct host_in_gaps *host_in_gaps_new(struct process *process)
{
	struct host_in_gaps *host = xcalloc(sizeof *host);

	host->process = process;
	host->events = host_events_of(process);
	return host;
}

void host_in_gaps_free(struct host_in_gaps *host)
{
	for (size_t i = 0; i < host->thread_count; i++) {
		free(host->threads[i].begins);
		free(host->threads[i].ends);
		free(host->threads[i].closed);
	}
	free(host->threads);
	free(host->nodes);
	free(host->functions);
	free(host);
}

static struct host_gap_thread *find_gap_thread(const struct host_in_gaps *host, uint32_t tid)
{
	for (size_t i = 0; i < host->thread_count; i++)
		if (host->threads[i].tid == tid)
			return &host->threads[i];
	return NULL;
}

void host_in_gaps_add(struct host_in_gaps *host, uint32_t tid, uint64_t begin_ns, uint64_t end_ns)
{
	struct host_gap_thread *thread = find_gap_thread(host, tid);

	if (!thread) {
		array_grow_zeroed(&host->threads, &host->thread_room, host->thread_count + 1,
			sizeof *host->threads);
		thread = &host->threads[host->thread_count++];
		thread->tid = tid;
	}
	ARRAY_GROW(thread->begins, thread->begin_room, thread->count + 1);
	ARRAY_GROW(thread->ends, thread->end_room, thread->count + 1);
	thread->begins[thread->count] = (struct gap_edge){ .at_ns = begin_ns };
	thread->ends[thread->count++] = (struct gap_edge){ .at_ns = end_ns };
	if (host->events && !host_events_cover(host->events, begin_ns, end_ns))
		host->events = NULL;
	host->gaps++;
	host->total_ns += end_ns - begin_ns;
	host->longest_ns = max_u64(host->longest_ns, end_ns - begin_ns);
}

static int by_edge(const void *a, const void *b)
{
	const struct gap_edge *left = a, *right = b;

	return COMPARE(left->at_ns, right->at_ns);
}

static void sort_edges(struct gap_edge *edges, size_t count)
{
	long double sum = 0;

	qsort(edges, count, sizeof *edges, by_edge);
	for (size_t i = 0; i < count; i++)
		edges[i].sum_ns = sum += edges[i].at_ns;
}

/* Returns the number of edges before `at_ns`. */
static size_t edges_before(const struct gap_edge *edges, size_t count, uint64_t at_ns)
{
	size_t low = 0, high = count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (edges[middle].at_ns < at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns how much time has passed at `at_ns` since the edges before it, summed over them. */
static long double since_edges(const struct gap_edge *edges, size_t count, uint64_t at_ns)
{
	const size_t before = edges_before(edges, count, at_ns);

	return before ? (long double)before * at_ns - edges[before - 1].sum_ns : 0;
}

/* Returns whether `at_ns` is in a gap: at or after its begin, and before its end. */
static bool is_in_gap(const struct host_gap_thread *thread, uint64_t at_ns)
{
	return edges_before(thread->begins, thread->count, at_ns + 1) >
	       edges_before(thread->ends, thread->count, at_ns + 1);
}

/* Returns how much time of the thread's gaps is before `at_ns`. */
static long double gaps_until(const struct host_gap_thread *thread, uint64_t at_ns)
{
	return since_edges(thread->begins, thread->count, at_ns) -
	       since_edges(thread->ends, thread->count, at_ns);
}

/* Adds a range or call that has closed. Those inside it have closed before. */
static void add_closed(struct host_in_gaps *host, struct host_gap_thread *thread, uint32_t node,
	uint64_t begin_ns, uint64_t end_ns)
{
	const uint64_t in_gaps = (uint64_t)(gaps_until(thread, end_ns) -
					    gaps_until(thread, begin_ns));
	uint64_t inside = 0;

	if (!in_gaps)
		return;
	while (thread->closed_count &&
		thread->closed[thread->closed_count - 1].begin_ns >= begin_ns)
		inside += thread->closed[--thread->closed_count].in_gaps_ns;
	ARRAY_GROW(thread->closed, thread->closed_room, thread->closed_count + 1);
	thread->closed[thread->closed_count++] = (struct closed_range){ begin_ns,
		max_u64(in_gaps, inside) };
	if (in_gaps <= inside)
		return;
	ARRAY_GROW(host->nodes, host->room, (size_t)node + 1);
	host->nodes[node].self_ns += in_gaps - inside;
	host->nodes[node].times++;
	host->covered_ns += in_gaps - inside;
}

static struct host_gap_thread *thread_of_stream_id(struct host_gap_pass *pass, uint32_t stream)
{
	const struct trace_reader *reader = pass->host->process->reader;

	if (pass->has_last && pass->last_stream == stream)
		return pass->last;
	pass->last = NULL;
	for (uint32_t i = 0; i < reader_stream_count(reader); i++)
		if (reader_stream(reader, i)->stream == stream)
			pass->last = find_gap_thread(pass->host, reader_stream(reader, i)->tid);
	pass->last_stream = stream;
	pass->has_last = true;
	return pass->last;
}

static void restart_pass(void *context)
{
	struct host_gap_pass *pass = ((struct host_event_sink *)context)->context;
	struct host_in_gaps *host = pass->host;

	free(host->nodes);
	host->nodes = NULL;
	host->room = 0;
	host->covered_ns = host->samples = 0;
	host->function_count = 0;
	hash_index_free(&pass->functions);
	for (size_t i = 0; i < host->thread_count; i++)
		host->threads[i].closed_count = host->threads[i].in_call = 0;
}

/* Gives the samples that were in a call to its node. */
static void add_samples_of_call(struct host_in_gaps *host, struct host_gap_thread *thread,
	uint32_t node, uint64_t begin_ns, uint64_t end_ns)
{
	if (!thread->in_call || begin_ns > thread->first_in_call_ns ||
		end_ns < thread->last_in_call_ns)
		return;
	ARRAY_GROW(host->nodes, host->room, (size_t)node + 1);
	host->nodes[node].samples += thread->in_call;
	host->samples += thread->in_call;
	thread->in_call = 0;
}

static struct host_function *function_of_sample(
	struct host_gap_pass *pass, const struct host_event *sample)
{
	struct host_in_gaps *host = pass->host;
	const uint64_t hash = hash_u64(
		hash_u64((uint64_t)sample->function << 32 | sample->module) ^ sample->node);
	struct host_function *one;
	struct hash_slot *slot;

	hash_index_reserve(&pass->functions);
	for (slot = hash_index_first(&pass->functions, hash); slot->number;
		slot = hash_index_next(&pass->functions, slot)) {
		one = &host->functions[slot->number - 1];
		if (one->node == sample->node && one->function == sample->function &&
			one->module == sample->module)
			return one;
	}
	ARRAY_GROW(host->functions, host->function_room, host->function_count + 1);
	one = &host->functions[host->function_count++];
	*one = (struct host_function){
		.node = sample->node, .function = sample->function, .module = sample->module
	};
	hash_index_add(&pass->functions, slot, hash, (uint32_t)host->function_count);
	return one;
}

static void add_sample_in_gaps(
	struct host_gap_pass *pass, struct host_gap_thread *thread, const struct host_event *sample)
{
	struct host_in_gaps *host = pass->host;
	const uint64_t at_ns = sample->begin_ns;

	if (!is_in_gap(thread, at_ns))
		return;
	if (sample->in_call) {
		thread->first_in_call_ns = thread->in_call ? thread->first_in_call_ns : at_ns;
		thread->last_in_call_ns = at_ns;
		thread->in_call++;
		return;
	}
	ARRAY_GROW(host->nodes, host->room, (size_t)sample->node + 1);
	host->nodes[sample->node].samples++;
	host->samples++;
	function_of_sample(pass, sample)->samples++;
}

static void add_event_in_gaps(void *context, const struct host_event *event)
{
	struct host_gap_pass *pass = context;
	struct host_gap_thread *thread = thread_of_stream_id(pass, event->stream);

	if (!thread)
		return;
	if (event->kind == HOST_EVENT_SAMPLE) {
		add_sample_in_gaps(pass, thread, event);
		return;
	}
	if (event->kind == HOST_EVENT_CALL)
		add_samples_of_call(
			pass->host, thread, event->node, event->begin_ns, event->end_ns);
	add_closed(pass->host, thread, event->node, event->begin_ns, event->end_ns);
}

static int by_node_and_samples(const void *a, const void *b)
{
	const struct host_function *left = a, *right = b;

	if (left->node != right->node)
		return COMPARE(left->node, right->node);
	if (left->samples != right->samples)
		return COMPARE(right->samples, left->samples);
	if (left->module != right->module)
		return COMPARE(left->module, right->module);
	return COMPARE(left->function, right->function);
}

/* Reads the events from the trace. */
static void read_trace(struct host_in_gaps *host, struct host_event_sink *sink)
{
	const struct profile_observer observer = host_event_observer(sink, restart_pass);
	const struct profile_options options = profile_options_for_observer(
		host->process->profile, &observer);

	profile_free(profile_build(host->process->reader, host->process->texts, &options));
}

void host_in_gaps_read(struct host_in_gaps *host)
{
	struct host_gap_pass pass = { .host = host };
	struct host_event_sink sink = { .context = &pass, .add = add_event_in_gaps };

	for (size_t i = 0; i < host->thread_count; i++) {
		sort_edges(host->threads[i].begins, host->threads[i].count);
		sort_edges(host->threads[i].ends, host->threads[i].count);
	}
	if (host->events)
		host_events_visit(host->events, &sink);
	else
		read_trace(host, &sink);
	hash_index_free(&pass.functions);
	if (host->function_count)
		qsort(host->functions, host->function_count, sizeof *host->functions,
			by_node_and_samples);
}
