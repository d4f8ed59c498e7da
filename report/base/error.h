/* SPDX-License-Identifier: MIT
 * fatal.h: how the tool ends early, and memory that is there or ends it. A short-lived tool may die with a good
 * sentence; it frees nothing then.
 */
#ifndef PPERF_FATAL_H
#define PPERF_FATAL_H

#include <stddef.h>

enum status {
	STATUS_FINE = 0,
	STATUS_DIFFERENT = 1,  /* a gate failed, a difference was found */
	STATUS_UNREADABLE = 2, /* not a trace; nothing could be written; incomplete under --strict */
	STATUS_USAGE = 64,
};

/* One sentence on stderr, after the program's name, whatever is in it made visible; ends with `status`. A colon at its end: the text of errno
 * follows. */
_Noreturn void fatal(enum status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Called before the sentence is written: who holds the terminal gives it back. NULL: nobody does. */
extern void (*fatal_before)(void);

/* Zeroed; never NULL. */
void *need(size_t bytes);

/* Room for at least `count` elements of `size` bytes in *array, of which *room are there; what is new is zeroed.
 * Grows by half again. */
void grow(void *array, size_t *room, size_t count, size_t size);
/* The same, but what is new holds anything: memory that is never used is never touched. */
void grow_plain(void *array, size_t *room, size_t count, size_t size);

#endif
