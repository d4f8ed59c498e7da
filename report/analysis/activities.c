/* SPDX-License-Identifier: MIT */
#include "report/analysis/activities.h"
#include "report/analysis/collective_calls.h"
#include "report/analysis/collective_sizes.h"
#include "report/analysis/first_calls.h"
#include "report/analysis/host_ranges.h"
#include "report/base/compare.h"
#include "report/base/alloc.h"
#include "report/base/external_sort.h"
#include "report/gpu/device_timeline.h"
#include "report/gpu/occupancy.h"
#include <stdlib.h>

#define STREAMS_MAX 65536u   /* streams with a name */
#define NAMES_MAX (1u << 22) /* larger name ids, which only a damaged trace has, are not cached */

/* So many launches are never left out, because GPU work may begin after them. */
#define LAUNCHES_KEPT 1024u

/* Which launches were left out, and whether one was needed after all. */
struct left_out {
	bool is_wanted, saw_wait;   /* saw_wait: of a stream for an event */
	uint64_t launches, counted; /* launches: those so far, left out or not */
	uint64_t first_ns, last_ns; /* when the first and the last one that was left out began */
	uint64_t work_ns, wait_ns;  /* when the first timed GPU work, or such a wait, began */
	struct {
		uint8_t *of; /* by text: enum launch_name */
		size_t room;
	} names;
};

enum launch_name { LAUNCH_NAME_NOT_KNOWN, LAUNCH_NAME_OTHER, LAUNCH_NAME_PLAIN };

/* A stream that the program named. */
struct named_stream {
	uint64_t handle;
	uint32_t name; /* name id of the trace */
};

struct activities {
	struct process *process;
	bool is_kept; /* by activities_keep: freed with the process */
	struct external_sort *sorter;
	struct left_out left_out;
	struct counted_interval *counted;
	size_t counted_count, counted_room;
	struct named_stream *streams;
	size_t stream_count, stream_room;
	size_t step; /* index of the last step found */
	/* by name id of a kernel: 0 not classified yet, 1 computes, 2 communicates */
	uint8_t *nature;
	size_t nature_room;
	struct collective_sizes *sizes;
	const struct collective_calls *calls; /* of NCCL, complete after the pass; NULL: none */
	struct activity sized;                /* a copy with the size of its call */
};

static int compare_activities(const void *left, const void *right)
{
	const struct activity *a = left, *b = right;
	const bool work = activity_is_work(a);

	if (a->begin_ns != b->begin_ns)
		return COMPARE(a->begin_ns, b->begin_ns);
	if (work != activity_is_work(b) || !work) {
		if (a->kind != b->kind)
			return a->kind < b->kind ? -1 : 1;
	} else if (a->start_unix_ns != b->start_unix_ns) {
		return COMPARE(a->start_unix_ns, b->start_unix_ns);
	}
	return COMPARE(a->arrival, b->arrival);
}

/* Returns the index of the step at `at_ns`, if threads have steps of their own that of thread
 * `tid`. Usually this is the step found last, or the next one. */
static uint32_t step_index_at(struct activities *activities, uint32_t tid, uint64_t at_ns)
{
	const struct steps *steps = activities->process->steps;
	const struct step *step;

	if (steps && !steps_overlap(steps) && activities->step < steps->count &&
		at_ns >= steps->steps[activities->step].begin_ns &&
		at_ns < steps->steps[activities->step].end_ns)
		return (uint32_t)activities->step;
	step = steps ? steps_step_of_thread(steps, tid, at_ns) : NULL;
	if (!step)
		return ACTIVITY_NO_STEP;
	activities->step = (size_t)(step - steps->steps);
	return (uint32_t)activities->step;
}

static bool is_communication_name(struct activities *activities, uint32_t name)
{
	struct trace_reader *reader = activities->process->reader;
	const struct categories *categories = activities->process->categories;

	if (name >= NAMES_MAX)
		return categories_is_communication(categories, reader_name(reader, name));
	array_grow_zeroed(&activities->nature, &activities->nature_room, (size_t)name + 1, 1);
	if (!activities->nature[name])
		activities->nature[name] = categories_is_communication(
						   categories, reader_name(reader, name))
						   ? 2
						   : 1;
	return activities->nature[name] == 2;
}

static struct activity *add_activity(struct activities *activities, enum activity_kind kind)
{
	const uint64_t arrival = external_sort_count(activities->sorter);
	struct activity *activity = external_sort_add(activities->sorter);

	activity->kind = (uint8_t)kind;
	activity->arrival = arrival;
	activity->device = activity->other_device = ACTIVITY_NO_DEVICE;
	activity->kernel = ACTIVITY_NO_KERNEL;
	activity->step = ACTIVITY_NO_STEP;
	return activity;
}

static void begin_leaving_out(struct left_out *left_out, bool is_wanted)
{
	free(left_out->names.of);
	*left_out = (struct left_out){ .is_wanted = is_wanted,
		.first_ns = UINT64_MAX,
		.work_ns = UINT64_MAX,
		.wait_ns = UINT64_MAX };
}

/* Returns true for functions that do nothing but launch. */
static bool is_plain_launch(struct activities *activities, uint32_t name)
{
	static const char *const names[] = { "cudaLaunchKernel", "cudaLaunchKernelExC",
		"cuLaunchKernel", "cuLaunchKernelEx", "cudaLaunchCooperativeKernel",
		"hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel" };
	struct left_out *left_out = &activities->left_out;
	const struct string_view text = string_table_get(activities->process->texts, name);

	ARRAY_GROW(left_out->names.of, left_out->names.room, (size_t)name + 1);
	if (left_out->names.of[name] == LAUNCH_NAME_NOT_KNOWN) {
		left_out->names.of[name] = LAUNCH_NAME_OTHER;
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (string_view_is(text, names[i]))
				left_out->names.of[name] = LAUNCH_NAME_PLAIN;
	}
	return left_out->names.of[name] == LAUNCH_NAME_PLAIN;
}

/* Returns true if the call is a launch that is left out, and counts it. */
static bool leave_out(struct activities *activities, const struct observed_call *seen)
{
	struct left_out *left_out = &activities->left_out;

	if (!left_out->is_wanted || seen->event->kind != TRACE_LAUNCH || left_out->saw_wait ||
		left_out->launches++ < LAUNCHES_KEPT || !is_plain_launch(activities, seen->name))
		return false;
	left_out->counted += seen->counts;
	left_out->first_ns = min_u64(left_out->first_ns, seen->begin_ns);
	left_out->last_ns = max_u64(left_out->last_ns, seen->begin_ns);
	return true;
}

/* Returns true if no launch was left out that is needed. One before the first GPU work is. So is
 * one after a wait of its stream, which may be in the trace before the wait. */
static bool is_complete(const struct left_out *left_out)
{
	return left_out->first_ns == UINT64_MAX ||
	       (left_out->first_ns >= left_out->work_ns && left_out->last_ns < left_out->wait_ns);
}

static void restart_activities(void *context)
{
	struct activities *activities = context;

	external_sort_clear(activities->sorter);
	activities->counted_count = activities->stream_count = 0;
	begin_leaving_out(&activities->left_out, activities->left_out.is_wanted);
}

static enum activity_kind sync_activity_kind(const struct trace_sync *sync)
{
	switch (sync->type) {
	case TRACE_SYNC_EVENT:
	case TRACE_SYNC_STREAM:
	case TRACE_SYNC_CONTEXT:
		return ACTIVITY_WAIT;
	case TRACE_SYNC_STREAM_WAIT:
		return ACTIVITY_STREAM_WAIT;
	case TRACE_EVENT_RECORD:
		return ACTIVITY_EVENT_RECORD;
	default:
		return ACTIVITY_OTHER_CALL;
	}
}

static enum activity_kind call_activity_kind(const struct trace_event *event)
{
	static const enum activity_kind kinds[TRACE_KINDS] = { [TRACE_LAUNCH] = ACTIVITY_LAUNCH,
		[TRACE_GRAPH_LAUNCH] = ACTIVITY_GRAPH_LAUNCH,
		[TRACE_COPY] = ACTIVITY_COPY_CALL,
		[TRACE_SET] = ACTIVITY_MEMSET_CALL,
		[TRACE_ALLOC] = ACTIVITY_ALLOC,
		[TRACE_FREE] = ACTIVITY_FREE,
		[TRACE_MAPPING] = ACTIVITY_OTHER_CALL };

	return event->kind == TRACE_SYNC ? sync_activity_kind(event->record) : kinds[event->kind];
}

/* Sets the fields that only some kinds of records have. */
static void set_call_fields(struct activity *activity, const struct trace_event *event)
{
	const struct trace_launch *launch = event->record;
	const struct trace_copy *copy = event->record;
	const struct trace_sync *sync = event->record;
	const struct trace_memory *memory = event->record;

	switch (event->kind) {
	case TRACE_LAUNCH:
	case TRACE_GRAPH_LAUNCH:
		activity->stream = launch->stream;
		break;
	case TRACE_COPY:
	case TRACE_SET:
		activity->stream = copy->stream;
		activity->bytes = copy->bytes;
		activity->copy_kind = (uint8_t)copy->copy_kind;
		break;
	case TRACE_ALLOC:
	case TRACE_FREE:
		activity->stream = memory->stream;
		activity->bytes = memory->bytes;
		break;
	case TRACE_MAPPING:
		break;
	default:
		activity->stream = sync->stream;
		activity->event = sync->event;
		activity->sync = (uint8_t)sync->type;
	}
}

static void set_record_fields(struct activity *activity, const struct trace_call *record)
{
	activity->correlation = record->correlation;
	activity->device = record->device;
	activity->result = record->result;
	activity->stack = record->stack;
	activity->captured = (record->head.flags & TRACE_CALL_CAPTURED) != 0;
}

static void add_call_activity(void *context, const struct observed_call *seen)
{
	struct activities *activities = context;
	struct activity *activity;

	if (leave_out(activities, seen))
		return;
	activity = add_activity(activities, call_activity_kind(seen->event));
	if (activity->kind == ACTIVITY_STREAM_WAIT) {
		activities->left_out.saw_wait = true;
		activities->left_out.wait_ns = min_u64(
			activities->left_out.wait_ns, seen->begin_ns);
	}
	activity->begin_ns = activity->call_begin_ns = seen->begin_ns;
	activity->end_ns = activity->call_end_ns = seen->begin_ns + seen->duration_ns;
	activity->duration_ns = seen->duration_ns;
	activity->node = seen->node;
	activity->owner = seen->owner;
	activity->name = seen->name;
	activity->tid = seen->event->stream->tid;
	activity->step = step_index_at(activities, activity->tid, seen->begin_ns);
	activity->timed = true;
	activity->in_range = seen->event->node != 0;
	activity->counts = seen->counts;
	set_record_fields(activity, seen->event->record);
	set_call_fields(activity, seen->event);
}

static void set_gpu_work_fields(
	struct activities *activities, struct activity *activity, const struct trace_gpu *gpu)
{
	const struct trace_gpu_copy *copy = (const struct trace_gpu_copy *)gpu;

	if (activity->kind == ACTIVITY_KERNEL) {
		activity->trace_name = ((const struct trace_kernel *)gpu)->name;
		activity->communicates = is_communication_name(activities, activity->trace_name);
		return;
	}
	activity->bytes = copy->bytes;
	if (activity->kind != ACTIVITY_COPY)
		return;
	activity->copy_kind = (uint8_t)copy->copy_kind;
	activity->source_kind = (uint8_t)copy->source_kind;
	activity->target_kind = (uint8_t)copy->target_kind;
	activity->other_device = copy->other_device;
}

static void set_gpu_times(struct activity *activity, const struct observed_gpu_work *seen)
{
	const struct trace_gpu *gpu = seen->gpu;

	activity->timed = seen->timed;
	activity->begin_ns = activity->end_ns = activity->call_begin_ns;
	if (!seen->timed)
		return;
	activity->begin_ns = seen->begin_ns;
	activity->end_ns = seen->end_ns;
	activity->start_unix_ns = gpu->start_ns;
	activity->duration_ns = gpu->end_ns > gpu->start_ns ? gpu->end_ns - gpu->start_ns : 0;
}

static void set_collective_size(struct activity *activity, const struct collective_size *size)
{
	activity->message_bytes = size->bytes;
	activity->bus_bytes = size->bus_bytes;
	activity->message_ranks = size->ranks;
	activity->collective = (uint8_t)size->operation;
}

/* Sets the size as PyTorch describes it. */
static void set_described_size(
	struct activities *activities, struct activity *activity, uint32_t trace_node)
{
	const struct collective_size size = collective_sizes_of(activities->sizes, trace_node);

	set_collective_size(activity, &size);
}

/* Returns a collective with the size of its call of NCCL, if that is known. The call may have ended
 * after the record of its kernel came, so this is done while the list is read. */
static const struct activity *with_size_of_call(
	struct activities *activities, const struct activity *collective)
{
	const struct collective_call *call = collective_calls_find(
		activities->calls, collective->tid, collective->call_begin_ns, collective->device);

	if (!call || !call->size.bytes)
		return collective;
	activities->sized = *collective;
	set_collective_size(&activities->sized, &call->size);
	return &activities->sized;
}

static void add_gpu_activity(void *context, const struct observed_gpu_work *seen)
{
	struct activities *activities = context;
	const struct trace_gpu *gpu = seen->gpu;
	struct activity *activity = add_activity(
		activities, gpu->head.kind == TRACE_KERNEL     ? ACTIVITY_KERNEL
			    : gpu->head.kind == TRACE_GPU_COPY ? ACTIVITY_COPY
							       : ACTIVITY_MEMSET);

	if (seen->launch) {
		activity->has_call = true;
		activity->call_begin_ns = seen->launch->begin_ns;
		activity->call_end_ns = seen->launch->end_ns;
		activity->tid = seen->launch->tid;
		activity->stack = seen->launch->stack;
		activity->in_range = seen->launch->in_range;
		activity->of_graph = seen->launch->graph_node != 0;
	}
	set_gpu_times(activity, seen);
	if (activity->timed)
		activities->left_out.work_ns = min_u64(
			activities->left_out.work_ns, activity->begin_ns);
	activity->correlation = gpu->correlation;
	activity->nodes_unknown = activity->of_graph && !gpu->graph_node;
	activity->stream = gpu->stream;
	activity->device = gpu->device;
	activity->node = seen->node;
	activity->owner = seen->owner;
	activity->name = seen->name;
	if (activity->kind == ACTIVITY_KERNEL && seen->counts)
		activity->kernel = seen->kernel;
	activity->step = step_index_at(activities, seen->launch ? seen->launch->tid : 0,
		seen->launch ? seen->launch->begin_ns : activity->begin_ns);
	activity->counts = seen->counts;
	set_gpu_work_fields(activities, activity, gpu);
	if (activity->communicates && seen->launch)
		set_described_size(activities, activity, seen->launch->trace_node);
}

static void add_stream_name(struct activities *activities, const struct trace_object *object)
{
	if ((object->type != TRACE_OBJECT_CU_STREAM && object->type != TRACE_OBJECT_CUDA_STREAM) ||
		activities->stream_count >= STREAMS_MAX)
		return;
	*ARRAY_ADD(activities->streams, activities->stream_room,
		activities->stream_count) = (struct named_stream){ .handle = object->object,
		.name = object->name };
}

static uint64_t find_stream_handle(struct trace_reader *reader, uint32_t device, uint64_t stream)
{
	const struct trace_context *context;
	uint64_t handle = 0;

	for (uint32_t i = 0; (context = reader_dictionary(reader, TRACE_CONTEXT, i)); i++)
		if (context->device == device && context->stream == stream)
			handle = context->handle;
	return handle;
}

struct string_view activities_stream_name(
	const struct activities *activities, uint32_t device, uint64_t stream)
{
	const uint64_t handle = activities->stream_count
					? find_stream_handle(
						  activities->process->reader, device, stream)
					: 0;
	struct trace_text name = { .bytes = "" };

	for (size_t i = 0; handle && i < activities->stream_count; i++)
		if (activities->streams[i].handle == handle)
			name = reader_name(
				activities->process->reader, activities->streams[i].name);
	return (struct string_view){ .bytes = name.bytes, .length = name.length };
}

static void add_cupti_activity(void *context, const struct trace_event *event)
{
	struct activities *activities = context;
	const struct trace_gpu_sync *sync = event->record;
	const struct trace_api *api = event->record;
	const bool is_api = event->kind == TRACE_API;
	struct activity *activity;

	if (event->kind == TRACE_OBJECT)
		add_stream_name(activities, event->record);
	if (!is_api && event->kind != TRACE_GPU_SYNC)
		return;
	activity = add_activity(activities, is_api ? ACTIVITY_API : ACTIVITY_SYNC);
	/* start_ns and end_ns are at the same offsets in struct trace_api. */
	activity->timed = reader_gpu_times(activities->process->reader, sync->start_ns,
		sync->end_ns, &activity->begin_ns, &activity->end_ns);
	if (!activity->timed)
		activity->begin_ns = activity->end_ns = 0;
	activity->call_begin_ns = activity->begin_ns;
	activity->call_end_ns = activity->end_ns;
	activity->duration_ns = activity->end_ns - activity->begin_ns;
	activity->correlation = sync->correlation;
	activity->step = step_index_at(activities, is_api ? api->tid : 0, activity->begin_ns);
	activity->counts = true;
	if (is_api) {
		activity->tid = api->tid;
		activity->result = api->result;
		activity->name = node_names_text(activities->process->profile->names, api->name);
		return;
	}
	activity->stream = sync->stream;
	activity->event = sync->event;
	activity->sync = (uint8_t)sync->type;
}

static void on_counting(void *context, bool counts, uint64_t at_ns)
{
	struct activities *activities = context;

	if (counts) {
		*ARRAY_ADD(activities->counted, activities->counted_room,
			activities->counted_count) = (struct counted_interval){ at_ns, at_ns };
	} else if (activities->counted_count) {
		activities->counted[activities->counted_count - 1].end_ns = at_ns;
	}
}

/* The key under which activities_keep attaches the activities of a process. */
static const char kept_key;

static void end_host_ranges(void *context, const struct profile *profile)
{
	(void)profile;
	host_ranges_end(context);
}

/* Adds what reads the activities. `with_causes`: also, unless they are read already, the ranges and
 * slow launches that explain idle time. */
static void add_readers(struct shared_pass *pass, struct activities *activities, bool with_causes)
{
	const struct profile_observer own = { .context = activities,
		.restart = restart_activities,
		.call = add_call_activity,
		.work = add_gpu_activity,
		.record = add_cupti_activity,
		.counting = on_counting };
	struct profile_observer host;

	shared_pass_add(pass, &own, NULL);
	activities->calls = collective_calls_read_in(pass);
	if (!with_causes)
		return;
	if (host_ranges_begin(pass->process, &host))
		shared_pass_add(pass, &host, end_host_ranges);
	first_calls_read_in(pass);
}

/* In turn: `end_ns` is then how long it took, which is what `duration_ns` is related to. */
static void relate_times(struct external_sort *sorter)
{
	external_sort_relate(
		sorter, offsetof(struct activity, call_end_ns), offsetof(struct activity, end_ns));
	external_sort_relate(
		sorter, offsetof(struct activity, end_ns), offsetof(struct activity, begin_ns));
	external_sort_relate(
		sorter, offsetof(struct activity, duration_ns), offsetof(struct activity, end_ns));
	external_sort_relate(sorter, offsetof(struct activity, call_begin_ns),
		offsetof(struct activity, begin_ns));
	external_sort_relate(sorter, offsetof(struct activity, start_unix_ns),
		offsetof(struct activity, begin_ns));
	external_sort_follow(sorter, offsetof(struct activity, begin_ns));
	external_sort_follow(sorter, offsetof(struct activity, correlation));
	external_sort_follow(sorter, offsetof(struct activity, arrival));
	/* The numbers of a step and of a result, of which the latter is mostly 0. */
	external_sort_follow(sorter, offsetof(struct activity, step));
}

/* What is read. */
enum reading {
	READ_ALL,
	READ_WITHOUT_LAUNCHES, /* activities_keep_without_launches_in */
	READ_WITHOUT_CAUSES    /* all, but not what explains idle time */
};

/* Returns activities that are complete after the pass. */
static struct activities *begin_reading(struct shared_pass *pass, enum reading what)
{
	struct activities *activities = xcalloc(sizeof *activities);
	struct process *process = pass->process;

	activities->process = process;
	begin_leaving_out(&activities->left_out, what == READ_WITHOUT_LAUNCHES);
	activities->sizes = collective_sizes_new(process->reader);
	activities->sorter = external_sort_new(sizeof(struct activity), ACTIVITY_HELD,
		compare_activities, "GPU activity and CUDA calls");
	external_sort_set_class(activities->sorter, offsetof(struct activity, node));
	relate_times(activities->sorter);
	if (pass->count || process_has_records(process))
		add_readers(pass, activities, what != READ_WITHOUT_CAUSES);
	return activities;
}

static struct activities *read_anew(struct process *process, const struct profile_observer *also)
{
	struct shared_pass pass = { .process = process };
	struct activities *activities;

	if (also)
		shared_pass_add(&pass, also, NULL);
	activities = begin_reading(&pass, READ_ALL);
	shared_pass_run(&pass);
	return activities;
}

struct activities *activities_read(struct process *process)
{
	struct activities *kept = process_attached(process, &kept_key);

	return kept ? kept : read_anew(process, NULL);
}

struct activities *activities_read_once_in(struct shared_pass *pass)
{
	struct activities *kept = process_attached(pass->process, &kept_key);

	return kept ? kept : begin_reading(pass, READ_WITHOUT_CAUSES);
}

struct activities *activities_read_with(
	struct process *process, const struct profile_observer *also)
{
	struct activities *kept = process_attached(process, &kept_key);
	const struct profile_options options = profile_options_for_observer(process->profile, also);

	if (!kept)
		return read_anew(process, also);
	profile_free(profile_build(process->reader, process->texts, &options));
	return kept;
}

static void release_kept(void *data)
{
	struct activities *activities = data;

	activities->is_kept = false;
	activities_free(activities);
}

static void keep_in(struct shared_pass *pass, const char *key, enum reading what)
{
	struct activities *activities;

	if (process_attached(pass->process, key))
		return;
	activities = begin_reading(pass, what);
	activities->is_kept = true;
	process_attach(pass->process, key, activities, release_kept);
}

void activities_keep_in(struct shared_pass *pass)
{
	keep_in(pass, &kept_key, READ_ALL);
}

/* The key of the activities of activities_keep_without_launches_in. */
static const char kept_without_launches_key;

void activities_keep_without_launches_in(struct shared_pass *pass)
{
	const struct activities *reduced = process_attached(
		pass->process, &kept_without_launches_key);

	if (process_attached(pass->process, &kept_key))
		return;
	if (reduced && !is_complete(&reduced->left_out))
		activities_keep_in(pass);
	else
		keep_in(pass, &kept_without_launches_key, READ_WITHOUT_LAUNCHES);
}

struct activities *activities_read_without_launches(struct process *process)
{
	struct activities *reduced = process_attached(process, &kept_without_launches_key);

	return reduced && is_complete(&reduced->left_out) && !process_attached(process, &kept_key)
		       ? reduced
		       : activities_read(process);
}

uint64_t activities_left_out(const struct activities *activities)
{
	return activities->left_out.counted;
}

void activities_keep(struct process *process)
{
	struct shared_pass pass = { .process = process };

	activities_keep_in(&pass);
	shared_pass_run(&pass);
}

void activities_read_in(const struct options *options, struct shared_pass *pass)
{
	(void)options;
	if (pass->process->timeline)
		activities_keep_in(pass);
}

void activities_free(struct activities *activities)
{
	if (!activities || activities->is_kept)
		return;
	external_sort_free(activities->sorter);
	free(activities->counted);
	free(activities->streams);
	free(activities->nature);
	free(activities->left_out.names.of);
	collective_sizes_free(activities->sizes);
	free(activities);
}

void activities_rewind(struct activities *activities)
{
	external_sort_rewind(activities->sorter);
}

void activities_rewind_last(struct activities *activities)
{
	if (activities->is_kept)
		external_sort_rewind(activities->sorter);
	else
		external_sort_rewind_last(activities->sorter);
}

const struct activity *activities_first(struct activities *activities)
{
	const struct activity *one = external_sort_peek(activities->sorter);

	return one && one->communicates && one->has_call && activities->calls
		       ? with_size_of_call(activities, one)
		       : one;
}

void activities_next(struct activities *activities)
{
	external_sort_next(activities->sorter);
}

void activities_visit(
	struct activities *activities, const struct activity_visitor *visitors, size_t count)
{
	const struct activity *one;

	for (activities_rewind(activities); (one = activities_first(activities));
		activities_next(activities))
		for (size_t i = 0; i < count; i++)
			if (visitors[i].add)
				visitors[i].add(visitors[i].context, one);
	for (size_t i = 0; i < count; i++)
		if (visitors[i].end)
			visitors[i].end(visitors[i].context);
}

bool activities_count_at(const struct activities *activities, uint64_t at_ns)
{
	const struct profile_options *options = &activities->process->profile->options;

	for (size_t i = 0; i < activities->counted_count; i++)
		if (at_ns >= activities->counted[i].begin_ns &&
			at_ns < activities->counted[i].end_ns)
			return true;
	return !options->steps && !options->windows;
}

size_t activities_counted_intervals(
	const struct activities *activities, const struct counted_interval **windows)
{
	*windows = activities->counted;
	return activities->counted_count;
}

bool activity_fills_device(const struct activity *work, const struct process *process)
{
	const struct launch_configs *configs = process->profile->kernels;
	const struct trace_device *device = process_device(process, work->device);

	return device && work->kind == ACTIVITY_KERNEL && work->kernel != ACTIVITY_NO_KERNEL &&
	       occupancy_fills_device(device, &configs->kernels[work->kernel].record);
}
