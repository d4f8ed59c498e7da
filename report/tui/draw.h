/* SPDX-License-Identifier: MIT
 * tui_paint.h: what a state looks like, as pieces of text at places of a screen. What is put is visible text
 * (visible.h) and never wider than the screen. Who draws it clears the screen first.
 */
#ifndef PPERF_REPORT_TUI_DRAW_H
#define PPERF_REPORT_TUI_DRAW_H

#include "report/tui/state.h"

struct tui_canvas {
	void (*put)(void *context, unsigned y, unsigned x, enum tui_paint paint, const char *text,
		size_t bytes);
	void *context;
};

/* Row 0: what is shown; below: titles, rows; the last: a message or the keys. A screen under TUI_LEAST_WIDTH x
 * TUI_LEAST_HEIGHT gets a sentence. */
void tui_draw(struct tui_state *state, const struct tui_canvas *canvas);

#endif
