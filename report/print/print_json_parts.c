/* SPDX-License-Identifier: MIT */
#include "report/print/print_json_parts.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

void print_json_key(struct out *out, const char *key, bool *first)
{
	if (!*first)
		out_string(out, ", ");
	*first = false;
	out_char(out, '"');
	out_string(out, key);
	out_string(out, "\": ");
}

void print_json_string(struct out *out, const char *text)
{
	out_json_text(out, text, strlen(text));
}

void print_json_text_or_null(struct out *out, struct trace_text text)
{
	if (text.known)
		out_json_text(out, text.bytes, text.length);
	else
		out_string(out, "null");
}

struct trace_text print_json_text_of(const char *text)
{
	return (struct trace_text){ .bytes = text, .length = (uint32_t)strlen(text), .known = *text != '\0' };
}

void print_json_member(struct out *out, const char *key, uint64_t value, bool *first)
{
	print_json_key(out, key, first);
	out_unsigned(out, value);
}

void print_json_path(struct out *out, const struct row *row)
{
	uint32_t few[64], *nodes = few;
	const size_t length = row_path(row, few, sizeof few / sizeof *few);

	if (length > sizeof few / sizeof *few) {
		nodes = need(length * sizeof *nodes);
		row_path(row, nodes, length);
	}
	out_char(out, '[');
	for (size_t i = 0; i < length; i++) {
		const struct text name = text_of(row->process->texts, row->tree->nodes[nodes[i]].name);

		if (i)
			out_string(out, ", ");
		out_json_text(out, name.bytes, name.length);
	}
	out_char(out, ']');
	if (nodes != few)
		free(nodes);
}
