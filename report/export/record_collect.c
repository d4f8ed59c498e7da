/* SPDX-License-Identifier: MIT
 *
 * One pass over the trace. What a thread did is sorted by begin at once. GPU records are sorted by
 * correlation id first, beside the calls of these ids, because either may come first.
 */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/error.h"
#include "report/export/record_events_internal.h"
#include "report/profile/node_names.h"
#include "report/trace/record_check.h"
#include <stdlib.h>
#include <string.h>

#define IN_MEMORY 32768u
#define CREATORS_MAX 1024u /* instances of one operator that wait for their backward functions */

/* A range that is open. */
struct record_open {
	uint64_t number, forward_number, forward_begin_ns;
	uint32_t forward_tid, forward_thread;
	struct record_annotation annotation;
	uint32_t name, node;
	bool own_name, is_operator, is_module;
};

/* A thread, as event.stream->user. */
struct record_thread {
	struct record_open *open; /* by depth */
	size_t room;
	struct record_open closed;         /* the range that closed last */
	uint64_t pause_begin_ns, pause_ns; /* the last time when the thread was in pperf */
};

/* The instances of an operator whose backward functions have not run yet, the last one on top. */
struct record_creators {
	struct record_creator {
		uint64_t number, begin_ns;
		uint32_t tid, thread;
	} * all;
	size_t count, room;
};

struct record_pass {
	struct record_events *events;
	struct trace_reader *reader;
	struct external_sort *launches, *gpus, *syncs, *asyncs;
	struct record_creators *creators; /* by node of the trace */
	uint8_t *has_backward;            /* by node of the trace */
	uint32_t node_count;
	uint64_t numbers, arrivals, last_ns;
	struct record_context *contexts;
	size_t context_count, context_room;
};

COMPARE_BY_TWO(compare_launches, struct record_launch, call.of.call.correlation, call.number)
COMPARE_BY_THREE(compare_asyncs, struct record_async, id, at_ns, number)
COMPARE_BY_TWO(compare_works, struct gpu_event, record.gpu.correlation, arrival)
COMPARE_BY_THREE(
	compare_syncs, struct gpu_event, record.sync.event, record.sync.correlation, arrival)

/* ---- threads and names ---- */

static struct record_thread *thread_of(struct trace_stream *stream)
{
	if (!stream->user)
		stream->user = xcalloc(sizeof(struct record_thread));
	return stream->user;
}

static void free_thread(struct trace_stream *stream)
{
	struct record_thread *thread = stream->user;

	if (!thread)
		return;
	free(thread->open);
	free(thread);
	stream->user = NULL;
}

/* Returns the name of a PUSH, START or MARK: a name of the trace, or with `*own` one of
 * events->texts, of which there are at most NODE_NAMES_INLINE_MAX. */
static uint32_t name_of(struct record_pass *pass, const struct trace_event *event, bool *own)
{
	static const char others[] = "(other labels)";
	struct record_events *events = pass->events;
	const struct trace_range *range = event->record;
	struct trace_text text;

	*own = range && !range->name && range->head.flags & TRACE_HAS_TEXT;
	if (!*own)
		return range && range->name ? range->name
					    : reader_node(pass->reader, event->node)->name;
	text = reader_event_text(pass->reader, event);
	if (events->own_names == NODE_NAMES_INLINE_MAX)
		return string_table_intern(events->texts, others, sizeof others - 1);
	events->own_names += !string_table_find(events->texts, text.bytes, text.length);
	return string_table_intern(events->texts, text.bytes, text.length);
}

/* Returns the range in which `event` happened: the innermost open one, except for imported calls at
 * the edge of an operator. NULL: none. */
static const struct record_open *range_around(const struct trace_event *event)
{
	const struct record_thread *thread = event->stream->user;

	if (!thread)
		return NULL;
	for (uint32_t i = event->depth < thread->room ? event->depth : (uint32_t)thread->room;
		i-- > 0;)
		if (thread->open[i].node == event->node)
			return &thread->open[i];
	return event->node && thread->closed.node == event->node ? &thread->closed : NULL;
}

/* Sets the numbers of the range in which `event` happened. */
static void set_range_numbers(struct host_event *host, const struct trace_event *event)
{
	const struct record_open *range = range_around(event);

	host->range_number = range && !range->is_module ? range->number : 0;
	host->in_operator = range && range->is_operator;
}

static struct host_event *add_host(
	struct record_pass *pass, struct host_event event, enum host_kind kind)
{
	struct host_event *added;

	event.kind = (uint8_t)kind;
	if (!event.number)
		event.number = ++pass->numbers;
	if (!record_events_cut(pass->events, &event.begin_ns, &event.end_ns))
		return NULL;
	added = external_sort_add(pass->events->hosts);
	*added = event;
	return added;
}

/* ---- ranges ---- */

static void push_creator(
	struct record_pass *pass, const struct trace_event *event, const struct record_open *open)
{
	struct record_creators *creators = &pass->creators[event->node];

	if (creators->count == CREATORS_MAX) {
		memmove(creators->all, creators->all + CREATORS_MAX / 2,
			CREATORS_MAX / 2 * sizeof *creators->all);
		creators->count /= 2;
	}
	*ARRAY_ADD(creators->all, creators->room, creators->count) = (struct record_creator){
		open->number, event->begin_ns, event->stream->tid, event->stream->ordinal + 1
	};
}

/* Sets the operator that created the backward function `node`. Functions run in the reverse order
 * of their operators. */
static void take_creator(struct record_pass *pass, struct record_open *open, uint32_t node)
{
	struct record_creators *creators = &pass->creators[reader_node(pass->reader, node)->link];
	const struct record_creator *creator;

	open->forward_number = open->number;
	open->forward_thread = 1;
	if (!creators->count)
		return;
	creator = &creators->all[creators->count > 1 ? --creators->count : 0];
	open->forward_number = creator->number;
	open->forward_begin_ns = creator->begin_ns;
	open->forward_tid = creator->tid;
	open->forward_thread = creator->thread;
}

/* Returns the innermost range that is neither an operator nor a module: the one that opens at
 * `depth` or one around it. */
static struct record_annotation annotation_of(
	const struct record_thread *thread, const struct record_open *open, uint32_t depth)
{
	if (!open->is_operator && !open->is_module)
		return (struct record_annotation){ open->number, open->name, open->own_name };
	return depth ? thread->open[depth - 1].annotation : (struct record_annotation){ 0 };
}

static void open_range(struct record_pass *pass, const struct trace_event *event)
{
	struct record_thread *thread = thread_of(event->stream);
	const struct trace_node_info *node = reader_node(pass->reader, event->node);
	struct record_open open = { .number = ++pass->numbers, .node = event->node };

	ARRAY_GROW(thread->open, thread->room, (size_t)event->depth + 1);
	open.name = event->kind == TRACE_PUSH ? name_of(pass, event, &open.own_name) : node->name;
	open.is_operator = node->kind == TRACE_NODE_OP || node->kind == TRACE_NODE_BACKWARD;
	open.is_module = node->kind == TRACE_NODE_MODULE;
	if (node->kind == TRACE_NODE_BACKWARD)
		take_creator(pass, &open, event->node);
	else if (open.is_operator && pass->has_backward[event->node])
		open.forward_number = open.number;
	open.annotation = annotation_of(thread, &open, event->depth);
	thread->open[event->depth] = open;
	if (pass->has_backward[event->node])
		push_creator(pass, event, &open);
}

static void close_range(struct record_pass *pass, const struct trace_event *event, uint64_t end_ns)
{
	struct record_thread *thread = event->stream->user;
	const struct record_open open = thread->open[event->depth];

	add_host(pass,
		(struct host_event){ .begin_ns = event->begin_ns,
			.end_ns = end_ns > event->begin_ns ? end_ns : event->begin_ns,
			.number = open.number,
			.range_number = open.is_module ? 0 : open.number,
			.in_operator = open.is_operator,
			.of.forward = { open.forward_number, open.forward_begin_ns,
				open.forward_tid, open.forward_thread },
			.tid = event->stream->tid,
			.node = event->node,
			.name = open.name,
			.depth = event->depth,
			.own_name = open.own_name,
			.left_open = event->kind != EVENT_POP },
		HOST_RANGE);
	thread->closed = open;
	memmove(&thread->open[event->depth], &thread->open[event->depth + 1],
		(thread->room - event->depth - 1) * sizeof *thread->open);
}

static void add_async(struct record_pass *pass, const struct trace_event *event)
{
	struct record_async *async = external_sort_add(pass->asyncs);

	*async = (struct record_async){ .at_ns = event->time_ns,
		.number = ++pass->numbers,
		.tid = event->stream->tid,
		.node = event->node,
		.ends = event->kind == TRACE_END };
	if (async->ends) {
		async->id = ((const struct trace_end *)event->record)->id;
		return;
	}
	async->id = ((const struct trace_range *)event->record)->id;
	async->name = name_of(pass, event, &async->own_name);
}

/* Pairs begins and ends by their ids. What has no end lasts until the end of the trace. */
static void pair_asyncs(struct record_pass *pass)
{
	const struct record_async *next;

	external_sort_rewind(pass->asyncs);
	while ((next = external_sort_peek(pass->asyncs))) {
		const struct record_async begin = *next;
		bool ended;

		external_sort_next(pass->asyncs);
		if (begin.ends)
			continue;
		next = external_sort_peek(pass->asyncs);
		ended = next && next->id == begin.id && next->ends;
		add_host(pass,
			(struct host_event){ .begin_ns = begin.at_ns,
				.end_ns = ended ? next->at_ns : pass->last_ns,
				.number = begin.number,
				.tid = begin.tid,
				.node = begin.node,
				.name = begin.name,
				.own_name = begin.own_name,
				.left_open = !ended },
			HOST_ASYNC);
	}
}

/* ---- calls ---- */

static void note_pause(struct record_pass *pass, const struct trace_event *event)
{
	const struct trace_self *self = event->record;
	struct record_thread *thread = thread_of(event->stream);

	if (self->what != TRACE_SELF_SEAL)
		return;
	thread->pause_ns = reader_duration(pass->reader, self->stamp, self->duration);
	thread->pause_begin_ns = event->time_ns > thread->pause_ns
					 ? event->time_ns - thread->pause_ns
					 : 0;
}

/* Sets when a call was made. Time in which the thread wrote its records is not part of it. */
static void set_call_times(
	struct record_pass *pass, const struct trace_event *event, struct host_event *call)
{
	const struct trace_call *record = event->record;
	const struct record_thread *thread = event->stream->user;
	uint64_t duration = reader_duration(pass->reader, record->stamp, record->duration);

	call->begin_ns = event->time_ns > duration ? event->time_ns - duration : 0;
	if (thread && call->begin_ns <= thread->pause_begin_ns && thread->pause_ns <= duration)
		duration -= thread->pause_ns;
	call->end_ns = call->begin_ns + duration;
}

static void set_call_bytes(const struct trace_event *event, struct host_event *call)
{
	const struct trace_copy *copy = event->record;
	const struct trace_memory *memory = event->record;

	if (event->kind == TRACE_COPY || event->kind == TRACE_SET)
		call->of.call.bytes = copy->bytes;
	if (event->kind == TRACE_ALLOC || event->kind == TRACE_FREE) {
		call->of.call.bytes = memory->bytes;
		call->of.call.address = memory->address;
	}
}

static void add_launch(
	struct record_pass *pass, const struct trace_event *event, const struct host_event *call)
{
	const struct record_open *range = range_around(event);

	*(struct record_launch *)external_sort_add(pass->launches) = (struct record_launch){
		.call = *call,
		.annotation = range ? range->annotation : (struct record_annotation){ 0 },
	};
}

static void add_call(struct record_pass *pass, const struct trace_event *event)
{
	const struct trace_call *record = event->record;
	const bool launches = event->kind == TRACE_LAUNCH || event->kind == TRACE_GRAPH_LAUNCH ||
			      event->kind == TRACE_COPY || event->kind == TRACE_SET;
	struct host_event call = { .number = ++pass->numbers,
		.of.call = { .correlation = record->correlation,
			.record_kind = event->kind,
			.result = record->result },
		.tid = event->stream->tid,
		.node = event->node,
		.name = record->api,
		.stack = record->stack,
		.device = record->device };

	set_range_numbers(&call, event);
	set_call_times(pass, event, &call);
	set_call_bytes(event, &call);
	if (launches && record->correlation && !record->result &&
		!(record->head.flags & TRACE_CALL_NO_RECORD))
		add_launch(pass, event, &call);
	else
		add_host(pass, call, HOST_CALL);
}

/* ---- points in time ---- */

static struct host_event *add_point(
	struct record_pass *pass, const struct trace_event *event, enum host_kind kind)
{
	struct host_event point = { .begin_ns = event->time_ns,
		.end_ns = event->time_ns,
		.tid = event->stream->tid,
		.node = event->node };

	set_range_numbers(&point, event);
	return add_host(pass, point, kind);
}

static void add_tensor(struct record_pass *pass, const struct trace_event *event)
{
	const struct trace_tensor *tensor = event->record;
	struct host_event *added = NULL;

	if (event->kind == TRACE_TENSOR_OOM || tensor->bytes)
		added = add_point(
			pass, event, event->kind == TRACE_TENSOR ? HOST_TENSOR : HOST_OOM);
	if (!added)
		return;
	added->of.tensor.address = tensor->address;
	added->of.tensor.bytes = tensor->bytes;
	added->of.tensor.allocated = tensor->allocated;
	added->of.tensor.reserved = tensor->reserved;
	added->device = tensor->device;
	added->stack = tensor->stack;
}

static void add_mark(struct record_pass *pass, const struct trace_event *event)
{
	bool own;
	const uint32_t name = name_of(pass, event, &own);
	struct host_event *added = add_point(pass, event, HOST_MARK);

	if (!added)
		return;
	added->name = name;
	added->own_name = own;
}

static void add_counter(struct record_pass *pass, const struct trace_event *event)
{
	const struct trace_metric *metric = event->record;
	const struct trace_counter *counter = reader_counter(pass->reader, metric->counter);
	struct host_event *added = metric->type == TRACE_METRIC_I64 ||
						   metric->type == TRACE_METRIC_F64
					   ? add_point(pass, event, HOST_COUNTER)
					   : NULL;

	if (!added)
		return;
	added->name = counter ? counter->name : 0;
	added->of.counter.bits = metric->value;
	added->of.counter.type = metric->type;
}

/* ---- what CUPTI delivered ---- */

static void add_overhead(struct record_pass *pass, const struct trace_event *event)
{
	const struct trace_overhead *record = event->record;
	struct host_event overhead = { .tid = record->tid };
	uint64_t end;

	if (!reader_gpu_times(
		    pass->reader, record->start_ns, record->end_ns, &overhead.begin_ns, &end))
		return;
	overhead.end_ns = overhead.begin_ns + (record->end_ns - record->start_ns);
	overhead.device = record->type;
	add_host(pass, overhead, HOST_OVERHEAD);
}

static void note_context(struct record_pass *pass, uint32_t context, uint32_t device)
{
	for (size_t i = pass->context_count; i-- > 0;)
		if (pass->contexts[i].context == context) {
			pass->contexts[i].device = device;
			return;
		}
	*ARRAY_ADD(pass->contexts, pass->context_room,
		pass->context_count) = (struct record_context){ context, device };
}

static uint32_t device_of_context(const struct record_pass *pass, uint32_t context)
{
	for (size_t i = 0; i < pass->context_count; i++)
		if (pass->contexts[i].context == context)
			return pass->contexts[i].device;
	return pass->context_count ? pass->contexts[0].device : 0;
}

/* Adds GPU work, or a wait of a CUDA stream. */
static void add_gpu(struct record_pass *pass, const struct trace_event *event)
{
	const struct trace_head *head = event->record;
	const bool is_sync = event->kind == TRACE_GPU_SYNC;
	struct gpu_event gpu = { .kind = event->kind, .arrival = ++pass->arrivals };
	uint64_t end, start_ns, end_ns;

	memcpy(&gpu.record, head, head->size < sizeof gpu.record ? head->size : sizeof gpu.record);
	start_ns = is_sync ? gpu.record.sync.start_ns : gpu.record.gpu.start_ns;
	end_ns = is_sync ? gpu.record.sync.end_ns : gpu.record.gpu.end_ns;
	gpu.device = is_sync ? 0 : gpu.record.gpu.device;
	if (!is_sync)
		note_context(pass, gpu.record.gpu.context, gpu.device);
	if (!reader_gpu_times(pass->reader, start_ns, end_ns, &gpu.begin_ns, &end)) {
		pass->events->untimed += !is_sync;
		return;
	}
	gpu.end_ns = gpu.begin_ns + (end_ns > start_ns ? end_ns - start_ns : 0);
	*(struct gpu_event *)external_sort_add(is_sync ? pass->syncs : pass->gpus) = gpu;
}

/* Adds GPU work to the events if it is exported: by its launch, or if that is not known by
 * itself. Returns whether it is. */
static bool finish_gpu(struct record_pass *pass, const struct gpu_event *gpu)
{
	const struct record_events *events = pass->events;
	const uint64_t at = gpu->launch_tid ? gpu->launch_begin_ns : gpu->begin_ns;

	if (at < events->begin_ns || at >= events->finish_ns ||
		(events->device >= 0 && gpu->device != (uint64_t)events->device))
		return false;
	*(struct gpu_event *)external_sort_add(events->gpus) = *gpu;
	return true;
}

/* Adds the launches up to a correlation id to the events. `*last` is added when the next one has
 * come, for until then more work of it may come; it becomes that next one. */
static void add_launches(struct record_pass *pass, uint64_t correlation, struct record_launch *last)
{
	const struct record_launch *launch;

	while ((launch = external_sort_peek(pass->launches)) &&
		launch->call.of.call.correlation <= correlation) {
		if (last->call.number)
			add_host(pass, last->call, HOST_CALL);
		*last = *launch;
		external_sort_next(pass->launches);
	}
}

/* Finds the launch of each operation. Both are sorted by correlation id; of several calls with one
 * id the last is meant. */
static void join_launches(struct record_pass *pass)
{
	const struct gpu_event *next;
	struct record_launch last = { .call.number = 0 };

	external_sort_rewind(pass->launches);
	external_sort_rewind(pass->gpus);
	for (; (next = external_sort_peek(pass->gpus)); external_sort_next(pass->gpus)) {
		struct gpu_event gpu = *next;
		const uint64_t id = gpu.record.gpu.correlation;

		add_launches(pass, id, &last);
		if (!id || last.call.of.call.correlation != id) {
			finish_gpu(pass, &gpu);
			continue;
		}
		gpu.launch_begin_ns = last.call.begin_ns;
		gpu.launch_tid = last.call.tid;
		gpu.range_number = last.call.range_number;
		gpu.operator_number = last.call.in_operator ? last.call.range_number : 0;
		if (!finish_gpu(pass, &gpu))
			continue;
		last.call.has_work = true;
		annotations_add(pass->events, &gpu, &last.annotation);
	}
	add_launches(pass, UINT64_MAX, &last);
	if (last.call.number)
		add_host(pass, last.call, HOST_CALL);
}

/* Finds where the event that a stream waits for was recorded: the last record of the event whose
 * call came before the call of the wait. */
static void join_syncs(struct record_pass *pass)
{
	const struct gpu_event *next;
	struct gpu_event recorded = { .arrival = 0 };

	external_sort_rewind(pass->syncs);
	for (; (next = external_sort_peek(pass->syncs)); external_sort_next(pass->syncs)) {
		struct gpu_event sync = *next;

		if (sync.record.sync.type == TRACE_EVENT_RECORD) {
			recorded = sync;
			continue;
		}
		if (recorded.arrival && recorded.record.sync.event == sync.record.sync.event &&
			sync.record.sync.event) {
			sync.waited_correlation = recorded.record.sync.correlation;
			sync.waited_stream = recorded.record.sync.stream;
		}
		sync.device = device_of_context(pass, sync.record.sync.context);
		finish_gpu(pass, &sync);
	}
}

/* ---- the pass ---- */

static void collect_gpu_record(struct record_pass *pass, const struct trace_event *event)
{
	switch (event->kind) {
	case TRACE_KERNEL:
	case TRACE_GPU_COPY:
	case TRACE_GPU_SET:
	case TRACE_GPU_SYNC:
		add_gpu(pass, event);
		break;
	case TRACE_OVERHEAD:
		add_overhead(pass, event);
		break;
	}
}

static void collect_point(struct record_pass *pass, const struct trace_event *event)
{
	switch (event->kind) {
	case TRACE_TENSOR:
	case TRACE_TENSOR_OOM:
		add_tensor(pass, event);
		break;
	case TRACE_MARK:
		add_mark(pass, event);
		break;
	case TRACE_METRIC:
		add_counter(pass, event);
		break;
	case TRACE_SELF:
		note_pause(pass, event);
		break;
	case EVENT_STREAM_END:
		free_thread(event->stream);
		break;
	default:
		collect_gpu_record(pass, event);
	}
}

static void collect_event(struct record_pass *pass, const struct trace_event *event)
{
	pass->last_ns = event->time_ns;
	switch (event->kind) {
	case TRACE_PUSH:
	case EVENT_RESUMED:
		open_range(pass, event);
		break;
	case EVENT_POP:
		close_range(pass, event, event->time_ns);
		break;
	case EVENT_UNENDED:
	case EVENT_LEFT_OPEN:
		close_range(pass, event, event->last_ns);
		break;
	case TRACE_START:
	case TRACE_END:
		add_async(pass, event);
		break;
	case TRACE_LAUNCH:
	case TRACE_GRAPH_LAUNCH:
	case TRACE_COPY:
	case TRACE_SET:
	case TRACE_SYNC:
	case TRACE_ALLOC:
	case TRACE_FREE:
	case TRACE_MAPPING:
		add_call(pass, event);
		break;
	default:
		collect_point(pass, event);
	}
}

static void find_forward_nodes(struct record_pass *pass)
{
	pass->node_count = reader_node_count(pass->reader);
	pass->has_backward = xcalloc(pass->node_count);
	pass->creators = xcalloc(pass->node_count * sizeof *pass->creators);
	for (uint32_t i = 0; i < pass->node_count; i++) {
		const struct trace_node_info *node = reader_node(pass->reader, i);

		if (node->kind == TRACE_NODE_BACKWARD && node->link)
			pass->has_backward[node->link] = 1;
	}
}

static void free_pass(struct record_pass *pass)
{
	for (uint32_t i = 0; i < pass->node_count; i++)
		free(pass->creators[i].all);
	for (uint32_t i = 0; i < reader_stream_count(pass->reader); i++)
		free_thread(reader_stream(pass->reader, i));
	free(pass->creators);
	free(pass->has_backward);
	free(pass->contexts);
	external_sort_free(pass->launches);
	external_sort_free(pass->gpus);
	external_sort_free(pass->syncs);
	external_sort_free(pass->asyncs);
}

void record_collect(struct record_events *events)
{
	static const char what[] = "the GPU records";
	struct record_pass pass = { .events = events, .reader = events->reader };
	struct trace_event event;
	int status;

	pass.launches = external_sort_new(
		sizeof(struct record_launch), IN_MEMORY, compare_launches, "the launches");
	pass.gpus = external_sort_new(sizeof(struct gpu_event), IN_MEMORY, compare_works, what);
	pass.syncs = external_sort_new(sizeof(struct gpu_event), IN_MEMORY, compare_syncs, what);
	pass.asyncs = external_sort_new(
		sizeof(struct record_async), IN_MEMORY, compare_asyncs, "start/end ranges");
	reader_rewind(events->reader);
	find_forward_nodes(&pass);
	while ((status = reader_next(events->reader, &event)) > 0)
		collect_event(&pass, &event);
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(events->reader));
	pair_asyncs(&pass);
	annotations_begin(events);
	join_launches(&pass);
	annotations_join(events);
	join_syncs(&pass);
	free_pass(&pass);
}
