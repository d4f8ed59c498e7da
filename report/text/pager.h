/* SPDX-License-Identifier: MIT
 * Shows output that is longer than the screen through a pager, as git does. The pager is
 * $PPERF_PAGER, else $PAGER, else less if it is installed. `cat` or an empty variable means no
 * pager. LESS is set to FRX and LV to -c if they are unset.
 */
#ifndef PPERF_REPORT_TEXT_PAGER_H
#define PPERF_REPORT_TEXT_PAGER_H

#include <stdbool.h>
#include <stddef.h>

/* Allows or forbids a pager. It is forbidden at first. */
void pager_allow(bool allow);

/* Returns whether the output needs a pager: `bytes`, the first `count` bytes of it, have more lines
 * than the terminal. Returns false if stdout is not a terminal or no pager may be used. */
bool pager_wanted(const char *bytes, size_t count);

/* Starts the pager and returns a descriptor to write to. Returns -1 if there is none or it
 * cannot be started. Only one can run at a time. */
int pager_start(void);
/* Returns whether a pager was started and has not been finished. */
bool pager_is_running(void);
/* Closes the descriptor and waits for the pager to exit. Returns false if the shell did not find
 * the command; `*name` is the command. */
bool pager_finish(const char **name);

#endif
