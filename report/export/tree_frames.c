/* SPDX-License-Identifier: MIT */
#include "report/export/tree_frames.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/escape.h"
#include "report/base/text_builder.h"
#include "report/table/column.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the amount of -m. Ends the program if it is none. */
static enum tree_amount requested_amount(const struct options *options)
{
	const enum tree_amount amount = tree_amount_find(options->metric_name);
	struct text_builder keys = { .text = NULL };

	if (amount != AMOUNT_COUNT)
		return amount;
	for (size_t i = 0; i < AMOUNT_COUNT; i++)
		text_add(&keys, "%s%s", i ? ", " : "", tree_amounts[i].key);
	fatal(STATUS_USAGE, "`%s` does not add up over the tree; -m has to be one of %s",
		options->metric_name, keys.text);
}

struct frame_amounts frame_amounts_of(const struct options *options)
{
	struct frame_amounts amounts;

	if (options->metric_name) {
		amounts = (struct frame_amounts){ { false } };
		amounts.chosen[requested_amount(options)] = true;
		return amounts;
	}
	for (size_t i = 0; i < AMOUNT_COUNT; i++)
		amounts.chosen[i] = true;
	return amounts;
}

enum tree_amount frame_amount_of(const struct options *options, const struct process *process)
{
	if (options->metric_name)
		return requested_amount(options);
	if (options->by != BY_NAME || process->profile->only_samples)
		return AMOUNT_SAMPLED;
	return process->profile->totals.gpu_sum_ns ? AMOUNT_GPU : AMOUNT_CPU;
}

void frame_path_set(struct frame_path *path, const struct process *process, uint32_t node)
{
	const struct tree *tree = process->profile->tree;

	path->process = process;
	path->count = 0;
	for (uint32_t id = node; id; id = tree->nodes[id].parent)
		path->count++;
	ARRAY_GROW(path->nodes, path->room, path->count);
	for (size_t at = path->count; at--; node = tree->nodes[node].parent)
		path->nodes[at] = node;
}

void frame_path_free(struct frame_path *path)
{
	free(path->nodes);
}

struct string_view frame_name(const struct process *process, uint32_t node)
{
	static char text[6 * FRAME_NAME_BYTES + 1];
	const struct row row = tree_row(
		(struct process *)(uintptr_t)process, process->profile->tree, node);
	const char *unrecorded = tree_amount_unrecorded(process->profile);
	struct string_view name = { unrecorded, (uint32_t)strlen(unrecorded) };
	char cut[FRAME_NAME_BYTES];
	const size_t head = FRAME_NAME_BYTES * 2 / 3, tail = FRAME_NAME_BYTES - head - 3;

	if (node)
		name = row_name(&row);
	if (!name.length)
		return (struct string_view){ "(no name)", 9 };
	if (name.length > FRAME_NAME_BYTES) {
		memcpy(cut, name.bytes, head);
		memcpy(cut + head, "...", 3);
		memcpy(cut + head + 3, name.bytes + name.length - tail, tail);
		name = (struct string_view){ cut, FRAME_NAME_BYTES };
	}
	name.length = (uint32_t)escape_text(text, sizeof text, name.bytes, name.length, false);
	name.bytes = text;
	return name;
}
