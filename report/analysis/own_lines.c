/* SPDX-License-Identifier: MIT */
#include "report/analysis/own_lines.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

/* Returns whether the function is a part of another one that Python runs in a frame of its own. */
static bool is_inner_part(const struct sample_cells *cells, uint32_t function)
{
	static const char *const ends[] = { "<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>",
		"<lambda>" };
	const struct string_view name = string_table_get(
		cells->process->texts, cells->functions.all[function].name);

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		const size_t length = strlen(ends[i]);

		if (name.length >= length &&
			!memcmp(name.bytes + name.length - length, ends[i], length))
			return true;
	}
	return false;
}

/* Returns whether the frame runs a text that a library executes, such as a named tuple's class.
 * What the user gave with -c has the same file name, but nothing calls it. */
static bool is_run_by_library(struct sample_cells *cells, const struct known_frame *frame)
{
	const struct string_view file = string_table_get(
		cells->process->texts, cells->functions.all[frame->frame.function].library);
	const bool is_string = file.length == strlen("<string>") &&
			       !memcmp(file.bytes, "<string>", file.length);
	const struct known_frame *caller = is_string ? sample_frame_of(
							       &cells->functions, frame->parent)
						     : NULL;

	return caller && !cells->functions.all[caller->frame.function].is_own;
}

/* Returns the innermost frame of the program's own files, but one of an inner part only if there
 * is no other. `function` 0: there is none. */
static struct sample_frame own_frame(struct sample_cells *cells, const struct sample_cell *cell)
{
	struct sample_frame inner = { .function = 0 };
	const struct known_frame *frame;

	for (uint32_t at = cell->python; (frame = sample_frame_of(&cells->functions, at));
		at = frame->parent) {
		if (!cells->functions.all[frame->frame.function].is_own ||
			is_run_by_library(cells, frame))
			continue;
		if (!is_inner_part(cells, frame->frame.function))
			return frame->frame;
		if (!inner.function)
			inner = frame->frame;
	}
	return inner;
}

static void add_to_line(struct own_lines *lines, const struct own_line *of)
{
	const uint64_t hash = hash_u64(
		hash_u64((uint64_t)of->function << 32 | of->line) ^ of->thread);
	struct hash_slot *slot;

	hash_index_reserve(&lines->index);
	for (slot = hash_index_first(&lines->index, hash); slot->number;
		slot = hash_index_next(&lines->index, slot)) {
		struct own_line *line = &lines->lines[slot->number - 1];

		if (line->function == of->function && line->line == of->line &&
			line->thread == of->thread) {
			sample_sums_add(&line->sums, &of->sums);
			return;
		}
	}
	*ARRAY_ADD(lines->lines, lines->room, lines->count) = *of;
	hash_index_add(&lines->index, slot, hash, (uint32_t)lines->count);
}

void own_lines_free(struct own_lines *lines)
{
	free(lines->lines);
	hash_index_free(&lines->index);
}

struct own_lines own_lines_of(struct sample_cells *cells, bool by_thread)
{
	struct own_lines lines = { .lines = NULL };

	for (size_t i = 0; i < cells->count; i++) {
		const struct sample_cell *cell = &cells->cells[i];
		const struct sample_frame frame = own_frame(cells, cell);

		if (frame.function)
			add_to_line(&lines, &(struct own_line){ .function = frame.function,
						    .line = frame.line,
						    .thread = by_thread ? cell->thread : 0,
						    .sums = cell->sums });
	}
	return lines;
}
