/* SPDX-License-Identifier: MIT
 * host.h: the report as a function that can be called a million times in one process. What ends it
 * early (fatal, exit) comes back here; what it left behind (memory, descriptors, files of stdio,
 * its variables) goes before the next call.
 *
 * A process has one host. Whatever is wrong with what the report printed ends the process by
 * abort(), which is how a harness tells of a find.
 */
#ifndef PPERF_FUZZ_HOST_H
#define PPERF_FUZZ_HOST_H

#include <stddef.h>
#include <stdint.h>

#define HOST_ENDED_EARLY 256 /* added to the status of exit() */

/* The folder in which inputs become files, made at the first call; it goes when the process ends by
 * exit. Terminated. */
const char *host_folder(void);
/* Writes a file there; its path lives until the next call with that name. */
const char *host_file(const char *name, const void *bytes, size_t count);

/* Calls body(context) as if it were all that the program does. Returns what it returned, or
 * HOST_ENDED_EARLY + the status with which it ended the program. */
int host_call(int (*body)(void *context), void *context);

/* pperf-report with these arguments; argv[0] is put before them. What it printed is checked as `-f`
 * says it is written. */
int host_report(const char *const *arguments, size_t count);

/* What the last call printed; lives until the next. */
const char *host_printed(size_t *bytes);

/* From inside of a call, of text that is as a terminal would get it: aborts if that would do more
 * than to show it. */
void host_check_shown(const char *text, size_t bytes);

#endif
