/* SPDX-License-Identifier: MIT
 * kineto_rows.c: the row that becomes of an event: calls, the GPU's work, memory, arrows, facts. Ranges: kineto_ranges.c.
 */
#include "report/base/alloc.h"
#include "report/import/kineto/kineto_reader.h"
#include <stdio.h>
#include <stdlib.h>

#define LEFT_OUT_MOST 64u /* categories, the last of which is all others */
#define NAMES_MOST 64u    /* processes whose names are kept */

uint64_t kineto_external_of(const struct kineto_args *args)
{
	const uint64_t external = kineto_arg(args, KINETO_EXTERNAL);

	return external ? external : kineto_arg(args, KINETO_EXTERNAL_OLD);
}

static void take_call(struct kineto_reader *reader, const struct kineto_span *span)
{
	const struct kineto_args *args = &reader->event.args;

	*KINETO_NEW(reader->kineto, call, calls) = (struct kineto_call){ .start = span->start,
		.duration = span->duration,
		.correlation = kineto_arg(args, KINETO_CORRELATION),
		.external = kineto_external_of(args),
		.name = kineto_text(reader, &reader->event.name),
		.thread = kineto_thread_of(reader) };
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
		*KINETO_NEW(kineto, fact, facts) = (struct kineto_fact){ .key = key };
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

static void take_gpu(struct kineto_reader *reader, const struct kineto_span *span)
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
		.external = kineto_external_of(args),
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
	*KINETO_NEW(reader->kineto, gpu, gpus) = gpu;
}

static void take_sync(struct kineto_reader *reader, const struct kineto_span *span)
{
	const struct kineto_args *args = &reader->event.args;

	*KINETO_NEW(reader->kineto, sync, syncs) = (struct kineto_sync){ .start = span->start,
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

	memory.thread = kineto_thread_of(reader);
	*KINETO_NEW(reader->kineto, memory, memories) = memory;
}

static void take_flow(struct kineto_reader *reader, int64_t time)
{
	const struct kineto_event *event = &reader->event;
	struct kineto_flow flow = { .time = time, .finish = event->phase.bytes[0] == 'f' };

	if (!json_unsigned(&event->id, &flow.id))
		return;
	flow.thread = kineto_thread_of(reader);
	*KINETO_NEW(reader->kineto, flow, flows) = flow;
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
		*KINETO_NEW(kineto, left_out, left_outs) = (struct kineto_left_out){ .category =
			i + 1 < LEFT_OUT_MOST ? category : text_id(kineto->texts, KINETO_OTHERS, strlen(KINETO_OTHERS)) };
	kineto->left_outs[i].events++;
	if (event->phase.length == 1 && *event->phase.bytes == 'B')
		kineto_begin(reader, KINETO_NO_RANGE);
}

/* False: no time that can be, or none at all. */
static bool read_span(const struct kineto_event *event, struct kineto_span *span)
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
static void reach(struct kineto_reader *reader, const struct kineto_span *span)
{
	const int64_t end = span->start + (span->duration == KINETO_OPEN ? 0 : (int64_t)span->duration);

	if (end > reader->latest)
		reader->latest = end;
}

/* An event with a time. False: nothing can be made of it. */
static bool take_timed(struct kineto_reader *reader)
{
	struct kineto_span span;

	if (!read_span(&reader->event, &span))
		return false;
	reach(reader, &span);
	switch (reader->event.class) {
	case KINETO_IS_OPERATOR:
	case KINETO_IS_ANNOTATION:
	case KINETO_IS_PYTHON:
		kineto_take_range(reader, &span);
		break;
	case KINETO_IS_END:
		return kineto_take_end(reader, span.start);
	case KINETO_IS_MEMORY:
		take_memory(reader, span.start);
		break;
	case KINETO_IS_FLOW:
		take_flow(reader, span.start);
		break;
	default:
		if (span.duration == KINETO_OPEN) {
			kineto_begin(reader, KINETO_NO_RANGE);
			return false;
		}
		if (reader->event.class == KINETO_IS_CALL)
			take_call(reader, &span);
		else if (reader->event.class == KINETO_IS_SYNC)
			take_sync(reader, &span);
		else if (reader->event.class == KINETO_IS_OVERHEAD)
			*KINETO_NEW(reader->kineto, overhead, overheads) =
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
	kineto_ranges_end(reader);
	free(reader->fact_of);
	free(reader->thread_slots);
}
