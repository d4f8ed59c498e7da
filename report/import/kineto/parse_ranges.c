/* SPDX-License-Identifier: MIT
 * Adds rows for operators, annotations, modules and Python functions, with or without an end.
 */
#include "collector/trace_format.h"
#include "report/base/alloc.h"
#include "report/import/kineto/kineto_reader.h"
#include <stdio.h>
#include <stdlib.h>

#define SHAPES_BYTES_MAX 4096u /* longer texts are not kept */

static bool json_text_begins(const struct json_text *text, const char *with)
{
	return text->length >= strlen(with) && !memcmp(text->bytes, with, strlen(with));
}

static enum trace_node_kind node_kind_of_event(const struct kineto_event *event)
{
	if (json_text_begins(&event->name, "Optimizer.step#") ||
		json_text_begins(&event->name, "Optimizer.zero_grad#"))
		return TRACE_NODE_OPTIMIZER;
	if (json_text_begins(&event->name, "ProfilerStep#") ||
		json_text_begins(&event->name, "enumerate(DataLoader)#"))
		return TRACE_NODE_RANGE;
	return event->class == KINETO_IS_OPERATOR ? TRACE_NODE_OP
	       : event->class == KINETO_IS_PYTHON ? TRACE_NODE_MODULE
						  : TRACE_NODE_RANGE;
}

/* Copies a list without its white space, which differs between files. `spaced`: with a space
 * after each comma. */
static size_t copy_compact(char *to, const struct json_text *list, bool spaced)
{
	size_t length = 0;

	for (size_t i = 0; i < list->length; i++) {
		const char c = list->bytes[i];

		if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
			continue;
		to[length++] = c;
		if (c == ',' && spaced)
			to[length++] = ' ';
	}
	return length;
}

/* Copies the types unchanged except for tabs and line ends, which would end the text. Type names
 * contain spaces (`long int`). */
static size_t copy_types(char *to, const struct json_text *list)
{
	for (size_t i = 0; i < list->length; i++)
		to[i] = list->bytes[i] == '\t' || list->bytes[i] == '\n' || list->bytes[i] == '\r'
				? ' '
				: list->bytes[i];
	return list->length;
}

/* Returns true for operators whose input values the cost formulas need (op_cost.c). For other
 * operators, the values would make each call a node of its own. */
static bool needs_input_values(struct string_view name)
{
	static const char *const inside[] = { "convolution", "::conv", "_attention" },
				 *const last[] = { "::sum", "::mean", "::amax", "::amin" };

	for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
		if (memmem(name.bytes, name.length, inside[i], strlen(inside[i])))
			return true;
	for (size_t i = 0; i < sizeof last / sizeof *last; i++)
		if (name.length >= strlen(last[i]) &&
			!memcmp(name.bytes + name.length - strlen(last[i]), last[i],
				strlen(last[i])))
			return true;
	return false;
}

/* Returns needs_input_values of the text `name`, from a cache. */
static bool cached_needs_input_values(struct kineto_reader *reader, uint32_t name)
{
	enum { UNKNOWN, NO, YES };
	const struct string_view text = string_table_get(reader->imported->texts, name);

	array_grow_zeroed(&reader->needs_values, &reader->needs_values_room, (size_t)name + 1, 1);
	if (reader->needs_values[name] == UNKNOWN)
		reader->needs_values[name] = needs_input_values(text) ? YES : NO;
	return reader->needs_values[name] == YES;
}

/* Returns the inputs as pperf itself records them: `[[64, 1024], []]`, followed by types, values
 * and FLOPs (trace_format.h). */
static uint32_t op_inputs_text(struct kineto_reader *reader, uint32_t name)
{
	const struct kineto_args *args = &reader->event.args;
	const struct json_text
		*given = &args->values[args->values[KINETO_SHAPES].form ? KINETO_SHAPES
									: KINETO_SHAPES_OLD],
		*types = &args->values[KINETO_TYPES], *values = &args->values[KINETO_VALUES];
	const bool typed = types->form == JSON_ARRAY && types->length <= SHAPES_BYTES_MAX,
		   valued = values->form == JSON_ARRAY && values->length <= SHAPES_BYTES_MAX &&
			    cached_needs_input_values(reader, name);
	const uint64_t flops = kineto_arg(args, KINETO_FLOPS);
	size_t length;

	if (given->form != JSON_ARRAY || given->length <= 2 || given->length > SHAPES_BYTES_MAX)
		return 0;
	array_grow_zeroed(&reader->plain, &reader->plain_room,
		given->length * 2 + (typed ? types->length : 0) + (valued ? values->length : 0) +
			32,
		1);
	length = copy_compact(reader->plain, given, true);
	if (typed) {
		reader->plain[length++] = '\t';
		length += copy_types(reader->plain + length, types);
	}
	if (valued) {
		reader->plain[length++] = '\t';
		if (!typed)
			reader->plain[length++] = '\t';
		length += copy_compact(reader->plain + length, values, false);
	}
	if (flops)
		length += (size_t)sprintf(reader->plain + length, "%s%llu",
			valued  ? "\t"
			: typed ? "\t\t"
				: "\t\t\t",
			(unsigned long long)flops);
	return string_table_intern(reader->imported->texts, reader->plain, length);
}

/* Returns the bytes of an element type in the spelling of c10::ScalarType. 0: another text. */
static unsigned scalar_type_bytes(const struct json_text *type)
{
	static const struct {
		const char *begin;
		unsigned bytes;
	} types[] = { { "Byte", 1 }, { "Char", 1 }, { "Bool", 1 }, { "Float8", 1 }, { "Short", 2 },
		{ "Half", 2 }, { "BFloat16", 2 }, { "Int", 4 }, { "Float", 4 }, { "Long", 8 },
		{ "Double", 8 }, { "ComplexFloat", 8 }, { "ComplexDouble", 16 } };

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (json_text_begins(type, types[i].begin))
			return types[i].bytes;
	return 0;
}

/* Returns the inputs of a collective as PyTorch describes them on record_param_comms, followed by
 * the collective: `[[1024]]`, `["Float"]`, and `allreduce 4096 4096 8` (trace_format.h). 0: it is
 * none, or not described. */
static uint32_t collective_text(struct kineto_reader *reader)
{
	const struct kineto_args *args = &reader->event.args;
	const struct json_text *name = &args->values[KINETO_COLLECTIVE],
			       *type = &args->values[KINETO_ELEMENT_TYPE];
	const uint64_t in = kineto_arg(args, KINETO_ELEMENTS_IN),
		       out = kineto_arg(args, KINETO_ELEMENTS_OUT);
	const unsigned bytes = scalar_type_bytes(type);
	char text[256];

	if (!bytes || !(in || out) || in > UINT64_MAX / 16 || out > UINT64_MAX / 16 ||
		!name->length || name->length > 60 || type->length > 60 ||
		memchr(name->bytes, ' ', name->length) || memchr(name->bytes, '\t', name->length) ||
		memchr(type->bytes, '"', type->length) || memchr(type->bytes, '\t', type->length))
		return 0;
	return string_table_intern(reader->imported->texts, text,
		(size_t)snprintf(text, sizeof text, "[[%llu]]\t[\"%.*s\"]\t\t\t%.*s %llu %llu %llu",
			(unsigned long long)in, (int)type->length, type->bytes, (int)name->length,
			name->bytes, (unsigned long long)in * bytes,
			(unsigned long long)out * bytes,
			(unsigned long long)kineto_arg(args, KINETO_GROUP_SIZE)));
}

uint32_t kineto_call_stack(struct kineto_reader *reader)
{
	const struct json_text *given = &reader->event.args.values[KINETO_STACK];

	return given->form == JSON_STRING && given->length ? kineto_intern(reader, given) : 0;
}

/* Returns the entry of reader->innermost for the thread of the current event. */
static uint32_t *innermost_slot(struct kineto_reader *reader)
{
	const uint32_t thread = kineto_thread_of(reader);

	ARRAY_GROW(reader->innermost, reader->innermost_room, (size_t)thread + 1);
	return &reader->innermost[thread];
}

void kineto_begin_event(struct kineto_reader *reader, uint32_t range)
{
	uint32_t *innermost = innermost_slot(reader);

	*ARRAY_ADD(reader->open_events, reader->open_event_room,
		reader->open_event_count) = (struct kineto_open_event){ .range = range,
		.outer = *innermost };
	*innermost = (uint32_t)reader->open_event_count;
}

bool kineto_end_event(struct kineto_reader *reader, int64_t time)
{
	uint32_t *innermost = innermost_slot(reader);
	const struct kineto_open_event *event = *innermost ? &reader->open_events[*innermost - 1]
							   : NULL;
	struct imported_range *range = event && event->range != KINETO_NO_RANGE
					       ? &reader->imported->ranges[event->range]
					       : NULL;

	if (!event || (range && time < range->start))
		return false;
	*innermost = event->outer;
	if (range)
		range->duration = (uint64_t)(time - range->start);
	return true;
}

static void add_plain_range(struct kineto_reader *reader, const struct kineto_times *span)
{
	const struct kineto_event *event = &reader->event;
	struct event_rows *imported = reader->imported;
	struct imported_range *range = EVENT_ROWS_ADD(imported, range, ranges);
	struct json_text name = event->name;
	int64_t sequence;

	*range = (struct imported_range){ .start = span->start,
		.duration = span->duration,
		.sequence = IMPORTED_NO_SEQUENCE,
		.thread = kineto_thread_of(reader),
		.kind = (uint16_t)node_kind_of_event(event) };
	if (range->kind == TRACE_NODE_MODULE) {
		name.bytes += strlen("nn.Module: ");
		name.length -= strlen("nn.Module: ");
	}
	range->name = kineto_intern(reader, &name);
	if (range->kind != TRACE_NODE_MODULE) {
		range->external = kineto_external_id(&event->args);
		range->forward = kineto_arg32(&event->args, KINETO_FORWARD);
		if (json_signed(&event->args.values[KINETO_SEQUENCE], &sequence) && sequence >= 0)
			range->sequence = sequence;
		range->shapes = range->kind == TRACE_NODE_OP ? collective_text(reader) : 0;
		/* older PyTorch describes the tensors of a collective on its annotation */
		if ((range->kind == TRACE_NODE_OP && !range->shapes) ||
			json_text_begins(&name, "nccl:"))
			range->shapes = op_inputs_text(reader, range->name);
		range->stack = kineto_call_stack(reader);
		if (event->args.values[KINETO_GROUP].form)
			kineto_add_operator_group(reader);
	}
	if (span->duration == IMPORTED_NOT_ENDED)
		kineto_begin_event(reader, (uint32_t)imported->range_count - 1);
}

/* Returns true for a Python call that is not a module call. */
static bool is_frame(const struct kineto_event *event)
{
	return event->class == KINETO_IS_PYTHON && !json_text_begins(&event->name, "nn.Module: ");
}

static void add_python_frame(struct kineto_reader *reader, const struct kineto_times *span)
{
	if (span->duration == IMPORTED_NOT_ENDED)
		kineto_begin_event(reader, KINETO_NO_RANGE);
	*EVENT_ROWS_ADD(
		reader->imported, frame, frames) = (struct imported_frame){ .start = span->start,
		.duration = span->duration == IMPORTED_NOT_ENDED ? INT64_MAX / 4 : span->duration,
		.name = kineto_intern(reader, &reader->event.name),
		.thread = kineto_thread_of(reader) };
}

void kineto_add_range(struct kineto_reader *reader, const struct kineto_times *span)
{
	if (is_frame(&reader->event))
		add_python_frame(reader, span);
	else
		add_plain_range(reader, span);
}

void kineto_close_open_ranges(struct kineto_reader *reader)
{
	struct event_rows *imported = reader->imported;

	for (size_t thread = 0; thread < reader->innermost_room; thread++)
		for (uint32_t i = reader->innermost[thread]; i;
			i = reader->open_events[i - 1].outer) {
			struct imported_range *range;

			if (reader->open_events[i - 1].range == KINETO_NO_RANGE)
				continue;
			range = &imported->ranges[reader->open_events[i - 1].range];
			range->duration = (uint64_t)(reader->latest_time - range->start);
			imported->unended++;
		}
}

void kineto_free_ranges(struct kineto_reader *reader)
{
	free(reader->open_events);
	free(reader->innermost);
	free(reader->needs_values);
}
