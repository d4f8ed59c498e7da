/* SPDX-License-Identifier: MIT
 *
 * Draws a state as pieces of text on a canvas. The text is escaped and never wider than the screen.
 * The caller clears the screen first.
 */
#ifndef PPERF_REPORT_TUI_DRAW_H
#define PPERF_REPORT_TUI_DRAW_H

#include "report/tui/state.h"

struct tui_canvas {
	void (*put)(void *context, unsigned y, unsigned x, enum tui_paint paint, const char *text,
		size_t bytes);
	void *context;
};

/* Draws the whole screen: row 0 says what is shown, titles and rows follow, and the last row has a
 * message or the keys. A screen below TUI_MIN_WIDTH x TUI_MIN_HEIGHT gets one sentence. */
void tui_draw(struct tui_state *state, const struct tui_canvas *canvas);

#endif
