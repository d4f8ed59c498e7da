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

#define LONGEST 63u

/* Lengths that some key has: most keys of a file have none of them, or differ in their first byte. */
static uint64_t lengths(void)
{
	static uint64_t bits;

	for (unsigned arg = 0; arg < KINETO_ARG_COUNT && !(bits >> LONGEST); arg++)
		bits |= UINT64_C(1) << keys[arg].length;
	bits |= UINT64_C(1) << LONGEST;
	return bits;
}

/* KINETO_ARG_COUNT: nobody asks for it. */
static unsigned find(const struct json_text *key)
{
	unsigned arg = 0;

	if (!key->length || key->length >= LONGEST || !(lengths() >> key->length & 1))
		return KINETO_ARG_COUNT;
	while (arg < KINETO_ARG_COUNT && (keys[arg].length != key->length || keys[arg].key[0] != key->bytes[0] ||
						 memcmp(keys[arg].key, key->bytes, key->length) != 0))
		arg++;
	return arg;
}

void kineto_args_clear(struct kineto_args *args)
{
	for (unsigned arg = 0; arg < KINETO_ARG_COUNT; arg++)
		args->of[arg].form = 0;
}

bool kineto_args_read(struct json_scan *scan, struct kineto_args *args)
{
	struct json_text key, value;

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
