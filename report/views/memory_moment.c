/* SPDX-License-Identifier: MIT
 *
 * Lists what was live at a moment (memory --at), grouped by call path or by the key of --by.
 */
#include "report/views/memory_moment.h"
#include "report/views/views.h"
#include "report/base/alloc.h"
#include "report/print/print.h"
#include "report/run/call_stack.h"
#include "report/views/missing_data.h"
#include <stdlib.h>

static void release_moments(void *data)
{
	memory_moments_free(data);
	free(data);
}

struct memory_moments *process_moments(struct process *process, const struct options *options)
{
	static const char key;
	struct memory_moments *moments = process_attached(process, &key);

	if (moments)
		return moments;
	moments = xcalloc(sizeof *moments);
	memory_moments_add_list(moments, options, process, options->at);
	if (moments->count)
		memory_moments_take(moments, process, options, true);
	process_attach(process, &key, moments, release_moments);
	return moments;
}

/* ---- the row of a moment ---- */

static const char *moment_words(enum moment_kind kind)
{
	static const char *const words[] = { [MOMENT_PEAK] = "peak",
		[MOMENT_OOM] = "out of memory",
		[MOMENT_END] = "end",
		[MOMENT_STEP] = "end of step",
		[MOMENT_TIME] = "time",
		[MOMENT_CHANGE] = "segments changed" };

	return words[kind];
}

/* Returns the bytes of tensors that the allocator reported and no record allocated. */
static uint64_t unrecorded_bytes(const struct memory_figures *figures)
{
	return figures->reported_allocated > figures->tensors
		       ? figures->reported_allocated - figures->tensors
		       : 0;
}

static void set_nonzero(struct computed_row *computed, const char *key, uint64_t value)
{
	if (value)
		computed_row_set_unsigned(computed, key, value);
}

/* Whether it is known of any segment what is in it. */
static bool knows_inside(const struct memory_figures *figures)
{
	return figures->segments > figures->unknown_segments;
}

static void set_tensors(struct computed_row *computed, const struct memory_figures *figures)
{
	computed_row_set_unsigned(computed, "tensor_bytes", figures->tensors);
	computed_row_set_unsigned(computed, "tensors", figures->blocks);
	computed_row_set_unsigned(computed, "reported_bytes", figures->reported_reserved);
	set_nonzero(computed, "outside_bytes", figures->outside);
	set_nonzero(computed, "unrecorded_bytes", unrecorded_bytes(figures));
}

/* Sets what is known of the inside of segments. */
static void set_inside(struct computed_row *computed, const struct memory_figures *figures)
{
	computed_row_set_unsigned(computed, "free_inside_bytes", figures->free_inside);
	computed_row_set_unsigned(computed, "largest_gap_bytes", figures->largest_gap);
	computed_row_set_unsigned(computed, "gaps", figures->gaps);
	computed_row_set_real(computed, "fragmentation", figures_fragmentation(figures));
	computed_row_set_real(computed, "free_share", figures_free_share(figures));
	computed_row_set_unsigned(computed, "empty_segments", figures->empty_segments);
	computed_row_set_unsigned(computed, "empty_bytes", figures->empty);
}

struct computed_row *moment_row(struct process *process, const struct memory_moment *moment)
{
	struct computed_row *computed = computed_row_new(process, 0, "moment");
	const struct memory_figures *figures = &moment->figures;

	if (moment->kind == MOMENT_STEP)
		computed_row_format_name(computed, "end of step %llu, device %u",
			(unsigned long long)moment->step, moment->device);
	else
		computed_row_format_name(
			computed, "%s, device %u", moment_words(moment->kind), moment->device);
	computed_row_set_unsigned(computed, "device", moment->device);
	computed_row_set_unsigned(computed, "at_ns", moment->at_ns);
	computed_row_set_unsigned(computed, "reserved_bytes", figures->reserved);
	computed_row_set_unsigned(computed, "segments", figures->segments);
	computed_row_set_unsigned(computed, "changes", figures->changes);
	if (moment->has_tensors)
		set_tensors(computed, figures);
	if (knows_inside(figures))
		set_inside(computed, figures);
	set_nonzero(computed, "unknown_segments", figures->unknown_segments);
	set_nonzero(computed, "unknown_bytes", figures->unknown);
	set_nonzero(computed, "overlapped_bytes", figures->overlapped);
	if (moment->kind == MOMENT_OOM)
		computed_row_set_unsigned(computed, "requested_bytes", moment->requested);
	return computed;
}

void computed_row_set_line(struct computed_row *computed, struct process *process, uint32_t stack)
{
	char *line = xcalloc(CALL_STACK_TEXT);
	const size_t length = memory_line(process, stack, line, CALL_STACK_TEXT);

	if (length)
		computed_row_set_text(computed, "line", line, length);
	free(line);
}

/* ---- sentences ---- */

void paragraph_add_moment(struct paragraph *paragraph, const struct memory_moment *moment)
{
	static const char *const words[] = { [MOMENT_PEAK] = "at the peak",
		[MOMENT_OOM] = "when memory ran out",
		[MOMENT_END] = "at the end",
		[MOMENT_TIME] = "at this time",
		[MOMENT_CHANGE] = "at this time" };

	if (moment->kind == MOMENT_STEP)
		paragraph_add(
			paragraph, "at the end of step %llu", (unsigned long long)moment->step);
	else
		paragraph_add(paragraph, "%s", words[moment->kind]);
	paragraph_add(paragraph, " (");
	paragraph_value(paragraph, UNIT_TIME, moment->at_ns);
	paragraph_add(paragraph, ")");
}

static void add_plural(struct paragraph *paragraph, uint64_t count, const char *word)
{
	paragraph_value(paragraph, UNIT_COUNT, count);
	paragraph_add(paragraph, " %s%s", word, count == 1 ? "" : "s");
}

static void add_reserved(struct paragraph *paragraph, const struct memory_moment *moment)
{
	const struct memory_figures *figures = &moment->figures;

	paragraph_add(paragraph, "GPU %u ", moment->device);
	paragraph_add_moment(paragraph, moment);
	paragraph_add(paragraph, ": ");
	if (figures->segments || !figures->reported_reserved) {
		paragraph_value(paragraph, UNIT_BYTES, figures->reserved);
		paragraph_add(paragraph, " reserved in ");
		add_plural(paragraph, figures->segments, "segment");
	} else { /* an imported trace may have no calls of cudaMalloc */
		paragraph_value(paragraph, UNIT_BYTES, figures->reported_reserved);
		paragraph_add(paragraph, " reserved by PyTorch's allocator, in segments that the "
					 "trace does not have");
	}
	if (moment->kind == MOMENT_OOM) {
		paragraph_add(paragraph, "; ");
		paragraph_value(paragraph, UNIT_BYTES, moment->requested);
		paragraph_add(paragraph, " more were requested");
	}
}

/* Says how much is free, and both figures of fragmentation: neither alone says whether the free
 * memory can be used. */
static void add_free_inside(struct paragraph *paragraph, const struct memory_figures *figures)
{
	paragraph_add(paragraph, "; ");
	paragraph_value(paragraph, UNIT_BYTES, figures->free_inside);
	paragraph_add(paragraph, " free inside the segments in ");
	add_plural(paragraph, figures->gaps, "gap");
	if (!figures->gaps)
		return;
	paragraph_add(paragraph, ", the largest ");
	paragraph_value(paragraph, UNIT_BYTES, figures->largest_gap);
	paragraph_add(paragraph,
		": fragmentation %.1f %% (1 - largest gap / free inside), free share %.1f %%",
		100 * figures_fragmentation(figures), 100 * figures_free_share(figures));
}

static void print_tensors(const struct memory_figures *figures, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	paragraph_value(&paragraph, UNIT_BYTES, figures->tensors);
	paragraph_add(&paragraph, " in ");
	add_plural(&paragraph, figures->blocks, "tensor");
	if (knows_inside(figures))
		add_free_inside(&paragraph, figures);
	paragraph_print(&paragraph, "");
}

static void print_held_segments(const struct memory_figures *figures, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	if (figures->sparse_segments) {
		add_plural(&paragraph, figures->sparse_segments, "segment");
		paragraph_add(&paragraph, " of ");
		paragraph_value(&paragraph, UNIT_BYTES, figures->sparse);
		paragraph_add(&paragraph, " in all %s less than a quarter full: held by ",
			figures->sparse_segments == 1 ? "is" : "are");
		paragraph_value(&paragraph, UNIT_BYTES, figures->sparse_occupied);
		paragraph_add(&paragraph, " of tensors; ");
	}
	if (figures->empty_segments) {
		add_plural(&paragraph, figures->empty_segments, "segment");
		paragraph_add(&paragraph, " of ");
		paragraph_value(&paragraph, UNIT_BYTES, figures->empty);
		paragraph_add(&paragraph, " in all %s empty: empty_cache gives %s back",
			figures->empty_segments == 1 ? "is" : "are",
			figures->empty_segments == 1 ? "it" : "them");
	} else {
		paragraph_add(&paragraph, "no segment is empty");
	}
	paragraph_print(&paragraph, "");
}

/* Says what is not known about the inside of the memory. */
static void print_unknown(const struct memory_moment *moment, const struct style *style)
{
	const struct memory_figures *figures = &moment->figures;
	struct paragraph paragraph = { .style = style };

	if (figures->pool_segments) {
		add_plural(&paragraph, figures->pool_segments, "segment");
		paragraph_add(&paragraph,
			figures->pool_segments == 1 ? " is an allocation" : " are allocations");
		paragraph_add(&paragraph,
			" from CUDA's memory pools (cudaMallocAsync): what a pool "
			"keeps beyond them, and its gaps, are not known");
	} else if (figures->unknown_segments && !moment->has_tensors) {
		paragraph_add(&paragraph,
			"each segment is one allocation of the program, such as a cudaMalloc; what "
			"is in it is not known (only PyTorch's allocator reports its tensors)");
	} else if (figures->unknown_segments) {
		paragraph_value(&paragraph, UNIT_BYTES, figures->unknown);
		paragraph_add(&paragraph, " in ");
		add_plural(&paragraph, figures->unknown_segments, "segment");
		paragraph_add(&paragraph, " without a tensor so far: it is not known what is in "
					  "them, and they do not count as free");
	}
	if (figures->outside) {
		paragraph_add(&paragraph, "%s", paragraph.built.used ? "; " : "");
		paragraph_value(&paragraph, UNIT_BYTES, figures->outside);
		paragraph_add(&paragraph,
			" of tensors are in segments that the trace does not have: allocated "
			"before the recording began, expandable_segments, or an imported trace");
	}
	if (unrecorded_bytes(figures)) {
		paragraph_add(&paragraph, "%s", paragraph.built.used ? "; " : "");
		paragraph_value(&paragraph, UNIT_BYTES, unrecorded_bytes(figures));
		paragraph_add(&paragraph, " more of tensors were allocated in no record");
	}
	if (figures->overlapped) {
		paragraph_add(&paragraph, "%s", paragraph.built.used ? "; " : "");
		paragraph_value(&paragraph, UNIT_BYTES, figures->overlapped);
		paragraph_add(&paragraph, " belong to two segments: a release is missing");
	}
	if (paragraph.built.used)
		paragraph_print(&paragraph, "");
}

void memory_moment_print(const struct process *process, bool names_process,
	const struct memory_moment *moment, const struct style *style)
{
	struct paragraph paragraph = { .style = style };

	if (names_process)
		paragraph_add(&paragraph,
			"%s, pid %u: ", process->rank >= 0 ? process_name(process) : "process",
			process->pid);
	add_reserved(&paragraph, moment);
	paragraph_print(&paragraph, "memory");
	if (moment->has_tensors) {
		print_tensors(&moment->figures, style);
		if (knows_inside(&moment->figures))
			print_held_segments(&moment->figures, style);
	}
	print_unknown(moment, style);
}

void memory_moment_header(const struct report *report, const struct style *style)
{
	for (size_t i = 0; i < report->processes->shown; i++) {
		struct process *process = &report->processes->all[i];
		const struct memory_moments *moments = process_moments(process, report->options);

		for (size_t j = 0; j < moments->count; j++)
			memory_moment_print(
				process, report->processes->shown > 1, &moments->moments[j], style);
	}
	output_char(style->out, '\n');
}

void memory_moment_explain_empty(const struct report *report, const struct style *style)
{
	const struct memory_owners *memory = report->processes->all[0].profile->memory;
	const struct process *process = &report->processes->all[0];

	if (!memory->level_count)
		missing_data_explain(report, style);
	else if (report->options->at && !process->steps)
		print_line(style, "no such moment: memory did not run out, or the trace has no "
				  "steps\n");
	else
		print_line(style, "no such moment in this trace: pperf-report steps lists the "
				  "steps, pperf-report memory says whether memory ran out\n");
}

/* ---- rows ---- */

static void add_group_rows(const struct options *options, struct process *process,
	struct rows *rows, const struct memory_groups *groups, uint32_t parent)
{
	const enum rows_by by = options->by == BY_NAME ? BY_PATH : options->by;
	const uint64_t whole = computed_row_number(&rows->rows[parent], "bytes");
	const size_t first = rows->count;

	for (size_t i = 0; i < groups->count; i++) {
		const struct memory_group *group = &groups->groups[i];
		const bool of_node = by == BY_PATH || by == BY_MODULE;
		struct computed_row *computed = computed_row_new(
			process, of_node ? (uint32_t)group->key : 0, "holder");
		const struct string_view name = memory_group_name(process, group, by);

		computed_row_set_name(computed, name.bytes, name.length);
		computed_row_set_unsigned(computed, "bytes", group->bytes);
		computed_row_set_share(computed, "share", group->bytes, whole);
		computed_row_set_unsigned(computed, "tensors", group->count);
		computed_row_set_unsigned(computed, "since_ns", group->since_ns);
		if (groups->group_of_block)
			computed_row_set_unsigned(computed, "pin_bytes", group->pinned);
		if (by != BY_LINE)
			computed_row_set_line(computed, process, group->stack);
		computed_row_add(rows, computed, parent);
	}
	rows_finish_level(options, process, rows, first, 1, view_top(options));
}

/* Adds a row for tensors that were allocated in no record, so that the rows add up. */
static void add_unrecorded_row(struct process *process, struct rows *rows,
	const struct memory_figures *figures, uint32_t parent)
{
	struct computed_row *computed;

	if (!unrecorded_bytes(figures))
		return;
	computed = computed_row_new(process, 0, "holder");
	computed_row_format_name(computed, "(allocated in no record)");
	computed_row_set_unsigned(computed, "bytes", unrecorded_bytes(figures));
	computed_row_add(rows, computed, parent);
}

/* Adds the device memory in which no tensors are known, as a row beside that of the tensors. */
static void add_unknown_rows(const struct options *options, struct process *process,
	struct rows *rows, const struct memory_moment *moment)
{
	struct memory_groups groups = memory_groups_of_unknown(
		process, moment, options->by == BY_NAME ? BY_PATH : options->by);
	struct computed_row *computed = computed_row_new(process, 0, "unknown");

	computed_row_format_name(computed, "device memory%s, device %u",
		moment->has_tensors ? " without known tensors" : "", moment->device);
	computed_row_set_unsigned(computed, "device", moment->device);
	computed_row_set_unsigned(computed, "at_ns", moment->at_ns);
	computed_row_set_unsigned(computed, "bytes", moment->figures.unknown);
	computed_row_set_unsigned(computed, "tensors", moment->figures.unknown_segments);
	add_group_rows(options, process, rows, &groups, computed_row_add(rows, computed, NO_ROW));
	memory_groups_free(&groups);
}

void arrange_memory_moment(
	const struct options *options, struct process *process, struct rows *rows)
{
	const struct memory_moments *moments = process_moments(process, options);

	for (size_t i = 0; i < moments->count; i++) {
		const struct memory_moment *moment = &moments->moments[i];
		struct computed_row *computed = moment_row(process, moment);
		struct memory_groups groups;
		uint32_t parent;

		if (moment->has_tensors || !moment->figures.unknown_segments) {
			groups = memory_groups_of_tensors(
				process, moment, options->by == BY_NAME ? BY_PATH : options->by);
			computed_row_set_unsigned(computed, "bytes",
				moment->figures.tensors + unrecorded_bytes(&moment->figures));
			parent = computed_row_add(rows, computed, NO_ROW);
			add_unrecorded_row(process, rows, &moment->figures, parent);
			add_group_rows(options, process, rows, &groups, parent);
			memory_groups_free(&groups);
		}
		if (moment->figures.unknown_segments)
			add_unknown_rows(options, process, rows, moment);
	}
}
