/* SPDX-License-Identifier: MIT */
#include "report/base/error.h"
#include "report/base/progress.h"
#include "report/base/escape.h"
#include <errno.h>
#include <langinfo.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SENTENCE_BYTES 16384u

void (*fatal_before)(void);

/* Paths and names in it come from anywhere. */
static void say(const char *sentence)
{
	static char shown[6 * SENTENCE_BYTES + 1];

	visible(shown, sizeof shown, sentence, strlen(sentence), strcmp(nl_langinfo(CODESET), "UTF-8") != 0);
	fprintf(stderr, "pperf-report: %s\n", shown);
}

_Noreturn void fatal(enum status status, const char *format, ...)
{
	static char sentence[SENTENCE_BYTES];
	const int error = errno;
	const size_t length = strlen(format);
	size_t used;
	va_list list;

	if (fatal_before)
		fatal_before();
	progress_clear();
	fflush(stdout);
	va_start(list, format);
	vsnprintf(sentence, sizeof sentence, format, list);
	va_end(list);
	used = strlen(sentence);
	if (length > 0 && format[length - 1] == ':')
		snprintf(sentence + used, sizeof sentence - used, " %s", strerror(error));
	say(sentence);
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

void grow_plain(void *array, size_t *room, size_t count, size_t size)
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
	memcpy(array, &memory, sizeof memory);
	*room = more;
}

void grow(void *array, size_t *room, size_t count, size_t size)
{
	const size_t before = *room;
	char *memory;

	if (count <= before)
		return;
	grow_plain(array, room, count, size);
	memcpy(&memory, array, sizeof memory);
	memset(memory + before * size, 0, (*room - before) * size);
}
