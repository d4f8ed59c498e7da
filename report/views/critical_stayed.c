/* SPDX-License-Identifier: MIT */
#include "report/views/critical_stayed.h"
#include "report/analysis/stayed_segments.h"
#include "report/table/computed_row.h"
#include "report/text/paragraph.h"

static bool shows_reserved(const struct process *process)
{
	return process->metric == METRIC_RESERVED || process->metric == METRIC_RESERVED_PEAK;
}

/* Returns the label of an instance of the critical tree, valid until the next label. */
static struct string_view instance_label(struct process *process, const struct instance *instance)
{
	const struct row row = { .process = process,
		.kind = ROW_INSTANCE,
		.node = instance->node,
		.tree = process->critical->tree,
		.of.instance = instance };

	return row_label(&row, false);
}

void critical_add_stayed_row(
	struct process *process, struct rows *rows, const struct instance *root)
{
	struct stayed_segments stayed;
	struct computed_row *computed;
	struct string_view label;

	if (!shows_reserved(process))
		return;
	stayed = stayed_segments_find(process, root);
	if (!stayed.count)
		return;
	computed = computed_row_new(process, 0, "stayed");
	label = instance_label(process, stayed.range);
	computed_row_set_name(computed, label.bytes, label.length);
	computed_row_set_unsigned(computed, "start_ns", stayed.range->begin_ns);
	computed_row_set_unsigned(
		computed, "duration_ns", stayed.range->end_ns - stayed.range->begin_ns);
	computed_row_set_unsigned(computed, "tensor_bytes", stayed.tensors);
	computed_row_set_unsigned(computed, "empty_segments", stayed.count);
	computed_row_set_unsigned(computed, "empty_bytes", stayed.bytes);
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

static void print_stayed(
	struct process *process, const struct stayed_segments *stayed, const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	const struct string_view label = instance_label(process, stayed->range);

	paragraph_add(&paragraph, "freed by the end of `");
	paragraph_name(&paragraph, label.bytes, label.length);
	paragraph_add(&paragraph, "`: ");
	paragraph_value(&paragraph, UNIT_BYTES, stayed->tensors);
	paragraph_add(&paragraph, " of tensors; its ");
	add_segments(&paragraph, stayed->count, stayed->bytes);
	paragraph_add(&paragraph, " stayed reserved, empty to the end");
	if (stayed->used_later) {
		paragraph_add(&paragraph, "; ");
		add_segments(&paragraph, stayed->used_later, stayed->used_later_bytes);
		paragraph_add(&paragraph, " of it had tensors later on");
	}
	paragraph_print(&paragraph, "stayed");
}

void critical_print_stayed(const struct report *report, const struct style *style)
{
	for (size_t i = 0; i < report->processes->shown; i++) {
		struct process *process = &report->processes->all[i];
		const struct instance *root = shows_reserved(process) ? process_critical(process)
								      : NULL;
		const struct stayed_segments stayed = root ? stayed_segments_find(process, root)
							   : (struct stayed_segments){ .count = 0 };

		if (stayed.count)
			print_stayed(process, &stayed, style);
	}
}
