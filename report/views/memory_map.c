/* SPDX-License-Identifier: MIT
 *
 * Shows each segment of device memory at a moment (memory --map): a picture of its tensors and
 * gaps, who allocated it, and whose tensors keep it. The segments with most free memory come first.
 * JSON and CSV also have every block and gap.
 */
#include "report/views/memory_moment.h"
#include "report/views/views.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/print/node_words.h"
#include "report/print/print.h"
#include "report/run/call_stack.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PICTURE_MAX 64u
#define PICTURE_MIN 12u
#define PICTURE_INDENT 12u /* columns before a picture: the size of its segment */
#define PICTURE_AFTER 36u  /* columns kept after it */
#define LEVELS 4u          /* of a cell of a picture that is not empty */

/* The tensors of a segment that share the call path with most bytes in it. */
struct segment_holder {
	uint64_t bytes, since_ns; /* since: the oldest of them */
	uint64_t count;
	uint32_t node, stack;
	uint64_t others; /* number of other call paths */
};

struct map_order {
	uint64_t wasted, known; /* known: 1 if the blocks are known */
	size_t index;
};

static int by_waste(const void *a, const void *b)
{
	const struct map_order *left = a, *right = b;

	if (left->known != right->known)
		return left->known ? -1 : 1;
	if (left->wasted != right->wasted)
		return left->wasted > right->wasted ? -1 : 1;
	return COMPARE(left->index, right->index);
}

/* Returns the order in which the segments of a moment are shown: most free bytes first, those whose
 * blocks are not known last. The caller frees it. */
static struct map_order *segments_by_waste(const struct memory_moment *moment)
{
	struct map_order *order = xcalloc((moment->segment_count + 1) * sizeof *order);

	for (size_t i = 0; i < moment->segment_count; i++) {
		const struct moment_segment *segment = &moment->segments[i];

		order[i] = (struct map_order){
			.known = segment->has_blocks_known,
			.wasted = segment->has_blocks_known ? segment->in_gaps
							    : segment->segment.bytes,
			.index = i,
		};
	}
	qsort(order, moment->segment_count, sizeof *order, by_waste);
	return order;
}

size_t *memory_map_order(const struct memory_moment *moment)
{
	struct map_order *order = segments_by_waste(moment);
	size_t *indices = xcalloc((moment->segment_count + 1) * sizeof *indices);

	for (size_t i = 0; i < moment->segment_count; i++)
		indices[i] = order[i].index;
	free(order);
	return indices;
}

/* Returns whose tensors hold most of a segment. `groups`: of the moment, by call path. `sums`: an
 * entry for each group, zeroed before and after. */
static struct segment_holder find_holder(const struct memory_moment *moment,
	const struct moment_segment *segment, const struct memory_groups *groups,
	struct segment_holder *sums)
{
	const uint32_t *group = &groups->group_of_block[segment->first_block];
	const struct memory_block *blocks = &moment->blocks[segment->first_block];
	struct segment_holder holder = { .bytes = 0 };
	uint64_t paths = 0;

	for (size_t i = 0; i < segment->block_count; i++) {
		struct segment_holder *sum = &sums[group[i]];

		paths += !sum->count;
		if (!sum->count || blocks[i].since_ns < sum->since_ns)
			sum->since_ns = blocks[i].since_ns;
		if (!sum->count)
			sum->stack = blocks[i].stack;
		sum->count++;
		sum->bytes += blocks[i].bytes;
		sum->node = blocks[i].node;
	}
	for (size_t i = 0; i < segment->block_count; i++) {
		if (sums[group[i]].bytes > holder.bytes)
			holder = sums[group[i]];
		sums[group[i]] = (struct segment_holder){ .bytes = 0 };
	}
	holder.others = paths ? paths - 1 : 0;
	return holder;
}

static const char *fill_word(const struct moment_segment *segment)
{
	if (!segment->has_blocks_known)
		return "unknown";
	if (!segment->block_count)
		return "empty";
	return segment->in_blocks < segment->segment.bytes / 4 ? "sparse" : "used";
}

/* ---- rows ---- */

static void set_holder(
	struct computed_row *computed, struct process *process, const struct segment_holder *holder)
{
	const struct memory_group group = { .key = holder->node };
	struct string_view name;

	if (!holder->count)
		return;
	name = memory_group_name(process, &group, BY_PATH);
	computed_row_set_text(computed, "holder", name.bytes, name.length);
	computed_row_set_unsigned(computed, "holder_bytes", holder->bytes);
	computed_row_set_unsigned(computed, "holder_since_ns", holder->since_ns);
}

/* Sets what is known of the inside of a segment. */
static void set_segment_inside(struct computed_row *computed, const struct memory_moment *moment,
	const struct moment_segment *segment)
{
	const uint64_t lived = moment->at_ns - segment->segment.since_ns;

	computed_row_set_unsigned(computed, "tensor_bytes", segment->in_blocks);
	computed_row_set_unsigned(computed, "tensors", segment->block_count);
	computed_row_set_unsigned(computed, "free_inside_bytes", segment->in_gaps);
	computed_row_set_unsigned(computed, "gaps", segment->gap_count);
	computed_row_set_unsigned(computed, "largest_gap_bytes", segment->largest_gap);
	if (lived && segment->segment.bytes)
		computed_row_set_real(computed, "used_share",
			(double)segment->byte_ns / (double)lived / (double)segment->segment.bytes);
	if (segment->overlapped)
		computed_row_set_unsigned(computed, "overlapped_bytes", segment->overlapped);
	if (!segment->block_count)
		computed_row_set_unsigned(computed, "emptied_ns", segment->segment.emptied_ns);
}

/* `address`: or a key of physical memory that is not mapped. */
static struct computed_row *part_row(
	struct process *process, uint32_t node, const char *kind, uint64_t address, uint64_t bytes)
{
	struct computed_row *computed = computed_row_new(process, node, kind);

	if (address & PHYSICAL_KEY) {
		computed_row_format_name(computed, "not mapped");
	} else {
		computed_row_format_name(computed, "%s 0x%llx", kind, (unsigned long long)address);
		computed_row_set_unsigned(computed, "address", address);
	}
	computed_row_set_unsigned(computed, "bytes", bytes);
	return computed;
}

static void add_block_row(struct process *process, struct rows *rows,
	const struct memory_block *block, uint32_t parent)
{
	struct computed_row *computed = part_row(
		process, block->node, "block", block->address, block->bytes);

	computed_row_set_unsigned(computed, "since_ns", block->since_ns);
	computed_row_set_line(computed, process, block->stack);
	computed_row_add(rows, computed, parent);
}

/* Adds the blocks and gaps of a segment in order of addresses. */
static void add_part_rows(struct process *process, struct rows *rows,
	const struct memory_moment *moment, const struct moment_segment *segment, uint32_t parent)
{
	const struct moment_gap *gap = &moment->gaps[segment->first_gap],
				*gap_end = gap + segment->gap_count;
	const struct memory_block *block = &moment->blocks[segment->first_block],
				  *block_end = block + segment->block_count;

	while (gap < gap_end || block < block_end) {
		if (gap < gap_end && (block == block_end || gap->address < block->address)) {
			computed_row_add(rows,
				part_row(process, 0, "gap", gap->address, gap->bytes), parent);
			gap++;
		} else {
			add_block_row(process, rows, block++, parent);
		}
	}
}

/* Adds the blocks that are in no known segment, after all segments. */
static void add_stray_rows(struct process *process, struct rows *rows,
	const struct memory_moment *moment, uint32_t parent)
{
	size_t first = 0;

	for (size_t i = 0; i < moment->segment_count; i++)
		if (moment->segments[i].first_block + moment->segments[i].block_count > first)
			first = moment->segments[i].first_block + moment->segments[i].block_count;
	for (size_t i = first; i < moment->block_count; i++)
		add_block_row(process, rows, &moment->blocks[i], parent);
}

static void set_stream(struct computed_row *computed, const struct memory_segment *segment)
{
	char handle[32];
	int length;

	if (!segment->has_stream)
		return;
	length = snprintf(handle, sizeof handle, "0x%llx", (unsigned long long)segment->for_stream);
	computed_row_set_text(computed, "for_stream", handle, (size_t)length);
	computed_row_set_string(
		computed, "memory_pool", segment->for_capture ? "private" : "shared");
}

static void add_segment_row(const struct options *options, struct process *process,
	struct rows *rows, const struct memory_moment *moment, const struct moment_segment *segment,
	const struct segment_holder *holder, uint32_t parent)
{
	struct computed_row *computed = part_row(process, segment->segment.node, "segment",
		segment->segment.address, segment->segment.bytes);
	uint32_t row;

	computed_row_set_unsigned(computed, "device", moment->device);
	computed_row_set_unsigned(computed, "since_ns", segment->segment.since_ns);
	computed_row_set_string(computed, "fill", fill_word(segment));
	computed_row_set_line(computed, process, segment->segment.stack);
	set_holder(computed, process, holder);
	set_stream(computed, &segment->segment);
	if (segment->has_blocks_known)
		set_segment_inside(computed, moment, segment);
	row = computed_row_add(rows, computed, parent);
	if (options->format == FORMAT_TEXT || !segment->has_blocks_known)
		return;
	if (options->depth > 2)
		add_part_rows(process, rows, moment, segment, row);
	else
		rows->hidden_by_depth += segment->block_count + segment->gap_count;
}

static void add_moment_rows(const struct options *options, struct process *process,
	struct rows *rows, const struct memory_moment *moment)
{
	const uint32_t parent = computed_row_add(rows, moment_row(process, moment), NO_ROW);
	struct map_order *order = segments_by_waste(moment);
	struct memory_groups groups = memory_groups_of_tensors(process, moment, BY_PATH);
	struct segment_holder *sums = xcalloc((groups.count + 1) * sizeof *sums);
	size_t shown = options->depth > 1 ? moment->segment_count : 0;

	rows->hidden_by_depth += moment->segment_count - shown;
	if (shown > view_top(options)) {
		rows->hidden_by_top += shown - view_top(options);
		shown = view_top(options);
	}
	for (size_t i = 0; i < shown; i++) {
		const struct moment_segment *segment = &moment->segments[order[i].index];
		const struct segment_holder holder = find_holder(moment, segment, &groups, sums);

		add_segment_row(options, process, rows, moment, segment, &holder, parent);
	}
	if (options->format != FORMAT_TEXT && options->depth > 1)
		add_stray_rows(process, rows, moment, parent);
	free(sums);
	free(order);
	memory_groups_free(&groups);
}

void arrange_memory_map(const struct options *options, struct process *process, struct rows *rows)
{
	const struct memory_moments *moments = process_moments(process, options);

	for (size_t i = 0; i < moments->count; i++)
		add_moment_rows(options, process, rows, &moments->moments[i]);
}

/* ---- the picture ---- */

static const char *picture_cell(bool ascii, unsigned level)
{
	static const char *const plain[] = { " ", ".", ":", "+", "#" }, *const blocks[] = { " ",
		"\xe2\x96\x91", "\xe2\x96\x92", "\xe2\x96\x93", "\xe2\x96\x88" };

	return ascii ? plain[level] : blocks[level];
}

/* Returns where cell `cell` of `width` cells begins in a segment. Exact for any size. */
static uint64_t cell_begin(uint64_t bytes, unsigned cell, unsigned width)
{
	return bytes / width * cell + bytes % width * cell / width;
}

void memory_map_add_to_cells(uint64_t *occupied, unsigned width,
	const struct moment_segment *segment, const struct memory_block *block)
{
	const uint64_t bytes = segment->segment.bytes,
		       begin = block->address - segment->segment.address;
	const uint64_t end = block->bytes < bytes - begin ? begin + block->bytes : bytes;
	unsigned cell = 0;

	while (cell < width && cell_begin(bytes, cell + 1, width) <= begin)
		cell++;
	for (; cell < width && cell_begin(bytes, cell, width) < end; cell++) {
		const uint64_t from = max_u64(begin, cell_begin(bytes, cell, width)),
			       to = min_u64(end, cell_begin(bytes, cell + 1, width));

		occupied[cell] += to > from ? to - from : 0;
	}
}

static void put_picture(const struct memory_moment *moment, const struct moment_segment *segment,
	unsigned width, const struct style *style)
{
	uint64_t occupied[PICTURE_MAX] = { 0 };

	for (size_t i = 0; i < segment->block_count; i++)
		memory_map_add_to_cells(
			occupied, width, segment, &moment->blocks[segment->first_block + i]);
	for (unsigned cell = 0; cell < width; cell++) {
		const uint64_t bytes = cell_begin(segment->segment.bytes, cell + 1, width) -
				       cell_begin(segment->segment.bytes, cell, width);
		const uint64_t parts = bytes ? occupied[cell] / ((bytes - 1) / LEVELS + 1) : 0;
		const unsigned level = occupied[cell] ? 1 + (unsigned)min_u64(parts, LEVELS - 1)
						      : 0;

		output_string(style->out,
			segment->has_blocks_known ? picture_cell(style->ascii, level) : "?");
	}
}

static void put_size(uint64_t bytes, const struct style *style)
{
	char text[FORMAT_NUMBER_BYTES];

	format_with_unit(
		text, UNIT_BYTES, clamp_to_i64((long double)bytes), style->iec, style->ascii);
	print_line(style, "%*s ", (int)PICTURE_INDENT - 1, text);
}

/* Whether there is no room for figures beside the smallest picture. */
static bool is_narrow(const struct style *style)
{
	return style->width < PICTURE_INDENT + PICTURE_MIN + PICTURE_AFTER;
}

/* Prints what the picture shows, in figures. */
static void put_segment_figures(const struct moment_segment *segment, const struct style *style)
{
	char share[FORMAT_NUMBER_BYTES], gap[FORMAT_NUMBER_BYTES];

	if (!segment->has_blocks_known) {
		output_string(style->out, " not known\n");
		return;
	}
	if (!segment->block_count) {
		output_string(style->out, " empty\n");
		return;
	}
	format_percent(share, clamp_to_i64((long double)segment->in_blocks),
		clamp_to_i64((long double)segment->segment.bytes));
	format_with_unit(gap, UNIT_BYTES, clamp_to_i64((long double)segment->largest_gap),
		style->iec, style->ascii);
	print_line(style, " %6s", share);
	if (!is_narrow(style))
		print_line(style, "  %llu tensor%s, gap %s",
			(unsigned long long)segment->block_count,
			segment->block_count == 1 ? "" : "s", gap);
	output_char(style->out, '\n');
}

/* Appends the call path and, if it is known, the line. */
static void add_place(
	struct paragraph *paragraph, struct process *process, uint32_t node, uint32_t stack)
{
	char *line = xcalloc(CALL_STACK_TEXT);
	const size_t length = memory_line(process, stack, line, CALL_STACK_TEXT);

	paragraph_add_call_path(paragraph, process, node, true);
	if (length) {
		paragraph_add(paragraph, " (");
		paragraph_text(paragraph, line, length);
		paragraph_add(paragraph, ")");
	}
	free(line);
}

/* Prints who allocated a segment, and who keeps it since when. */
static void put_segment_owner(struct process *process, const struct moment_segment *segment,
	const struct segment_holder *holder, const struct style *style)
{
	struct paragraph paragraph = { .style = style, .indent = PICTURE_INDENT };

	paragraph_add(&paragraph, "allocated at ");
	paragraph_value(&paragraph, UNIT_TIME, segment->segment.since_ns);
	paragraph_add(&paragraph, " ");
	add_place(&paragraph, process, segment->segment.node, segment->segment.stack);
	if (holder->count) {
		paragraph_add(&paragraph, ", now held by ");
		paragraph_value(&paragraph, UNIT_BYTES, holder->bytes);
		paragraph_add(&paragraph, " of tensors allocated ");
		add_place(&paragraph, process, holder->node, holder->stack);
		paragraph_add(&paragraph, " since ");
		paragraph_value(&paragraph, UNIT_TIME, holder->since_ns);
		if (holder->others)
			paragraph_add(&paragraph, " and by %llu other call path%s",
				(unsigned long long)holder->others, holder->others == 1 ? "" : "s");
	} else if (segment->has_blocks_known) {
		paragraph_add(&paragraph, ", empty since ");
		paragraph_value(&paragraph, UNIT_TIME, segment->segment.emptied_ns);
	}
	paragraph_print(&paragraph, "");
}

static unsigned picture_width(const struct style *style)
{
	const unsigned room = style->width > PICTURE_INDENT + PICTURE_AFTER
				      ? style->width - PICTURE_INDENT - PICTURE_AFTER
				      : 0;

	return room < PICTURE_MIN ? PICTURE_MIN : room > PICTURE_MAX ? PICTURE_MAX : room;
}

static void draw_moment(const struct report *report, struct process *process,
	const struct memory_moment *moment, const struct style *style)
{
	const char *bar = style->ascii ? "|" : "\xe2\x94\x82";
	struct map_order *order = segments_by_waste(moment);
	struct memory_groups groups = memory_groups_of_tensors(process, moment, BY_PATH);
	struct segment_holder *sums = xcalloc((groups.count + 1) * sizeof *sums);
	const size_t shown = report->options->depth > 1
				     ? min_u64(moment->segment_count, view_top(report->options))
				     : 0;

	memory_moment_print(process, report->processes->shown > 1, moment, style);
	if (shown)
		output_char(style->out, '\n');
	for (size_t i = 0; i < shown; i++) {
		const struct moment_segment *segment = &moment->segments[order[i].index];
		const struct segment_holder holder = find_holder(moment, segment, &groups, sums);

		put_size(segment->segment.bytes, style);
		output_string(style->out, bar);
		put_picture(moment, segment, picture_width(style), style);
		output_string(style->out, bar);
		put_segment_figures(segment, style);
		put_segment_owner(process, segment, &holder, style);
	}
	free(sums);
	free(order);
	memory_groups_free(&groups);
}

void draw_memory_map(const struct report *report, const struct style *style)
{
	bool blank = false;

	for (size_t i = 0; i < report->processes->shown; i++) {
		struct process *process = &report->processes->all[i];
		const struct memory_moments *moments = process_moments(process, report->options);

		for (size_t j = 0; j < moments->count; j++) {
			if (blank)
				output_char(style->out, '\n');
			draw_moment(report, process, &moments->moments[j], style);
			blank = true;
		}
	}
}
