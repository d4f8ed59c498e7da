/* SPDX-License-Identifier: MIT */
#include "report/import/convert/python_stacks.h"
#include "report/base/alloc.h"
#include "report/import/convert/convert.h"
#include <stdlib.h>

struct python_stack_record {
	struct trace_python_stack stack;
	struct trace_python_frame frames[PYTHON_FRAMES_MAX];
};

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

/* Finds `(12): ` before a function name. Sets `line` and returns its position, or NULL. */
static const char *parse_line_number(struct string_view text, uint32_t *line)
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

struct python_function_name python_function_name_parse(struct string_view text)
{
	struct python_function_name name = { .function = text };
	const char *line_start = parse_line_number(text, &name.line), *address;

	if (line_start) {
		name.file = (struct string_view){ text.bytes, (uint32_t)(line_start - text.bytes) };
		name.function.bytes = (const char *)memchr(line_start, ' ', text.length) + 1;
		name.function.length = text.length - (uint32_t)(name.function.bytes - text.bytes);
	}
	address = memmem(name.function.bytes, name.function.length, " at 0x", 6);
	if (address) {
		name.address_removed = true;
		name.function.length = (uint32_t)(address - name.function.bytes);
	}
	return name;
}

/* ---- the tree ---- */

static uint32_t find_or_add_python_call(
	struct imported_stacks *stacks, uint32_t caller, uint32_t name)
{
	const uint64_t hash = hash_u64((uint64_t)caller << 32 | name);
	struct hash_slot *slot;

	if (!stacks->count)
		stacks->count = 1;
	hash_index_reserve(&stacks->index);
	for (slot = hash_index_first(&stacks->index, hash); slot->number;
		slot = hash_index_next(&stacks->index, slot))
		if (stacks->calls[slot->number].caller == caller &&
			stacks->calls[slot->number].name == name)
			return slot->number;
	ARRAY_GROW(stacks->calls, stacks->room, stacks->count + 1);
	stacks->calls[stacks->count] = (struct python_call){ caller, name, 0 };
	hash_index_add(&stacks->index, slot, hash, (uint32_t)stacks->count);
	return (uint32_t)stacks->count++;
}

static uint32_t write_name_part(struct conversion *conversion, struct string_view text)
{
	return text.length
		       ? convert_name(conversion, string_table_intern(conversion->imported->texts,
							  text.bytes, text.length))
		       : 0;
}

static uint32_t write_function_name(
	struct conversion *conversion, const struct python_function_name *name)
{
	const struct string_view text = name->function;
	char closed[256];

	if (!name->address_removed || text.length >= sizeof closed)
		return write_name_part(conversion, text);
	memcpy(closed, text.bytes, text.length);
	closed[text.length] = '>';
	return write_name_part(conversion, (struct string_view){ closed, text.length + 1 });
}

/* Returns the id of the stack whose innermost call is `call`. Writes it if it is new. */
static uint32_t write_imported_stack(struct conversion *conversion, uint32_t call)
{
	struct imported_stacks *stacks = &conversion->stacks;
	struct python_stack_record record = { .stack.stack = stacks->calls[call].id };
	uint32_t count = 0;

	if (record.stack.stack)
		return record.stack.stack;
	for (uint32_t i = call; i && count < PYTHON_FRAMES_MAX; i = stacks->calls[i].caller) {
		const struct python_function_name name = python_function_name_parse(
			string_table_get(conversion->imported->texts, stacks->calls[i].name));

		record.frames[count++] = (struct trace_python_frame){
			.function = write_function_name(conversion, &name),
			.file = write_name_part(conversion, name.file),
			.line = name.line
		};
	}
	record.stack.stack = stacks->calls[call].id = ++stacks->written;
	record.stack.frames = count;
	writer_dictionary(conversion->writer, TRACE_PYTHON_STACK, &record,
		sizeof record.stack + count * sizeof *record.frames);
	return record.stack.stack;
}

static void push_python_call(struct python_cursor *cursor, const struct imported_frame *frame)
{
	while (cursor->depth && cursor->open[cursor->depth - 1].end <= frame->start)
		cursor->depth--;
	*ARRAY_ADD(cursor->open, cursor->room, cursor->depth) = (struct python_open_call){
		frame->start + (int64_t)frame->duration, frame->name, 0
	};
}

uint32_t python_cursor_stack(
	struct conversion *conversion, struct python_cursor *cursor, int64_t time)
{
	size_t known;

	for (; cursor->next < cursor->end; cursor->next++) {
		const struct imported_frame *frame =
			&conversion->imported->frames[conversion->python_calls[cursor->next]];

		if (frame->start > time)
			break;
		push_python_call(cursor, frame);
	}
	while (cursor->depth && cursor->open[cursor->depth - 1].end <= time)
		cursor->depth--;
	if (!cursor->depth)
		return 0;
	for (known = cursor->depth; known > 0 && !cursor->open[known - 1].call;)
		known--;
	for (; known < cursor->depth; known++)
		cursor->open[known].call = find_or_add_python_call(&conversion->stacks,
			known ? cursor->open[known - 1].call : 0, cursor->open[known].name);
	return write_imported_stack(conversion, cursor->open[cursor->depth - 1].call);
}

uint32_t python_stack_of_text(struct conversion *conversion, uint32_t text)
{
	struct imported_stacks *stacks = &conversion->stacks;
	struct string_view all = string_table_get(conversion->imported->texts, text);
	uint32_t call = 0;

	ARRAY_GROW(stacks->by_text, stacks->by_text_room, (size_t)text + 1);
	if (stacks->by_text[text])
		return write_imported_stack(conversion, stacks->by_text[text]);
	while (all.length) {
		const char *before = memrchr(all.bytes, ';', all.length),
			   *begin = before ? before + 1 : all.bytes;
		const size_t length = (size_t)(all.bytes + all.length - begin);

		if (length)
			call = find_or_add_python_call(stacks, call,
				string_table_intern(conversion->imported->texts, begin, length));
		all.length = before ? (uint32_t)(before - all.bytes) : 0;
	}
	stacks->by_text[text] = call;
	return call ? write_imported_stack(conversion, call) : 0;
}

void imported_stacks_free(struct imported_stacks *stacks)
{
	free(stacks->calls);
	hash_index_free(&stacks->index);
	free(stacks->by_text);
}
