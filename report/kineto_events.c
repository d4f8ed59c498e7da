/* SPDX-License-Identifier: MIT
 * kineto_events.c: one event of the file, and the row that becomes of it.
 */
#include "collector/trace_format.h"
#include "report/fatal.h"
#include "report/kineto_read.h"
#include <stdio.h>
#include <stdlib.h>

#define LEFT_OUT_MOST 64u /* categories, the last of which is all others */
#define NAMES_MOST 64u    /* processes whose names are kept */
#define SHAPES_MOST 4096u /* bytes; longer ones are not kept */

#define CATEGORY(text, class) { text, sizeof text - 1, class }

static const struct {
	const char *category;
	size_t length;
	enum kineto_class class;
} classes[] = {
	CATEGORY("cpu_op", KINETO_IS_OPERATOR),
	CATEGORY("kernel", KINETO_IS_KERNEL),
	CATEGORY("cuda_runtime", KINETO_IS_CALL),
	CATEGORY("python_function", KINETO_IS_PYTHON),
	CATEGORY("user_annotation", KINETO_IS_ANNOTATION),
	CATEGORY("cuda_driver", KINETO_IS_CALL),
	CATEGORY("gpu_memcpy", KINETO_IS_COPY),
	CATEGORY("gpu_memset", KINETO_IS_SET),
	CATEGORY("cuda_sync", KINETO_IS_SYNC),
	CATEGORY("overhead", KINETO_IS_OVERHEAD),
	CATEGORY("xpu_runtime", KINETO_IS_CALL),
	CATEGORY("xpu_driver", KINETO_IS_CALL),
	CATEGORY("privateuse1_runtime", KINETO_IS_CALL),
	CATEGORY("privateuse1_driver", KINETO_IS_CALL),
	CATEGORY("Operator", KINETO_IS_OPERATOR),
	CATEGORY("Runtime", KINETO_IS_CALL),
	CATEGORY("Kernel", KINETO_IS_KERNEL),
	CATEGORY("Memcpy", KINETO_IS_COPY),
	CATEGORY("Memset", KINETO_IS_SET),
};

static enum kineto_class class_of_category(const struct json_text *category)
{
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		if (category->length == classes[i].length &&
			!memcmp(category->bytes, classes[i].category, classes[i].length))
			return classes[i].class;
	return KINETO_OTHER;
}

static enum kineto_class class_of(const struct kineto_event *event)
{
	const char phase = event->phase.length == 1 ? event->phase.bytes[0] : 0;

	switch (phase) {
	case 'X':
	case 'B':
		return class_of_category(&event->category);
	case 'E':
		return KINETO_IS_END;
	case 'i':
	case 'I':
		return json_is(&event->name, "[memory]") ? KINETO_IS_MEMORY : KINETO_OTHER;
	case 's':
	case 'f':
		return json_is(&event->category, "fwdbwd") ? KINETO_IS_FLOW : KINETO_OTHER;
	case 'M':
		return KINETO_IS_META;
	default:
		return KINETO_OTHER;
	}
}

static bool wants_args(enum kineto_class class)
{
	return class != KINETO_OTHER && class != KINETO_IS_PYTHON && class != KINETO_IS_OVERHEAD &&
	       class != KINETO_IS_FLOW && class != KINETO_IS_END;
}

/* The keys of an event. */
static const struct {
	const char *key;
	size_t offset; /* of its value in struct kineto_event */
} members[] = {
	{ "ph", offsetof(struct kineto_event, phase) },
	{ "cat", offsetof(struct kineto_event, category) },
	{ "name", offsetof(struct kineto_event, name) },
	{ "pid", offsetof(struct kineto_event, pid) },
	{ "tid", offsetof(struct kineto_event, tid) },
	{ "ts", offsetof(struct kineto_event, time) },
	{ "dur", offsetof(struct kineto_event, duration) },
	{ "id", offsetof(struct kineto_event, id) },
};

#define MEMBERS (sizeof members / sizeof *members)
#define ARGUMENTS MEMBERS
#define NOBODYS (MEMBERS + 1)

static unsigned member_meaning(const struct json_text *key)
{
	for (unsigned member = 0; member < MEMBERS; member++)
		if (json_is(key, members[member].key))
			return member;
	return json_is(key, "args") ? ARGUMENTS : NOBODYS;
}

static bool read_args_of(struct kineto_reader *reader, struct json_scan *scan)
{
	struct json_keys *keys = &reader->args[reader->event.class];

	keys->meaning = kineto_args_meaning;
	return kineto_args_read(scan, keys, &reader->event.args);
}

/* Arguments come last as a rule, when it is known who wants them; else they are read a second time. */
static bool read_args(struct kineto_reader *reader, struct json_text *later)
{
	struct kineto_event *event = &reader->event;
	struct json_scan *scan = &reader->window.scan;

	if (!event->phase.form || !event->category.form || !event->name.form)
		return json_value(scan, later);
	event->class = class_of(event);
	if (!wants_args(event->class))
		return json_value(scan, later);
	event->has_args = true;
	return read_args_of(reader, scan);
}

static inline bool read_member(struct kineto_reader *reader, unsigned member, struct json_text *later)
{
	struct json_scan *scan = &reader->window.scan;
	struct json_text unasked;

	if (member < MEMBERS)
		return json_value(scan, (struct json_text *)(void *)((char *)&reader->event + members[member].offset));
	return member == ARGUMENTS ? read_args(reader, later) : json_value(scan, &unasked);
}

bool kineto_event_read(struct kineto_reader *reader)
{
	struct kineto_event *event = &reader->event;
	struct json_scan *scan = &reader->window.scan;
	struct json_text value, later = { .form = 0 };
	unsigned member;

	memset(event, 0, offsetof(struct kineto_event, args));
	if (json_peek(scan) != '{')
		return !scan->problem && json_value(scan, &value);
	reader->keys.meaning = member_meaning;
	reader->keys.last = 0;
	for (bool more = json_open(scan, '{'); more; more = json_next(scan, '}'))
		if (!json_keys_next(scan, &reader->keys, &member) || !read_member(reader, member, &later))
			return false;
	if (scan->problem)
		return false;
	if (event->has_args)
		return true;
	event->class = class_of(event);
	if (!wants_args(event->class))
		return true;
	kineto_args_clear(&event->args);
	if (later.form) {
		struct json_scan again = { .at = later.bytes, .end = later.bytes + later.length };

		return read_args_of(reader, &again);
	}
	return true;
}

/* ---- threads ---- */

static uint32_t *thread_slot(const struct kineto_reader *reader, struct kineto_thread thread)
{
	const uint64_t hash = ((uint64_t)thread.pid << 32 | thread.tid) * 0x9e3779b97f4a7c15u;
	size_t i = (hash >> 32) & (reader->thread_slot_count - 1);

	for (;; i = (i + 1) & (reader->thread_slot_count - 1)) {
		uint32_t *slot = &reader->thread_slots[i];
		const struct kineto_thread *known = *slot ? &reader->kineto->threads[*slot - 1] : NULL;

		if (!known || (known->pid == thread.pid && known->tid == thread.tid))
			return slot;
	}
}

static void widen_threads(struct kineto_reader *reader)
{
	struct kineto *kineto = reader->kineto;

	free(reader->thread_slots);
	reader->thread_slot_count = reader->thread_slot_count ? reader->thread_slot_count * 2 : 64;
	reader->thread_slots = need(reader->thread_slot_count * sizeof *reader->thread_slots);
	for (size_t i = 0; i < kineto->thread_count; i++)
		*thread_slot(reader, kineto->threads[i]) = (uint32_t)i + 1;
}

static uint32_t thread_of(struct kineto_reader *reader, struct kineto_thread thread)
{
	struct kineto *kineto = reader->kineto;
	uint32_t *slot;

	if (kineto->thread_count * 2 >= reader->thread_slot_count)
		widen_threads(reader);
	slot = thread_slot(reader, thread);
	if (!*slot) {
		grow(&kineto->threads, &kineto->thread_room, kineto->thread_count + 1, sizeof *kineto->threads);
		kineto->threads[kineto->thread_count++] = thread;
		*slot = (uint32_t)kineto->thread_count;
	}
	return *slot - 1;
}

static bool same(const struct json_text *text, const char *bytes, size_t length)
{
	return text->length == length && !memcmp(text->bytes, bytes, length);
}

/* The thread of the event; most are of the same one as the event before. */
static uint32_t thread(struct kineto_reader *reader)
{
	const struct json_text *pid = &reader->event.pid, *tid = &reader->event.tid;

	if (pid->length && tid->length && same(pid, reader->last_pid, reader->last_pid_bytes) &&
		same(tid, reader->last_tid, reader->last_tid_bytes))
		return reader->last_thread;
	reader->last_thread =
		thread_of(reader, (struct kineto_thread){ .pid = kineto_text(reader, pid), .tid = kineto_text(reader, tid) });
	reader->last_pid_bytes = reader->last_tid_bytes = SIZE_MAX;
	if (pid->length && tid->length && pid->length <= sizeof reader->last_pid &&
		tid->length <= sizeof reader->last_tid) {
		memcpy(reader->last_pid, pid->bytes, pid->length);
		memcpy(reader->last_tid, tid->bytes, tid->length);
		reader->last_pid_bytes = pid->length;
		reader->last_tid_bytes = tid->length;
	}
	return reader->last_thread;
}

/* ---- rows ---- */

/* A row more; what is in it, is to be set. */
#define NEW(kineto, type, rows)                                                                             \
	(grow_plain(&(kineto)->rows, &(kineto)->type##_room, (kineto)->type##_count + 1, sizeof *(kineto)->rows), \
		&(kineto)->rows[(kineto)->type##_count++])

struct span {
	int64_t start;
	uint64_t duration;
};

static bool begins(const struct json_text *text, const char *with)
{
	return text->length >= strlen(with) && !memcmp(text->bytes, with, strlen(with));
}

static enum trace_node_kind range_kind(const struct kineto_event *event)
{
	if (begins(&event->name, "Optimizer.step#") || begins(&event->name, "Optimizer.zero_grad#"))
		return TRACE_NODE_OPTIMIZER;
	if (begins(&event->name, "ProfilerStep#") || begins(&event->name, "enumerate(DataLoader)#"))
		return TRACE_NODE_RANGE;
	return event->class == KINETO_IS_OPERATOR ? TRACE_NODE_OP
	       : event->class == KINETO_IS_PYTHON ? TRACE_NODE_MODULE
						  : TRACE_NODE_RANGE;
}

static uint64_t external_of(const struct kineto_args *args)
{
	const uint64_t external = kineto_arg(args, KINETO_EXTERNAL);

	return external ? external : kineto_arg(args, KINETO_EXTERNAL_OLD);
}

/* A list without the white space of the file, which differs. `apart`: a blank behind each comma. */
static size_t put_plain(char *to, const struct json_text *list, bool apart)
{
	size_t length = 0;

	for (size_t i = 0; i < list->length; i++) {
		const char c = list->bytes[i];

		if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
			continue;
		to[length++] = c;
		if (c == ',' && apart)
			to[length++] = ' ';
	}
	return length;
}

/* Of the types, in which names have blanks (`long int`), nothing is taken out but what would end them. */
static size_t put_types(char *to, const struct json_text *list)
{
	for (size_t i = 0; i < list->length; i++)
		to[i] = list->bytes[i] == '\t' || list->bytes[i] == '\n' || list->bytes[i] == '\r' ? ' ' : list->bytes[i];
	return list->length;
}

/* Only these are asked what numbers they were given (op_cost.c); with those of others each call would be a place. */
static bool asks_for_values(struct text name)
{
	static const char *const inside[] = { "convolution", "::conv", "_attention" }, *const last[] = { "::sum", "::mean", "::amax", "::amin" };

	for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
		if (memmem(name.bytes, name.length, inside[i], strlen(inside[i])))
			return true;
	for (size_t i = 0; i < sizeof last / sizeof *last; i++)
		if (name.length >= strlen(last[i]) && !memcmp(name.bytes + name.length - strlen(last[i]), last[i], strlen(last[i])))
			return true;
	return false;
}

/* The same by the name's number, found once. */
static bool wants_values(struct kineto_reader *reader, uint32_t name)
{
	enum { UNKNOWN, NO, YES };

	grow(&reader->wants_values, &reader->wants_room, (size_t)name + 1, 1);
	if (reader->wants_values[name] == UNKNOWN)
		reader->wants_values[name] = asks_for_values(text_of(reader->kineto->texts, name)) ? YES : NO;
	return reader->wants_values[name] == YES;
}

/* As the text of our own traces: `[[64, 1024], []]`, and behind it what they do not have (trace_format.h). */
static uint32_t shapes(struct kineto_reader *reader, uint32_t name)
{
	const struct kineto_args *args = &reader->event.args;
	const struct json_text *given = &args->of[args->of[KINETO_SHAPES].form ? KINETO_SHAPES : KINETO_SHAPES_OLD],
			       *types = &args->of[KINETO_TYPES], *values = &args->of[KINETO_VALUES];
	const bool typed = types->form == '[' && types->length <= SHAPES_MOST,
		   valued = values->form == '[' && values->length <= SHAPES_MOST && wants_values(reader, name);
	const uint64_t flops = kineto_arg(args, KINETO_FLOPS);
	size_t length;

	if (given->form != '[' || given->length <= 2 || given->length > SHAPES_MOST)
		return 0;
	grow(&reader->plain, &reader->plain_room,
		given->length * 2 + (typed ? types->length : 0) + (valued ? values->length : 0) + 32, 1);
	length = put_plain(reader->plain, given, true);
	if (typed) {
		reader->plain[length++] = '\t';
		length += put_types(reader->plain + length, types);
	}
	if (valued) {
		reader->plain[length++] = '\t';
		if (!typed)
			reader->plain[length++] = '\t';
		length += put_plain(reader->plain + length, values, false);
	}
	if (flops)
		length += (size_t)sprintf(reader->plain + length, "%s%llu", valued ? "\t" : typed ? "\t\t" : "\t\t\t",
			(unsigned long long)flops);
	return text_id(reader->kineto->texts, reader->plain, length);
}

static uint32_t stack(struct kineto_reader *reader)
{
	const struct json_text *given = &reader->event.args.of[KINETO_STACK];

	return given->form == '"' && given->length ? kineto_text(reader, given) : 0;
}

/* What the event's thread has begun last, + 1. */
static uint32_t *innermost(struct kineto_reader *reader)
{
	const uint32_t of = thread(reader);

	grow(&reader->innermost, &reader->innermost_room, (size_t)of + 1, sizeof *reader->innermost);
	return &reader->innermost[of];
}

/* Phase B: its E is to find it. */
static void begin(struct kineto_reader *reader, uint32_t range)
{
	uint32_t *last = innermost(reader);

	grow(&reader->begun, &reader->begun_room, reader->begun_count + 1, sizeof *reader->begun);
	reader->begun[reader->begun_count++] = (struct kineto_begun){ .range = range, .outer = *last };
	*last = (uint32_t)reader->begun_count;
}

/* Phase E: ends what its thread began last. False: there is nothing, or it began later. */
static bool take_end(struct kineto_reader *reader, int64_t time)
{
	uint32_t *last = innermost(reader);
	const struct kineto_begun *begun = *last ? &reader->begun[*last - 1] : NULL;
	struct kineto_range *range =
		begun && begun->range != KINETO_NO_RANGE ? &reader->kineto->ranges[begun->range] : NULL;

	if (!begun || (range && time < range->start))
		return false;
	*last = begun->outer;
	if (range)
		range->duration = (uint64_t)(time - range->start);
	return true;
}

static void take_range(struct kineto_reader *reader, const struct span *span)
{
	const struct kineto_event *event = &reader->event;
	struct kineto *kineto = reader->kineto;
	struct kineto_range *range = NEW(kineto, range, ranges);
	struct json_text name = event->name;
	int64_t sequence;

	*range = (struct kineto_range){ .start = span->start,
		.duration = span->duration,
		.sequence = KINETO_NO_SEQUENCE,
		.thread = thread(reader),
		.kind = (uint16_t)range_kind(event) };
	if (range->kind == TRACE_NODE_MODULE) {
		name.bytes += strlen("nn.Module: ");
		name.length -= strlen("nn.Module: ");
	}
	range->name = kineto_text(reader, &name);
	if (range->kind != TRACE_NODE_MODULE) {
		range->external = external_of(&event->args);
		range->forward = kineto_arg32(&event->args, KINETO_FORWARD);
		if (json_signed(&event->args.of[KINETO_SEQUENCE], &sequence) && sequence >= 0)
			range->sequence = sequence;
		range->shapes = range->kind == TRACE_NODE_OP ? shapes(reader, range->name) : 0;
		range->stack = stack(reader);
	}
	if (span->duration == KINETO_OPEN)
		begin(reader, (uint32_t)kineto->range_count - 1);
}

/* A call of Python that is no module's. */
static bool is_frame(const struct kineto_event *event)
{
	return event->class == KINETO_IS_PYTHON && !begins(&event->name, "nn.Module: ");
}

static void take_frame(struct kineto_reader *reader, const struct span *span)
{
	if (span->duration == KINETO_OPEN)
		begin(reader, KINETO_NO_RANGE);
	*NEW(reader->kineto, frame, frames) = (struct kineto_frame){ .start = span->start,
		.duration = span->duration == KINETO_OPEN ? INT64_MAX / 4 : span->duration,
		.name = kineto_text(reader, &reader->event.name),
		.thread = thread(reader) };
}

static void take_call(struct kineto_reader *reader, const struct span *span)
{
	const struct kineto_args *args = &reader->event.args;

	*NEW(reader->kineto, call, calls) = (struct kineto_call){ .start = span->start,
		.duration = span->duration,
		.correlation = kineto_arg(args, KINETO_CORRELATION),
		.external = external_of(args),
		.name = kineto_text(reader, &reader->event.name),
		.thread = thread(reader) };
}

/* Of the GPU's events the process is the device and the thread the stream, where the arguments do not say. */
static uint32_t place(struct kineto_reader *reader, enum kineto_arg arg, const struct json_text *otherwise)
{
	const struct json_text *given = &reader->event.args.of[arg];

	if (given->form && given->form != 'n')
		return kineto_arg32(&reader->event.args, arg);
	return kineto_number(reader->kineto, kineto_text(reader, otherwise));
}

/* The fact of that key, made where there is none: *is_new. */
static struct kineto_fact *fact_of(struct kineto_reader *reader, uint32_t key, bool *is_new)
{
	struct kineto *kineto = reader->kineto;

	grow(&reader->fact_of, &reader->fact_of_room, (size_t)key + 1, sizeof *reader->fact_of);
	*is_new = !reader->fact_of[key];
	if (*is_new) {
		*NEW(kineto, fact, facts) = (struct kineto_fact){ .key = key };
		reader->fact_of[key] = (uint32_t)kineto->fact_count;
	}
	return &kineto->facts[reader->fact_of[key] - 1];
}

/* A stream of NCCL's is one process group's: told as a fact, once; nothing is known of a stream on which two are. */
static void note_group(struct kineto_reader *reader, uint32_t device, uint32_t stream)
{
	const struct json_text *name = &reader->event.args.of[KINETO_GROUP], *ranks = &reader->event.args.of[KINETO_GROUP_RANKS];
	struct kineto *kineto = reader->kineto;
	struct kineto_fact *fact;
	char text[512];
	uint32_t key, value;
	bool is_new;

	if (!name->form || name->form == 'n' || name->length + ranks->length > sizeof text - 8)
		return;
	key = text_id(kineto->texts, text, (size_t)snprintf(text, sizeof text, "stream.%u.%u.group", device, stream));
	value = text_id(kineto->texts, text,
		(size_t)snprintf(text, sizeof text, "%.*s %.*s", (int)name->length, name->bytes, (int)ranks->length, ranks->form ? ranks->bytes : ""));
	fact = fact_of(reader, key, &is_new);
	fact->value = is_new || fact->value == value ? value : 0;
}

/* The number of its first collective in its process group. */
static void note_sequence(struct kineto_reader *reader, uint32_t device, uint32_t stream)
{
	const struct json_text *given = &reader->event.args.of[KINETO_GROUP_SEQUENCE];
	struct kineto *kineto = reader->kineto;
	struct kineto_fact *fact;
	char text[64];
	int64_t number;
	bool is_new;

	if (!json_signed(given, &number) || number < 0)
		return;
	fact = fact_of(reader,
		text_id(kineto->texts, text, (size_t)snprintf(text, sizeof text, "stream.%u.%u.sequence", device, stream)), &is_new);
	if (!is_new && fact->least <= (uint64_t)number)
		return;
	fact->least = (uint64_t)number;
	fact->value = text_id(kineto->texts, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)number));
}

static void take_gpu(struct kineto_reader *reader, const struct span *span)
{
	const struct kineto_event *event = &reader->event;
	const struct kineto_args *args = &event->args;
	struct kineto_gpu gpu = { .start = span->start,
		.duration = span->duration,
		.correlation = kineto_arg(args, KINETO_CORRELATION),
		.graph_node = kineto_arg(args, KINETO_GRAPH_NODE),
		.graph = kineto_arg32(args, KINETO_GRAPH),
		.bytes = kineto_arg(args, KINETO_BYTES),
		.name = kineto_text(reader, &event->name),
		.device = place(reader, KINETO_DEVICE, &event->pid),
		.stream = place(reader, KINETO_STREAM, &event->tid),
		.context = kineto_arg32(args, KINETO_CONTEXT),
		.external = external_of(args),
		.registers = kineto_arg32(args, KINETO_REGISTERS),
		.shared = kineto_arg32(args, KINETO_SHARED),
		.kind = event->class == KINETO_IS_KERNEL ? KINETO_KERNEL
			: event->class == KINETO_IS_COPY ? KINETO_COPY
							 : KINETO_SET };

	kineto_arg_triple(args, KINETO_GRID, gpu.grid);
	kineto_arg_triple(args, KINETO_BLOCK, gpu.block);
	if (args->of[KINETO_GROUP].form) {
		note_group(reader, gpu.device, gpu.stream);
		note_sequence(reader, gpu.device, gpu.stream);
	}
	*NEW(reader->kineto, gpu, gpus) = gpu;
}

static void take_sync(struct kineto_reader *reader, const struct span *span)
{
	const struct kineto_args *args = &reader->event.args;

	*NEW(reader->kineto, sync, syncs) = (struct kineto_sync){ .start = span->start,
		.duration = span->duration,
		.correlation = kineto_arg(args, KINETO_CORRELATION),
		.name = kineto_text(reader, &reader->event.name),
		.stream = kineto_arg32(args, KINETO_STREAM),
		.context = kineto_arg32(args, KINETO_CONTEXT),
		.event = kineto_arg32(args, KINETO_WAITED_EVENT),
		.waited_stream = kineto_arg32(args, KINETO_WAITED_STREAM),
		.record = args->of[KINETO_WAITED_STREAM].form ? kineto_arg(args, KINETO_WAITED_RECORD) : 0 };
}

static void take_memory(struct kineto_reader *reader, int64_t time)
{
	const struct kineto_args *args = &reader->event.args;
	struct kineto_memory memory = { .time = time,
		.bytes = (int64_t)kineto_arg(args, KINETO_TAKEN),
		.address = kineto_arg(args, KINETO_ADDRESS),
		.allocated = kineto_arg(args, KINETO_ALLOCATED),
		.reserved = kineto_arg(args, KINETO_RESERVED),
		.device = kineto_arg32(args, KINETO_DEVICE_ID),
		.type = kineto_arg32(args, KINETO_DEVICE_TYPE),
		.totals = args->of[KINETO_ALLOCATED].form != 0 };

	memory.thread = thread(reader);
	*NEW(reader->kineto, memory, memories) = memory;
}

static void take_flow(struct kineto_reader *reader, int64_t time)
{
	const struct kineto_event *event = &reader->event;
	struct kineto_flow flow = { .time = time, .finish = event->phase.bytes[0] == 'f' };

	if (!json_unsigned(&event->id, &flow.id))
		return;
	flow.thread = thread(reader);
	*NEW(reader->kineto, flow, flows) = flow;
}

/* What processes are called; that of the one which computed is the command, as far as it is known. */
static void take_meta(struct kineto_reader *reader)
{
	const struct kineto_event *event = &reader->event;
	char key[64];

	if (!json_is(&event->name, "process_name") || !event->pid.length || event->pid.length > 40 || reader->names == NAMES_MOST)
		return;
	reader->names++;
	memcpy(key, "process.", 8);
	memcpy(key + 8, event->pid.bytes, event->pid.length);
	key[8 + event->pid.length] = '\0';
	kineto_fact(reader, key, &event->args.of[KINETO_NAME]);
}

static void leave_out(struct kineto_reader *reader)
{
	const struct kineto_event *event = &reader->event;
	struct kineto *kineto = reader->kineto;
	const uint32_t category = kineto_text(reader, event->category.form ? &event->category : &event->name);
	size_t i = 0;

	while (i < kineto->left_out_count && kineto->left_outs[i].category != category)
		i++;
	if (i == LEFT_OUT_MOST)
		i--;
	else if (i == kineto->left_out_count)
		*NEW(kineto, left_out, left_outs) = (struct kineto_left_out){ .category =
			i + 1 < LEFT_OUT_MOST ? category : text_id(kineto->texts, KINETO_OTHERS, strlen(KINETO_OTHERS)) };
	kineto->left_outs[i].events++;
	if (event->phase.length == 1 && *event->phase.bytes == 'B')
		begin(reader, KINETO_NO_RANGE);
}

/* False: no time that can be, or none at all. */
static bool read_span(const struct kineto_event *event, struct span *span)
{
	const int64_t far = INT64_MAX / 4;
	int64_t duration = 0;

	if (!json_scaled(&event->time, 3, &span->start) || span->start >= far || span->start <= -far)
		return false;
	if (event->phase.bytes[0] == 'X' && !json_scaled(&event->duration, 3, &duration))
		return false;
	span->duration = event->phase.bytes[0] == 'B' ? KINETO_OPEN : (uint64_t)duration;
	return duration >= 0 && duration < far;
}

/* An open range that nothing ends lasts to the latest moment. */
static void reach(struct kineto_reader *reader, const struct span *span)
{
	const int64_t end = span->start + (span->duration == KINETO_OPEN ? 0 : (int64_t)span->duration);

	if (end > reader->latest)
		reader->latest = end;
}

/* An event with a time. False: nothing can be made of it. */
static bool take_timed(struct kineto_reader *reader)
{
	struct span span;

	if (!read_span(&reader->event, &span))
		return false;
	reach(reader, &span);
	switch (reader->event.class) {
	case KINETO_IS_OPERATOR:
	case KINETO_IS_ANNOTATION:
	case KINETO_IS_PYTHON:
		if (is_frame(&reader->event))
			take_frame(reader, &span);
		else
			take_range(reader, &span);
		break;
	case KINETO_IS_END:
		return take_end(reader, span.start);
	case KINETO_IS_MEMORY:
		take_memory(reader, span.start);
		break;
	case KINETO_IS_FLOW:
		take_flow(reader, span.start);
		break;
	default:
		if (span.duration == KINETO_OPEN) {
			begin(reader, KINETO_NO_RANGE);
			return false;
		}
		if (reader->event.class == KINETO_IS_CALL)
			take_call(reader, &span);
		else if (reader->event.class == KINETO_IS_SYNC)
			take_sync(reader, &span);
		else if (reader->event.class == KINETO_IS_OVERHEAD)
			*NEW(reader->kineto, overhead, overheads) =
				(struct kineto_overhead){ .start = span.start, .duration = span.duration };
		else
			take_gpu(reader, &span);
		break;
	}
	return true;
}

/* From a call to its work on the GPU: the correlation id says the same. */
static bool is_arrow(const struct kineto_event *event)
{
	return event->phase.length == 1 && memchr("stf", event->phase.bytes[0], 3);
}

void kineto_event_take(struct kineto_reader *reader)
{
	const struct kineto_event *event = &reader->event;

	reader->kineto->events++;
	if (event->class == KINETO_IS_META)
		take_meta(reader);
	else if (event->class == KINETO_OTHER && !is_arrow(event))
		leave_out(reader);
	else if (event->class != KINETO_OTHER)
		reader->kineto->bad += !take_timed(reader);
}

void kineto_events_end(struct kineto_reader *reader)
{
	struct kineto *kineto = reader->kineto;

	for (size_t thread = 0; thread < reader->innermost_room; thread++)
		for (uint32_t i = reader->innermost[thread]; i; i = reader->begun[i - 1].outer) {
			struct kineto_range *range;

			if (reader->begun[i - 1].range == KINETO_NO_RANGE)
				continue;
			range = &kineto->ranges[reader->begun[i - 1].range];
			range->duration = (uint64_t)(reader->latest - range->start);
			kineto->not_ended++;
		}
	free(reader->begun);
	free(reader->innermost);
	free(reader->fact_of);
	free(reader->thread_slots);
	free(reader->wants_values);
}
