/* SPDX-License-Identifier: MIT
 *
 * Decides which nodes are rows of the screen, and which row has the cursor.
 */
#include "report/base/alloc.h"
#include "report/tui/state.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

uint32_t tui_cursor_item(const struct tui_state *state)
{
	return state->cursor < state->shown_count ? state->shown[state->cursor] : TUI_NONE;
}

uint32_t tui_focus_item(const struct tui_state *state)
{
	return state->focus_count
		       ? tui_model_find(state->model, state->focus[state->focus_count - 1])
		       : TUI_NONE;
}

bool tui_is_open(const struct tui_state *state, uint32_t item)
{
	return state->open[state->model->items[item].key];
}

bool tui_has_children(const struct tui_state *state, uint32_t item)
{
	return state->model->items[item].end > item + 1;
}

unsigned tui_row_count(const struct tui_state *state)
{
	return state->height > 3 ? state->height - 3 : 1;
}

void tui_scroll(struct tui_state *state)
{
	const uint32_t room = tui_row_count(state);

	if (state->cursor >= state->shown_count)
		state->cursor = state->shown_count ? state->shown_count - 1 : 0;
	if (state->top > state->cursor)
		state->top = state->cursor;
	if (state->cursor >= state->top + room)
		state->top = state->cursor - room + 1;
	if (state->top + room > state->shown_count)
		state->top = state->shown_count > room ? state->shown_count - room : 0;
}

void tui_update_rows(struct tui_state *state, uint32_t item)
{
	const struct tui_model *model = state->model;
	const uint32_t focus = tui_focus_item(state),
		       before = item == TUI_NONE ? tui_cursor_item(state) : item,
		       end = focus == TUI_NONE ? model->count : model->items[focus].end;

	state->shown_count = 0;
	for (uint32_t i = focus == TUI_NONE ? 0 : focus; i < end;) {
		ARRAY_GROW(state->shown, state->shown_room, (size_t)state->shown_count + 1);
		/* The item itself, or the last visible one before it. */
		if (i <= before && before != TUI_NONE)
			state->cursor = state->shown_count;
		state->shown[state->shown_count++] = i;
		i = tui_is_open(state, i) ? i + 1 : model->items[i].end;
	}
	tui_scroll(state);
}

void tui_set_open(struct tui_state *state, uint32_t item, bool open)
{
	if (tui_has_children(state, item))
		state->open[state->model->items[item].key] = open;
}

void tui_set_open_all(struct tui_state *state, uint32_t item, bool open)
{
	for (uint32_t i = item; i < state->model->items[item].end; i++)
		tui_set_open(state, i, open);
}

void tui_reveal(struct tui_state *state, uint32_t item)
{
	const struct tui_model *model = state->model;
	uint32_t focus;

	while ((focus = tui_focus_item(state)) != TUI_NONE &&
		(item < focus || item >= model->items[focus].end))
		state->focus_count--;
	for (uint32_t around = model->items[item].parent; around != TUI_NONE;
		around = model->items[around].parent)
		tui_set_open(state, around, true);
	tui_update_rows(state, item);
}

void tui_sort(struct tui_state *state, uint32_t column)
{
	const uint32_t item = tui_cursor_item(state),
		       key = item == TUI_NONE ? TUI_NONE : state->model->items[item].key;

	state->model->kind->sort(state->model, column);
	tui_update_rows(state, key == TUI_NONE ? TUI_NONE : tui_model_find(state->model, key));
}

static bool has_capital(const char *text)
{
	for (; *text; text++)
		if (*text >= 'A' && *text <= 'Z')
			return true;
	return false;
}

/* Searches for `wanted` in a name. `exact`: case matters, because the search text has a capital
 * letter. Bytes beyond ASCII always have to be equal. */
static bool name_contains(const char *name, size_t bytes, const char *wanted, bool exact)
{
	const size_t length = strlen(wanted);

	for (size_t at = 0; at + length <= bytes; at++) {
		size_t same = 0;

		while (same < length &&
			(name[at + same] == wanted[same] ||
				(!exact && tolower((unsigned char)name[at + same]) ==
						   (unsigned char)wanted[same])))
			same++;
		if (same == length)
			return true;
	}
	return false;
}

/* Returns the item that is `steps` from `from` in a circle of `count` items from `first`. */
static uint32_t item_in_circle(
	uint32_t first, uint32_t count, uint32_t from, uint32_t steps, int by)
{
	return first + (from - first + (by < 0 ? count - steps % count : steps)) % count;
}

uint32_t tui_search(struct tui_state *state, uint32_t from, int by)
{
	struct tui_model *model = state->model;
	const uint32_t focus = tui_focus_item(state), first = focus == TUI_NONE ? 0 : focus,
		       end = focus == TUI_NONE ? model->count : model->items[focus].end,
		       count = end - first;
	const bool exact = has_capital(state->search);
	uint32_t found = TUI_NONE;
	char *name = NULL;
	size_t room = 0;

	for (uint32_t i = by != 0; count && i <= count && found == TUI_NONE; i++) {
		const uint32_t at = item_in_circle(first, count, from, i, by);
		const size_t bytes = model->kind->name(model, at, false, &name, &room);

		if (name_contains(name, bytes, state->search, exact))
			found = at;
	}
	free(name);
	return found;
}
