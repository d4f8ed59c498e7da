/* SPDX-License-Identifier: MIT
 *
 * Lists how reserved memory, tensors and fragmentation changed over time (memory --over-time).
 */
#include "report/views/memory_moment.h"
#include "report/views/views.h"

#define ROWS_OF_TEXT 20u
#define ROWS_OF_FILE 1000u /* JSON, CSV: each row is a walk over all segments */

static uint32_t history_rows(const struct options *options)
{
	if (options->top)
		return options->top;
	return options->format == FORMAT_TEXT ? ROWS_OF_TEXT : ROWS_OF_FILE;
}

static const char *history_name(enum moment_kind kind)
{
	static const char *const names[] = { [MOMENT_PEAK] = "peak",
		[MOMENT_OOM] = "OOM",
		[MOMENT_END] = "end",
		[MOMENT_STEP] = "step",
		[MOMENT_TIME] = "time",
		[MOMENT_CHANGE] = "change" };

	return names[kind];
}

/* Returns the last moment before `index` on the same device; NULL: there is none. */
static const struct memory_moment *previous_moment(
	const struct memory_moments *moments, size_t index)
{
	for (size_t i = index; i-- > 0;)
		if (moments->moments[i].device == moments->moments[index].device)
			return &moments->moments[i];
	return NULL;
}

/* Whether a moment that was chosen by its time alone shows what the one before it shows. */
static bool repeats_moment(const struct memory_moments *moments, size_t index)
{
	const struct memory_figures *figures = &moments->moments[index].figures;
	const struct memory_moment *before = previous_moment(moments, index);

	return moments->moments[index].kind == MOMENT_TIME && before &&
	       before->figures.changes == figures->changes &&
	       before->figures.tensors == figures->tensors &&
	       before->figures.gaps == figures->gaps &&
	       before->figures.largest_gap == figures->largest_gap;
}

void arrange_memory_history(
	const struct options *options, struct process *process, struct rows *rows)
{
	struct memory_moments moments = { .count = 0 };

	memory_moments_add_history(&moments, options, process, history_rows(options));
	if (moments.count)
		memory_moments_take(&moments, process, options, false);
	for (size_t i = 0; i < moments.count; i++) {
		const struct memory_moment *moment = &moments.moments[i];
		struct computed_row *computed;

		if (repeats_moment(&moments, i))
			continue;
		computed = moment_row(process, moment);
		computed_row_format_name(computed, "%s", history_name(moment->kind));
		computed_row_add(rows, computed, NO_ROW);
	}
	if (options->format == FORMAT_TEXT)
		rows->hidden_by_top += moments.changes_left_out;
	memory_moments_free(&moments);
}
