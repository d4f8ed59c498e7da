/* SPDX-License-Identifier: MIT */
#include "report/print/next_command.h"
#include "report/base/alloc.h"
#include "report/run/process.h"
#include "report/table/view.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void next_command_begin(struct shell_command *command, const char *view)
{
	shell_command_add(command, "pperf-report ");
	shell_command_add(command, view);
}

static void add_rank_option(struct shell_command *command, const char *option, uint64_t value)
{
	char text[64];

	snprintf(text, sizeof text, " %s %" PRIu64, option, value);
	shell_command_add(command, text);
}

void next_command_add_files(struct shell_command *command, const struct options *options)
{
	shell_command_add_files(command, options);
	if (options->rank >= 0)
		add_rank_option(command, "--rank", (uint64_t)options->rank);
	if (options->no_fold)
		shell_command_add(command, " --no-fold");
	if (options->no_steps)
		shell_command_add(command, " --no-steps");
	if (options->step_marker) {
		shell_command_add(command, " --step-marker");
		shell_command_add_word(command, options->step_marker, strlen(options->step_marker));
	}
}

void next_command_add_path(
	struct shell_command *command, const struct trace_text *path, size_t count)
{
	char *joined = NULL;
	size_t used = 0, room = 0;

	for (size_t i = 0; i < count; i++) {
		array_grow_zeroed(&joined, &room, used + 2 * (size_t)path[i].length + 2, 1);
		if (i)
			joined[used++] = '/';
		for (uint32_t at = 0; at < path[i].length; at++) {
			if (path[i].bytes[at] == '/' || path[i].bytes[at] == '\\')
				joined[used++] = '\\';
			joined[used++] = path[i].bytes[at];
		}
	}
	shell_command_add_word(command, joined ? joined : "", used);
	free(joined);
}

void next_command_add_focus(
	struct shell_command *command, const struct trace_text *path, size_t count)
{
	shell_command_add(command, " --focus");
	next_command_add_path(command, path, count);
}

void next_command_put(struct shell_command *command, const struct style *style)
{
	if (style->terminal && command->text) {
		print_paint(style, PAINT_DIM);
		output_string(style->out, style->ascii ? "next: " : "next \xc2\xb7 ");
		/* Needs no escapes: shell_command_add_word writes only printable bytes. */
		output_bytes(style->out, command->text, command->used);
		print_paint(style, PAINT_NONE);
		output_char(style->out, '\n');
	}
	free(command->text);
	*command = (struct shell_command){ .text = NULL };
}

/* Adds --focus with the path of the first row. Returns false if there is no such row, or it has no
 * path. */
static bool add_first_path(struct shell_command *command, const struct rows *rows)
{
	const struct row *row = rows->count ? &rows->rows[0] : NULL;
	const size_t length = row && row->tree ? row_path(row, NULL, 0) : 0;
	uint32_t *nodes = xcalloc((length + 1) * sizeof *nodes);
	struct trace_text *path = xcalloc((length + 1) * sizeof *path);

	if (length)
		row_path(row, nodes, length);
	for (size_t i = 0; i < length; i++) {
		const struct string_view name = string_table_get(
			row->process->texts, row->tree->nodes[nodes[i]].name);

		path[i] = (struct trace_text){ name.bytes, name.length, true };
	}
	if (length)
		next_command_add_focus(command, path, length);
	free(nodes);
	free(path);
	return length > 0;
}

void next_command_of_view(const struct report *report, const struct style *style)
{
	const char *pattern = report->options->view->next, *view_end;
	const struct process *process = &report->processes->all[0];
	struct shell_command command = { .ascii = style->ascii };
	char view[32];

	if (!pattern || !style->terminal || !report->processes->shown)
		return;
	view_end = strchrnul(pattern, ' ');
	snprintf(view, sizeof view, "%.*s", (int)(view_end - pattern), pattern);
	next_command_begin(&command, view);
	next_command_add_files(&command, report->options);
	for (const char *at = view_end; *at; at++) {
		char byte[2] = { *at, '\0' };

		if (at[0] == '%' && at[1] == 'm') {
			const char *metric = report->options->metric_name
						     ? report->options->metric_name
						     : metrics[process->metric].key;

			command.used -= command.used && command.text[command.used - 1] == ' ';
			shell_command_add_word(&command, metric, strlen(metric));
			at++;
		} else if (at[0] == '%' && at[1] == 'p') {
			command.used -= command.used && command.text[command.used - 1] == ' ';
			if (!add_first_path(&command, &report->rows)) {
				free(command.text);
				return;
			}
			at++;
		} else {
			shell_command_add(&command, byte);
		}
	}
	next_command_put(&command, style);
}
