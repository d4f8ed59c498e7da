/* SPDX-License-Identifier: MIT */
#include "report/page/page_columns.h"
#include "report/page/page_text.h"
#include <stdlib.h>

void page_column_begin(struct json_writer *json, const char *key, const char *title,
	const char *help, bool is_left)
{
	json_write_begin(json, '{');
	json_put_string(json, "key", key);
	json_put_string(json, "title", title);
	json_put_string(json, "help", help);
	json_put_bool(json, "left", is_left);
}

void page_put_flat_rows(struct json_writer *json, size_t count, size_t left_out, const char *kind)
{
	json_put_unsigned(json, "rows", count);
	json_put_unsigned(json, "left_out", left_out);
	json_put_begin(json, "kind", '[');
	for (size_t i = 0; i < count; i++)
		json_write_string(json, kind);
	json_write_end(json, ']');
	json_put_begin(json, "depth", '[');
	for (size_t i = 0; i < count; i++)
		json_write_unsigned(json, 0);
	json_write_end(json, ']');
}

void page_put_sentence(struct json_writer *json, const char *key, struct paragraph *sentence)
{
	json_write_key(json, key);
	page_write_sentence(
		json, sentence->built.text ? sentence->built.text : "", sentence->built.used);
	free(sentence->built.text);
	sentence->built = (struct text_builder){ .text = NULL };
}
