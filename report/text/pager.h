/* SPDX-License-Identifier: MIT
 * pager.h: what is longer than the screen goes through a pager, as git does it: $PPERF_PAGER, else $PAGER, else less if there is one; `cat` or an
 * empty one is none. LESS is FRX and LV -c where they are not set.
 */
#ifndef PPERF_REPORT_TEXT_PAGER_H
#define PPERF_REPORT_TEXT_PAGER_H

#include <stdbool.h>
#include <stddef.h>

/* Whether one may be used at all: not before it is told so. */
void pager_allow(bool allow);

/* Whether that much on the standard output, which may be the beginning, is longer than its terminal. False: it is no terminal, or no pager may be used. */
bool pager_wanted(const char *bytes, size_t count);

/* Starts it. A descriptor to write to; -1: there is none, or it cannot be started. One at a time. */
int pager_start(void);
/* Whether it was started and is not finished. */
bool pager_is_running(void);
/* Closes the descriptor and waits until the user has seen enough. False: its shell found no such command; `name` is it. */
bool pager_finish(const char **name);

#endif
