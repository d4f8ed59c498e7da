/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/printed.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Format characters and their like (Unicode's Cc, Cf, Zl, Zp, and letters that are blank), but for
 * the joiners that scripts need: U+200C and U+200D. */
static const struct {
	uint32_t first, last;
} unseen[] = {
	{ 0x00, 0x09 },
	{ 0x0b, 0x1f },
	{ 0x7f, 0x9f },
	{ 0xad, 0xad },
	{ 0x61c, 0x61c },
	{ 0x180e, 0x180e },
	{ 0x200b, 0x200b },
	{ 0x200e, 0x200f },
	{ 0x2028, 0x202e },
	{ 0x2060, 0x206f },
	{ 0xfeff, 0xfeff },
	{ 0xfff9, 0xfffb },
	{ 0xe0000, 0xe0fff },
};

/* The code point at `text`, *length its bytes; UINT32_MAX: it is none. */
static uint32_t point_at(const unsigned char *text, size_t bytes, size_t *length)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t point;

	*length = text[0] < 0x80   ? 1
		  : text[0] < 0xc0 ? 0
		  : text[0] < 0xe0 ? 2
		  : text[0] < 0xf0 ? 3
		  : text[0] < 0xf8 ? 4
				   : 0;
	if (*length == 1)
		return text[0];
	if (!*length || *length > bytes)
		return UINT32_MAX;
	point = text[0] & (0x7fu >> *length);
	for (size_t i = 1; i < *length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return UINT32_MAX;
		point = point << 6 | (text[i] & 0x3f);
	}
	return point < least[*length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)
		       ? UINT32_MAX
		       : point;
}

size_t printed_unsafe(const char *text, size_t bytes)
{
	size_t length;

	for (size_t at = 0; at < bytes; at += length) {
		const uint32_t point = point_at(
			(const unsigned char *)text + at, bytes - at, &length);

		if (point == UINT32_MAX)
			return at;
		if (point == '\r' && at + 1 < bytes && text[at + 1] == '\n')
			continue;
		for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++)
			if (point >= unseen[i].first && point <= unseen[i].last)
				return at;
	}
	return bytes;
}

#define DEEPEST 64

struct json {
	const char *at, *end;
	unsigned depth;
};

static void blanks(struct json *json)
{
	while (json->at < json->end && strchr(" \t\r\n", *json->at) && *json->at)
		json->at++;
}

/* Steps over the four digits of \uXXXX and returns their value, or UINT32_MAX. */
static uint32_t four_digits(struct json *json)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++) {
		static const char known[] = "0123456789abcdefABCDEF";
		const char *digit = ++json->at < json->end && *json->at ? strchr(known, *json->at)
									: NULL;

		if (!digit)
			return UINT32_MAX;
		value = value << 4 |
			(uint32_t)(digit - known > 15 ? digit - known - 6 : digit - known);
	}
	return value;
}

/* `at` is at the u of \uXXXX. Strict parsers refuse a surrogate without its pair. */
static bool escaped_point(struct json *json)
{
	const uint32_t point = four_digits(json);

	if (point == UINT32_MAX || (point >= 0xdc00 && point < 0xe000))
		return false;
	if (point < 0xd800 || point >= 0xe000)
		return true;
	if (json->end - json->at < 7 || json->at[1] != '\\' || json->at[2] != 'u')
		return false;
	json->at += 2;
	return (four_digits(json) & 0xfffffc00) == 0xdc00;
}

static bool string(struct json *json)
{
	if (json->at == json->end || *json->at != '"')
		return false;
	for (json->at++; json->at < json->end; json->at++) {
		if (*json->at == '"') {
			json->at++;
			return true;
		}
		if ((unsigned char)*json->at < ' ')
			return false;
		if (*json->at != '\\')
			continue;
		if (++json->at == json->end || !strchr("\"\\/bfnrtu", *json->at))
			return false;
		if (*json->at == 'u' && !escaped_point(json))
			return false;
	}
	return false;
}

static bool digits(struct json *json)
{
	const char *from = json->at;

	while (json->at < json->end && *json->at >= '0' && *json->at <= '9')
		json->at++;
	return json->at > from;
}

static bool passes(struct json *json, const char *any)
{
	if (json->at == json->end || !strchr(any, *json->at) || !*json->at)
		return false;
	json->at++;
	return true;
}

static bool number(struct json *json)
{
	passes(json, "-");
	if (!passes(json, "0") && !digits(json))
		return false;
	if (passes(json, ".") && !digits(json))
		return false;
	if (passes(json, "eE")) {
		passes(json, "+-");
		return digits(json);
	}
	return true;
}

static bool scalar(struct json *json)
{
	static const char *const words[] = { "null", "true", "false" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		const size_t length = strlen(words[i]);

		if ((size_t)(json->end - json->at) >= length &&
			!memcmp(json->at, words[i], length)) {
			json->at += length;
			return true;
		}
	}
	return *json->at == '"' ? string(json) : number(json);
}

static bool key(struct json *json)
{
	blanks(json);
	if (!string(json))
		return false;
	blanks(json);
	return passes(json, ":");
}

static bool value(struct json *json);

static bool members(struct json *json, const char *close, bool keyed)
{
	blanks(json);
	if (passes(json, close))
		return true;
	do
		if ((keyed && !key(json)) || !value(json))
			return false;
	while (passes(json, ","));
	return passes(json, close);
}

static bool value(struct json *json)
{
	bool good;

	blanks(json);
	if (json->at == json->end || json->depth == DEEPEST)
		return false;
	json->depth++;
	good = passes(json, "[")   ? members(json, "]", false)
	       : passes(json, "{") ? members(json, "}", true)
				   : scalar(json);
	json->depth--;
	blanks(json);
	return good;
}

size_t printed_bad_json(const char *text, size_t bytes)
{
	struct json json = { .at = text, .end = text + bytes };

	for (blanks(&json); json.at < json.end; blanks(&json))
		if (!value(&json))
			return (size_t)(json.at - text);
	return bytes;
}

/* A number may begin with a sign. */
static bool is_formula(const char *cell, size_t bytes)
{
	static const char *const wide[] = { "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d",
		"\xef\xbc\xa0" };

	for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
		if (bytes >= 3 && !memcmp(cell, wide[i], 3))
			return true;
	if (!bytes || !strchr("=+-@", *cell) || !*cell)
		return false;
	return *cell != '-' || bytes < 2 || !strchr("0123456789i", cell[1]);
}

size_t printed_bad_csv(const char *text, size_t bytes)
{
	for (size_t at = 0; at < bytes; at++) {
		const bool quoted = text[at] == '"';
		const size_t first = at + quoted;

		if (first < bytes && is_formula(text + first, bytes - first))
			return at;
		if (quoted)
			for (at++; at < bytes &&
				   (text[at] != '"' || (at + 1 < bytes && text[at + 1] == '"'));
				at++)
				at += text[at] == '"';
		if (quoted && at++ >= bytes)
			return first;
		while (at < bytes && text[at] != ',' && text[at] != '\n')
			if (text[at++] == '"')
				return at - 1;
	}
	return bytes;
}
