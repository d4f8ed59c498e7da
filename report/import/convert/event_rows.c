/* SPDX-License-Identifier: MIT */
#include "report/import/convert/event_rows.h"
#include <stdlib.h>
#include <string.h>

uint32_t event_rows_number(const struct event_rows *imported, uint32_t id)
{
	struct string_view text = string_table_get(imported->texts, id);
	struct json_text number = { .form = JSON_STRING };
	uint64_t value;

	if (text.length > 7 && !memcmp(text.bytes, "stream ", 7)) {
		text.bytes += 7;
		text.length -= 7;
	}
	number.bytes = text.bytes;
	number.length = text.length;
	return json_unsigned(&number, &value) && value <= UINT32_MAX ? (uint32_t)value : 0;
}

void event_rows_free(struct event_rows *imported)
{
	string_table_free(imported->texts);
#define X(type, rows) free(imported->rows);
	EVENT_ROWS(X)
#undef X
}
