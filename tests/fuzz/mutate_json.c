/* SPDX-License-Identifier: MIT
 * mutate_json.c: changes of a JSON text that leave it one, mostly: a number, a string or a value is
 * another, an object comes twice or not at all. Changes of bytes seldom get past the first bracket.
 */
#include "tests/fuzz/mutate.h"

#include <string.h>

struct text {
	unsigned char *bytes;
	size_t count, room;
};

struct part {
	size_t at, bytes; /* 0 bytes: none */
};

static void replace(struct text *text, struct part part, const void *with, size_t bytes)
{
	if (part.at + part.bytes > text->count || text->count - part.bytes + bytes > text->room)
		return;
	memmove(text->bytes + part.at + bytes, text->bytes + part.at + part.bytes,
		text->count - part.at - part.bytes);
	memcpy(text->bytes + part.at, with, bytes);
	text->count += bytes - part.bytes;
}

static int in_number(unsigned char byte)
{
	return (byte >= '0' && byte <= '9') || byte == '-' || byte == '+' || byte == '.' ||
	       byte == 'e' || byte == 'E';
}

/* The first number at or behind a place of chance. */
static struct part some_number(const struct text *text, struct dice *dice)
{
	size_t at = dice_below(dice, text->count), end;

	while (at < text->count && (text->bytes[at] < '0' || text->bytes[at] > '9'))
		at++;
	for (end = at; end < text->count && in_number(text->bytes[end]); end++)
		;
	if (at && text->bytes[at - 1] == '-')
		at--;
	return (struct part){ at, end - at };
}

/* What is between two quotes, which may turn out to be what is between two strings: then it is less
 * of a JSON text. */
static struct part some_string(const struct text *text, struct dice *dice)
{
	const size_t from = dice_below(dice, text->count);
	const unsigned char *quote = memchr(text->bytes + from, '"', text->count - from), *end;
	size_t at;

	if (!quote)
		return (struct part){ 0, 0 };
	at = (size_t)(quote + 1 - text->bytes);
	end = memchr(text->bytes + at, '"', text->count - at);
	return (struct part){ at, end ? (size_t)(end - text->bytes) - at : 0 };
}

static struct part some_object(const struct text *text, struct dice *dice)
{
	const size_t from = dice_below(dice, text->count);
	const unsigned char *open = memchr(text->bytes + from, '{', text->count - from);
	size_t depth = 0, at;

	if (!open)
		return (struct part){ 0, 0 };
	at = (size_t)(open - text->bytes);
	for (size_t end = at; end < text->count; end++) {
		depth += text->bytes[end] == '{';
		depth -= text->bytes[end] == '}';
		if (!depth)
			return (struct part){ at, end + 1 - at };
	}
	return (struct part){ 0, 0 };
}

static void change_number(struct text *text, struct dice *dice)
{
	static const char *const edges[] = { "0", "-0", "1", "-1", "0.001", "0.0001", "7", "1e400",
		"-1e308", "1E-400", "NaN", "Infinity", "null", "4294967295", "4294967296",
		"2147483648", "9007199254740993", "9223372036854775807", "9223372036854775808",
		"18446744073709551615", "18446744073709551616", "-9223372036854775808",
		"1711964646000000.125", "9223372036854775.807",
		"99999999999999999999999999999999999999", "\"5\"" };
	const struct part number = some_number(text, dice), other = some_number(text, dice);
	unsigned char copy[64];
	const char *edge = edges[dice_below(dice, sizeof edges / sizeof *edges)];

	if (dice_below(dice, 2)) {
		replace(text, number, edge, strlen(edge));
	} else if (other.bytes <= sizeof copy) {
		memcpy(copy, text->bytes + other.at, other.bytes);
		replace(text, number, copy, other.bytes);
	}
}

static void change_string(struct text *text, struct dice *dice)
{
	static const char *const texts[] = { "", "X", "B", "E", "i", "s", "f", "M", "cpu_op",
		"kernel", "python_function", "cuda_runtime", "user_annotation", "gpu_memcpy",
		"gpu_memset", "cuda_sync", "overhead", "ac2g", "fwdbwd", "[memory]",
		"ProfilerStep#7", "nn.Module: Net_1", "cudaGraphLaunch", "\\u0000", "\\ud800",
		"\\u202e", "\x1b[31m", "\xff", "=1+1", "a.py(2): g", "stream 7",
		"ncclDevKernel_AllReduce", "../../etc", "args", "ts", "dur", "name", "correlation",
		"External id", "Input Dims", "rows", "value" };
	const struct part string = some_string(text, dice), other = some_string(text, dice);
	unsigned char copy[256];
	const char *with = texts[dice_below(dice, sizeof texts / sizeof *texts)];

	if (dice_below(dice, 2)) {
		replace(text, string, with, strlen(with));
	} else if (other.bytes <= sizeof copy) {
		memcpy(copy, text->bytes + other.at, other.bytes);
		replace(text, string, copy, other.bytes);
	}
}

/* Behind itself, or in the place of another. */
static void change_object(struct text *text, struct dice *dice)
{
	static unsigned char copy[4096];
	const struct part object = some_object(text, dice), other = some_object(text, dice);
	const struct part behind = { object.at + object.bytes, 0 };

	if (!object.bytes || object.bytes >= sizeof copy || other.bytes >= sizeof copy)
		return;
	switch (dice_below(dice, 4)) {
	case 0:
		replace(text, object, "{}", 2);
		break;
	case 1:
		memcpy(copy, text->bytes + other.at, other.bytes);
		replace(text, object, copy, other.bytes);
		break;
	default:
		copy[0] = ',';
		memcpy(copy + 1, text->bytes + object.at, object.bytes);
		replace(text, behind, copy, object.bytes + 1);
	}
}

size_t mutate_json(unsigned char *bytes, size_t count, size_t room, struct dice *dice)
{
	struct text text = { bytes, count, room };

	for (size_t changes = 1 + dice_below(dice, 5); changes; changes--)
		switch (dice_below(dice, 5)) {
		case 0:
			change_object(&text, dice);
			break;
		case 1:
		case 2:
			change_string(&text, dice);
			break;
		default:
			change_number(&text, dice);
		}
	return text.count;
}
