/* SPDX-License-Identifier: MIT */
#include "report/trace/op_inputs.h"
#include <string.h>

#define DETAIL_PARTS 4u /* sizes, types, values, FLOPs */

static const struct {
	const char *name;
	unsigned bytes;
} elements[ELEMENT_COUNT] = {
	[ELEMENT_UNKNOWN] = { "", 0 },
	[ELEMENT_FP64] = { "fp64", 8 },
	[ELEMENT_FP32] = { "fp32", 4 },
	[ELEMENT_TF32] = { "tf32", 4 },
	[ELEMENT_FP16] = { "fp16", 2 },
	[ELEMENT_BF16] = { "bf16", 2 },
	[ELEMENT_FP8] = { "fp8", 1 },
	[ELEMENT_INT8] = { "int8", 1 },
	[ELEMENT_INT16] = { "int16", 2 },
	[ELEMENT_INT32] = { "int32", 4 },
	[ELEMENT_INT64] = { "int64", 8 },
};

static const struct {
	const char *name;
	enum element_type element;
} spellings[] = {
	{ "double", ELEMENT_FP64 },
	{ "float", ELEMENT_FP32 },
	{ "c10::Half", ELEMENT_FP16 },
	{ "c10::BFloat16", ELEMENT_BF16 },
	{ "c10::Float8_e4m3fn", ELEMENT_FP8 },
	{ "c10::Float8_e5m2", ELEMENT_FP8 },
	{ "c10::Float8_e4m3fnuz", ELEMENT_FP8 },
	{ "c10::Float8_e5m2fnuz", ELEMENT_FP8 },
	{ "signed char", ELEMENT_INT8 },
	{ "unsigned char", ELEMENT_INT8 },
	{ "bool", ELEMENT_INT8 },
	{ "short", ELEMENT_INT16 },
	{ "short int", ELEMENT_INT16 },
	{ "int", ELEMENT_INT32 },
	{ "long", ELEMENT_INT64 },
	{ "long int", ELEMENT_INT64 },
};

const char *element_name(enum element_type element)
{
	return elements[element].name;
}

unsigned element_bytes(enum element_type element)
{
	return elements[element].bytes;
}

static bool equals_name(const char *name, const char *text, size_t length)
{
	return strlen(name) == length && memcmp(name, text, length) == 0;
}

enum element_type element_find(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
		if (equals_name(spellings[i].name, name, length))
			return spellings[i].element;
	for (enum element_type i = ELEMENT_FP64; i < ELEMENT_COUNT; i++)
		if (equals_name(elements[i].name, name, length))
			return i;
	return ELEMENT_UNKNOWN;
}

struct inputs_cursor {
	const char *at, *end;
};

static bool accept_char(struct inputs_cursor *cursor, char c)
{
	while (cursor->at < cursor->end && *cursor->at == ' ')
		cursor->at++;
	if (cursor->at == cursor->end || *cursor->at != c)
		return false;
	cursor->at++;
	return true;
}

static bool parse_size(struct inputs_cursor *cursor, uint64_t *number)
{
	const char *start;

	accept_char(cursor, ' ');
	*number = 0;
	for (start = cursor->at;
		cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++)
		if (__builtin_mul_overflow(*number, UINT64_C(10), number) ||
			__builtin_add_overflow(*number, (uint64_t)(*cursor->at - '0'), number))
			return false;
	return cursor->at > start;
}

/* Parses `[64, 128]`. Returns false for a list of tensors, which has another form. */
static bool parse_sizes(struct inputs_cursor *cursor, struct op_input *input)
{
	*input = (struct op_input){ .count = 1 };
	if (!accept_char(cursor, '['))
		return false;
	if (accept_char(cursor, ']'))
		return true;
	do {
		if (input->dimensions == OP_DIMENSIONS_MAX ||
			!parse_size(cursor, &input->sizes[input->dimensions]) ||
			__builtin_mul_overflow(
				input->count, input->sizes[input->dimensions], &input->count))
			return false;
		input->dimensions++;
	} while (accept_char(cursor, ','));
	return accept_char(cursor, ']');
}

static bool parse_inputs(struct inputs_cursor *cursor, struct op_inputs *inputs)
{
	struct op_input input;

	if (!accept_char(cursor, '['))
		return false;
	if (accept_char(cursor, ']'))
		return true;
	do {
		if (!parse_sizes(cursor, &input))
			return false;
		if (inputs->count < OP_INPUTS_MAX)
			inputs->inputs[inputs->count++] = input;
	} while (accept_char(cursor, ','));
	return accept_char(cursor, ']');
}

/* Accepts a string without escapes. */
static bool accept_string(struct inputs_cursor *cursor, const char **text, size_t *length)
{
	const char *close;

	if (!accept_char(cursor, '"'))
		return false;
	*text = cursor->at;
	close = memchr(*text, '"', (size_t)(cursor->end - *text));
	if (!close || memchr(*text, '\\', (size_t)(close - *text)))
		return false;
	*length = (size_t)(close - *text);
	cursor->at = close + 1;
	return true;
}

/* Finds the string at `index` of a list such as `["a","b"]`. Returns false if there is
 * none, or if it or one before it has an escape, which no value that is needed has. */
static bool list_item(
	const char *list, size_t bytes, unsigned index, const char **text, size_t *length)
{
	struct inputs_cursor cursor = { list, list + bytes };

	if (!accept_char(&cursor, '['))
		return false;
	for (unsigned i = 0;; i++) {
		if (!accept_string(&cursor, text, length))
			return false;
		if (i == index)
			return true;
		if (!accept_char(&cursor, ','))
			return false;
	}
}

static void read_types(struct op_inputs *inputs, const char *list, size_t bytes)
{
	const char *name;
	size_t length;

	inputs->typed = bytes > 0;
	for (unsigned i = 0; i < inputs->count && list_item(list, bytes, i, &name, &length); i++)
		inputs->inputs[i].element = element_find(name, length);
}

size_t op_inputs_shapes_length(const char *text, size_t length)
{
	const char *tab = length ? memchr(text, '\t', length) : NULL;

	return tab ? (size_t)(tab - text) : length;
}

bool op_inputs_read(struct op_inputs *inputs, const char *text, size_t length)
{
	struct inputs_cursor parts[DETAIL_PARTS] = { { text, text } };

	memset(inputs, 0, sizeof *inputs);
	for (unsigned i = 0; i < DETAIL_PARTS; i++) {
		const size_t bytes = op_inputs_shapes_length(text, length);

		parts[i] = (struct inputs_cursor){ text, text + bytes };
		text += bytes + (bytes < length);
		length -= bytes + (bytes < length);
	}
	if (!parse_inputs(&parts[0], inputs) || parts[0].at != parts[0].end)
		return false;
	read_types(inputs, parts[1].at, (size_t)(parts[1].end - parts[1].at));
	inputs->values = parts[2].at;
	inputs->value_bytes = (size_t)(parts[2].end - parts[2].at);
	inputs->has_flops = parse_size(&parts[3], &inputs->flops);
	return true;
}

bool op_inputs_value(
	const struct op_inputs *inputs, unsigned index, const char **value, size_t *length)
{
	return list_item(inputs->values, inputs->value_bytes, index, value, length) && *length;
}

unsigned op_inputs_numbers(
	const struct op_inputs *inputs, unsigned index, int64_t *numbers, unsigned room)
{
	struct inputs_cursor cursor;
	unsigned count = 0;
	const char *value;
	size_t length;
	bool list;

	if (!op_inputs_value(inputs, index, &value, &length))
		return 0;
	cursor = (struct inputs_cursor){ value, value + length };
	list = accept_char(&cursor, '[');
	do {
		const bool negative = accept_char(&cursor, '-');
		uint64_t number;

		if (count == room || !parse_size(&cursor, &number) || number > INT64_MAX)
			return 0;
		numbers[count++] = negative ? -(int64_t)number : (int64_t)number;
	} while (list && accept_char(&cursor, ','));
	return (!list || accept_char(&cursor, ']')) && cursor.at == cursor.end ? count : 0;
}

int op_inputs_bool(const struct op_inputs *inputs, unsigned index)
{
	const char *value;
	size_t length;

	if (!op_inputs_value(inputs, index, &value, &length))
		return -1;
	return equals_name("True", value, length) || equals_name("true", value, length)     ? 1
	       : equals_name("False", value, length) || equals_name("false", value, length) ? 0
											    : -1;
}
