/* SPDX-License-Identifier: MIT */
#include "report/text/label_pattern.h"
#include <string.h>

static bool is_label_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns whether `c` after a number makes the number part of a longer word. */
static bool continues_word(char c)
{
	const unsigned char byte = (unsigned char)c;

	return is_label_digit(c) || (unsigned)((byte | 32) - 'a') < 26 || c == '_' || c == '+' ||
	       c == '-' || byte >= 0x80;
}

/* Returns whether a number may begin at `at`, judged by the character before. `*brackets`: how
 * many are open there. */
static bool number_may_begin(const char *text, size_t at, unsigned *brackets)
{
	const char c = at ? text[at - 1] : '\0';
	const bool opens = c == '[' || c == '(' || c == '{';

	if (opens)
		++*brackets;
	else if ((c == ']' || c == ')' || c == '}') && *brackets)
		--*brackets;
	return opens || c == ' ' || c == '=' || c == '#' || c == '.' || (c == ',' && *brackets);
}

static size_t skip_label_digits(const char *text, size_t length, size_t at)
{
	while (at < length && is_label_digit(text[at]))
		at++;
	return at;
}

/* Returns whether another fraction follows at `at`: 1.2.3 is not a number with a fraction. */
static bool is_version(const char *text, size_t length, size_t at)
{
	return text[at] == '.' && at + 1 < length && is_label_digit(text[at + 1]);
}

/* Returns the end of the number that begins at `at` (at least 1), or `at` if there is none. */
static size_t label_number_end(const char *text, size_t length, size_t at)
{
	const bool dotted = text[at - 1] == '.';
	size_t begin = at, end, fraction;

	if (!dotted && (text[begin] == '-' || text[begin] == '+'))
		begin++;
	end = skip_label_digits(text, length, begin);
	if (end == begin)
		return at;
	if (!dotted && end + 1 < length && text[end] == '.') {
		fraction = skip_label_digits(text, length, end + 1);
		if (fraction > end + 1 &&
			(fraction == length || (!continues_word(text[fraction]) &&
						       !is_version(text, length, fraction))))
			return fraction;
	}
	return end == length || !continues_word(text[end]) ? end : at;
}

size_t label_fold(const char *text, size_t length, char *out)
{
	unsigned brackets = 0;
	size_t used = 0;

	for (size_t i = 0; i < length;) {
		const size_t end = number_may_begin(text, i, &brackets)
					   ? label_number_end(text, length, i)
					   : i;

		if (end > i) {
			out[used++] = '*';
			i = end;
		} else {
			out[used++] = text[i++];
		}
	}
	return used;
}

static bool equals_word(const char *text, size_t length, const char *word)
{
	return length == strlen(word) && memcmp(text, word, length) == 0;
}

/* Returns whether `part` is the name of a wrapper: torch.compile, FSDP and activation
 * checkpointing add one around a module, DDP around a whole model (`is_first_part`). */
static bool is_wrapper_module(const char *part, size_t length, bool is_first_part)
{
	return equals_word(part, length, "_orig_mod") ||
	       equals_word(part, length, "_fsdp_wrapped_module") ||
	       equals_word(part, length, "_checkpoint_wrapped_module") ||
	       (is_first_part && equals_word(part, length, "module"));
}

/* Returns the length of `part` without the number at its end if the word before the number says
 * that it is one of many. Else `length`: two linear layers with numbers may do different things. */
static size_t numbered_stem(const char *part, size_t length)
{
	static const char *const repeated[] = { "layer_", "block_" };
	size_t stem = length;

	while (stem && is_label_digit(part[stem - 1]))
		stem--;
	for (size_t i = 0; stem < length && i < sizeof repeated / sizeof *repeated; i++) {
		const size_t word = strlen(repeated[i]);

		if (stem >= word && !memcmp(part + stem - word, repeated[i], word))
			return stem;
	}
	return length;
}

size_t label_fold_module(const char *path, size_t length, char *out)
{
	size_t used = 0;

	for (size_t at = 0, end; at <= length; at = end + 1) {
		const char *dot = memchr(path + at, '.', length - at);

		end = dot ? (size_t)(dot - path) : length;
		if ((dot || used) && is_wrapper_module(path + at, end - at, at == 0))
			continue;
		if (used)
			out[used++] = '.';
		if (end > at && skip_label_digits(path, end, at) == end) {
			out[used++] = '*';
		} else {
			const size_t stem = numbered_stem(path + at, end - at);

			memcpy(out + used, path + at, stem);
			used += stem;
			if (stem < end - at)
				out[used++] = '*';
		}
	}
	return used;
}

size_t label_fold_operator(const char *name, size_t length, char *out)
{
	static const char compiled[] = "Torch-Compiled Region: ";
	const size_t prefix = sizeof compiled - 1;
	const char *slash = length > prefix && memcmp(name, compiled, prefix) == 0
				    ? memrchr(name, '/', length)
				    : NULL;

	memcpy(out, name, length);
	if (!slash || slash + 1 == name + length)
		return length;
	length = (size_t)(slash + 1 - name);
	out[length++] = '*';
	return length;
}

bool label_number(const char *text, size_t length, uint64_t *number)
{
	unsigned brackets = 0;
	bool found = false;

	for (size_t i = 0; i < length; i++) {
		const size_t end = number_may_begin(text, i, &brackets)
					   ? label_number_end(text, length, i)
					   : i;
		size_t at = i;

		if (end == i)
			continue;
		found = true;
		*number = 0;
		for (at += !is_label_digit(text[at]);
			at < end && is_label_digit(text[at]) && *number < UINT64_MAX / 16; at++)
			*number = *number * 10 + (uint64_t)(text[at] - '0');
		i = end - 1;
	}
	return found;
}
