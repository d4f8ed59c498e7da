/* SPDX-License-Identifier: MIT
 * Ends the program with one sentence on stderr. A short-lived tool may exit early; it frees nothing then.
 */
#ifndef PPERF_REPORT_BASE_ERROR_H
#define PPERF_REPORT_BASE_ERROR_H

enum status {
	STATUS_OK = 0,
	STATUS_DIFFERENT = 1, /* a gate failed, a difference was found */
	STATUS_UNREADABLE =
		2, /* not a trace; nothing could be written; incomplete under --strict */
	STATUS_USAGE = 64,
};

/* One sentence on stderr, after the program's name, whatever is in it made visible; ends with `status`. A colon at its end: the text of errno
 * follows. */
_Noreturn void fatal(enum status status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Called before the sentence is written: who holds the terminal gives it back. NULL: nobody does. */
extern void (*fatal_restore_terminal)(void);

#endif
