/* SPDX-License-Identifier: MIT
 * Ends the program with one sentence on stderr, or warns by one. A short-lived tool may exit early,
 * and frees nothing then.
 */
#ifndef PPERF_REPORT_BASE_ERROR_H
#define PPERF_REPORT_BASE_ERROR_H

enum status {
	STATUS_OK = 0,
	STATUS_DIFFERENT = 1, /* a gate failed, or a difference was found */
	/* not a trace; output cannot be written; incomplete under --strict */
	STATUS_UNREADABLE = 2,
	STATUS_USAGE = 64,
};

/* Writes one sentence to stderr, escaped and after the program's name, and exits with `status`.
 * If `format` ends with a colon, the text of errno is appended. Threads: any; of several, the first
 * one ends the program. */
_Noreturn void fatal(enum status status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Writes "warning: " and a sentence to stderr, escaped, and goes on. */
void warn_user(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Called before the sentence is written, to restore the terminal. NULL: nothing to restore. */
extern void (*fatal_restore_terminal)(void);

#endif
