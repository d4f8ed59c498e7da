/* SPDX-License-Identifier: MIT */
#include "report/import/convert/name_words.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool equals_word(struct string_view view, const char *word)
{
	return view.length == strlen(word) && !strncasecmp(view.bytes, word, view.length);
}

/* Returns true for a word of the generated names. "Backward" may have a number. */
static bool is_common_word(struct string_view view)
{
	static const char *const words[] = { "torch", "autograd", "cpp", "node", "function", "op",
		"aten", "fbgemm", "gpu", "cuda", "cpu" };
	static const char backward[] = "backward";

	if (view.length >= strlen(backward) && !strncasecmp(view.bytes, backward, strlen(backward)))
		return true;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (equals_word(view, words[i]))
			return true;
	return false;
}

static bool is_word_character(const struct string_view *name, uint32_t at)
{
	return at < name->length && isalnum((unsigned char)name->bytes[at]);
}

/* Returns the end of the word that begins at `begin`. A capital letter after a small letter or a
 * digit begins a word. */
static uint32_t end_of_word(const struct string_view *name, uint32_t begin)
{
	uint32_t end = begin + 1;

	while (is_word_character(name, end) &&
		!(isupper((unsigned char)name->bytes[end]) &&
			!isupper((unsigned char)name->bytes[end - 1])))
		end++;
	return end;
}

void name_words_split(struct name_words *words, struct string_view name)
{
	uint32_t at = 0;

	words->count = 0;
	while (at < name.length && words->count < NAME_WORDS_MAX) {
		const uint32_t end = is_word_character(&name, at) ? end_of_word(&name, at) : at;
		const struct string_view word = { name.bytes + at, end - at };

		if (word.length && !is_common_word(word))
			words->words[words->count++] = word;
		at = end > at ? end : at + 1;
	}
}

uint32_t name_words_shared(const struct name_words *left, const struct name_words *right)
{
	uint32_t shared = 0;

	for (uint32_t i = 0; i < left->count; i++)
		for (uint32_t j = 0; j < right->count; j++)
			if (left->words[i].length == right->words[j].length &&
				!strncasecmp(left->words[i].bytes, right->words[j].bytes,
					left->words[i].length)) {
				shared++;
				break;
			}
	return shared;
}
