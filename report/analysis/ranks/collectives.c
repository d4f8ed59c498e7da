/* SPDX-License-Identifier: MIT */
#include "report/analysis/ranks/collectives.h"
#include "report/analysis/collective_calls.h"
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

/* Adds a kernel if it is of NCCL. Returns false if it is none, or has no times. */
static bool add_kernel_collective(struct collectives *collectives, struct trace_reader *reader,
	struct kernel_kinds *known, const struct observed_gpu_work *work)
{
	const struct trace_kernel *kernel = (const struct trace_kernel *)work->gpu;
	const int kind = kind_of_kernel(known, reader, kernel->name);
	struct collective *collective;

	if (kind < 0)
		return false;
	if (!work->timed) {
		*(kind == COLLECTIVE_PAIR ? &collectives->pairs : &collectives->untimed) += 1;
		return false;
	}
	collective = add_collective(collectives, kind, kernel->gpu.correlation);
	collective->kernel = kernel->name;
	collective->start_ns = (int64_t)kernel->gpu.start_ns;
	collective->end_ns = (int64_t)max_u64(kernel->gpu.end_ns, kernel->gpu.start_ns);
	collective->communicator = find_communicator(
		collectives, &(struct communicator){
				     .device = kernel->gpu.device, .stream = kernel->gpu.stream });
	return true;
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

/* The launch of a collective. */
struct collective_launch {
	size_t collective; /* index */
	uint64_t begin_ns; /* of the call */
	/* Begin of the innermost range around it. UINT64_MAX: none, or not needed. */
	uint64_t range_ns;
	const struct collective_call *call; /* of NCCL, in which it was made; NULL: not known */
	uint32_t tid, node;
	bool is_graph;
};

COMPARE_BY_THREE(by_launch, struct collective_launch, begin_ns, tid, collective)

static void set_request_time(struct collective *collective, struct trace_reader *reader,
	const struct collective_launch *launch, bool waits_in_call)
{
	const uint64_t entered = !waits_in_call ? UINT64_MAX
				 : launch->call ? launch->call->begin_ns
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

static void set_launch(struct collectives *collectives, struct trace_reader *reader,
	struct collective_sizes *sizes, const struct collective_launch *launch)
{
	struct collective *collective = &collectives->all[launch->collective];
	const struct collective_call *call = launch->call;
	const struct collective_size size = call && call->size.bytes
						    ? call->size
						    : collective_sizes_of(sizes, launch->node);

	collective->launched_ns = launch->begin_ns;
	collective->launch_node = launch->is_graph ? 0 : launch->node;
	collective->bytes = size.bytes;
	collective->bus_bytes = size.bus_bytes;
	set_request_time(collective, reader, launch, collectives->waits_in_call);
	if (!name_by_call(collectives, call, collective) && collective->kind == COLLECTIVE_PAIR)
		name_pair(collectives, reader, collective, launch->node);
}

/* ---- the pass ---- */

/* Finds kernels with their launches and, until there is one, ranges. */
struct collectives_pass {
	struct process *process;
	struct collectives kernels, ranges;
	struct kernel_kinds known;
	struct exposed_time *exposed;
	struct collective_launch *launches;
	size_t launch_count, launch_room;
};

static void add_work(void *context, const struct observed_gpu_work *work)
{
	struct collectives_pass *pass = context;
	const struct gpu_launch *launch = work->launch;
	struct collective_launch *of;

	exposed_time_add(pass->exposed, work->gpu);
	if (work->gpu->head.kind != TRACE_KERNEL ||
		!add_kernel_collective(&pass->kernels, pass->process->reader, &pass->known, work) ||
		!launch)
		return;
	of = ARRAY_ADD(pass->launches, pass->launch_room, pass->launch_count);
	*of = (struct collective_launch){ .collective = pass->kernels.count - 1,
		.begin_ns = launch->begin_ns,
		.range_ns = UINT64_MAX,
		.tid = launch->tid,
		.node = launch->trace_node,
		.is_graph = launch->graph_node != 0 };
}

static void add_record(void *context, const struct trace_event *event)
{
	struct collectives_pass *pass = context;

	if (pass->kernels.count)
		return;
	if (event->kind == TRACE_START)
		range_opened(&pass->ranges, pass->process->reader, event);
	else if (event->kind == TRACE_END)
		range_closed(&pass->ranges, pass->process->reader, event);
}

static void restart(void *context)
{
	struct collectives_pass *pass = context;

	collectives_free(&pass->kernels);
	collectives_free(&pass->ranges);
	exposed_time_clear(pass->exposed);
	pass->launch_count = 0;
}

static const char pass_key; /* the key of process_attach() */

/* Frees all that was found and not taken. */
static void forget_pass(struct collectives_pass *pass)
{
	collectives_free(&pass->kernels);
	collectives_free(&pass->ranges);
	exposed_time_free(pass->exposed);
	free(pass->known.all);
	free(pass->launches);
	*pass = (struct collectives_pass){ .process = pass->process };
}

static void free_pass(void *data)
{
	forget_pass(data);
	free(data);
}

void collectives_read_in(struct shared_pass *shared)
{
	struct process *process = shared->process;
	struct collectives_pass *pass;

	if (process_attached(process, &pass_key))
		return;
	pass = xcalloc(sizeof *pass);
	pass->process = process;
	pass->exposed = exposed_time_new(process->reader, process->categories);
	process_attach(process, &pass_key, pass, free_pass);
	shared_pass_add(shared,
		&(struct profile_observer){ .context = pass,
			.restart = restart,
			.work = add_work,
			.record = add_record },
		NULL);
	collective_calls_read_in(shared);
}

/* ---- the ranges around launches ---- */

/* Begin times of the open ranges of a thread, by depth. */
struct open_range_begins {
	uint64_t *at;
	size_t room;
};

static void remember_range_begin(struct open_range_begins *begins, const struct trace_event *event)
{
	ARRAY_GROW(begins->at, begins->room, (size_t)event->depth + 1);
	begins->at[event->depth] = event->begin_ns;
}

/* Returns the begin of the innermost range around the event, or UINT64_MAX if there is none. */
static uint64_t innermost_range_begin(
	const struct open_range_begins *begins, const struct trace_event *event)
{
	return event->depth && event->depth <= begins->room ? begins->at[event->depth - 1]
							    : UINT64_MAX;
}

DEFINE_COUNT_WHILE(launched_before, struct collective_launch, item->begin_ns < limit)

static uint64_t launch_begin(struct trace_reader *reader, const struct trace_event *event)
{
	const struct trace_call *call = event->record;
	const uint64_t took = reader_duration(reader, call->stamp, call->duration);

	return event->time_ns > took ? event->time_ns - took : 0;
}

/* Sets the range around the launches of a call. */
static void set_range(struct collectives_pass *pass, const struct open_range_begins *begins,
	const struct trace_event *event)
{
	const uint64_t began = launch_begin(pass->process->reader, event);

	for (size_t i = launched_before(pass->launches, pass->launch_count, began);
		i < pass->launch_count && pass->launches[i].begin_ns == began; i++)
		if (pass->launches[i].tid == event->stream->tid)
			pass->launches[i].range_ns = innermost_range_begin(begins, event);
}

/* Finds the ranges around the launches, which are sorted, in one more pass. */
static void find_ranges_around(struct collectives_pass *pass)
{
	struct trace_reader *reader = pass->process->reader;
	const uint32_t threads = reader_stream_count(reader);
	struct open_range_begins *begins = xcalloc((threads + 1) * sizeof *begins);
	struct trace_event event;
	int status;

	reader_rewind(reader);
	while ((status = reader_next(reader, &event)) > 0) {
		struct open_range_begins *of = &begins[event.stream->ordinal];

		if (event.kind == TRACE_PUSH || event.kind == EVENT_RESUMED)
			remember_range_begin(of, &event);
		else if (event.kind == TRACE_LAUNCH || event.kind == TRACE_GRAPH_LAUNCH)
			set_range(pass, of, &event);
	}
	for (uint32_t i = 0; i < threads; i++)
		free(begins[i].at);
	free(begins);
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(reader));
}

/* ---- the result ---- */

/* Finds the calls of NCCL in which collectives were launched. Returns false if one is not known. */
static bool find_calls(struct collectives_pass *pass)
{
	const struct collective_calls *calls = collective_calls_of(pass->process);
	bool found_all = true;

	for (size_t i = 0; i < pass->launch_count; i++) {
		struct collective_launch *launch = &pass->launches[i];
		const struct collective *one = &pass->kernels.all[launch->collective];

		launch->call = collective_calls_find(calls, launch->tid, launch->begin_ns,
			pass->kernels.communicators[one->communicator].device);
		found_all &= launch->call != NULL;
	}
	return found_all;
}

/* Sets the launches by their begin, which numbers the communicators. */
static void set_launches(struct collectives_pass *pass)
{
	struct trace_reader *reader = pass->process->reader;
	struct collective_sizes *sizes = collective_sizes_new(reader);

	if (pass->launch_count)
		qsort(pass->launches, pass->launch_count, sizeof *pass->launches, by_launch);
	if (!find_calls(pass) && pass->kernels.waits_in_call)
		find_ranges_around(pass);
	for (size_t i = 0; i < pass->launch_count; i++)
		set_launch(&pass->kernels, reader, sizes, &pass->launches[i]);
	collective_sizes_free(sizes);
}

/* Moves the kernels or, if there are none with times, the ranges. */
static struct collectives choose_collectives(struct collectives_pass *pass)
{
	const bool has_kernels = pass->kernels.count != 0;
	struct collectives chosen = has_kernels ? pass->kernels : pass->ranges;

	if (has_kernels) {
		pass->kernels = (struct collectives){ .count = 0 };
		return chosen;
	}
	pass->ranges = (struct collectives){ .count = 0 };
	chosen.ranges = true;
	chosen.pairs += pass->kernels.pairs;
	chosen.untimed += pass->kernels.untimed;
	return chosen;
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

struct collectives collectives_take(struct process *process)
{
	struct shared_pass shared = { .process = process };
	struct collectives collectives;
	struct collectives_pass *pass;

	collectives_read_in(&shared);
	shared_pass_run(&shared);
	pass = process_attached(process, &pass_key);
	pass->kernels.waits_in_call = process->simulated;
	if (pass->kernels.count) {
		exposed_time_set(pass->exposed, &pass->kernels);
		set_launches(pass);
	}
	collectives = choose_collectives(pass);
	forget_pass(pass);
	drop_unusable(&collectives);
	sort_collectives(&collectives);
	drop_unused_communicators(&collectives);
	find_groups(&collectives, process->reader);
	return collectives;
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
