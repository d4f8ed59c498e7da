/* SPDX-License-Identifier: MIT */
#include "report/print/node_words.h"
#include "report/profile/node_names.h"
#include "report/table/column.h"
#include <string.h>

void paragraph_add_node(
	struct paragraph *paragraph, const struct process *process, uint32_t node_id)
{
	const struct node *node = &process->profile->tree->nodes[node_id];
	const struct string_view name = string_table_get(process->texts, node->name),
				 class = string_table_get(process->texts, node->class);

	paragraph_name(paragraph, name.bytes, name.length);
	if (!node->class || name.length != 1 || name.bytes[0] != '*')
		return;
	paragraph_add(paragraph, " (");
	paragraph_name(paragraph, class.bytes, class.length);
	paragraph_add(paragraph, ")");
}

static bool is_written(const struct written_paths *written, uint32_t node)
{
	for (size_t i = 0; i < written->count; i++)
		if (written->nodes[i] == node)
			return true;
	return false;
}

/* with fewer, `…` is hardly shorter, and harder to read */
#define LEFT_OUT_BYTES_MIN 20u

/* Returns how many names at the beginning of a path are left out, and marks its nodes as written.
 * At least two names remain. */
static size_t names_written_before(struct written_paths *written, const struct process *process,
	const uint32_t *nodes, size_t length)
{
	size_t first = 0, bytes = 0;

	for (size_t i = 0; written && i < length; i++) {
		if (is_written(written, nodes[i]))
			first = i;
		else if (written->count < WRITTEN_NODES_MAX)
			written->nodes[written->count++] = nodes[i];
	}
	if (first && first + 1 == length)
		first--;
	for (size_t i = 0; i < first; i++)
		bytes += string_table_get(
			process->texts, process->profile->tree->nodes[nodes[i]].name)
				 .length;
	return bytes >= LEFT_OUT_BYTES_MIN ? first : 0;
}

/* `omits`: whether the path leaves out sections of the run; `omits_steps`: steps too. */
static void add_path(struct paragraph *paragraph, const struct process *process, uint32_t node,
	bool omits, bool omits_steps)
{
	const struct memory_site site = { .omits_sections = omits, .omits_steps = omits_steps };
	const struct row row = { .process = (struct process *)(uintptr_t)process,
		.kind = omits ? ROW_SITE : ROW_NODE,
		.node = node,
		.tree = process->profile->tree,
		.of.site = omits ? &site : NULL };
	uint32_t nodes[16];
	const size_t length = row_path(&row, nodes, 16);
	size_t first;

	if (process->profile->tree->nodes[node].kind == NODE_UNATTRIBUTED) {
		paragraph_add(paragraph, "in no range");
		return;
	}
	first = names_written_before(
		paragraph->style->written, process, nodes, length < 16 ? length : 16);
	paragraph_add(paragraph, "in `%s",
		!first                    ? ""
		: paragraph->style->ascii ? "... / "
					  : "\xe2\x80\xa6 / ");
	for (size_t i = first; i < length && i < 16; i++) {
		paragraph_add(paragraph, "%s", i > first ? " / " : "");
		paragraph_add_node(paragraph, process, nodes[i]);
	}
	paragraph_add(paragraph, "%s`", length > 16 ? " / ..." : "");
}

void paragraph_add_path(struct paragraph *paragraph, const struct process *process, uint32_t node)
{
	add_path(paragraph, process, node, false, false);
}

#define PLACE_NODES 64u

/* A call path, as far as its names are part of a place. */
struct place {
	uint32_t nodes[PLACE_NODES]; /* outermost first */
	size_t length;
	size_t owner;    /* the range or module around the operators; length: there is none */
	size_t backward; /* the innermost node of a backward pass; length: there is none */
};

static struct string_view node_text(const struct process *process, uint32_t node)
{
	return string_table_get(process->texts, process->profile->tree->nodes[node].name);
}

static bool is_backward(struct string_view name)
{
	static const char end[] = NODE_BACKWARD_END;

	return name.length > sizeof end - 1 &&
	       !memcmp(name.bytes + name.length - (sizeof end - 1), end, sizeof end - 1);
}

/* Returns true for a range of PyTorch around a collective, such as `nccl:all_reduce`. */
static bool is_collective(struct string_view name)
{
	static const char *const backends[] = { "nccl:", "gloo:", "ucc:", "mpi:" };

	for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
		if (name.length > strlen(backends[i]) &&
			!memcmp(name.bytes, backends[i], strlen(backends[i])))
			return true;
	return false;
}

static bool owns_operators(const struct process *process, uint32_t node)
{
	const uint8_t kind = process->profile->tree->nodes[node].kind;

	return kind == NODE_MODULE || kind == NODE_OPTIMIZER ||
	       (kind == NODE_RANGE && !is_collective(node_text(process, node)));
}

/* Of a path that is too long it takes the innermost names. */
static struct place place_of(const struct process *process, uint32_t node)
{
	const struct tree *tree = process->profile->tree;
	struct place place = { .length = 0 };
	size_t at;

	for (uint32_t id = node; id && place.length < PLACE_NODES; id = tree->nodes[id].parent)
		place.length++;
	at = place.length;
	for (uint32_t id = node; at > 0; id = tree->nodes[id].parent)
		place.nodes[--at] = id;
	place.owner = place.backward = place.length;
	for (size_t i = 0; i < place.length; i++)
		if (is_backward(node_text(process, place.nodes[i])))
			place.backward = i;
	for (size_t i = 0; i < place.backward; i++)
		if (owns_operators(process, place.nodes[i]))
			place.owner = i;
	return place;
}

/* Appends the names from index `from` to `last`; `…` instead of those between `kept` and `last`. */
static void add_names(struct paragraph *paragraph, const struct process *process,
	const struct place *place, size_t from, size_t kept, size_t last)
{
	const char *left_out = paragraph->style->ascii ? "..." : "\xe2\x80\xa6";

	for (size_t i = from; i <= last; i++) {
		if (i > kept && i < last) {
			paragraph_add(paragraph, " / %s", left_out);
			i = last - 1;
			continue;
		}
		paragraph_add(paragraph, "%s", i > from ? " / " : "");
		paragraph_add_node(paragraph, process, place->nodes[i]);
	}
}

/* Returns true if `…` is worth it for the names from index `from` to before `to`. */
static bool are_long(
	const struct process *process, const struct place *place, size_t from, size_t to)
{
	size_t bytes = 0;

	for (size_t i = from; i < to; i++)
		bytes += node_text(process, place->nodes[i]).length;
	return bytes >= LEFT_OUT_BYTES_MIN;
}

/* Returns the index of the first name of a place: of what is around the owner, but no step. */
static size_t first_of_place(const struct process *process, const struct place *place)
{
	const size_t owner = place->owner;

	if (owner == place->length)
		return 0;
	return owner && process->profile->tree->nodes[place->nodes[owner - 1]].kind != NODE_STEP
		       ? owner - 1
		       : owner;
}

static void add_backward_place(
	struct paragraph *paragraph, const struct process *process, const struct place *place)
{
	const struct string_view name = node_text(process, place->nodes[place->backward]);

	paragraph_add(paragraph, "backward of ");
	paragraph_name(paragraph, name.bytes, name.length - (sizeof NODE_BACKWARD_END - 1));
	if (place->owner < place->length) {
		paragraph_add(paragraph, " in ");
		add_names(paragraph, process, place, first_of_place(process, place), place->owner,
			place->owner);
	}
	if (place->backward + 1 < place->length) {
		paragraph_add(paragraph, ", at ");
		paragraph_add_node(paragraph, process, place->nodes[place->length - 1]);
	}
}

void paragraph_add_place(struct paragraph *paragraph, const struct process *process, uint32_t node)
{
	const struct place place = place_of(process, node);
	const size_t last = place.length - 1, around = first_of_place(process, &place),
		     first = are_long(process, &place, 0, around) ? around : 0,
		     kept = place.owner < place.length ? place.owner + 1 : 1;

	if (process->profile->tree->nodes[node].kind == NODE_UNATTRIBUTED) {
		paragraph_add(paragraph, "no range (unattributed)");
		return;
	}
	if (place.backward < place.length) {
		add_backward_place(paragraph, process, &place);
		return;
	}
	if (first)
		paragraph_add(paragraph, "%s / ", paragraph->style->ascii ? "..." : "\xe2\x80\xa6");
	add_names(paragraph, process, &place, first,
		last > kept && are_long(process, &place, kept + 1, last) ? kept : last, last);
}

void paragraph_add_in_place(
	struct paragraph *paragraph, const struct process *process, uint32_t node)
{
	if (process->profile->tree->nodes[node].kind == NODE_UNATTRIBUTED) {
		paragraph_add(paragraph, "in no range");
		return;
	}
	paragraph_add(paragraph, "in `");
	paragraph_add_place(paragraph, process, node);
	paragraph_add(paragraph, "`");
}

void paragraph_add_call_path(
	struct paragraph *paragraph, const struct process *process, uint32_t node, bool omits_steps)
{
	add_path(paragraph, process, node, true, omits_steps);
}
