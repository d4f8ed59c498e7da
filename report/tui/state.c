/* SPDX-License-Identifier: MIT */
#include "report/tui/state.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

/* Opens level by level, as long as all rows fit the screen. */
static void open_what_fits(struct tui_state *state)
{
	const struct tui_model *model = state->model;
	uint32_t *of_depth = xcalloc((TREE_DEPTH_MAX + 2) * sizeof *of_depth), rows = 0, depth = 0;

	for (uint32_t i = 0; i < model->count; i++)
		of_depth[model->items[i].depth < TREE_DEPTH_MAX ? model->items[i].depth
								: TREE_DEPTH_MAX]++;
	rows = of_depth[0];
	while (depth < TREE_DEPTH_MAX && of_depth[depth + 1] &&
		rows + of_depth[depth + 1] <= tui_row_count(state))
		rows += of_depth[++depth];
	for (uint32_t i = 0; i < model->count; i++)
		if (model->items[i].depth < depth)
			tui_set_open(state, i, true);
	free(of_depth);
}

/* Opens the first child of the first root and so on, where most of the metric is, as long as rows
 * fit. */
static void open_heaviest(struct tui_state *state)
{
	const struct tui_model *model = state->model;
	uint32_t rows, item = 0;

	tui_update_rows(state, TUI_NONE);
	rows = state->shown_count;
	while (item < model->count && tui_has_children(state, item)) {
		for (uint32_t i = item + 1; i < model->items[item].end && !tui_is_open(state, item);
			i = model->items[i].end)
			rows++;
		if (rows > tui_row_count(state))
			return;
		tui_set_open(state, item++, true);
	}
}

static void reset_state(struct tui_state *state)
{
	free(state->open);
	free(state->open_before);
	state->open = xcalloc((size_t)state->model->keys + 1);
	state->open_before = xcalloc((size_t)state->model->keys + 1);
	state->focus_count = 0;
	state->cursor = state->top = 0;
	open_what_fits(state);
	open_heaviest(state);
	tui_update_rows(state, TUI_NONE);
	state->cursor = state->top = 0;
}

struct tui_state *tui_state_new(struct tui_model *model, unsigned width, unsigned height)
{
	struct tui_state *state = xcalloc(sizeof *state);

	*state = (struct tui_state){ .model = model, .width = width, .height = height };
	reset_state(state);
	if (model->warnings.count)
		strcpy(state->message, "press ! for warnings about this trace");
	return state;
}

void tui_state_free(struct tui_state *state)
{
	tui_lines_free(&state->lines);
	free(state->open);
	free(state->open_before);
	free(state->shown);
	free(state->focus);
	free(state);
}

void tui_resize(struct tui_state *state, unsigned width, unsigned height)
{
	state->width = width;
	state->height = height;
	tui_scroll(state);
}

uint32_t tui_list_metrics(const struct tui_state *state, const char **keys, uint32_t room)
{
	uint32_t count = 0;

	for (unsigned metric = 0; metric < METRIC_COUNT && count < room; metric++)
		if (*metrics[metric].key &&
			state->model->kind->has_metric(state->model, metrics[metric].key))
			keys[count++] = metrics[metric].key;
	return count;
}

uint32_t tui_list_sort_columns(const struct tui_state *state, uint32_t *columns, uint32_t room)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < state->model->column_count && count < room; i++)
		if (state->model->columns[i].sortable && state->model->columns[i].filled)
			columns[count++] = i;
	return count;
}

static void change_metric(struct tui_state *state)
{
	const uint32_t item = tui_cursor_item(state),
		       key = item == TUI_NONE ? TUI_NONE : state->model->items[item].key;

	state->first_column = 0;
	if (!state->model->kind->change_metric(state->model, state->pending_metric)) {
		reset_state(state); /* it is another tree, with other keys */
		return;
	}
	tui_update_rows(state, tui_model_find(state->model, key));
}

void tui_run_pending(struct tui_state *state)
{
	const enum tui_action action = state->pending_action;
	uint32_t item;

	state->pending_action = TUI_ACTION_NONE;
	if (action == TUI_ACTION_CHANGE_METRIC)
		change_metric(state);
	if (action != TUI_ACTION_WORST_NEXT && action != TUI_ACTION_WORST_LAST)
		return;
	item = state->model->kind->next_critical(state->model, tui_cursor_item(state),
		action == TUI_ACTION_WORST_LAST, state->message, sizeof state->message);
	if (item != TUI_NONE)
		tui_reveal(state, item);
}
