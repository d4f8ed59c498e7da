/* SPDX-License-Identifier: MIT */
#include "report/run/node_lookup.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/text/label_pattern.h"
#include "report/base/escape.h"
#include <stdlib.h>
#include <string.h>

/* `fc (Linear)`, as text shows it. */
static bool has_class(const struct process *process, const struct node *node, struct text rest)
{
	const struct text class = text_of(process->texts, node->class);

	return node->class && rest.length == class.length + 3 && memcmp(rest.bytes, " (", 2) == 0 &&
	       memcmp(rest.bytes + 2, class.bytes, class.length) == 0 && rest.bytes[rest.length - 1] == ')';
}

static bool is_named(const struct process *process, bool no_fold, uint32_t node, const char *name, size_t length)
{
	const struct text text = text_of(process->texts, process->fold->tree->nodes[node].name);
	char *folded = need(length + 1);
	const size_t folded_length = label_fold(name, length, folded);
	const bool same = (text.length == length && memcmp(text.bytes, name, length) == 0) ||
			  (!no_fold && text.length == folded_length && memcmp(text.bytes, folded, folded_length) == 0);

	free(folded);
	if (!same && text.length < length && memcmp(text.bytes, name, text.length) == 0)
		return has_class(process, &process->fold->tree->nodes[node],
			(struct text){ name + text.length, (uint32_t)(length - text.length) });
	return same;
}

static void add(struct places *places, size_t *room, uint32_t node)
{
	grow(&places->nodes, room, places->count + 1, sizeof *places->nodes);
	places->nodes[places->count++] = node;
}

struct places places_at(const struct process *process, bool no_fold, const char *path, const bool *alive)
{
	const struct tree *tree = process->fold->tree;
	char *name = need(strlen(path) + 1);
	struct places found = { .nodes = need(sizeof *found.nodes), .count = 1 };
	size_t length, room;

	while (options_next_component(&path, name, &length)) {
		struct places next = { .nodes = NULL };

		room = 0;
		for (size_t i = 0; i < found.count; i++)
			for (uint32_t id = tree->nodes[found.nodes[i]].first_child; id; id = tree->nodes[id].next)
				if ((!alive || alive[id]) && is_named(process, no_fold, id, name, length))
					add(&next, &room, id);
		free(found.nodes);
		found = next;
	}
	free(name);
	return found;
}

static bool is_in(struct text text, const char *part, size_t length)
{
	for (size_t i = 0; i + length <= text.length; i++)
		if (memcmp(text.bytes + i, part, length) == 0)
			return true;
	return false;
}

/* The places of the one name that has the text in it. */
static struct places with_part(const struct process *process, const char *part)
{
	const struct tree *tree = process->fold->tree;
	struct places found = { .nodes = NULL };
	char shown[2][160];
	size_t room = 0;

	for (uint32_t id = 1; id < tree->count; id++) {
		const uint32_t first = found.count ? tree->nodes[found.nodes[0]].name : tree->nodes[id].name;
		const struct text name = text_of(process->texts, tree->nodes[id].name), other = text_of(process->texts, first);

		if (!is_in(name, part, strlen(part)))
			continue;
		if (tree->nodes[id].name != first) {
			visible(shown[0], sizeof shown[0], other.bytes, other.length, true);
			visible(shown[1], sizeof shown[1], name.bytes, name.length, true);
			fatal(STATUS_USAGE, "several names have `%s` in them, such as `%s` and `%s`; say which", part, shown[0],
				shown[1]);
		}
		add(&found, &room, id);
	}
	return found;
}

struct places places_named(const struct process *process, bool no_fold, const char *text)
{
	struct places found = { .nodes = NULL };
	size_t room = 0;

	if (strchr(text, '/'))
		found = places_at(process, no_fold, text, NULL);
	for (uint32_t id = 1; !found.count && *text && id < process->fold->tree->count; id++)
		if (is_named(process, no_fold, id, text, strlen(text)))
			for (; id < process->fold->tree->count; id++)
				if (is_named(process, no_fold, id, text, strlen(text)))
					add(&found, &room, id);
	if (!found.count && *text)
		found = with_part(process, text);
	if (!found.count)
		fatal(STATUS_USAGE, "nothing is named `%s`, nor is it a place: names joined by /, a / in a name written \\/",
			text);
	return found;
}
