/* SPDX-License-Identifier: MIT */
#include "report/text/shorten_names.h"
#include "report/base/alloc.h"
#include "report/base/escape.h"
#include "report/text/shorten_path.h"
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 4u        /* a round separates names only at their first difference */
#define COLUMNS_MIN 12u      /* with fewer, a difference is not shown */
#define PATH_COLUMNS_MIN 16u /* with fewer, a path is cut at any character */
#define ELLIPSIS_BYTES 3u

static const char caller_sign[] = " < ";

/* Whether names in the middle of the path are left out. Of a path with callers the end says most,
 * and it is cut at its beginning. */
static bool is_cut_at_names(const struct shortened_name *name)
{
	return name->is_path && name->columns >= PATH_COLUMNS_MIN &&
	       !strstr(name->whole, caller_sign);
}

/* Takes ownership of `text`, which gets the room that other ways to shorten the name need. */
static void set_path_text(struct shortened_name *name, char *text)
{
	const size_t whole = strlen(name->whole), length = strlen(text),
		     room = (length > whole ? length : whole) + ELLIPSIS_BYTES + 1;

	free(name->text);
	name->text = xcalloc(room);
	memcpy(name->text, text, length);
	free(text);
}

static void set_short_text(struct shortened_name *name, bool ascii)
{
	const struct path_shortening how = {
		.two_lines = name->two_lines, .differs_at = SIZE_MAX, .shared = name->shared
	};
	const size_t room = strlen(name->whole) + ELLIPSIS_BYTES + 1;

	if (is_cut_at_names(name) &&
		escaped_width(name->whole, strlen(name->whole)) > name->columns) {
		set_path_text(name, shorten_path(name->whole, name->columns, &how, ascii));
		return;
	}
	name->text = xcalloc(room);
	memcpy(name->text, name->whole, room - ELLIPSIS_BYTES);
	(name->is_path ? escaped_shorten_path : escaped_shorten)(
		name->text, room, name->columns, ascii);
}

static int compare_short_names(const void *a, const void *b)
{
	const struct shortened_name *left = *(struct shortened_name *const *)a,
				    *right = *(struct shortened_name *const *)b;
	const int order = left->group == right->group  ? strcmp(left->text, right->text)
			  : left->group < right->group ? -1
						       : 1;

	return order ? order : left == right ? 0 : left < right ? -1 : 1;
}

static bool has_same_short_text(const struct shortened_name *a, const struct shortened_name *b)
{
	return a->group == b->group && !strcmp(a->text, b->text);
}

/* Returns the length of the prefix that all names share, or SIZE_MAX if all are identical. */
static size_t common_prefix_length(struct shortened_name *const *names, size_t count)
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

static bool is_utf8_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Returns the start of the component or word around `at` if that is near, else `at`. Never
 * returns a position inside a character. */
static size_t component_start(const struct shortened_name *name, size_t at)
{
	const size_t near = name->is_path ? name->columns : name->columns / 6;
	size_t from = at;

	while (from > 0 && at - from < near &&
		(name->is_path ? name->whole[from - 1] != '/' : name->whole[from - 1] != '_'))
		from--;
	if (from > 0 && name->whole[from - 1] != '/' && name->whole[from - 1] != '_')
		from = at;
	while (from > 0 && is_utf8_continuation(name->whole[from]))
		from--;
	return from;
}

/* Shortens a path in its middle, if the paths differ in their first component. */
static void keep_both_ends(struct shortened_name *name, bool ascii)
{
	const size_t bytes = strlen(name->whole);

	memcpy(name->text, name->whole, bytes + 1);
	escaped_shorten(name->text, bytes + ELLIPSIS_BYTES + 1, name->columns, ascii);
}

/* Shows the name by which a path differs from others. Returns false if it does not fit. */
static bool show_differing_name(struct shortened_name *name, size_t at, bool ascii)
{
	const struct path_shortening how = {
		.two_lines = name->two_lines, .differs_at = at, .shared = name->shared
	};
	char *text;

	if (!is_cut_at_names(name))
		return false;
	if (escaped_width(name->whole, strlen(name->whole)) <= name->columns)
		return true;
	text = shorten_path(name->whole, name->columns, &how, ascii);
	if (!text)
		return false;
	set_path_text(name, text);
	return true;
}

/* Shows the beginning (of a path: nothing), an ellipsis, and the text from about `at` on. */
static void show_difference(struct shortened_name *name, size_t at, bool ascii)
{
	const char *dots = ascii ? "..." : "\xe2\x80\xa6";
	const size_t from = component_start(name, at), bytes = strlen(name->whole),
		     dot_columns = ascii ? 3 : 1;
	size_t head = 0, length, left;

	while (!name->is_path && head < from &&
		escaped_width(name->whole, head) < name->columns / 4) {
		utf8_decode(name->whole + head, bytes - head, &length);
		head += length;
	}
	if (name->columns < COLUMNS_MIN)
		return;
	if (show_differing_name(name, at, ascii))
		return;
	if (from <= head + dot_columns) {
		keep_both_ends(name, ascii);
		return;
	}
	left = name->columns - escaped_width(name->whole, head) - dot_columns;
	memcpy(name->text, name->whole, head);
	memcpy(name->text + head, dots, ELLIPSIS_BYTES);
	memcpy(name->text + head + ELLIPSIS_BYTES, name->whole + from, bytes - from + 1);
	escaped_shorten(name->text + head + ELLIPSIS_BYTES, bytes - head + 1, left, ascii);
}

/* Returns the beginning of the last caller in `text`, which ends at `end`, or NULL. */
static const char *last_caller(const char *text, const char *end)
{
	const size_t length = strlen(caller_sign);

	for (const char *at = end; at - text >= (ptrdiff_t)length; at--)
		if (!memcmp(at - length, caller_sign, length))
			return at - length;
	return NULL;
}

/* Returns the length of the callers at the end that all names of the group of names[first] share,
 * of those that have callers. 0: fewer than two have any. */
static size_t common_callers_length(
	const struct shortened_name *names, size_t count, size_t first, bool *any_wide)
{
	const char *whole = names[first].whole, *end = whole + strlen(whole);
	size_t length = SIZE_MAX, with_callers = 0;

	for (size_t i = first; i < count; i++) {
		const char *other = names[i].whole, *other_end = other + strlen(other);
		size_t same = 0;

		if (names[i].group != names[first].group || !names[i].is_path ||
			!strstr(other, caller_sign))
			continue;
		with_callers++;
		*any_wide |= escaped_width(other, (size_t)(other_end - other)) > names[i].columns;
		while (same < length && same < (size_t)(end - whole) &&
			same < (size_t)(other_end - other) &&
			end[-1 - (ptrdiff_t)same] == other_end[-1 - (ptrdiff_t)same])
			same++;
		length = same < length ? same : length;
	}
	return with_callers > 1 ? length : 0;
}

/* Removes the last `length` bytes of the names of a group, back to the sign of a caller. */
static void remove_callers(
	struct shortened_name *names, size_t count, size_t first, size_t length, const char *dots)
{
	const char *end = names[first].whole + strlen(names[first].whole);
	const uint32_t group = names[first].group;
	const char *from = NULL;

	for (const char *at = end; (at = last_caller(names[first].whole, at));)
		if ((size_t)(end - at) <= length)
			from = at;
		else
			break;
	if (!from)
		return;
	length = (size_t)(end - from) - strlen(caller_sign);
	if (length < ELLIPSIS_BYTES)
		return;
	for (size_t i = first; i < count; i++)
		if (names[i].group == group && names[i].is_path &&
			strstr(names[i].whole, caller_sign))
			strcpy(names[i].whole + strlen(names[i].whole) - length, dots);
}

/* Replaces callers that all paths of a group end with by an ellipsis, if a name is too wide: they
 * tell no name from another, and take the room of what does. */
static void remove_common_callers(struct shortened_name *names, size_t count, bool ascii)
{
	for (size_t i = 0; i < count; i++) {
		bool any_wide = false, is_first = true;
		size_t length;

		if (!names[i].is_path || !strstr(names[i].whole, caller_sign))
			continue;
		for (size_t j = i; is_first && j-- > 0;)
			is_first = names[j].group != names[i].group || !names[j].is_path ||
				   !strstr(names[j].whole, caller_sign);
		if (!is_first)
			continue;
		length = common_callers_length(names, count, i, &any_wide);
		if (any_wide && length)
			remove_callers(names, count, i, length, ascii ? "..." : "\xe2\x80\xa6");
	}
}

/* Shows names that are no paths and begin like `like`, up to `at`, from there on too. So names of
 * one family look alike. */
static void show_of_those_alike(struct shortened_name *names, size_t count,
	const struct shortened_name *like, size_t at, bool ascii)
{
	for (size_t i = 0; i < count; i++)
		if (names[i].group == like->group && !names[i].is_path &&
			!strncmp(names[i].whole, like->whole, at) &&
			escaped_width(names[i].whole, strlen(names[i].whole)) > names[i].columns)
			show_difference(&names[i], at, ascii);
}

/* Finds the names at the beginning that all paths of a group have, such as that of the step. Paths
 * of one name are not counted. */
static void find_shared_names(struct shortened_name *names, size_t count)
{
	static const char separator[] = " / ";

	for (size_t first = 0; first < count; first++) {
		const struct shortened_name *like = &names[first];
		const char *end;
		size_t length = 0;
		bool all = is_cut_at_names(like) && !like->shared;

		while (all && (end = strstr(like->whole + length, separator))) {
			const size_t next = (size_t)(end - like->whole) + strlen(separator);

			for (size_t i = first; i < count && all; i++)
				all = names[i].group != like->group ||
				      !is_cut_at_names(&names[i]) ||
				      !strstr(names[i].whole, separator) ||
				      !strncmp(names[i].whole, like->whole, next);
			length = all ? next : length;
		}
		for (size_t i = first; i < count && length; i++)
			if (names[i].group == like->group && is_cut_at_names(&names[i]) &&
				strstr(names[i].whole, separator))
				names[i].shared = length;
	}
}

/* Returns the number of bytes at the end that two texts share. */
static size_t common_end_length(const char *a, const char *b)
{
	const size_t a_bytes = strlen(a), b_bytes = strlen(b);
	size_t length = 0;

	while (length < a_bytes && length < b_bytes &&
		a[a_bytes - 1 - length] == b[b_bytes - 1 - length])
		length++;
	return length;
}

/* Returns the path whose end is most like that of `name` and has its last name, or NULL. */
static const struct shortened_name *find_alike(
	const struct shortened_name *names, size_t count, const struct shortened_name *name)
{
	const char *last = strrchr(name->whole, '/');
	const struct shortened_name *alike = NULL;
	size_t most = last ? strlen(last) : SIZE_MAX;

	for (size_t i = 0; i < count; i++) {
		size_t length;

		if (&names[i] == name || names[i].group != name->group || !names[i].is_path ||
			!strcmp(names[i].whole, name->whole))
			continue;
		length = common_end_length(names[i].whole, name->whole);
		if (length >= most) {
			most = length + 1;
			alike = &names[i];
		}
	}
	return alike;
}

#define ALIKE_PATHS_MAX 1000u

/* A path from whose middle names are left out shows the name by which it differs from the path that
 * ends most like it. */
static void show_what_differs(struct shortened_name *names, size_t count, bool ascii)
{
	for (size_t i = 0; i < count && count <= ALIKE_PATHS_MAX; i++) {
		const struct shortened_name *alike;
		struct shortened_name *pair[2] = { &names[i] };

		if (!is_cut_at_names(&names[i]) || !strcmp(names[i].whole, names[i].text))
			continue;
		alike = find_alike(names, count, &names[i]);
		if (!alike)
			continue;
		pair[1] = (struct shortened_name *)(uintptr_t)alike;
		show_differing_name(&names[i], common_prefix_length(pair, 2), ascii);
	}
}

void shorten_names(struct shortened_name *names, size_t count, bool ascii)
{
	struct shortened_name **sorted = xcalloc((count + 1) * sizeof *sorted);
	bool again = true;

	remove_common_callers(names, count, ascii);
	find_shared_names(names, count);
	for (size_t i = 0; i < count; i++) {
		sorted[i] = &names[i];
		set_short_text(&names[i], ascii);
	}
	show_what_differs(names, count, ascii);
	for (unsigned round = 0; round < ROUNDS_MAX && again; round++) {
		again = false;
		qsort(sorted, count, sizeof *sorted, compare_short_names);
		for (size_t first = 0, end; first < count; first = end) {
			size_t at;

			for (end = first + 1;
				end < count && has_same_short_text(sorted[first], sorted[end]);
				end++)
				;
			at = common_prefix_length(sorted + first, end - first);
			for (size_t i = first; at != SIZE_MAX && i < end; i++)
				show_difference(sorted[i], at, ascii);
			if (at != SIZE_MAX && !sorted[first]->is_path && !round)
				show_of_those_alike(names, count, sorted[first], at, ascii);
			again |= at != SIZE_MAX;
		}
	}
	free(sorted);
}

void shorten_names_free(struct shortened_name *names, size_t count)
{
	for (size_t i = 0; names && i < count; i++) {
		free(names[i].whole);
		free(names[i].text);
	}
	free(names);
}
