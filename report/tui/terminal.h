/* SPDX-License-Identifier: MIT
 *
 * Drives the terminal through ncurses, which no other file includes. There is one terminal, so its
 * state belongs to the process.
 *
 * The terminal is restored in every case: terminal_close, exit, fatal(), SIGTERM, SIGINT, SIGHUP,
 * SIGQUIT or a crash. Signals end the program as if they had not been caught.
 */
#ifndef PPERF_REPORT_TUI_TERMINAL_H
#define PPERF_REPORT_TUI_TERMINAL_H

#include "report/tui/draw.h"

#define TERMINAL_RESIZED (-1)
#define TERMINAL_CLOSED (-2)

/* Opens the terminal; stdin and stdout must be one. Ends the program with a message if its type is
 * not known. */
void terminal_open(bool color);
void terminal_close(void);

void terminal_size(unsigned *width, unsigned *height);
/* Waits for a key and returns:
 *   0                  a key without a meaning
 *   above 0            a byte of a character, or an enum tui_key (state.h)
 *   TERMINAL_RESIZED   terminal_size() returns a new size
 *   TERMINAL_CLOSED    no more keys will come */
int terminal_key(void);
/* Does so, but waits `ms` milliseconds at most. Returns 0 if no key came. */
int terminal_key_within(unsigned ms);

/* Begins a frame. What is put on the canvas until terminal_end_frame() replaces the screen. */
struct tui_canvas terminal_begin_frame(void);
void terminal_end_frame(void);

#endif
