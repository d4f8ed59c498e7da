/* SPDX-License-Identifier: MIT */
#include "report/fatal.h"
#include "report/progress.h"
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void (*fatal_before)(void);

_Noreturn void fatal(enum status status, const char *format, ...)
{
	const int error = errno;
	const size_t length = strlen(format);
	va_list list;

	if (fatal_before)
		fatal_before();
	progress_clear();
	fflush(stdout);
	fputs("pperf-report: ", stderr);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	if (length > 0 && format[length - 1] == ':')
		fprintf(stderr, " %s", strerror(error));
	fputc('\n', stderr);
	exit((int)status);
}

static _Noreturn void no_memory(size_t bytes)
{
	fatal(STATUS_UNREADABLE, "no memory for another %zu bytes; close something or raise the limit", bytes);
}

void *need(size_t bytes)
{
	void *memory = calloc(1, bytes ? bytes : 1);

	if (!memory)
		no_memory(bytes);
	return memory;
}

void grow(void *array, size_t *room, size_t count, size_t size)
{
	size_t more = *room + *room / 2 + 16;
	char *memory;

	if (count <= *room)
		return;
	if (more < count)
		more = count;
	if (more > SIZE_MAX / size)
		no_memory(SIZE_MAX);
	memcpy(&memory, array, sizeof memory);
	memory = realloc(memory, more * size);
	if (!memory)
		no_memory(more * size);
	memset(memory + *room * size, 0, (more - *room) * size);
	memcpy(array, &memory, sizeof memory);
	*room = more;
}
