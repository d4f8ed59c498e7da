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
