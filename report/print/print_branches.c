/* SPDX-License-Identifier: MIT */
#include "report/base/alloc.h"
#include "report/print/print.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool *print_last_children(const struct rows *rows)
{
	bool *last = xcalloc(rows->count + 1), *seen = xcalloc(rows->count + 1);

	for (size_t i = rows->count; i-- > 0;) {
		const uint32_t parent = rows->rows[i].parent;

		last[i] = parent == NO_ROW || !seen[parent];
		if (parent != NO_ROW)
			seen[parent] = true;
	}
	free(seen);
	return last;
}

size_t print_branch_width(uint32_t depth, bool narrow)
{
	return depth == 0 ? 0 : narrow ? 2 * (size_t)depth : 2 + 4 * (size_t)depth;
}

/* `below`: for a second line of the row. */
static size_t write_branch(char *out, size_t room, const struct rows *rows, size_t row,
	const struct branches *branches, bool below)
{
	static const char *const wide[2][4] = { { "    ", "\xe2\x94\x82   ",
							"\xe2\x94\x94\xe2\x94\x80\xe2\x94\x80 ",
							"\xe2\x94\x9c\xe2\x94\x80\xe2\x94\x80 " },
		{ "    ", "|   ", "+-- ", "|-- " } };
	static const char *const narrow[2][4] = { { "  ", "\xe2\x94\x82 ", "\xe2\x94\x94 ",
							  "\xe2\x94\x9c " },
		{ "  ", "| ", "+ ", "| " } };
	const char *const *piece = branches->narrow ? narrow[branches->ascii]
						    : wide[branches->ascii];
	const bool *last = branches->last;
	const uint32_t depth = rows->rows[row].depth;
	size_t used = branches->narrow ? 0 : 2, at = row;
	const char **parts;

	out[0] = '\0';
	if (depth == 0 || (size_t)depth * 6 + 4 > room)
		return 0;
	parts = xcalloc(depth * sizeof *parts);
	for (uint32_t level = depth; level > 0 && rows->rows[at].parent != NO_ROW; level--) {
		parts[level - 1] = piece[(level == depth && !below ? 2 : 0) + !last[at]];
		at = rows->rows[at].parent;
	}
	memcpy(out, branches->narrow ? "" : "  ", used + 1);
	for (uint32_t level = 0; level < depth; level++)
		if (parts[level])
			used += (size_t)snprintf(out + used, room - used, "%s", parts[level]);
	free(parts);
	return used;
}

size_t print_branch(char *out, size_t room, const struct rows *rows, size_t row,
	const struct branches *branches)
{
	return write_branch(out, room, rows, row, branches, false);
}

size_t print_branch_below(char *out, size_t room, const struct rows *rows, size_t row,
	const struct branches *branches)
{
	return write_branch(out, room, rows, row, branches, true);
}

bool report_is_simulated(const struct report *report)
{
	for (size_t i = 0; i < report->processes->shown; i++)
		if (report->processes->all[i].simulated)
			return true;
	return false;
}
