/* SPDX-License-Identifier: MIT */
#include "report/import/kineto/event_args.h"

static const struct {
	const char *key;
	uint8_t length;
} keys[] = {
#define X(arg, text) { text, sizeof text - 1 },
	KINETO_ARGS(X)
#undef X
};

unsigned kineto_arg_of_key(const struct json_text *key)
{
	for (unsigned arg = 0; arg < KINETO_ARG_COUNT; arg++)
		if (keys[arg].length == key->length &&
			!memcmp(keys[arg].key, key->bytes, key->length))
			return arg;
	return KINETO_ARG_COUNT;
}

void kineto_args_clear(struct kineto_args *args)
{
	for (unsigned arg = 0; arg < KINETO_ARG_COUNT; arg++)
		args->values[arg].form = JSON_NONE;
}

bool kineto_args_read(struct json_scanner *scan, struct json_keys *known, struct kineto_args *args)
{
	struct json_text value;
	unsigned arg;

	kineto_args_clear(args);
	if (json_peek(scan) != '{')
		return !scan->problem && json_value(scan, &value);
	known->last = 0;
	for (bool more = json_open(scan, '{'); more; more = json_next(scan, '}'))
		if (!json_keys_next(scan, known, &arg) ||
			!json_value(scan, arg < KINETO_ARG_COUNT ? &args->values[arg] : &value))
			return false;
	return !scan->problem;
}

/* A negative number becomes its two's complement. A fraction is cut off. */
uint64_t kineto_arg(const struct kineto_args *args, enum kineto_arg arg)
{
	const struct json_text *text = &args->values[arg];
	int64_t number;
	uint64_t value;

	if (!text->form)
		return 0;
	if (json_unsigned(text, &value))
		return value;
	return json_signed(text, &number) || json_scaled(text, 0, &number) ? (uint64_t)number : 0;
}

uint32_t kineto_arg32(const struct kineto_args *args, enum kineto_arg arg)
{
	return (uint32_t)kineto_arg(args, arg);
}

/* Parses any JSON array. Slower than kineto_arg_triple, which handles plain digits and commas. */
static void read_triple(const struct json_text *text, uint32_t *three)
{
	struct json_scanner scan = { .at = text->bytes, .end = text->bytes + text->length };
	unsigned count = 0;

	for (bool more = json_open(&scan, '['); more; more = json_next(&scan, ']')) {
		struct json_text value;
		uint64_t number = 0;

		if (!json_value(&scan, &value))
			return;
		if (json_unsigned(&value, &number) && count < 3)
			three[count] = (uint32_t)number;
		count++;
	}
}

void kineto_arg_triple(const struct kineto_args *args, enum kineto_arg arg, uint32_t *three)
{
	const struct json_text *text = &args->values[arg];
	uint64_t sum = 0;
	unsigned count = 0, digits = 0;

	three[0] = three[1] = three[2] = 0;
	if (text->form != JSON_ARRAY)
		return;
	for (const char *at = text->bytes + 1; count < 3; at++) {
		if (*at >= '0' && *at <= '9' && digits++ < 18) {
			sum = sum * 10 + (uint64_t)(*at - '0');
		} else if (digits && *at == (count < 2 ? ',' : ']')) {
			three[count++] = (uint32_t)sum;
			sum = digits = 0;
		} else if (digits || *at != ' ') {
			three[0] = three[1] = three[2] = 0;
			read_triple(text, three);
			return;
		}
	}
}
