/* SPDX-License-Identifier: MIT */
#include "report/print/print_json_parts.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

void print_json_key(struct output *out, const char *key, bool *first)
{
	if (!*first)
		output_string(out, ", ");
	*first = false;
	output_char(out, '"');
	output_string(out, key);
	output_string(out, "\": ");
}

void print_json_string(struct output *out, const char *text)
{
	output_json_text(out, text, strlen(text));
}

void print_json_text_or_null(struct output *out, struct trace_text text)
{
	if (text.known)
		output_json_text(out, text.bytes, text.length);
	else
		output_string(out, "null");
}

struct trace_text print_json_text_of(const char *text)
{
	return (struct trace_text){
		.bytes = text, .length = (uint32_t)strlen(text), .known = *text != '\0'
	};
}

void print_json_member(struct output *out, const char *key, uint64_t value, bool *first)
{
	print_json_key(out, key, first);
	output_unsigned(out, value);
}

void print_json_path(struct output *out, const struct row *row)
{
	uint32_t few[64], *nodes = few;
	const size_t length = row_path(row, few, sizeof few / sizeof *few);

	if (length > sizeof few / sizeof *few) {
		nodes = xcalloc(length * sizeof *nodes);
		row_path(row, nodes, length);
	}
	output_char(out, '[');
	for (size_t i = 0; i < length; i++) {
		const struct string_view name = string_table_get(
			row->process->texts, row->tree->nodes[nodes[i]].name);

		if (i)
			output_string(out, ", ");
		output_json_text(out, name.bytes, name.length);
	}
	output_char(out, ']');
	if (nodes != few)
		free(nodes);
}
