/* SPDX-License-Identifier: MIT */
#include "report/base/text_builder.h"
#include "report/base/alloc.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <string.h>

void text_add_bytes(struct text_builder *builder, const char *bytes, size_t length)
{
	array_grow_zeroed(&builder->text, &builder->room, builder->used + length + 1, 1);
	memcpy(builder->text + builder->used, bytes, length);
	builder->used += length;
	builder->text[builder->used] = '\0';
}

void text_add_path_name(struct text_builder *builder, const char *bytes, size_t length)
{
	size_t step;

	for (size_t i = 0; i < length; i += step) {
		const uint32_t point = utf8_decode(bytes + i, length - i, &step);

		if (point == UINT32_MAX)
			text_add(builder, "\\x%02x", (unsigned char)bytes[i]);
		else if (point == '/' || point == '\\')
			text_add(builder, "\\%c", (char)point);
		else
			text_add_bytes(builder, bytes + i, step);
	}
	text_add_bytes(builder, "", 0);
}

void text_add_list(struct text_builder *builder, const char *format, va_list list)
{
	va_list again;
	int length;

	va_copy(again, list);
	length = vsnprintf(NULL, 0, format, list);
	array_grow_zeroed(&builder->text, &builder->room, builder->used + (size_t)length + 1, 1);
	vsnprintf(builder->text + builder->used, (size_t)length + 1, format, again);
	va_end(again);
	builder->used += (size_t)length;
}

void text_add(struct text_builder *builder, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	text_add_list(builder, format, list);
	va_end(list);
}
