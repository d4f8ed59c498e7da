/* SPDX-License-Identifier: MIT
 * trace_notes.c: see trace_notes.h.
 */
#include "report/trace/read_warnings.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void note_add(struct trace_notes *notes, uint64_t offset, const char *format, ...)
{
	char *note;
	va_list arguments;
	int used;

	if (notes->count++ >= NOTES_MOST)
		return;
	note = notes->notes[notes->count - 1];
	if (offset == UINT64_MAX)
		used = snprintf(note, NOTE_BYTES, "%.300s: ", notes->path);
	else
		used = snprintf(note, NOTE_BYTES, "%.300s: offset %" PRIu64 ": ", notes->path, offset);
	va_start(arguments, format);
	vsnprintf(note + used, NOTE_BYTES - (size_t)used, format, arguments);
	va_end(arguments);
}
