/* SPDX-License-Identifier: MIT */
#include "report/import/convert/python_stacks.h"
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"
#include <stdlib.h>

struct stack_record {
	struct trace_python_stack stack;
	struct trace_python_frame frames[PYTHON_FRAMES_MOST];
};

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

/* Where `(12): ` begins that precedes a function; NULL: there is none. */
static const char *line_of(struct text text, uint32_t *line)
{
	const char *at = text.bytes, *end = text.bytes + text.length;

	while ((at = memmem(at, (size_t)(end - at), "): ", 3))) {
		const char *digits = at;

		while (digits > text.bytes && is_digit(digits[-1]) && at - digits < 9)
			digits--;
		if (digits < at && digits > text.bytes && digits[-1] == '(') {
			*line = 0;
			for (const char *digit = digits; digit < at; digit++)
				*line = *line * 10 + (uint32_t)(*digit - '0');
			return digits - 1;
		}
		at++;
	}
	return NULL;
}

struct python_name python_name_of(struct text text)
{
	struct python_name name = { .function = text };
	const char *place = line_of(text, &name.line), *address;

	if (place) {
		name.file = (struct text){ text.bytes, (uint32_t)(place - text.bytes) };
		name.function.bytes = (const char *)memchr(place, ' ', text.length) + 1;
		name.function.length = text.length - (uint32_t)(name.function.bytes - text.bytes);
	}
	address = memmem(name.function.bytes, name.function.length, " at 0x", 6);
	if (address) {
		name.cut = true;
		name.function.length = (uint32_t)(address - name.function.bytes);
	}
	return name;
}

/* ---- the tree ---- */

static uint32_t *slot_of(const struct python_stacks *stacks, uint32_t caller, uint32_t name)
{
	const uint64_t hash = ((uint64_t)caller << 32 | name) * 0x9e3779b97f4a7c15u;
	size_t i = (hash >> 24) & (stacks->slot_count - 1);

	while (stacks->slots[i] && (stacks->calls[stacks->slots[i]].caller != caller ||
					   stacks->calls[stacks->slots[i]].name != name))
		i = (i + 1) & (stacks->slot_count - 1);
	return &stacks->slots[i];
}

static void widen(struct python_stacks *stacks)
{
	free(stacks->slots);
	stacks->slot_count = stacks->slot_count ? stacks->slot_count * 2 : 256;
	stacks->slots = need(stacks->slot_count * sizeof *stacks->slots);
	for (uint32_t i = 1; i < stacks->count; i++)
		*slot_of(stacks, stacks->calls[i].caller, stacks->calls[i].name) = i;
}

static uint32_t call_of(struct python_stacks *stacks, uint32_t caller, uint32_t name)
{
	uint32_t *slot;

	if (!stacks->count)
		stacks->count = 1;
	if (stacks->count * 2 >= stacks->slot_count)
		widen(stacks);
	slot = slot_of(stacks, caller, name);
	if (!*slot) {
		*slot = (uint32_t)stacks->count;
		grow(&stacks->calls, &stacks->room, stacks->count + 1, sizeof *stacks->calls);
		stacks->calls[stacks->count++] = (struct python_call){ caller, name, 0 };
	}
	return *slot;
}

static uint32_t part(struct kineto_build *build, struct text text)
{
	return text.length ? kineto_name(build, text_id(build->kineto->texts, text.bytes, text.length)) : 0;
}

static uint32_t function_name(struct kineto_build *build, const struct python_name *name)
{
	const struct text text = name->function;
	char closed[256];

	if (!name->cut || text.length >= sizeof closed)
		return part(build, text);
	memcpy(closed, text.bytes, text.length);
	closed[text.length] = '>';
	return part(build, (struct text){ closed, text.length + 1 });
}

/* The id of the stack that ends in a call. */
static uint32_t write_stack(struct kineto_build *build, uint32_t call)
{
	struct python_stacks *stacks = &build->stacks;
	struct stack_record record = { .stack.stack = stacks->calls[call].id };
	uint32_t count = 0;

	if (record.stack.stack)
		return record.stack.stack;
	for (uint32_t i = call; i && count < PYTHON_FRAMES_MOST; i = stacks->calls[i].caller) {
		const struct python_name name = python_name_of(text_of(build->kineto->texts, stacks->calls[i].name));

		record.frames[count++] = (struct trace_python_frame){ .function = function_name(build, &name),
			.file = part(build, name.file),
			.line = name.line };
	}
	record.stack.stack = stacks->calls[call].id = ++stacks->written;
	record.stack.frames = count;
	writer_dictionary(build->writer, TRACE_PYTHON_STACK, &record,
		sizeof record.stack + count * sizeof *record.frames);
	return record.stack.stack;
}

/* ---- functions that are open ---- */

static void open_function(struct python_walk *walk, const struct kineto_frame *frame)
{
	while (walk->depth && walk->open[walk->depth - 1].end <= frame->start)
		walk->depth--;
	grow(&walk->open, &walk->room, walk->depth + 1, sizeof *walk->open);
	walk->open[walk->depth++] = (struct python_open){ frame->start + (int64_t)frame->duration, frame->name, 0 };
}

uint32_t python_walk_stack(struct kineto_build *build, struct python_walk *walk, int64_t time)
{
	size_t known;

	for (; walk->next < walk->end; walk->next++) {
		const struct kineto_frame *frame = &build->kineto->frames[build->frames[walk->next]];

		if (frame->start > time)
			break;
		open_function(walk, frame);
	}
	while (walk->depth && walk->open[walk->depth - 1].end <= time)
		walk->depth--;
	if (!walk->depth)
		return 0;
	for (known = walk->depth; known > 0 && !walk->open[known - 1].call;)
		known--;
	for (; known < walk->depth; known++)
		walk->open[known].call = call_of(
			&build->stacks, known ? walk->open[known - 1].call : 0, walk->open[known].name);
	return write_stack(build, walk->open[walk->depth - 1].call);
}

/* ---- stacks as texts ---- */

uint32_t python_text_stack(struct kineto_build *build, uint32_t text)
{
	struct python_stacks *stacks = &build->stacks;
	struct text all = text_of(build->kineto->texts, text);
	uint32_t call = 0;

	grow(&stacks->by_text, &stacks->by_text_room, (size_t)text + 1, sizeof *stacks->by_text);
	if (stacks->by_text[text])
		return write_stack(build, stacks->by_text[text]);
	while (all.length) {
		const char *before = memrchr(all.bytes, ';', all.length), *begin = before ? before + 1 : all.bytes;
		const size_t length = (size_t)(all.bytes + all.length - begin);

		if (length)
			call = call_of(stacks, call, text_id(build->kineto->texts, begin, length));
		all.length = before ? (uint32_t)(before - all.bytes) : 0;
	}
	stacks->by_text[text] = call;
	return call ? write_stack(build, call) : 0;
}

void python_stacks_free(struct python_stacks *stacks)
{
	free(stacks->calls);
	free(stacks->slots);
	free(stacks->by_text);
}
