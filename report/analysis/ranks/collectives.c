/* SPDX-License-Identifier: MIT */
#include "report/analysis/ranks/collectives.h"
#include "report/analysis/ranks/exposed_time.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/search.h"
#include "report/base/text_builder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAMES_MAX (1u << 20) /* names of kernels whose kind is kept */

static const struct {
	const char *name, *kernel, *range;
	bool together;
} kinds[] = {
#define X(id, name, kernel, range, together) { name, kernel, range, together },
	COLLECTIVE_KINDS(X)
#undef X
};

const char *collective_name(enum collective_kind kind)
{
	return kind < COLLECTIVE_OTHER   ? kinds[kind].name
	       : kind == COLLECTIVE_PAIR ? "send/receive"
					 : "other";
}

bool collective_together(enum collective_kind kind)
{
	return kind < COLLECTIVE_OTHER && kinds[kind].together;
}

static bool text_contains(struct trace_text text, const char *word)
{
	return word && memmem(text.bytes, text.length, word, strlen(word));
}

int collective_kernel(struct trace_text name)
{
	bool is = false;

	for (uint32_t i = 0; i + 4 <= name.length && !is; i++)
		is = !strncasecmp(name.bytes + i, "nccl", 4) ||
		     !strncasecmp(name.bytes + i, "rccl", 4);
	if (!is)
		return -1;
	if (text_contains(name, "SendRecv"))
		return COLLECTIVE_PAIR;
	for (size_t i = 0; i < COLLECTIVE_OTHER; i++)
		if (text_contains(name, kinds[i].kernel))
			return (int)i;
	return COLLECTIVE_OTHER;
}

static int collective_range_kind(struct trace_text name)
{
	static const char *const libraries[] = { "nccl:", "gloo:", "ucc:", "mpi:", "xccl:" };

	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
		if (name.length < strlen(libraries[i]) ||
			memcmp(name.bytes, libraries[i], strlen(libraries[i])) != 0)
			continue;
		for (size_t kind = 0; kind < COLLECTIVE_OTHER; kind++)
			if (text_contains(name, kinds[kind].range))
				return (int)kind;
		return text_contains(name, ":send") || text_contains(name, ":recv")
			       ? COLLECTIVE_PAIR
			       : COLLECTIVE_OTHER;
	}
	return -1;
}

bool collective_is_range(struct trace_text name)
{
	return collective_range_kind(name) >= 0;
}

static bool is_same_communicator(const struct communicator *left, const struct communicator *right)
{
	return left->device == right->device && left->stream == right->stream &&
	       left->low == right->low && left->high == right->high && left->key == right->key;
}

static uint32_t find_communicator(
	struct collectives *collectives, const struct communicator *wanted)
{
	size_t i = 0;

	while (i < collectives->communicator_count &&
		!is_same_communicator(&collectives->communicators[i], wanted))
		i++;
	if (i == collectives->communicator_count) {
		ARRAY_GROW(collectives->communicators, collectives->communicator_room, i + 1);
		collectives->communicators[collectives->communicator_count++] = *wanted;
	}
	return (uint32_t)i;
}

static struct collective *add_collective(
	struct collectives *collectives, int kind, uint64_t correlation)
{
	struct collective *collective;

	collective = ARRAY_ADD(collectives->all, collectives->room, collectives->count);
	*collective = (struct collective){ .launched_ns = UINT64_MAX,
		.requested_ns = UINT64_MAX,
		.correlation = correlation,
		.kind = (uint8_t)kind,
		.outcome = UINT32_MAX };
	return collective;
}

/* Kinds by name of a kernel, so that each name is searched once: 0: not known yet, else
 * collective_kernel() and 2 more. */
struct kernel_kinds {
	uint8_t *all;
	size_t room;
};

static int kind_of_kernel(struct kernel_kinds *known, struct trace_reader *reader, uint32_t name)
{
	if (name >= NAMES_MAX)
		return collective_kernel(reader_name(reader, name));
	ARRAY_GROW(known->all, known->room, (size_t)name + 1);
	if (!known->all[name])
		known->all[name] = (uint8_t)(collective_kernel(reader_name(reader, name)) + 2);
	return known->all[name] - 2;
}

static void add_kernel_collective(struct collectives *collectives, struct trace_reader *reader,
	struct kernel_kinds *known, const struct trace_kernel *kernel)
{
	const int kind = kind_of_kernel(known, reader, kernel->name);
	struct collective *collective;
	uint64_t start, end;

	if (kind < 0)
		return;
	if (!reader_gpu_times(reader, kernel->gpu.start_ns, kernel->gpu.end_ns, &start, &end)) {
		*(kind == COLLECTIVE_PAIR ? &collectives->pairs : &collectives->untimed) += 1;
	} else {
		collective = add_collective(collectives, kind, kernel->gpu.correlation);
		collective->kernel = kernel->name;
		collective->start_ns = (int64_t)kernel->gpu.start_ns;
		collective->end_ns = (int64_t)(kernel->gpu.end_ns > kernel->gpu.start_ns
						       ? kernel->gpu.end_ns
						       : kernel->gpu.start_ns);
		collective->communicator = find_communicator(
			collectives, &(struct communicator){ .device = kernel->gpu.device,
					     .stream = kernel->gpu.stream });
	}
}

static void range_opened(struct collectives *collectives, struct trace_reader *reader,
	const struct trace_event *event)
{
	const struct trace_range *range = event->record;
	const int kind = collective_range_kind(reader_event_text(reader, event));
	struct collective *collective;

	if (kind < 0)
		return;
	if (kind == COLLECTIVE_PAIR) {
		collectives->pairs++;
		return;
	}
	collective = add_collective(collectives, kind, range->id);
	collective->requested_ns = event->time_ns;
	collective->start_ns = (int64_t)(reader_start_unix_ns(reader) + event->time_ns);
	collective->end_ns = INT64_MIN;
	collective->communicator = find_communicator(
		collectives, &(struct communicator){ .device = UINT32_MAX });
}

/* Closes the newest open range with this id. Only a few are open at a time. */
static void range_closed(struct collectives *collectives, struct trace_reader *reader,
	const struct trace_event *event)
{
	const uint64_t id = ((const struct trace_end *)event->record)->id;

	for (size_t i = collectives->count, seen = 0; i-- > 0 && seen < 4096; seen++)
		if (collectives->all[i].correlation == id &&
			collectives->all[i].end_ns == INT64_MIN) {
			collectives->all[i].end_ns = (int64_t)(reader_start_unix_ns(reader) +
							       event->time_ns);
			return;
		}
}

COMPARE_BY_THREE(by_communicator, struct collective, communicator, start_ns, end_ns)

/* Drops ranges without an end, and sends and receives with an unknown rank. */
static void drop_unusable(struct collectives *collectives)
{
	size_t kept = 0;

	for (size_t i = 0; i < collectives->count; i++) {
		const struct collective *collective = &collectives->all[i];

		if (collective->end_ns == INT64_MIN)
			collectives->untimed++;
		else if (collective->kind == COLLECTIVE_PAIR &&
			 !communicator_is_pair(
				 &collectives->communicators[collective->communicator]))
			collectives->pairs++;
		else
			collectives->all[kept++] = *collective;
	}
	collectives->count = kept;
}

static void sort_collectives(struct collectives *collectives)
{
	if (collectives->count)
		qsort(collectives->all, collectives->count, sizeof *collectives->all,
			by_communicator);
	for (size_t i = 0; i < collectives->count; i++) {
		struct communicator *communicator =
			&collectives->communicators[collectives->all[i].communicator];

		if (!communicator->count++)
			communicator->first = i;
	}
}

/* Drops communicators without collectives: of streams whose collectives all have a key or a pair of
 * ranks. */
static void drop_unused_communicators(struct collectives *collectives)
{
	size_t kept = 0;

	for (size_t i = 0; i < collectives->communicator_count; i++) {
		const struct communicator communicator = collectives->communicators[i];

		if (!communicator.count)
			continue;
		for (size_t k = 0; k < communicator.count; k++)
			collectives->all[communicator.first + k].communicator = (uint32_t)kept;
		collectives->communicators[kept++] = communicator;
	}
	collectives->communicator_count = kept;
}

/* Index of a collective by its correlation id. */
struct collective_index {
	uint64_t correlation;
	size_t collective;
};

COMPARE_BY_TWO(by_correlation, struct collective_index, correlation, collective)

DEFINE_COUNT_WHILE(first_awaited, struct collective_index, item->correlation < limit)

/* Begin times of the open ranges of a thread, by depth. */
struct open_range_begins {
	uint64_t *at;
	size_t room;
};

static void remember_range_begin(const struct trace_event *event)
{
	struct open_range_begins *begins = event->stream->user;

	if (!begins)
		begins = event->stream->user = xcalloc(sizeof *begins);
	ARRAY_GROW(begins->at, begins->room, (size_t)event->depth + 1);
	begins->at[event->depth] = event->begin_ns;
}

static void free_thread_ranges(struct trace_stream *stream)
{
	struct open_range_begins *begins = stream->user;

	if (begins)
		free(begins->at);
	free(begins);
	stream->user = NULL;
}

/* Returns the begin of the innermost range around the event, or UINT64_MAX if there is none. */
static uint64_t innermost_range_begin(const struct trace_event *event)
{
	const struct open_range_begins *begins = event->stream->user;

	return begins && event->depth && event->depth <= begins->room ? begins->at[event->depth - 1]
								      : UINT64_MAX;
}

static uint64_t launch_begin(struct trace_reader *reader, const struct trace_event *event)
{
	const struct trace_call *call = event->record;
	const uint64_t took = reader_duration(reader, call->stamp, call->duration);

	return event->time_ns > took ? event->time_ns - took : 0;
}

/* What is known of the call that launched a collective. */
struct launch {
	uint64_t begin_ns;
	uint64_t range_ns; /* begin of the innermost range around it; UINT64_MAX: none */
	uint64_t order;    /* number of launches before it */
	uint32_t tid, node;
	bool is_graph;
};

static struct launch describe_launch(
	struct trace_reader *reader, const struct trace_event *event, uint64_t order)
{
	return (struct launch){ .begin_ns = launch_begin(reader, event),
		.range_ns = innermost_range_begin(event),
		.order = order,
		.tid = event->stream->tid,
		.node = event->node,
		.is_graph = event->kind == TRACE_GRAPH_LAUNCH };
}

/* `call`: of NCCL; NULL: not known. */
static void set_request_time(struct collective *collective, struct trace_reader *reader,
	const struct launch *launch, const struct collective_call *call, bool waits_in_call)
{
	const uint64_t entered = !waits_in_call ? UINT64_MAX
				 : call         ? call->begin_ns
						: launch->range_ns;

	collective->requested_ns = entered != UINT64_MAX ? entered : collective->launched_ns;
	if (entered != UINT64_MAX &&
		(int64_t)(reader_start_unix_ns(reader) + entered) < collective->start_ns)
		collective->start_ns = (int64_t)(reader_start_unix_ns(reader) + entered);
}

/* Parses the ranks of `nccl:send 0->1` or `nccl:recv 1<-0`. Names may be hostile: any number is
 * possible. */
static bool parse_pair(struct trace_text name, uint32_t *low, uint32_t *high)
{
	char text[64], *end;
	const char *arrow, *from;
	unsigned long one, other;

	snprintf(text, sizeof text, "%.*s", (int)(name.length < 63 ? name.length : 63), name.bytes);
	arrow = strstr(text, "->") ? strstr(text, "->") : strstr(text, "<-");
	from = arrow;
	while (from && from > text && from[-1] >= '0' && from[-1] <= '9')
		from--;
	if (!from || from == arrow || arrow[2] < '0' || arrow[2] > '9')
		return false;
	one = strtoul(from, &end, 10);
	other = strtoul(arrow + 2, &end, 10);
	if (one == other || one > INT32_MAX || other > INT32_MAX)
		return false;
	*low = (uint32_t)(one < other ? one : other);
	*high = (uint32_t)(one < other ? other : one);
	return true;
}

/* Finds the kind or the ranks of a send or receive, from the innermost range around its launch that
 * names them. */
static void name_pair(struct collectives *collectives, struct trace_reader *reader,
	struct collective *collective, uint32_t trace_node)
{
	for (; trace_node; trace_node = reader_node(reader, trace_node)->parent) {
		const struct trace_text name = reader_name(
			reader, reader_node(reader, trace_node)->name);
		const int kind = text_contains(name, "alltoall") ? COLLECTIVE_ALL_TO_ALL
								 : collective_range_kind(name);
		struct communicator pair = collectives->communicators[collective->communicator];

		if (kind >= 0 && kind < COLLECTIVE_OTHER)
			collective->kind = (uint8_t)kind;
		else if (kind == COLLECTIVE_PAIR && parse_pair(name, &pair.low, &pair.high))
			collective->communicator = find_communicator(collectives, &pair);
		if (kind >= 0)
			return;
	}
}

/* Finds the communicator of a collective and, of sends and receives, the kind or the ranks, from
 * the call of NCCL in which it was launched. Returns false if that does not say it. */
static bool name_by_call(struct collectives *collectives, const struct collective_call *call,
	struct collective *collective)
{
	struct communicator wanted = collectives->communicators[collective->communicator];

	if (!call || !call->key)
		return false;
	wanted.key = call->key;
	wanted.stream = UINT32_MAX;
	if (collective->kind == COLLECTIVE_PAIR && call->size.operation == SIZED_ALLTOALL) {
		collective->kind = COLLECTIVE_ALL_TO_ALL;
	} else if (collective->kind == COLLECTIVE_PAIR && call->peer != UINT32_MAX) {
		wanted.low = (uint32_t)min_u64(call->rank, call->peer);
		wanted.high = (uint32_t)max_u64(call->rank, call->peer);
	}
	collective->communicator = find_communicator(collectives, &wanted);
	return true;
}

/* What says more of a collective than its kernel and its launch. */
struct call_sources {
	const struct collective_calls *calls;
	struct collective_sizes *sizes;
};

static void set_launch(struct collectives *collectives, struct trace_reader *reader,
	const struct call_sources *sources, struct collective *collective,
	const struct launch *launch)
{
	const struct collective_call *call;
	struct collective_size size;

	collective->launched_ns = launch->begin_ns;
	collective->launch_node = launch->is_graph ? 0 : launch->node;
	call = collective_calls_find(sources->calls, launch->tid, launch->begin_ns,
		collectives->communicators[collective->communicator].device);
	size = collective_call_size(call, sources->sizes, launch->node);
	collective->bytes = size.bytes;
	collective->bus_bytes = size.bus_bytes;
	set_request_time(collective, reader, launch, call, collectives->waits_in_call);
	if (!name_by_call(collectives, call, collective) && collective->kind == COLLECTIVE_PAIR)
		name_pair(collectives, reader, collective, launch->node);
}

static void match_launch(struct collectives *collectives, struct trace_reader *reader,
	const struct call_sources *sources, const struct collective_index *awaited,
	const struct trace_event *event)
{
	const uint64_t correlation = ((const struct trace_call *)event->record)->correlation;

	for (size_t i = correlation ? first_awaited(awaited, collectives->count, correlation)
				    : collectives->count;
		i < collectives->count && awaited[i].correlation == correlation; i++) {
		const struct launch launch = describe_launch(reader, event, 0);

		set_launch(collectives, reader, sources, &collectives->all[awaited[i].collective],
			&launch);
	}
}

/* Returns the collectives by correlation id. The caller frees them. */
static struct collective_index *list_awaited(const struct collectives *collectives)
{
	struct collective_index *awaited = xcalloc((collectives->count + 1) * sizeof *awaited);

	for (size_t i = 0; i < collectives->count; i++)
		awaited[i] = (struct collective_index){ collectives->all[i].correlation, i };
	qsort(awaited, collectives->count, sizeof *awaited, by_correlation);
	return awaited;
}

/* Reads the trace a second time, to find when each collective was launched. */
static void find_launches(struct collectives *collectives, struct trace_reader *reader,
	const struct call_sources *sources)
{
	struct collective_index *awaited = list_awaited(collectives);
	struct trace_event event;
	int status;

	reader_rewind(reader);
	while ((status = reader_next(reader, &event)) > 0) {
		if (event.kind == TRACE_LAUNCH || event.kind == TRACE_GRAPH_LAUNCH)
			match_launch(collectives, reader, sources, awaited, &event);
		else if (collectives->waits_in_call &&
			 (event.kind == TRACE_PUSH || event.kind == EVENT_RESUMED))
			remember_range_begin(&event);
		else if (event.kind == EVENT_STREAM_END)
			free_thread_ranges(event.stream);
	}
	free(awaited);
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(reader));
}

/* The launch of a collective. */
struct matched_launch {
	struct launch launch;
	size_t collective;
};

static int by_launch_order(const void *left, const void *right)
{
	const struct matched_launch *a = left, *b = right;

	return a->launch.order != b->launch.order ? COMPARE(a->launch.order, b->launch.order)
						  : COMPARE(a->collective, b->collective);
}

/* A pass over the trace for collectives. It finds kernels, with their launches if these are before
 * them in the trace, and until there is one, ranges. */
struct collectives_pass {
	struct trace_reader *reader;
	struct collectives kernels, ranges;
	struct kernel_kinds known;
	struct exposed_time *exposed;
	bool waits_in_call;
	struct launch *launches; /* by slot (reader_join) */
	size_t launch_room;
	uint64_t launch_count;
	struct matched_launch *matched;
	size_t matched_count, matched_room;
};

static void note_launch(struct collectives_pass *pass, const struct trace_event *event)
{
	if (!call_awaits_record(event->record))
		return;
	ARRAY_GROW(pass->launches, pass->launch_room, (size_t)event->slot + 1);
	pass->launches[event->slot] = describe_launch(pass->reader, event, pass->launch_count++);
}

static void note_kernel(struct collectives_pass *pass, const struct trace_event *event)
{
	const size_t before = pass->kernels.count;

	add_kernel_collective(&pass->kernels, pass->reader, &pass->known, event->record);
	if (pass->kernels.count != before && event->slot != JOIN_NO_SLOT)
		*ARRAY_ADD(pass->matched, pass->matched_room,
			pass->matched_count) = (struct matched_launch){
			.launch = pass->launches[event->slot], .collective = before
		};
}

static void add_pass_event(struct collectives_pass *pass, const struct trace_event *event)
{
	exposed_time_add(pass->exposed, event);
	switch (event->kind) {
	case TRACE_KERNEL:
		note_kernel(pass, event);
		break;
	case TRACE_LAUNCH:
	case TRACE_GRAPH_LAUNCH:
	case TRACE_COPY:
	case TRACE_SET:
		note_launch(pass, event);
		break;
	case TRACE_START:
		if (!pass->kernels.count)
			range_opened(&pass->ranges, pass->reader, event);
		break;
	case TRACE_END:
		if (!pass->kernels.count)
			range_closed(&pass->ranges, pass->reader, event);
		break;
	case TRACE_PUSH:
	case EVENT_RESUMED:
		if (pass->waits_in_call)
			remember_range_begin(event);
		break;
	case EVENT_STREAM_END:
		free_thread_ranges(event->stream);
		break;
	}
}

static void run_collectives_pass(struct collectives_pass *pass)
{
	struct trace_event event;
	int status;

	reader_rewind(pass->reader);
	reader_join(pass->reader);
	while ((status = reader_next(pass->reader, &event)) > 0)
		add_pass_event(pass, &event);
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(pass->reader));
	free(pass->known.all);
	free(pass->launches);
}

/* Returns the kernels or, if there are none with times, the ranges. Frees the others. */
static const struct collectives *choose_collectives(struct collectives_pass *pass)
{
	if (pass->kernels.count) {
		collectives_free(&pass->ranges);
		return &pass->kernels;
	}
	pass->ranges.ranges = true;
	pass->ranges.pairs += pass->kernels.pairs;
	pass->ranges.untimed += pass->kernels.untimed;
	return &pass->ranges;
}

/* Returns whether each kernel that has a launch came after it. */
static bool has_all_launches(const struct collectives_pass *pass)
{
	size_t launched = 0;

	for (size_t i = 0; i < pass->kernels.count; i++)
		launched += pass->kernels.all[i].correlation != 0;
	return launched == pass->matched_count;
}

/* Sets the launches in the order of the trace, which numbers the communicators. */
static void set_launches(struct collectives_pass *pass, struct collectives *collectives,
	const struct call_sources *sources)
{
	qsort(pass->matched, pass->matched_count, sizeof *pass->matched, by_launch_order);
	for (size_t i = 0; i < pass->matched_count; i++)
		set_launch(collectives, pass->reader, sources,
			&collectives->all[pass->matched[i].collective], &pass->matched[i].launch);
}

static void keep_group_name(struct communicator *communicator, struct trace_text name)
{
	free(communicator->name);
	communicator->name = xcalloc((size_t)name.length + 1);
	memcpy(communicator->name, name.bytes, name.length);
	communicator->group = (struct trace_text){ communicator->name, name.length,
		name.known && name.length > 0 };
}

static void name_group(struct communicator *communicator, const struct trace_reader *reader)
{
	char key[64];
	struct trace_text sequence;

	snprintf(key, sizeof key, "stream.%u.%u.group", communicator->device, communicator->stream);
	keep_group_name(communicator, reader_meta(reader, key));
	snprintf(key, sizeof key, "stream.%u.%u.sequence", communicator->device,
		communicator->stream);
	sequence = reader_meta(reader, key);
	communicator->sequence = sequence.length && sequence.length < 18 ? 0 : -1;
	for (uint32_t i = 0; i < sequence.length && communicator->sequence >= 0; i++)
		communicator->sequence = sequence.bytes[i] >= '0' && sequence.bytes[i] <= '9'
						 ? communicator->sequence * 10 +
							   (sequence.bytes[i] - '0')
						 : -1;
}

#define KEY_BYTES 32u

/* Names the communicator by its key, which is the same on all ranks. */
static void format_key(struct communicator *communicator)
{
	communicator->name = xcalloc(KEY_BYTES);
	snprintf(communicator->name, KEY_BYTES, "NCCL %016llx",
		(unsigned long long)communicator->key);
	communicator->group = (struct trace_text){ communicator->name,
		(uint32_t)strlen(communicator->name), true };
	communicator->sequence = -1;
}

/* Names the communicator of a pair by its group and its two ranks. */
static void format_pair_name(struct communicator *communicator)
{
	const struct trace_text group = communicator->group;
	struct text_builder name = { .text = NULL };

	text_add_bytes(&name, group.bytes, group.known ? group.length : 0);
	text_add(&name, " %u %u", communicator->low, communicator->high);
	keep_group_name(communicator, (struct trace_text){ name.text, (uint32_t)name.used, true });
	free(name.text);
	communicator->sequence = -1;
}

static void find_groups(struct collectives *collectives, const struct trace_reader *reader)
{
	for (size_t i = 0; i < collectives->communicator_count; i++) {
		struct communicator *communicator = &collectives->communicators[i];

		if (communicator->key)
			format_key(communicator);
		else
			name_group(communicator, reader);
		if (communicator_is_pair(communicator))
			format_pair_name(communicator);
	}
}

void collectives_read(struct collectives *collectives, struct trace_reader *reader,
	const struct collective_calls *calls, bool waits_in_call,
	const struct categories *categories)
{
	const struct call_sources sources = { calls, collective_sizes_new(reader) };
	struct collectives_pass pass = { .reader = reader,
		.exposed = exposed_time_new(reader, categories),
		.waits_in_call = waits_in_call };

	run_collectives_pass(&pass);
	*collectives = *choose_collectives(&pass);
	if (!collectives->ranges) {
		collectives->waits_in_call = waits_in_call;
		exposed_time_set(pass.exposed, collectives);
		if (has_all_launches(&pass))
			set_launches(&pass, collectives, &sources);
		else
			find_launches(collectives, reader, &sources);
	}
	exposed_time_free(pass.exposed);
	collective_sizes_free(sources.sizes);
	free(pass.matched);
	drop_unusable(collectives);
	sort_collectives(collectives);
	drop_unused_communicators(collectives);
	find_groups(collectives, reader);
}

void collectives_insert_lost(struct collectives *collectives, uint32_t communicator, size_t index,
	const struct collective *alike, size_t count)
{
	const size_t at = collectives->communicators[communicator].first + index;

	ARRAY_GROW(collectives->all, collectives->room, collectives->count + count);
	memmove(collectives->all + at + count, collectives->all + at,
		(collectives->count - at) * sizeof *collectives->all);
	for (size_t i = 0; i < count; i++)
		collectives->all[at + i] = (struct collective){ .start_ns = INT64_MIN,
			.end_ns = INT64_MIN,
			.launched_ns = UINT64_MAX,
			.requested_ns = UINT64_MAX,
			.communicator = communicator,
			.outcome = UINT32_MAX,
			.kind = alike[i].kind };
	collectives->count += count;
	collectives->communicators[communicator].count += count;
	for (size_t i = 0; i < collectives->communicator_count; i++)
		if (collectives->communicators[i].first > at ||
			(collectives->communicators[i].first == at && i > communicator))
			collectives->communicators[i].first += count;
}

void collectives_free(struct collectives *collectives)
{
	for (size_t i = 0; i < collectives->communicator_count; i++)
		free(collectives->communicators[i].name);
	free(collectives->all);
	free(collectives->communicators);
	*collectives = (struct collectives){ .count = 0 };
}
