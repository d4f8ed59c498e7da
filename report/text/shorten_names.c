/* SPDX-License-Identifier: MIT */
#include "report/text/shorten_names.h"
#include "report/base/alloc.h"
#include "report/base/escape.h"
#include <stdlib.h>
#include <string.h>

#define ROUNDS 4u     /* of two that differ, a third may differ further behind */
#define LEAST 12u     /* columns: with fewer, nothing more can be shown */
#define ELLIPSIS 3u   /* bytes */

static void shorten(struct apart_name *name, bool ascii)
{
	const size_t room = strlen(name->whole) + ELLIPSIS + 1;

	name->text = need(room);
	memcpy(name->text, name->whole, room - ELLIPSIS);
	(name->is_path ? visible_shorten_path : visible_shorten)(name->text, room, name->columns, ascii);
}

static int by_text(const void *a, const void *b)
{
	const struct apart_name *left = *(struct apart_name *const *)a, *right = *(struct apart_name *const *)b;
	const int order = left->list == right->list ? strcmp(left->text, right->text) : left->list < right->list ? -1 : 1;

	return order ? order : left == right ? 0 : left < right ? -1 : 1;
}

static bool reads_the_same(const struct apart_name *a, const struct apart_name *b)
{
	return a->list == b->list && !strcmp(a->text, b->text);
}

/* How much all begin with; SIZE_MAX: they are the same, or nothing more has room. */
static size_t common(struct apart_name *const *names, size_t count)
{
	size_t length = SIZE_MAX;

	for (size_t i = 1; i < count; i++) {
		size_t at = 0;

		while (names[0]->whole[at] && names[0]->whole[at] == names[i]->whole[at])
			at++;
		if ((names[0]->whole[at] || names[i]->whole[at]) && at < length)
			length = at;
	}
	return length;
}

static bool is_middle(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Back to where the component or word begins in which they differ, if that is near; and never into a character. */
static size_t begin_of(const struct apart_name *name, size_t at)
{
	const size_t near = name->is_path ? name->columns : name->columns / 6;
	size_t from = at;

	while (from > 0 && at - from < near && (name->is_path ? name->whole[from - 1] != '/' : name->whole[from - 1] != '_'))
		from--;
	if (from > 0 && name->whole[from - 1] != '/' && name->whole[from - 1] != '_')
		from = at;
	while (from > 0 && is_middle(name->whole[from]))
		from--;
	return from;
}

/* Paths that differ in their first component: its beginning and its end. */
static void show_ends(struct apart_name *name, bool ascii)
{
	const size_t bytes = strlen(name->whole);

	memcpy(name->text, name->whole, bytes + 1);
	visible_shorten(name->text, bytes + ELLIPSIS + 1, name->columns, ascii);
}

/* Its beginning (of a path: nothing), an ellipsis, and what stands at `at` and behind. */
static void show_from(struct apart_name *name, size_t at, bool ascii)
{
	const char *dots = ascii ? "..." : "\xe2\x80\xa6";
	const size_t from = begin_of(name, at), bytes = strlen(name->whole), dot_columns = ascii ? 3 : 1;
	size_t head = 0, length, left;

	while (!name->is_path && head < from && visible_width(name->whole, head) < name->columns / 4) {
		utf8_decode(name->whole + head, bytes - head, &length);
		head += length;
	}
	if (name->columns < LEAST)
		return;
	if (from <= head + dot_columns) {
		show_ends(name, ascii);
		return;
	}
	left = name->columns - visible_width(name->whole, head) - dot_columns;
	memcpy(name->text, name->whole, head);
	memcpy(name->text + head, dots, ELLIPSIS);
	memcpy(name->text + head + ELLIPSIS, name->whole + from, bytes - from + 1);
	visible_shorten(name->text + head + ELLIPSIS, bytes - head + 1, left, ascii);
}

void apart_names(struct apart_name *names, size_t count, bool ascii)
{
	struct apart_name **sorted = need((count + 1) * sizeof *sorted);
	bool again = true;

	for (size_t i = 0; i < count; i++) {
		sorted[i] = &names[i];
		shorten(&names[i], ascii);
	}
	for (unsigned round = 0; round < ROUNDS && again; round++) {
		again = false;
		qsort(sorted, count, sizeof *sorted, by_text);
		for (size_t first = 0, end; first < count; first = end) {
			size_t at;

			for (end = first + 1; end < count && reads_the_same(sorted[first], sorted[end]); end++)
				;
			at = common(sorted + first, end - first);
			for (size_t i = first; at != SIZE_MAX && i < end; i++)
				show_from(sorted[i], at, ascii);
			again |= at != SIZE_MAX;
		}
	}
	free(sorted);
}

void apart_free(struct apart_name *names, size_t count)
{
	for (size_t i = 0; names && i < count; i++) {
		free(names[i].whole);
		free(names[i].text);
	}
	free(names);
}
