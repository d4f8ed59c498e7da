/* SPDX-License-Identifier: MIT */
#include "report/base/error.h"
#include "report/base/progress.h"
#include "report/base/escape.h"
#include <errno.h>
#include <langinfo.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MESSAGE_BYTES 16384u

void (*fatal_restore_terminal)(void);

static atomic_flag is_ending = ATOMIC_FLAG_INIT;

/* Escapes the message, because paths and names in it may hold any bytes. */
static void print_error(const char *message)
{
	static char escaped[6 * MESSAGE_BYTES + 1];

	escape_text(escaped, sizeof escaped, message, strlen(message),
		strcmp(nl_langinfo(CODESET), "UTF-8") != 0);
	fprintf(stderr, "pperf-report: %s\n", escaped);
}

_Noreturn void fatal(enum status status, const char *format, ...)
{
	static char message[MESSAGE_BYTES];
	const int error = errno;
	const size_t length = strlen(format);
	size_t used;
	va_list list;

	while (atomic_flag_test_and_set(&is_ending))
		pause(); /* another thread ends the program */
	if (fatal_restore_terminal)
		fatal_restore_terminal();
	progress_clear();
	fflush(stdout);
	va_start(list, format);
	vsnprintf(message, sizeof message, format, list);
	va_end(list);
	used = strlen(message);
	if (length > 0 && format[length - 1] == ':')
		snprintf(message + used, sizeof message - used, " %s", strerror(error));
	print_error(message);
	exit((int)status);
}

void warn_user(const char *format, ...)
{
	static char message[MESSAGE_BYTES] = "warning: ";
	const size_t used = sizeof "warning: " - 1;
	va_list list;

	progress_clear();
	va_start(list, format);
	vsnprintf(message + used, sizeof message - used, format, list);
	va_end(list);
	print_error(message);
}
