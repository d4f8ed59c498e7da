/* SPDX-License-Identifier: MIT */
#include "report/views/critical_stayed.h"
#include "report/analysis/stayed_segments.h"
#include "report/table/computed_row.h"
#include "report/text/paragraph.h"
#include <stdlib.h>

static bool shows_reserved(const struct process *process)
{
	return process->metric == METRIC_RESERVED || process->metric == METRIC_RESERVED_PEAK;
}

/* Returns the label of an instance in the tree of `root`, valid until the next label. */
static struct string_view instance_label(const struct row *root, const struct instance *instance)
{
	const struct row row = { .process = root->process,
		.kind = ROW_INSTANCE,
		.node = instance->node,
		.tree = root->tree,
		.of.instance = instance };

	return row_label(&row, false);
}

/* Appends the labels of the ranges, outermost first: "track - kf: 13 / loop closure - kf: 13". */
static void add_path(
	struct text_builder *text, const struct row *root, const struct stayed_segments *stayed)
{
	for (size_t i = 0; i < stayed->range_count; i++) {
		const struct string_view label = instance_label(root, stayed->ranges[i]);

		text_add(text, "%s", i ? " / " : "");
		text_add_bytes(text, label.bytes, label.length);
	}
}

static void set_cells(struct computed_row *computed, const struct stayed_segments *stayed)
{
	const struct instance *range = stayed->ranges[stayed->range_count - 1];

	computed_row_set_unsigned(computed, "start_ns", range->begin_ns);
	computed_row_set_unsigned(computed, "duration_ns", range->end_ns - range->begin_ns);
	computed_row_set_unsigned(computed, "segments", stayed->segments);
	computed_row_set_unsigned(computed, "reserved_bytes", stayed->bytes);
	if (stayed->unknown)
		computed_row_set_unsigned(computed, "unknown_bytes", stayed->unknown_bytes);
	if (stayed->unknown == stayed->segments)
		return;
	computed_row_set_unsigned(computed, "free_inside_bytes", stayed->free_inside);
	computed_row_set_unsigned(computed, "tensor_bytes", stayed->held_tensors);
	computed_row_set_unsigned(computed, "empty_segments", stayed->empty);
	computed_row_set_unsigned(computed, "empty_bytes", stayed->empty_bytes);
}

/* Returns the row of the first tree of a process, or NULL. Of each process there is one tree,
 * unless the worst instance of every root is shown. */
static const struct row *first_root(const struct rows *rows, const struct process *process)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->rows[i].process == process && rows->rows[i].parent == NO_ROW &&
			rows->rows[i].kind == ROW_INSTANCE)
			return shows_reserved(process) ? &rows->rows[i] : NULL;
	return NULL;
}

void critical_add_stayed_row(
	const struct options *options, struct process *process, struct rows *rows)
{
	const struct row *first = first_root(rows, process);
	struct stayed_segments stayed;
	struct computed_row *computed;
	struct text_builder path = { .text = NULL };

	if (!first)
		return;
	stayed = stayed_segments_find(process, options, first->tree, first->of.instance);
	if (!stayed.segments)
		return;
	computed = computed_row_new(process, 0, "stayed");
	add_path(&path, first, &stayed);
	computed_row_set_name(computed, path.text, path.used);
	free(path.text);
	set_cells(computed, &stayed);
	computed_row_add(rows, computed, NO_ROW);
}

/* Appends how many segments, and their bytes: "2 segments (201.33 MB)". */
static void add_segments(struct paragraph *paragraph, uint64_t count, uint64_t bytes)
{
	paragraph_value(paragraph, UNIT_COUNT, count);
	paragraph_add(paragraph, " segment%s (", count == 1 ? "" : "s");
	paragraph_value(paragraph, UNIT_BYTES, bytes);
	paragraph_add(paragraph, ")");
}

/* Of segments in which no tensor was ever seen. */
static void add_unknown(struct paragraph *paragraph, const struct stayed_segments *stayed)
{
	if (!stayed->unknown)
		return;
	if (stayed->unknown < stayed->segments) {
		paragraph_add(paragraph, " What is in ");
		add_segments(paragraph, stayed->unknown, stayed->unknown_bytes);
	} else {
		paragraph_add(paragraph, " What is in %s", stayed->unknown == 1 ? "it" : "them");
	}
	paragraph_add(paragraph, " is not known: only PyTorch's allocator reports what it hands "
				 "out.");
}

static void add_use(struct paragraph *paragraph, const struct stayed_segments *stayed)
{
	const char *when = stayed->until == MOMENT_OOM ? "when memory ran out" : "at the end";

	paragraph_add(paragraph, " Tensors had occupied up to ");
	paragraph_value(paragraph, UNIT_BYTES, stayed->occupied_most);
	paragraph_add(paragraph, " of %s. ", stayed->segments == 1 ? "it" : "them");
	paragraph_add(paragraph, "%c%s, ", when[0] - 'a' + 'A', when + 1);
	if (stayed->held) {
		add_segments(paragraph, stayed->held, stayed->held_bytes);
		paragraph_add(paragraph, " %s held by ", stayed->held == 1 ? "was" : "were");
		paragraph_value(paragraph, UNIT_BYTES, stayed->held_tensors);
		paragraph_add(paragraph, " of tensors%s ", stayed->empty ? ", and" : ";");
	}
	if (stayed->empty) {
		add_segments(paragraph, stayed->empty, stayed->empty_bytes);
		paragraph_add(paragraph, " %s empty%s; ", stayed->empty == 1 ? "was" : "were",
			stayed->emptied_inside ? ", since that range ended" : "");
	}
	paragraph_value(paragraph, UNIT_BYTES, stayed->free_inside);
	paragraph_add(paragraph, " stayed reserved and empty.");
}

static void print_stayed(
	const struct row *root, const struct stayed_segments *stayed, const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	struct text_builder path = { .text = NULL };

	add_path(&path, root, stayed);
	add_segments(&paragraph, stayed->segments, stayed->bytes);
	paragraph_add(
		&paragraph, " that %s allocated in `", stayed->segments == 1 ? "was" : "were");
	paragraph_name(&paragraph, path.text, path.used);
	paragraph_add(&paragraph, "` stayed reserved %s.",
		stayed->until == MOMENT_OOM ? "until memory ran out" : "to the end");
	if (stayed->unknown < stayed->segments)
		add_use(&paragraph, stayed);
	add_unknown(&paragraph, stayed);
	paragraph_print(&paragraph, "stayed");
	free(path.text);
}

void critical_print_stayed(const struct report *report, const struct style *style)
{
	for (size_t i = 0; i < report->processes->shown; i++) {
		struct process *process = &report->processes->all[i];
		const struct row *root = first_root(&report->rows, process);
		struct stayed_segments stayed = { .segments = 0 };

		if (root)
			stayed = stayed_segments_find(
				process, report->options, root->tree, root->of.instance);
		if (stayed.segments)
			print_stayed(root, &stayed, style);
	}
}
