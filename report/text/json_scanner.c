/* SPDX-License-Identifier: MIT */
#include "report/text/json_digits.h"

const char JSON_MORE[] = "ends in the middle";

static __attribute__((noinline, cold)) bool json_set_problem(
	struct json_scanner *scan, const char *at, const char *problem)
{
	if (at > scan->end)
		at = scan->end;
	scan->at = at;
	scan->problem = at == scan->end ? JSON_MORE : problem;
	return false;
}

static inline bool is_white_space(char byte)
{
	return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

static inline const char *skip_white_space(const char *at)
{
	while (is_white_space(*at))
		at++;
	return at;
}

/* Returns the first quote or backslash, or a pointer not before `end` if there is none. Bytes of
 * the slack are zeros. */
static inline const char *find_quote(const char *at, const char *end)
{
#if defined(__SSE2__)
	const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');

	for (; at < end; at += 16) {
		const __m128i block = _mm_loadu_si128((const __m128i *)(const void *)at);
		const int found = _mm_movemask_epi8(_mm_or_si128(
			_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, backslash)));

		if (found)
			return at + __builtin_ctz((unsigned)found);
	}
	return end;
#else
	while (at < end && *at != '"' && *at != '\\')
		at++;
	return at;
#endif
}

/* Returns the closing quote, or NULL if there is none. `at`: after the opening quote. */
static inline const char *string_end(const char *at, const char *end, bool *escaped)
{
	for (;;) {
		at = find_quote(at, end);
		if (at >= end)
			return NULL;
		if (*at == '"')
			return at;
		*escaped = true;
		at += 2;
	}
}

static inline __attribute__((always_inline)) bool scan_string(
	struct json_scanner *scan, const char *at, struct json_text *text)
{
	const char *close;

	text->form = JSON_STRING;
	text->escaped = false;
	text->bytes = at + 1;
	close = string_end(at + 1, scan->end, &text->escaped);
	if (!close)
		return json_set_problem(scan, scan->end, NULL);
	text->length = (size_t)(close - text->bytes);
	scan->at = close + 1;
	return true;
}

/* Moves `*at` to the byte after a JSON number. Returns false if there is none; `*at` is then at the
 * wrong byte. */
static inline __attribute__((always_inline)) bool skip_number(const char **at)
{
	const char *digits;

	*at += **at == '-';
	for (int part = 0; part < 3; part++) {
		digits = *at;
		*at = skip_digits(*at);
		if (*at == digits)
			return false;
		if (part == 0 && **at == '.') {
			++*at;
			continue;
		}
		if (part == 2 || (**at | 0x20) != 'e')
			return true;
		part = 1;
		++*at;
		*at += **at == '+' || **at == '-';
	}
	return true;
}

/* Skips digits and a decimal point between them, which is the form of nearly all numbers. May
 * stop early in other numbers. */
static inline const char *skip_plain_bytes(const char *at)
{
	const char *const point = skip_up_to_16_digits(at), *after;

	if (point == at || *point != '.')
		return point;
	after = skip_up_to_16_digits(point + 1);
	return after > point + 1 ? after : point;
}

static const struct {
	char word[11], form;
} literals[] = { { "null", JSON_NULL }, { "true", JSON_TRUE }, { "false", JSON_FALSE },
	{ "NaN", JSON_NONSTANDARD }, { "Infinity", JSON_NONSTANDARD },
	{ "-Infinity", JSON_NONSTANDARD } };

static __attribute__((noinline)) bool scan_literal(
	struct json_scanner *scan, const char *at, struct json_text *text)
{
	const size_t room = (size_t)(scan->end - at);

	for (size_t i = 0; i < sizeof literals / sizeof *literals; i++) {
		const size_t length = strlen(literals[i].word);

		if (room < length && !memcmp(at, literals[i].word, room))
			return json_set_problem(scan, scan->end, NULL);
		if (room < length || memcmp(at, literals[i].word, length))
			continue;
		*text = (struct json_text){ at, length, literals[i].form, false };
		scan->nonstandard_values += literals[i].form == JSON_NONSTANDARD;
		scan->at = at + length;
		return true;
	}
	return json_set_problem(scan, at, "a value was expected");
}

static inline __attribute__((always_inline)) bool scan_number(
	struct json_scanner *scan, const char *at, struct json_text *text)
{
	const char *after = skip_plain_bytes(at);
	bool good;

	if (after < scan->end && after > at && *after != '.' && (*after | 0x20) != 'e' &&
		!json_is_digit(*after)) {
		*text = (struct json_text){ at, (size_t)(after - at), JSON_NUMBER, false };
		scan->at = after;
		return true;
	}
	after = at;
	good = skip_number(&after);
	if (!good && after == at + 1 && *after == 'I')
		return scan_literal(scan, at, text);
	if (!good || after >= scan->end)
		return json_set_problem(scan, after, "a digit was expected");
	*text = (struct json_text){ at, (size_t)(after - at), JSON_NUMBER, false };
	scan->at = after;
	return true;
}

/* Skips an object or an array by its brackets and strings only. */
static bool skip_value(struct json_scanner *scan, const char *at, struct json_text *text)
{
	uint64_t kinds[JSON_DEPTH_MAX / 64]; /* one bit per level; 1: an object */
	const char *begin = at;
	unsigned depth = 0;
	bool escaped;

	for (;; at++) {
		switch (*at) {
		case '"':
			at = string_end(at + 1, scan->end, &escaped);
			if (!at)
				return json_set_problem(scan, scan->end, NULL);
			break;
		case '{':
		case '[':
			if (depth == JSON_DEPTH_MAX)
				return json_set_problem(
					scan, at, "brackets are nested more than 4096 deep");
			if (depth % 64 == 0)
				kinds[depth / 64] = 0;
			kinds[depth / 64] &= ~(UINT64_C(1) << depth % 64);
			kinds[depth / 64] |= (uint64_t)(*at == '{') << depth % 64;
			depth++;
			break;
		case '}':
		case ']':
			depth--;
			if ((kinds[depth / 64] >> depth % 64 & 1) != (*at == '}'))
				return json_set_problem(
					scan, at, "a closing bracket has no opening one");
			if (depth)
				break;
			*text = (struct json_text){ begin, (size_t)(at + 1 - begin), *begin,
				false };
			scan->at = at + 1;
			return true;
		case '\0':
			if (at >= scan->end)
				return json_set_problem(scan, scan->end, NULL);
			break;
		}
	}
}

bool json_value(struct json_scanner *scan, struct json_text *value)
{
	const char *at = skip_white_space(scan->at);

	if (*at == '"')
		return scan_string(scan, at, value);
	if (*at == '{' || *at == '[')
		return skip_value(scan, at, value);
	if (*at == '-' || json_is_digit(*at))
		return scan_number(scan, at, value);
	return scan_literal(scan, at, value);
}

char json_peek(struct json_scanner *scan)
{
	scan->at = skip_white_space(scan->at);
	if (scan->at >= scan->end) {
		json_set_problem(scan, scan->end, NULL);
		return 0;
	}
	return *scan->at;
}

bool json_open(struct json_scanner *scan, char open)
{
	const char *at = skip_white_space(scan->at);

	if (*at != open)
		return json_set_problem(
			scan, at, open == '{' ? "`{` was expected" : "`[` was expected");
	at = skip_white_space(at + 1);
	if (at >= scan->end)
		return json_set_problem(scan, at, NULL);
	scan->at = at;
	if (*at == (open == '{' ? '}' : ']')) {
		scan->at = at + 1;
		return false;
	}
	return true;
}

bool json_key(struct json_scanner *scan, struct json_text *key)
{
	const char *at = skip_white_space(scan->at);

	if (*at != '"')
		return json_set_problem(scan, at, "a key in quotes was expected");
	if (!scan_string(scan, at, key))
		return false;
	at = skip_white_space(scan->at);
	if (*at != ':')
		return json_set_problem(scan, at, "`:` was expected after a key");
	scan->at = at + 1;
	return true;
}

bool json_next(struct json_scanner *scan, char close)
{
	const char *at = skip_white_space(scan->at);

	if (*at == ',') {
		at = skip_white_space(at + 1);
		if (at >= scan->end)
			return json_set_problem(scan, at, NULL);
		scan->at = at + (*at == close);
		return *at != close;
	}
	if (*at != close)
		return json_set_problem(scan, at,
			close == '}' ? "`,` or `}` was expected" : "`,` or `]` was expected");
	scan->at = at + 1;
	return false;
}
