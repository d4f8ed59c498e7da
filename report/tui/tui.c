/* SPDX-License-Identifier: MIT */
#include "report/tui/tui.h"
#include "report/base/error.h"
#include "report/tui/terminal.h"
#include <unistd.h>

static void draw_screen(struct tui_state *state)
{
	const struct tui_canvas canvas = terminal_begin_frame();

	tui_draw(state, &canvas);
	terminal_end_frame();
}

static void browse_model(struct tui_model *model, struct style *style)
{
	struct tui_state *state;
	unsigned width, height;
	int key = 0;

	terminal_size(&width, &height);
	state = tui_state_new(model, width, height);
	while (!state->quit && key != TERMINAL_CLOSED) {
		draw_screen(state);
		if (state->pending_action != TUI_ACTION_NONE) {
			tui_run_pending(state);
			continue;
		}
		key = terminal_key();
		if (key == TERMINAL_RESIZED) {
			terminal_size(&width, &height);
			style->width = width;
			tui_resize(state, width, height);
		} else if (key > 0) {
			/* On a screen that is too small the effect of a key could not be seen, so
			 * only q works. */
			if (key == 'q' || (width >= TUI_MIN_WIDTH && height >= TUI_MIN_HEIGHT))
				tui_handle_key(state, key);
		}
	}
	terminal_close();
	tui_state_free(state);
}

static void check_usage(const struct options *options)
{
	if (options->file_count > 2)
		fatal(STATUS_USAGE, "tui shows one trace, or compares two: pperf-report tui TRACE, "
				    "pperf-report tui BEFORE AFTER");
	if (options->format != FORMAT_TEXT || options->output)
		fatal(STATUS_USAGE, "tui writes to a terminal only; pperf-report tree and diff "
				    "support -f and -o");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		fatal(STATUS_USAGE, "tui needs a terminal; pperf-report tree prints the same rows");
}

int tui_view(const struct options *options)
{
	struct tui_model *model;
	struct output *out;
	struct style style;

	check_usage(options);
	out = output_open(NULL);
	style = style_of(&options->style, out);
	model = options->file_count == 2 ? tui_model_of_diff(options, &style)
					 : tui_model_of_trace(options, &style);
	terminal_open(style.color);
	browse_model(model, &style);
	tui_model_free(model);
	return output_close(out, NULL) ? STATUS_OK : STATUS_UNREADABLE;
}
