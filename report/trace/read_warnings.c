/* SPDX-License-Identifier: MIT */
#include "report/trace/read_warnings.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void read_warnings_add(struct read_warnings *warnings, uint64_t offset, const char *format, ...)
{
	char *note;
	va_list arguments;
	int used;

	if (warnings->count++ >= READ_WARNINGS_MAX)
		return;
	note = warnings->warnings[warnings->count - 1];
	if (offset == UINT64_MAX)
		used = snprintf(note, READ_WARNING_BYTES, "%.300s: ", warnings->path);
	else
		used = snprintf(note, READ_WARNING_BYTES, "%.300s: offset %" PRIu64 ": ",
			warnings->path, offset);
	va_start(arguments, format);
	vsnprintf(note + used, READ_WARNING_BYTES - (size_t)used, format, arguments);
	va_end(arguments);
}
