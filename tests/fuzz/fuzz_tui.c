/* SPDX-License-Identifier: MIT
 * fuzz_tui.c: a trace to browse, alone or beside a whole one, and keys. What is put on the screen
 * is harmless and on it.
 *
 * The input: how many keys (a byte), width, height (128 more: compare), the keys; then the trace.
 */
#include "tests/fuzz/host.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/target.h"

#include "report/table/column.h"
#include "report/cli/command_line.h"
#include "report/print/print.h"
#include "report/tui/draw.h"
#include "report/base/escape.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct session {
	const char *path;
	const uint8_t *keys;
	size_t key_count;
	unsigned width, height;
	bool compare;
};

static unsigned screen_width, screen_height;

static void put(
	void *context, unsigned y, unsigned x, enum tui_paint paint, const char *text, size_t bytes)
{
	(void)context;
	(void)paint;
	host_check_shown(text, bytes);
	if (y < screen_height && x + escaped_width(text, bytes) <= screen_width)
		return;
	fprintf(stderr, "find: drawn beyond the screen\n");
	abort();
}

static int key_of(uint8_t byte)
{
	/* Above ASCII lie the keys that are no characters. */
	return byte < 0x80 ? byte : TUI_UP + (byte & 31);
}

static int browse(void *context)
{
	const struct session *session = context;
	const struct tui_canvas canvas = { put, NULL };
	char *words[] = { (char *)(uintptr_t) "pperf-report", (char *)(uintptr_t) "tui",
		(char *)(uintptr_t)session->path,
		session->compare ? (char *)(uintptr_t)target_other() : NULL, NULL };
	struct options options;
	struct style style;
	struct tui_model *model;
	struct tui_state *state;

	optind = 0;
	options = command_line_parse(session->compare ? 4 : 3, words);
	style = style_of(&options.style, output_open(NULL));
	style.width = session->width;
	columns_select(&options);
	model = session->compare ? tui_model_of_diff(&options, &style)
				 : tui_model_of_trace(&options, &style);
	state = tui_state_new(model, session->width, session->height);
	tui_draw(state, &canvas);
	for (size_t i = 0; i < session->key_count && !state->quit; i++) {
		tui_handle_key(state, key_of(session->keys[i]));
		tui_draw(state, &canvas);
		if (state->pending_action != TUI_ACTION_NONE)
			tui_run_pending(state);
	}
	tui_draw(state, &canvas);
	tui_state_free(state);
	tui_model_free(model);
	return 0;
}

/* A screen is painted for each key, which is what takes the time. */
static size_t head_bytes(const uint8_t *data)
{
	return 3u + data[0] % 64;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct session session;

	if (bytes < 3 || bytes < head_bytes(data))
		return -1;
	session = (struct session){ .keys = data + 3,
		.key_count = head_bytes(data) - 3,
		.width = 20 + data[1],
		.height = 2 + data[2] % 80,
		.compare = data[2] & 128 };
	if (session.compare)
		target_other(); /* not made inside of the call */
	screen_width = session.width;
	screen_height = session.height;
	session.path = host_file("trace.bin", data + head_bytes(data), bytes - head_bytes(data));
	host_call(browse, &session);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
	struct dice dice = { seed };
	const size_t head = bytes ? head_bytes(data) : 0;
	unsigned char *trace;
	size_t count;

	if (bytes < 256 || bytes <= head || bytes > room)
		return LLVMFuzzerMutate(data, bytes, room);
	for (size_t times = dice_below(&dice, 6); times; times--)
		data[1 + dice_below(&dice, head - 1)] = (uint8_t)dice_below(
			&dice, dice_below(&dice, 4) ? 160 : 256);
	if (dice_below(&dice, 2))
		return bytes;
	trace = aligned_alloc(64, (room + 63) / 64 * 64);
	if (!trace)
		return bytes;
	memcpy(trace, data + head, bytes - head);
	count = mutate_trace(trace, bytes - head, room - head, &dice);
	memcpy(data + head, trace, count);
	free(trace);
	return head + count;
}
