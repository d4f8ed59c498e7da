/* SPDX-License-Identifier: MIT */
#include "report/text/suggest.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct suggestion suggest_for(const char *word, size_t length)
{
	/* A third of the letters may be wrong, but at least one, and never all. */
	const size_t limit = length < 2 ? 0 : length < 6 ? 1 : length / 3;

	return (struct suggestion){ .word = word, .length = length, .distance = limit + 1 };
}

static bool same_letter(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The optimal string alignment distance, by rows: rows[i % 3][j] is that of a's first i bytes and
 * b's first j bytes. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	size_t rows[3][SUGGEST_BYTES + 1];

	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		const size_t *before = rows[(i + 2) % 3], *two_before = rows[(i + 1) % 3];
		size_t *row = rows[i % 3];

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			row[j] = least(least(before[j], row[j - 1]) + 1,
				before[j - 1] + !same_letter(a[i - 1], b[j - 1]));
			if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) &&
				same_letter(a[i - 2], b[j - 1]))
				row[j] = least(row[j], two_before[j - 2] + 1);
		}
	}
	for (size_t j = 0; a_length >= 3 && j < b_length; j++)
		rows[a_length % 3][b_length] = least(
			rows[a_length % 3][b_length], rows[a_length % 3][j] + 1);
	return rows[a_length % 3][b_length];
}

void suggest_offer(struct suggestion *suggestion, const char *name)
{
	const size_t length = strlen(name);
	size_t distance;

	if (length >= SUGGEST_BYTES || suggestion->length >= SUGGEST_BYTES)
		return;
	distance = edit_distance(suggestion->word, suggestion->length, name, length);
	if (distance >= suggestion->distance)
		return;
	suggestion->distance = distance;
	memcpy(suggestion->best, name, length + 1);
}

const char *suggest_text(const struct suggestion *suggestion, const char *otherwise)
{
	static char text[256];

	if (*suggestion->best)
		snprintf(text, sizeof text, "; did you mean `%s`?", suggestion->best);
	else
		snprintf(text, sizeof text, "%s%s", otherwise ? "; " : "",
			otherwise ? otherwise : "");
	return text;
}
