/* SPDX-License-Identifier: MIT
 * kineto_trace.c: the trace as a whole: places, order, what is known of the run.
 */
#include "report/kineto_trace.h"
#include "report/fatal.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define YEAR_2100_NS INT64_C(4102444800000000000)

/* ---- the dictionary ---- */

uint32_t kineto_name(struct kineto_build *build, uint32_t id)
{
	const struct text text = text_of(build->kineto->texts, id);

	if (!id)
		return 0;
	grow(&build->names, &build->name_room, (size_t)id + 1, sizeof *build->names);
	if (!build->names[id])
		build->names[id] = writer_name(build->writer, text.bytes, text.length);
	return build->names[id];
}

static struct node_slot *slot_of(const struct kineto_build *build, const struct node_slot *wanted)
{
	uint64_t hash = ((uint64_t)wanted->parent << 32 | wanted->name) * 0x9e3779b97f4a7c15u;
	size_t i;

	hash ^= ((uint64_t)wanted->link << 8 | wanted->kind) * 0xc2b2ae3d27d4eb4fu ^ wanted->detail * 0x9fb21c651e98df25u;
	for (i = (hash >> 24) & (build->node_slots - 1); build->nodes[i].node; i = (i + 1) & (build->node_slots - 1))
		if (build->nodes[i].parent == wanted->parent && build->nodes[i].name == wanted->name &&
			build->nodes[i].link == wanted->link && build->nodes[i].kind == wanted->kind &&
			build->nodes[i].domain == wanted->domain && build->nodes[i].detail == wanted->detail)
			break;
	return &build->nodes[i];
}

static void widen_nodes(struct kineto_build *build)
{
	struct node_slot *old = build->nodes;
	const size_t slots = build->node_slots;

	build->node_slots = slots ? slots * 2 : 1024;
	build->nodes = need(build->node_slots * sizeof *build->nodes);
	for (size_t i = 0; i < slots; i++)
		if (old[i].node)
			*slot_of(build, &old[i]) = old[i];
	free(old);
}

/* The class in a module's name, `ViTLayer_3`: its length, 0 if it is not of that form. */
static uint32_t class_length(struct text text)
{
	uint32_t length = text.length;

	while (length > 0 && text.bytes[length - 1] >= '0' && text.bytes[length - 1] <= '9')
		length--;
	return length >= 2 && length < text.length && text.bytes[length - 1] == '_' ? length - 1 : 0;
}

/* Kineto numbers the modules of a class as it meets them, and does not know their paths. `ViTLayer.3` folds as a path
 * does that ends in a number. */
static void name_module(struct kineto_build *build, uint32_t id, struct trace_node *node)
{
	struct texts *texts = build->kineto->texts;
	const struct text text = text_of(texts, id);
	const uint32_t length = class_length(text);
	char name[256];

	node->name = kineto_name(build, id);
	if (!length || text.length >= sizeof name)
		return;
	memcpy(name, text.bytes, text.length);
	node->detail = kineto_name(build, text_id(texts, name, length));
	name[length] = '.';
	node->name = kineto_name(build, text_id(texts, name, text.length));
}

uint32_t kineto_domain(const struct kineto *kineto, uint32_t domain)
{
	return domain ? kineto->domains[domain - 1].name : 0;
}

uint32_t kineto_node(struct kineto_build *build, uint32_t parent, const struct kineto_range *range, uint32_t link)
{
	struct node_slot wanted = { parent, range->name, link, range->kind, kineto_domain(build->kineto, range->domain),
		range->kind == TRACE_NODE_OP ? range->shapes : 0, 0 }, *slot;
	struct trace_node node;

	if (build->node_count * 2 >= build->node_slots)
		widen_nodes(build);
	slot = slot_of(build, &wanted);
	if (slot->node)
		return slot->node;
	node = (struct trace_node){ .parent = parent, .kind = range->kind, .link = link };
	node.domain = kineto_name(build, wanted.domain);
	node.detail = kineto_name(build, wanted.detail);
	if (range->kind == TRACE_NODE_MODULE)
		name_module(build, range->name, &node);
	else
		node.name = kineto_name(build, range->name);
	wanted.node = writer_node(build->writer, &node);
	build->node_count++;
	*slot = wanted;
	return wanted.node;
}

/* ---- order ---- */

static int by_range(const void *a, const void *b, void *context)
{
	const struct kineto_range *ranges = context;
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (ranges[left].start != ranges[right].start)
		return ranges[left].start < ranges[right].start ? -1 : 1;
	if (ranges[left].duration != ranges[right].duration)
		return ranges[left].duration > ranges[right].duration ? -1 : 1;
	return left < right ? -1 : 1;
}

static int by_call(const void *a, const void *b, void *context)
{
	const struct kineto_call *calls = context;
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (calls[left].start != calls[right].start)
		return calls[left].start < calls[right].start ? -1 : 1;
	return left < right ? -1 : 1;
}

static int by_frame(const void *a, const void *b, void *context)
{
	const struct kineto_frame *frames = context;
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (frames[left].start != frames[right].start)
		return frames[left].start < frames[right].start ? -1 : 1;
	if (frames[left].duration != frames[right].duration)
		return frames[left].duration > frames[right].duration ? -1 : 1;
	return left < right ? -1 : 1;
}

static int by_moment(const void *a, const void *b, void *context)
{
	const struct kineto_moment *moments = context;
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (moments[left].time != moments[right].time)
		return moments[left].time < moments[right].time ? -1 : 1;
	return left < right ? -1 : 1;
}

void kineto_order(uint32_t *rows, size_t count, int (*compare)(const void *, const void *, void *), void *context)
{
	size_t i = 1;

	while (i < count && compare(&rows[i - 1], &rows[i], context) < 0)
		i++;
	if (i < count)
		qsort_r(rows, count, sizeof *rows, compare, context);
}

/* Rows by their thread, each thread's in order. `thread_at`: where a row has its thread. */
static uint32_t *by_thread(const struct kineto *kineto, const void *rows, size_t count, size_t bytes, size_t thread_at,
	size_t *begins, int (*compare)(const void *, const void *, void *), void *context)
{
	uint32_t *order = need((count + 1) * sizeof *order);
	size_t *next = need((kineto->thread_count + 1) * sizeof *next);
	uint32_t thread;

	for (size_t i = 0; i < count; i++) {
		memcpy(&thread, (const char *)rows + i * bytes + thread_at, sizeof thread);
		begins[thread + 1]++;
	}
	for (size_t i = 0; i < kineto->thread_count; i++) {
		begins[i + 1] += begins[i];
		next[i] = begins[i];
	}
	for (size_t i = 0; i < count; i++) {
		memcpy(&thread, (const char *)rows + i * bytes + thread_at, sizeof thread);
		order[next[thread]++] = (uint32_t)i;
	}
	for (size_t i = 0; i < kineto->thread_count; i++)
		kineto_order(order + begins[i], begins[i + 1] - begins[i], compare, context);
	free(next);
	return order;
}

static void sort_rows(struct kineto_build *build)
{
	struct kineto *kineto = build->kineto;
	const size_t threads = kineto->thread_count + 1;

	build->thread_begin = need(threads * sizeof *build->thread_begin);
	build->call_begin = need(threads * sizeof *build->call_begin);
	build->memory_begin = need(threads * sizeof *build->memory_begin);
	build->moment_begin = need(threads * sizeof *build->moment_begin);
	build->frame_begin = need(threads * sizeof *build->frame_begin);
	build->order = by_thread(kineto, kineto->ranges, kineto->range_count, sizeof *kineto->ranges,
		offsetof(struct kineto_range, thread), build->thread_begin, by_range, kineto->ranges);
	build->calls = by_thread(kineto, kineto->calls, kineto->call_count, sizeof *kineto->calls,
		offsetof(struct kineto_call, thread), build->call_begin, by_call, kineto->calls);
	build->memories = by_thread(kineto, kineto->memories, kineto->memory_count, sizeof *kineto->memories,
		offsetof(struct kineto_memory, thread), build->memory_begin, kineto_by_time, kineto->memories);
	build->moments = by_thread(kineto, kineto->moments, kineto->moment_count, sizeof *kineto->moments,
		offsetof(struct kineto_moment, thread), build->moment_begin, by_moment, kineto->moments);
	build->frames = by_thread(kineto, kineto->frames, kineto->frame_count, sizeof *kineto->frames,
		offsetof(struct kineto_frame, thread), build->frame_begin, by_frame, kineto->frames);
}

/* ---- what the file does not say plainly ---- */

/* Whether all of Python's calls are of thread 0 of process 0. */
static bool frames_have_no_thread(const struct kineto *kineto)
{
	for (size_t i = 0; i < kineto->frame_count; i++) {
		const struct kineto_thread *thread = &kineto->threads[kineto->frames[i].thread];

		if (kineto_number(kineto, thread->pid) || kineto_number(kineto, thread->tid))
			return false;
	}
	return kineto->frame_count > 0;
}

/* Python's calls have come as thread 0 of process 0 where their own was not known. Modules among them are of the thread
 * with most operators, and so are functions, if none has a thread. */
static void find_modules_thread(struct kineto *kineto)
{
	size_t *operators = need((kineto->thread_count + 1) * sizeof *operators), best = 0;

	for (size_t i = 0; i < kineto->range_count; i++)
		operators[kineto->ranges[i].thread] += kineto->ranges[i].kind != TRACE_NODE_MODULE;
	for (size_t i = 0; i < kineto->thread_count; i++)
		best = operators[i] > operators[best] ? i : best;
	for (size_t i = 0; i < kineto->range_count; i++) {
		struct kineto_range *range = &kineto->ranges[i];
		const struct kineto_thread *thread = &kineto->threads[range->thread];

		if (range->kind == TRACE_NODE_MODULE && !operators[range->thread] &&
			!kineto_number(kineto, thread->pid) && !kineto_number(kineto, thread->tid))
			range->thread = (uint32_t)best;
	}
	for (size_t i = frames_have_no_thread(kineto) ? 0 : kineto->frame_count; i < kineto->frame_count; i++)
		if (!operators[kineto->frames[i].thread])
			kineto->frames[i].thread = (uint32_t)best;
	free(operators);
}

/* The process is that of most threads' events. */
static uint32_t main_pid(const struct kineto *kineto)
{
	size_t *events = need((kineto->thread_count + 1) * sizeof *events), best = 0;

	for (size_t i = 0; i < kineto->range_count; i++)
		events[kineto->ranges[i].thread]++;
	for (size_t i = 0; i < kineto->call_count; i++)
		events[kineto->calls[i].thread]++;
	for (size_t i = 0; i < kineto->thread_count; i++)
		best = events[i] > events[best] ? i : best;
	free(events);
	return kineto->thread_count ? kineto->threads[best].pid : 0;
}

static void reach_time(struct kineto_build *build, int64_t start, uint64_t duration)
{
	const int64_t end = start + (int64_t)duration;

	if (start < build->first)
		build->first = start;
	if (end > build->last)
		build->last = end;
}

static void find_edges(struct kineto_build *build)
{
	const struct kineto *kineto = build->kineto;

	build->first = INT64_MAX;
	build->last = INT64_MIN;
	for (size_t i = 0; i < kineto->range_count; i++)
		reach_time(build, kineto->ranges[i].start, kineto->ranges[i].duration);
	for (size_t i = 0; i < kineto->call_count; i++)
		reach_time(build, kineto->calls[i].start, kineto->calls[i].duration);
	for (size_t i = 0; i < kineto->gpu_count; i++)
		reach_time(build, kineto->gpus[i].start, kineto->gpus[i].duration);
	for (size_t i = 0; i < kineto->sync_count; i++)
		reach_time(build, kineto->syncs[i].start, kineto->syncs[i].duration);
	for (size_t i = 0; i < kineto->memory_count; i++)
		reach_time(build, kineto->memories[i].time, 0);
	for (size_t i = 0; i < kineto->moment_count; i++)
		reach_time(build, kineto->moments[i].time, 0);
	if (build->first > build->last)
		build->first = build->last = 0;
}

/* CLOCK_REALTIME at the first event. Times of the file count from baseTimeNanoseconds, unless they are of our day by
 * themselves. */
static uint64_t realtime_at_first(const struct kineto_build *build)
{
	const int64_t base = build->kineto->base_ns, first = build->first;

	if (base > 0 && first < YEAR_2100_NS - base && first > -base)
		return (uint64_t)(base + first);
	return first > 0 ? (uint64_t)first : 1;
}

/* ---- what is known of the run ---- */

static void put_meta(struct kineto_build *build, const char *key, const char *value)
{
	writer_meta(build->writer, key, value, strlen(value));
}

static void put_facts(struct kineto_build *build, uint32_t pid)
{
	const struct kineto *kineto = build->kineto;
	const struct text own = text_of(kineto->texts, pid);

	for (size_t i = 0; i < kineto->fact_count; i++) {
		const struct text key = text_of(kineto->texts, kineto->facts[i].key),
				  value = text_of(kineto->texts, kineto->facts[i].value);

		if (key.length < 8 || memcmp(key.bytes, "process.", 8))
			writer_meta(build->writer, key.bytes, value.bytes, value.length);
		else if (key.length - 8 == own.length && !memcmp(key.bytes + 8, own.bytes, own.length))
			writer_meta(build->writer, "command", value.bytes, value.length);
	}
}

static bool any_kind(const struct kineto *kineto, uint16_t first, uint16_t second)
{
	for (size_t i = 0; i < kineto->range_count; i++)
		if (kineto->ranges[i].kind == first || kineto->ranges[i].kind == second)
			return true;
	return false;
}

static void put_sources(struct kineto_build *build, bool added)
{
	const struct kineto *kineto = build->kineto;

	if (*kineto->maker && (kineto->range_count || kineto->moment_count))
		put_meta(build, "source.nvtx", "on");
	if (any_kind(kineto, TRACE_NODE_OP, TRACE_NODE_BACKWARD))
		put_meta(build, "source.torch_ops", "on");
	if (any_kind(kineto, TRACE_NODE_MODULE, TRACE_NODE_MODULE))
		put_meta(build, "source.torch_modules", "on");
	if (kineto->memory_count)
		put_meta(build, "source.torch_memory",
			added ? "partial: the file does not say what the allocator holds; its levels are added up from "
				"the least that they can be"
			      : "on");
	if (kineto->gpu_count)
		put_meta(build, "source.cupti", "on");
}

/* What of the file is in no view, by category; those for which there is no room together. */
static void put_left_out(struct kineto_build *build)
{
	const struct kineto *kineto = build->kineto;
	char line[1024];
	uint64_t others = 0;
	size_t used = 0;

	for (size_t i = 0; i < kineto->left_out_count; i++) {
		const struct text category = text_of(kineto->texts, kineto->left_outs[i].category);

		if (used + 160 < sizeof line)
			used += (size_t)snprintf(line + used, sizeof line - used, "%s%" PRIu64 " %.*s", used ? ", " : "",
				kineto->left_outs[i].events, category.length < 60 ? (int)category.length : 60, category.bytes);
		else
			others += kineto->left_outs[i].events;
	}
	if (others)
		used += (size_t)snprintf(line + used, sizeof line - used, ", %" PRIu64 " " KINETO_OTHERS, others);
	if (used)
		writer_meta(build->writer, "import.left_out", line, used);
}

/* How much of the file was read, and what is kept as sums only. */
static void put_counts(struct kineto_build *build)
{
	const struct kineto_cpu_memory *cpu = &build->cpu;
	char line[256];
	int used;

	snprintf(line, sizeof line, "%" PRIu64, build->kineto->events);
	put_meta(build, "import.events", line);
	if (!cpu->allocs && !cpu->frees)
		return;
	used = snprintf(line, sizeof line, "%" PRIu64 " times %" PRIu64 " bytes taken, %" PRIu64 " times %" PRIu64 " given back",
		cpu->allocs, cpu->alloc_bytes, cpu->frees, cpu->free_bytes);
	if (cpu->peak)
		snprintf(line + used, sizeof line - (size_t)used, ", %" PRIu64 " at most at one time", cpu->peak);
	put_meta(build, "import.cpu_memory", line);
}

__attribute__((format(printf, 3, 4))) static void warn(struct kineto_build *build, const char *key, const char *format, ...)
{
	char line[512];
	va_list list;

	va_start(list, format);
	vsnprintf(line, sizeof line, format, list);
	va_end(list);
	put_meta(build, key, line);
}

static void put_warnings(struct kineto_build *build)
{
	const struct kineto *kineto = build->kineto;

	if (*kineto->broken_in)
		warn(build, "warning.import_cut",
			"the table %s: %s; what follows in it is missing, what precedes it is shown", kineto->broken_in,
			kineto->problem);
	else if (kineto->cut)
		warn(build, "warning.import_cut",
			"byte %" PRIu64 " of the JSON: %s; what follows is missing, what precedes it is shown",
			kineto->broken_at, kineto->problem);
	if (kineto->bad)
		warn(build, "warning.import_bad",
			"%" PRIu64 " events have no time or length that can be read; they are in no figure",
			kineto->bad);
	if (kineto->not_ended)
		warn(build, "warning.import_open",
			"%" PRIu64 " ranges have no end in the file; they count up to its last event", kineto->not_ended);
	if (kineto->whole_graphs)
		warn(build, "warning.import_graphs",
			"%" PRIu64 " launches of graphs were recorded as a whole: each is one piece of work, from the start of its "
			"first kernel to the end of its last", kineto->whole_graphs);
	if (build->counts.too_deep)
		warn(build, "warning.import_deep",
			"%" PRIu64 " ranges begin inside of more others than a program nests; they are left out", build->counts.too_deep);
	if (build->counts.overlapping)
		warn(build, "warning.import_overlap",
			"%" PRIu64 " ranges end before one that began in them does; that one's time from there on is "
			"what is around both's",
			build->counts.overlapping);
}

static uint32_t narrow(uint64_t value)
{
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static void put_devices(struct kineto_build *build)
{
	const struct kineto *kineto = build->kineto;

	for (size_t i = 0; i < kineto->device_count; i++) {
		const struct kineto_device *device = &kineto->devices[i];
		struct trace_device record = { .device = narrow(device->id),
			.compute_major = narrow(device->major),
			.compute_minor = narrow(device->minor),
			.multiprocessors = narrow(device->multiprocessors),
			.warp_threads = narrow(device->warp_threads),
			.max_threads_per_sm = narrow(device->threads_per_sm),
			.max_threads_per_block = narrow(device->threads_per_block),
			.registers_per_sm = narrow(device->registers_per_sm),
			.registers_per_block = narrow(device->registers_per_block),
			.shared_bytes_per_sm = narrow(device->shared_per_sm),
			.shared_bytes_per_block = narrow(device->shared_per_block),
			.memory_bytes = device->memory_bytes,
			.name = kineto_name(build, device->name) };

		memcpy(record.uuid, device->uuid, sizeof record.uuid);
		writer_dictionary(build->writer, TRACE_DEVICE, &record, sizeof record);
	}
}

/* ---- all of it ---- */

/* Threads on which nothing runs backward come first: what runs backward links to what ran there. */
static void put_threads(struct kineto_build *build)
{
	const struct kineto *kineto = build->kineto;
	uint8_t *late = need(kineto->thread_count + 1);

	for (size_t i = 0; i < kineto->range_count; i++)
		late[kineto->ranges[i].thread] |= build->links[i] && kineto->ranges[build->links[i] - 1].thread !=
									     kineto->ranges[i].thread;
	for (int round = 0; round < 2; round++)
		for (uint32_t thread = 0; thread < kineto->thread_count; thread++)
			if (late[thread] == round &&
				(build->thread_begin[thread + 1] > build->thread_begin[thread] ||
					build->call_begin[thread + 1] > build->call_begin[thread] ||
					build->memory_begin[thread + 1] > build->memory_begin[thread] ||
					build->moment_begin[thread + 1] > build->moment_begin[thread]))
				kineto_thread_write(build, thread);
	free(late);
}

static void build_free(struct kineto_build *build)
{
	free(build->names);
	free(build->nodes);
	free(build->order);
	free(build->calls);
	free(build->memories);
	free(build->thread_begin);
	free(build->call_begin);
	free(build->memory_begin);
	free(build->moments);
	free(build->moment_begin);
	free(build->frames);
	free(build->frame_begin);
	python_stacks_free(&build->stacks);
	free(build->placed);
	free(build->links);
	free(build->owners);
	free(build->call_names);
}

bool kineto_write(struct kineto *kineto, int fd)
{
	struct kineto_build build = { .kineto = kineto };
	const uint32_t pid = kineto->pid ? kineto->pid : main_pid(kineto);
	bool added, written;
	int error;

	added = kineto_memory_prepare(&build);
	find_modules_thread(kineto);
	find_edges(&build);
	build.writer = writer_new(fd, realtime_at_first(&build), kineto_number(kineto, pid));
	build.placed = need((kineto->range_count + 1) * sizeof *build.placed);
	build.links = need((kineto->range_count + 1) * sizeof *build.links);
	sort_rows(&build);
	kineto_enclose(kineto);
	kineto_calls_own(&build);
	kineto_links_find(&build);
	put_meta(&build, "import.format", *kineto->maker ? kineto->maker : "torch.profiler (Kineto)");
	put_facts(&build, pid);
	put_sources(&build, added);
	put_devices(&build);
	put_threads(&build);
	if (build.stacks.written)
		put_meta(&build, "source.python_stacks", "on");
	kineto_gpu_write(&build);
	put_left_out(&build);
	put_counts(&build);
	put_warnings(&build);
	written = writer_close(build.writer, (uint64_t)(build.last - build.first), !kineto->cut);
	error = errno;
	build_free(&build);
	errno = error;
	return written;
}
