/* SPDX-License-Identifier: MIT
 * A pickle is a program for a stack machine. These opcodes push values, collect them in lists and
 * dictionaries, and keep them in a memo, from which they are pushed again.
 */
#include "report/text/pickle_reader.h"
#include "report/base/alloc.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PICKLE_BYTES_MAX ((size_t)1 << 31)
/* So many entries of a dictionary are searched for a key, from the last one on. A file that refers
 * to one large dictionary again and again takes no longer than its length. */
#define ENTRIES_SEARCHED_MAX 256u

enum value_kind { VALUE_OTHER, VALUE_INTEGER, VALUE_TEXT, VALUE_LIST, VALUE_DICTIONARY };

struct pickle_value {
	enum value_kind kind;
	uint32_t count; /* items; entries of two items; bytes of a text */
	union {
		int64_t integer;
		const char *text;
		struct {
			uint32_t *items;
			size_t room;
		} list;
	} of;
};

struct pickle {
	struct pickle_value *values; /* from 1 */
	size_t count, room;
	uint32_t root;
};

struct pickle_reading {
	struct pickle *pickle;
	const unsigned char *at, *end;
	uint32_t *stack, *marks, *memo;
	size_t depth, stack_room, mark_count, mark_room, memo_count, memo_room;
	const char *problem; /* NULL: none */
	unsigned opcode;
};

static bool fails(struct pickle_reading *reading, const char *problem)
{
	if (!reading->problem)
		reading->problem = problem;
	return false;
}

static void push(struct pickle_reading *reading, uint32_t value)
{
	*ARRAY_ADD(reading->stack, reading->stack_room, reading->depth) = value;
}

static void push_value(struct pickle_reading *reading, const struct pickle_value *value)
{
	struct pickle *pickle = reading->pickle;

	*ARRAY_ADD(pickle->values, pickle->room, pickle->count) = *value;
	push(reading, (uint32_t)pickle->count - 1);
}

static bool push_integer(struct pickle_reading *reading, int64_t integer)
{
	push_value(reading, &(struct pickle_value){ .kind = VALUE_INTEGER, .of.integer = integer });
	return true;
}

/* Returns the next bytes of the operand, and moves behind them. NULL: there are too few. */
static const unsigned char *operand(struct pickle_reading *reading, uint64_t bytes)
{
	const unsigned char *from = reading->at;

	if (bytes > (uint64_t)(reading->end - reading->at)) {
		fails(reading, "ends in the middle");
		return NULL;
	}
	reading->at += bytes;
	return from;
}

/* Reads a little-endian number. Returns 0 if there are too few bytes: `problem` is set then. */
static uint64_t number(struct pickle_reading *reading, unsigned bytes)
{
	const unsigned char *from = operand(reading, bytes);
	uint64_t value = 0;

	for (unsigned i = 0; from && i < bytes; i++)
		value |= (uint64_t)from[i] << 8 * i;
	return value;
}

/* An integer of any length in two's complement. One that does not fit is none for callers. */
static bool push_long(struct pickle_reading *reading, uint64_t bytes)
{
	const unsigned char *from = operand(reading, bytes);
	uint64_t value = from && bytes && from[bytes - 1] & 0x80 ? UINT64_MAX : 0;

	if (!from)
		return false;
	/* 9 bytes hold an unsigned number of 64 bits. */
	if (bytes > 9 || (bytes == 9 && from[8] && from[8] != 0xff)) {
		push_value(reading, &(struct pickle_value){ .kind = VALUE_OTHER });
		return true;
	}
	for (uint64_t i = 0; i < bytes && i < 8; i++)
		value = (value & ~(UINT64_C(0xff) << 8 * i)) | (uint64_t)from[i] << 8 * i;
	return push_integer(reading, (int64_t)value);
}

static bool push_text(struct pickle_reading *reading, uint64_t bytes, enum value_kind kind)
{
	const unsigned char *from = operand(reading, bytes);

	if (!from)
		return false;
	push_value(reading,
		&(struct pickle_value){
			.kind = kind, .count = (uint32_t)bytes, .of.text = (const char *)from });
	return true;
}

static bool push_empty(struct pickle_reading *reading, enum value_kind kind)
{
	push_value(reading, &(struct pickle_value){ .kind = kind });
	return true;
}

/* Adds the top of the stack, from `from` on, to the value below it. */
static bool add_items(struct pickle_reading *reading, size_t from, enum value_kind kind)
{
	const size_t count = reading->depth - from;
	struct pickle_value *list;

	if (!from || (kind == VALUE_DICTIONARY && count % 2))
		return fails(reading, "has a list without items");
	list = &reading->pickle->values[reading->stack[from - 1]];
	if (list->kind != kind)
		return fails(reading, "adds items to what is no list or dictionary");
	ARRAY_GROW(list->of.list.items, list->of.list.room, (size_t)list->count + count);
	if (count)
		memcpy(list->of.list.items + list->count, reading->stack + from,
			count * sizeof *reading->stack);
	list->count += (uint32_t)count;
	reading->depth = from;
	return true;
}

/* Removes the last mark. Returns the depth of the stack at it; SIZE_MAX: there is none. */
static size_t pop_mark(struct pickle_reading *reading)
{
	const size_t mark = reading->mark_count ? reading->marks[--reading->mark_count] : SIZE_MAX;

	if (mark <= reading->depth)
		return mark;
	fails(reading, "has no mark where one is needed");
	return SIZE_MAX;
}

static bool add_to_mark(struct pickle_reading *reading, enum value_kind kind)
{
	const size_t mark = pop_mark(reading);

	return mark != SIZE_MAX && add_items(reading, mark, kind);
}

static bool add_top(struct pickle_reading *reading, size_t count, enum value_kind kind)
{
	if (reading->depth <= count)
		return fails(reading, "has a list without items");
	return add_items(reading, reading->depth - count, kind);
}

/* Replaces the top of the stack, from `from` on, by a tuple of it. */
static bool make_tuple(struct pickle_reading *reading, size_t from)
{
	const size_t count = reading->depth - from;
	struct pickle_value tuple = { .kind = VALUE_LIST, .count = (uint32_t)count };

	ARRAY_GROW(tuple.of.list.items, tuple.of.list.room, count);
	if (count)
		memcpy(tuple.of.list.items, reading->stack + from, count * sizeof *reading->stack);
	reading->depth = from;
	push_value(reading, &tuple);
	return true;
}

static bool make_short_tuple(struct pickle_reading *reading, size_t count)
{
	return reading->depth >= count ? make_tuple(reading, reading->depth - count)
				       : fails(reading, "has a tuple without items");
}

static bool make_marked_tuple(struct pickle_reading *reading)
{
	const size_t mark = pop_mark(reading);

	return mark != SIZE_MAX && make_tuple(reading, mark);
}

/* Keeps the top of the stack under a number, which cannot be larger than the pickle is long. */
static bool put(struct pickle_reading *reading, uint64_t index, size_t length)
{
	if (!reading->depth || index > length)
		return fails(reading, "has a wrong memo");
	ARRAY_GROW(reading->memo, reading->memo_room, (size_t)index + 1);
	reading->memo[index] = reading->stack[reading->depth - 1];
	reading->memo_count = index + 1 > reading->memo_count ? (size_t)index + 1
							      : reading->memo_count;
	return true;
}

static bool get(struct pickle_reading *reading, uint64_t index)
{
	if (index >= reading->memo_count || !reading->memo[index])
		return fails(reading, "has a wrong memo");
	push(reading, reading->memo[index]);
	return true;
}

static bool push_mark(struct pickle_reading *reading)
{
	*ARRAY_ADD(
		reading->marks, reading->mark_room, reading->mark_count) = (uint32_t)reading->depth;
	return true;
}

/* Runs an opcode that pushes one value. Returns false with `problem` NULL if it is another one. */
static bool run_push(struct pickle_reading *reading)
{
	switch (reading->opcode) {
	case 'N': /* NONE */
		return push_empty(reading, VALUE_OTHER);
	case 0x88: /* NEWTRUE */
	case 0x89: /* NEWFALSE */
		return push_integer(reading, reading->opcode == 0x88);
	case 'J': /* BININT */
		return push_integer(reading, (int32_t)(uint32_t)number(reading, 4));
	case 'K': /* BININT1 */
		return push_integer(reading, (int64_t)number(reading, 1));
	case 'M': /* BININT2 */
		return push_integer(reading, (int64_t)number(reading, 2));
	case 0x8a: /* LONG1 */
		return push_long(reading, number(reading, 1));
	case 0x8b: /* LONG4 */
		return push_long(reading, number(reading, 4));
	case 'G': /* BINFLOAT */
		return operand(reading, 8) && push_empty(reading, VALUE_OTHER);
	case 'X': /* text, 4 bytes */
		return push_text(reading, number(reading, 4), VALUE_TEXT);
	case 0x8c: /* text with a length of 1 byte */
		return push_text(reading, number(reading, 1), VALUE_TEXT);
	case 0x8d: /* text, 8 bytes */
		return push_text(reading, number(reading, 8), VALUE_TEXT);
	case 'C': /* bytes with a length of 1 byte */
		return push_text(reading, number(reading, 1), VALUE_OTHER);
	case 'B': /* bytes, 4 bytes */
		return push_text(reading, number(reading, 4), VALUE_OTHER);
	case ']': /* empty list */
	case ')': /* empty tuple */
		return push_empty(reading, VALUE_LIST);
	case '}': /* empty dictionary */
		return push_empty(reading, VALUE_DICTIONARY);
	default:
		return false;
	}
}

static bool run_opcode(struct pickle_reading *reading, size_t length)
{
	if (run_push(reading) || reading->problem)
		return !reading->problem;
	switch (reading->opcode) {
	case '(': /* MARK */
		return push_mark(reading);
	case 'a': /* APPEND */
		return add_top(reading, 1, VALUE_LIST);
	case 'e': /* APPENDS */
		return add_to_mark(reading, VALUE_LIST);
	case 's': /* SETITEM */
		return add_top(reading, 2, VALUE_DICTIONARY);
	case 'u': /* SETITEMS */
		return add_to_mark(reading, VALUE_DICTIONARY);
	case 't': /* TUPLE */
		return make_marked_tuple(reading);
	case 0x85: /* TUPLE1, TUPLE2, TUPLE3 */
	case 0x86:
	case 0x87:
		return make_short_tuple(reading, reading->opcode - 0x84);
	case 'q': /* put, 1 byte */
		return put(reading, number(reading, 1), length);
	case 'r': /* put, 4 bytes */
		return put(reading, number(reading, 4), length);
	case 0x94: /* MEMOIZE */
		return put(reading, reading->memo_count, length);
	case 'h': /* get, 1 byte */
		return get(reading, number(reading, 1));
	case 'j': /* get, 4 bytes */
		return get(reading, number(reading, 4));
	case 0x80: /* PROTO */
		return operand(reading, 1) != NULL;
	case 0x95: /* FRAME */
		return operand(reading, 8) != NULL;
	default:
		return fails(reading, "has an opcode that plain data do not need");
	}
}

static void run_pickle(struct pickle_reading *reading, size_t length)
{
	while (reading->at < reading->end) {
		reading->opcode = *reading->at++;
		if (reading->opcode == '.') { /* STOP */
			if (reading->depth == 1)
				reading->pickle->root = reading->stack[0];
			else
				fails(reading, "has no result");
			return;
		}
		if (!run_opcode(reading, length) || reading->problem)
			return;
	}
	fails(reading, "ends in the middle");
}

struct pickle *pickle_read(
	const unsigned char *bytes, size_t length, char *problem, size_t problem_bytes)
{
	struct pickle_reading reading = {
		.pickle = xcalloc(sizeof(struct pickle)), .at = bytes, .end = bytes + length
	};

	reading.pickle->count = 1;
	ARRAY_GROW(reading.pickle->values, reading.pickle->room, 1);
	if (length > PICKLE_BYTES_MAX)
		fails(&reading, "is longer than 2 GiB");
	else
		run_pickle(&reading, length);
	free(reading.stack);
	free(reading.marks);
	free(reading.memo);
	if (!reading.problem)
		return reading.pickle;
	if (reading.opcode && !strncmp(reading.problem, "has an opcode", 13))
		snprintf(problem, problem_bytes,
			"is a pickle with the opcode 0x%02x at byte %zu, which plain data do not "
			"need; it is not executed",
			reading.opcode, (size_t)(reading.at - bytes) - 1);
	else
		snprintf(problem, problem_bytes, "is a pickle that %s", reading.problem);
	pickle_free(reading.pickle);
	return NULL;
}

void pickle_free(struct pickle *pickle)
{
	for (size_t i = 1; pickle && i < pickle->count; i++)
		if (pickle->values[i].kind == VALUE_LIST ||
			pickle->values[i].kind == VALUE_DICTIONARY)
			free(pickle->values[i].of.list.items);
	if (pickle)
		free(pickle->values);
	free(pickle);
}

uint32_t pickle_root(const struct pickle *pickle)
{
	return pickle->root;
}

static const struct pickle_value *value_of(
	const struct pickle *pickle, uint32_t value, enum value_kind kind)
{
	return value && pickle->values[value].kind == kind ? &pickle->values[value] : NULL;
}

uint32_t pickle_count(const struct pickle *pickle, uint32_t value)
{
	const struct pickle_value *list = value_of(pickle, value, VALUE_LIST),
				  *entries = value_of(pickle, value, VALUE_DICTIONARY);

	return list ? list->count : entries ? entries->count / 2 : 0;
}

uint32_t pickle_item(const struct pickle *pickle, uint32_t value, uint32_t index)
{
	const struct pickle_value *list = value_of(pickle, value, VALUE_LIST);

	return list && index < list->count ? list->of.list.items[index] : 0;
}

uint32_t pickle_member(const struct pickle *pickle, uint32_t value, const char *key)
{
	const struct pickle_value *entries = value_of(pickle, value, VALUE_DICTIONARY);
	const size_t length = strlen(key);
	uint32_t left = ENTRIES_SEARCHED_MAX;

	for (uint32_t i = entries ? entries->count : 0; i >= 2 && left--; i -= 2) {
		const struct string_view name = pickle_text(pickle, entries->of.list.items[i - 2]);

		if (name.length == length && name.bytes && !memcmp(name.bytes, key, length))
			return entries->of.list.items[i - 1];
	}
	return 0;
}

bool pickle_integer(const struct pickle *pickle, uint32_t value, int64_t *integer)
{
	const struct pickle_value *found = value_of(pickle, value, VALUE_INTEGER);

	if (found)
		*integer = found->of.integer;
	return found != NULL;
}

struct string_view pickle_text(const struct pickle *pickle, uint32_t value)
{
	const struct pickle_value *found = value_of(pickle, value, VALUE_TEXT);

	return found ? (struct string_view){ found->of.text, found->count }
		     : (struct string_view){ NULL, 0 };
}
