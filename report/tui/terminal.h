/* SPDX-License-Identifier: MIT
 * tui_terminal.h: the terminal, through ncurses, which is included nowhere else. There is one; all of it is state of
 * the process.
 *
 * Whatever ends the program gives the terminal back as it was: terminal_close, exit, fatal(), SIGTERM, SIGINT, SIGHUP,
 * SIGQUIT, and a crash. Signals end the program as if it had not caught them.
 */
#ifndef PPERF_REPORT_TUI_TERMINAL_H
#define PPERF_REPORT_TUI_TERMINAL_H

#include "report/tui/draw.h"

#define TERMINAL_RESIZED (-1)
#define TERMINAL_CLOSED (-2)

/* stdin and stdout are a terminal. Ends the program with a sentence if it is of a kind that nobody knows. */
void terminal_open(bool color);
void terminal_close(void);

void terminal_size(unsigned *width, unsigned *height);
/* A byte of a character or an enum tui_key (tui_state.h); TERMINAL_RESIZED: terminal_size says something new;
 * TERMINAL_GONE: no key will come any more. 0: a key that means nothing. Waits. */
int terminal_key(void);

/* What is put between the two replaces what was on the screen. */
struct tui_canvas terminal_begin_frame(void);
void terminal_end_frame(void);

#endif
