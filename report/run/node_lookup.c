/* SPDX-License-Identifier: MIT */
#include "report/run/node_lookup.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/text/label_pattern.h"
#include "report/text/suggest.h"
#include "report/base/escape.h"
#include <stdlib.h>
#include <string.h>

/* Whether `rest` is the node's class as text shows it: ` (Linear)` of `fc (Linear)`. */
static bool node_has_class(
	const struct process *process, const struct node *node, struct string_view rest)
{
	const struct string_view class = string_table_get(process->texts, node->class);

	return node->class && rest.length == class.length + 3 && memcmp(rest.bytes, " (", 2) == 0 &&
	       memcmp(rest.bytes + 2, class.bytes, class.length) == 0 &&
	       rest.bytes[rest.length - 1] == ')';
}

static bool node_has_name(
	const struct process *process, bool no_fold, uint32_t node, const char *name, size_t length)
{
	const struct string_view text = string_table_get(
		process->texts, process->profile->tree->nodes[node].name);
	char *folded = xcalloc(length + 1);
	const size_t profiled_length = label_fold(name, length, folded);
	const bool same = (text.length == length && memcmp(text.bytes, name, length) == 0) ||
			  (!no_fold && text.length == profiled_length &&
				  memcmp(text.bytes, folded, profiled_length) == 0);

	free(folded);
	if (!same && text.length < length && memcmp(text.bytes, name, text.length) == 0)
		return node_has_class(process, &process->profile->tree->nodes[node],
			(struct string_view){
				name + text.length, (uint32_t)(length - text.length) });
	return same;
}

static void add_found_node(struct node_list *list, size_t *room, uint32_t node)
{
	array_grow_zeroed(&list->nodes, room, list->count + 1, sizeof *list->nodes);
	list->nodes[list->count++] = node;
}

struct node_list node_lookup_path(
	const struct process *process, bool no_fold, const char *path, const bool *has_events)
{
	const struct tree *tree = process->profile->tree;
	char *name = xcalloc(strlen(path) + 1);
	struct node_list found = { .nodes = xcalloc(sizeof *found.nodes), .count = 1 };
	size_t length;

	while (focus_next_component(&path, name, &length)) {
		struct node_list next = { .nodes = NULL };
		size_t room = 0;

		for (size_t i = 0; i < found.count; i++)
			for (uint32_t id = tree->nodes[found.nodes[i]].first_child; id;
				id = tree->nodes[id].next)
				if ((!has_events || has_events[id]) &&
					node_has_name(process, no_fold, id, name, length))
					add_found_node(&next, &room, id);
		free(found.nodes);
		found = next;
	}
	free(name);
	return found;
}

static void offer_node(
	struct suggestion *near, const struct process *process, const struct node *node)
{
	const struct string_view name = string_table_get(process->texts, node->name);
	char text[SUGGEST_BYTES];

	if (name.length >= sizeof text)
		return;
	memcpy(text, name.bytes, name.length);
	text[name.length] = '\0';
	suggest_offer(near, text);
}

const char *node_lookup_suggest(
	const struct process *process, bool no_fold, const char *path, const char *otherwise)
{
	const struct tree *tree = process->profile->tree;
	char *begin = xcalloc(strlen(path) + 1), *name = xcalloc(strlen(path) + 1);
	const char *rest = path, *sentence;
	struct node_list outer = { .nodes = xcalloc(sizeof *outer.nodes), .count = 1 }, inner;
	struct suggestion near;
	size_t length;

	while (focus_next_component(&rest, name, &length)) {
		memcpy(begin, path, (size_t)(rest - path));
		begin[*rest ? rest - path - 1 : rest - path] = '\0';
		inner = node_lookup_path(process, no_fold, begin, NULL);
		if (!inner.count) {
			free(inner.nodes);
			break;
		}
		free(outer.nodes);
		outer = inner;
	}
	near = suggest_for(name, length);
	for (size_t i = 0; i < outer.count; i++)
		for (uint32_t id = tree->nodes[outer.nodes[i]].first_child; id;
			id = tree->nodes[id].next)
			offer_node(&near, process, &tree->nodes[id]);
	sentence = suggest_text(&near, otherwise);
	free(outer.nodes);
	free(begin);
	free(name);
	return sentence;
}

/* Returns the end of a sentence about a name that no node has. */
static const char *suggest_any_node(
	const struct process *process, const char *text, const char *otherwise)
{
	struct suggestion near = suggest_for(text, strlen(text));

	for (uint32_t id = 1; id < process->profile->tree->count; id++)
		offer_node(&near, process, &process->profile->tree->nodes[id]);
	return suggest_text(&near, otherwise);
}

static bool contains_text(struct string_view text, const char *part, size_t length)
{
	for (size_t i = 0; i + length <= text.length; i++)
		if (memcmp(text.bytes + i, part, length) == 0)
			return true;
	return false;
}

/* The nodes of the one name that contains `part`. */
static struct node_list nodes_with_text(const struct process *process, const char *part)
{
	const struct tree *tree = process->profile->tree;
	struct node_list found = { .nodes = NULL };
	char shown[2][160];
	size_t room = 0;

	for (uint32_t id = 1; id < tree->count; id++) {
		const uint32_t first = found.count ? tree->nodes[found.nodes[0]].name
						   : tree->nodes[id].name;
		const struct string_view name = string_table_get(
						 process->texts, tree->nodes[id].name),
					 other = string_table_get(process->texts, first);

		if (!contains_text(name, part, strlen(part)))
			continue;
		if (tree->nodes[id].name != first) {
			escape_text(shown[0], sizeof shown[0], other.bytes, other.length, true);
			escape_text(shown[1], sizeof shown[1], name.bytes, name.length, true);
			fatal(STATUS_USAGE,
				"`%s` is ambiguous: it is a part of several names, such as `%s` "
				"and `%s`; give a longer part",
				part, shown[0], shown[1]);
		}
		add_found_node(&found, &room, id);
	}
	return found;
}

struct node_list node_lookup_name(const struct process *process, bool no_fold, const char *text)
{
	struct node_list found = { .nodes = NULL };
	size_t room = 0;

	if (strchr(text, '/'))
		found = node_lookup_path(process, no_fold, text, NULL);
	for (uint32_t id = 1; !found.count && *text && id < process->profile->tree->count; id++)
		if (node_has_name(process, no_fold, id, text, strlen(text)))
			for (; id < process->profile->tree->count; id++)
				if (node_has_name(process, no_fold, id, text, strlen(text)))
					add_found_node(&found, &room, id);
	if (!found.count && *text)
		found = nodes_with_text(process, text);
	if (!found.count)
		fatal(STATUS_USAGE,
			"no name contains `%s`, and it is no path: names joined by /, a / in a "
			"name written \\/%s",
			text, suggest_any_node(process, text, NULL));
	return found;
}
