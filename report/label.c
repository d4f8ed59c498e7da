/* SPDX-License-Identifier: MIT */
#include "report/label.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* May follow a number and make it part of a longer word. */
static bool continues_word(char c)
{
	const unsigned char byte = (unsigned char)c;

	return is_digit(c) || (unsigned)((byte | 32) - 'a') < 26 || c == '_' || c == '+' || c == '-' || byte >= 0x80;
}

static bool opens(char c)
{
	return c == ' ' || c == '=' || c == '#' || c == '.' || c == '[' || c == '(' || c == '{';
}

static size_t digits(const char *text, size_t length, size_t at)
{
	while (at < length && is_digit(text[at]))
		at++;
	return at;
}

/* Where the number that begins at `at`, after the character before it, ends; `at` itself if none does. */
static size_t number_end(const char *text, size_t length, size_t at)
{
	const bool dotted = text[at - 1] == '.';
	size_t begin = at, end, fraction;

	if (!dotted && (text[begin] == '-' || text[begin] == '+'))
		begin++;
	end = digits(text, length, begin);
	if (end == begin)
		return at;
	if (!dotted && end + 1 < length && text[end] == '.') {
		fraction = digits(text, length, end + 1);
		if (fraction > end + 1 && (fraction == length || (!continues_word(text[fraction]) && text[fraction] != '.')))
			return fraction;
	}
	return end == length || !continues_word(text[end]) ? end : at;
}

size_t label_fold(const char *text, size_t length, char *out)
{
	size_t used = 0;

	for (size_t i = 0; i < length;) {
		const size_t end = i > 0 && opens(text[i - 1]) ? number_end(text, length, i) : i;

		if (end > i) {
			out[used++] = '*';
			i = end;
		} else {
			out[used++] = text[i++];
		}
	}
	return used;
}

bool label_number(const char *text, size_t length, uint64_t *number)
{
	bool found = false;

	for (size_t i = 1; i < length; i++) {
		const size_t end = opens(text[i - 1]) ? number_end(text, length, i) : i;
		size_t at = i;

		if (end == i)
			continue;
		found = true;
		*number = 0;
		for (at += !is_digit(text[at]); at < end && is_digit(text[at]) && *number < UINT64_MAX / 16; at++)
			*number = *number * 10 + (uint64_t)(text[at] - '0');
		i = end;
	}
	return found;
}
