/* SPDX-License-Identifier: MIT */
#include "report/kineto_args.h"

static const struct {
	const char *key;
	uint8_t length;
} keys[] = {
#define X(arg, text) { text, sizeof text - 1 },
	KINETO_ARGS(X)
#undef X
};

#define LONGEST 40u
#define ALIKE_MOST 6u /* keys of one length */

/* The keys by their length; 0 ends a row. */
static uint8_t alike[LONGEST][ALIKE_MOST + 1];

static void sort_keys(void)
{
	for (unsigned arg = KINETO_ARG_COUNT; arg-- > 0;) {
		uint8_t *row = alike[keys[arg].length];

		memmove(row + 1, row, ALIKE_MOST - 1);
		row[0] = (uint8_t)(arg + 1);
	}
}

/* KINETO_ARG_COUNT: nobody asks for it. */
static unsigned find(const struct json_text *key)
{
	const uint8_t *row = key->length < LONGEST ? alike[key->length] : alike[0];

	for (; *row; row++)
		if (keys[*row - 1].key[0] == key->bytes[0] && !memcmp(keys[*row - 1].key, key->bytes, key->length))
			return *row - 1u;
	return KINETO_ARG_COUNT;
}

void kineto_args_clear(struct kineto_args *args)
{
	for (unsigned arg = 0; arg < KINETO_ARG_COUNT; arg++)
		args->of[arg].form = 0;
}

bool kineto_args_read(struct json_scan *scan, struct kineto_args *args)
{
	struct json_text key, value;

	if (!alike[sizeof "correlation" - 1][0])
		sort_keys();
	kineto_args_clear(args);
	if (json_peek(scan) != '{')
		return !scan->problem && json_value(scan, &value);
	for (bool more = json_open(scan, '{'); more; more = json_next(scan, '}')) {
		unsigned arg;

		if (!json_key(scan, &key) || !json_value(scan, &value))
			return false;
		arg = find(&key);
		if (arg < KINETO_ARG_COUNT)
			args->of[arg] = value;
	}
	return !scan->problem;
}

/* A number below 0 is its two's complement, a fraction is cut off. */
uint64_t kineto_arg(const struct kineto_args *args, enum kineto_arg arg)
{
	const struct json_text *text = &args->of[arg];
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

void kineto_arg_triple(const struct kineto_args *args, enum kineto_arg arg, uint32_t *three)
{
	const struct json_text *text = &args->of[arg];
	struct json_scan scan = { .at = text->bytes, .end = text->bytes + text->length };
	unsigned count = 0;

	three[0] = three[1] = three[2] = 0;
	if (text->form != '[')
		return;
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
