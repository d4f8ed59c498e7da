/* SPDX-License-Identifier: MIT
 * kineto_ranges.c: operators, annotations, modules and Python's functions, with an end or without.
 */
#include "collector/trace_format.h"
#include "report/base/alloc.h"
#include "report/import/kineto/kineto_reader.h"
#include <stdio.h>
#include <stdlib.h>

#define SHAPES_MOST 4096u /* bytes; longer ones are not kept */

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
	const uint32_t of = kineto_thread_of(reader);

	grow(&reader->innermost, &reader->innermost_room, (size_t)of + 1, sizeof *reader->innermost);
	return &reader->innermost[of];
}

void kineto_begin(struct kineto_reader *reader, uint32_t range)
{
	uint32_t *last = innermost(reader);

	grow(&reader->begun, &reader->begun_room, reader->begun_count + 1, sizeof *reader->begun);
	reader->begun[reader->begun_count++] = (struct kineto_begun){ .range = range, .outer = *last };
	*last = (uint32_t)reader->begun_count;
}

bool kineto_take_end(struct kineto_reader *reader, int64_t time)
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

static void take_range(struct kineto_reader *reader, const struct kineto_span *span)
{
	const struct kineto_event *event = &reader->event;
	struct kineto *kineto = reader->kineto;
	struct kineto_range *range = KINETO_NEW(kineto, range, ranges);
	struct json_text name = event->name;
	int64_t sequence;

	*range = (struct kineto_range){ .start = span->start,
		.duration = span->duration,
		.sequence = KINETO_NO_SEQUENCE,
		.thread = kineto_thread_of(reader),
		.kind = (uint16_t)range_kind(event) };
	if (range->kind == TRACE_NODE_MODULE) {
		name.bytes += strlen("nn.Module: ");
		name.length -= strlen("nn.Module: ");
	}
	range->name = kineto_text(reader, &name);
	if (range->kind != TRACE_NODE_MODULE) {
		range->external = kineto_external_of(&event->args);
		range->forward = kineto_arg32(&event->args, KINETO_FORWARD);
		if (json_signed(&event->args.of[KINETO_SEQUENCE], &sequence) && sequence >= 0)
			range->sequence = sequence;
		range->shapes = range->kind == TRACE_NODE_OP ? shapes(reader, range->name) : 0;
		range->stack = stack(reader);
	}
	if (span->duration == KINETO_OPEN)
		kineto_begin(reader, (uint32_t)kineto->range_count - 1);
}

/* A call of Python that is no module's. */
static bool is_frame(const struct kineto_event *event)
{
	return event->class == KINETO_IS_PYTHON && !begins(&event->name, "nn.Module: ");
}

static void take_frame(struct kineto_reader *reader, const struct kineto_span *span)
{
	if (span->duration == KINETO_OPEN)
		kineto_begin(reader, KINETO_NO_RANGE);
	*KINETO_NEW(reader->kineto, frame, frames) = (struct kineto_frame){ .start = span->start,
		.duration = span->duration == KINETO_OPEN ? INT64_MAX / 4 : span->duration,
		.name = kineto_text(reader, &reader->event.name),
		.thread = kineto_thread_of(reader) };
}

void kineto_take_range(struct kineto_reader *reader, const struct kineto_span *span)
{
	if (is_frame(&reader->event))
		take_frame(reader, span);
	else
		take_range(reader, span);
}

void kineto_ranges_end(struct kineto_reader *reader)
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
	free(reader->wants_values);
}
