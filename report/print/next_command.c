/* SPDX-License-Identifier: MIT */
#include "report/print/next_command.h"
#include "report/base/alloc.h"
#include "report/run/process.h"
#include "report/table/view.h"
#include <stdlib.h>
#include <string.h>

void next_command_begin(struct shell_command *command, const char *view)
{
	text_add(&command->built, "pperf-report %s", view);
}

void next_command_add_files(struct shell_command *command, const struct options *options)
{
	shell_command_add_files(command, options);
	if (options->rank >= 0)
		text_add(&command->built, " --rank %lld", (long long)options->rank);
	if (options->no_fold)
		text_add(&command->built, " --no-fold");
	if (options->no_steps)
		text_add(&command->built, " --no-steps");
	if (options->graphs) {
		text_add(&command->built, " --graphs");
		shell_command_add_word(command, options->graphs, strlen(options->graphs));
	}
	if (options->step_marker) {
		text_add(&command->built, " --step-marker");
		shell_command_add_word(command, options->step_marker, strlen(options->step_marker));
	}
}

void next_command_add_path(
	struct shell_command *command, const struct trace_text *path, size_t count)
{
	struct text_builder joined = { .text = NULL };

	for (size_t i = 0; i < count; i++) {
		text_add_bytes(&joined, "/", i > 0);
		text_add_path_name(&joined, path[i].bytes, path[i].length);
	}
	shell_command_add_word(command, joined.text ? joined.text : "", joined.used);
	free(joined.text);
}

void next_command_add_focus(
	struct shell_command *command, const struct trace_text *path, size_t count)
{
	text_add(&command->built, " --focus");
	next_command_add_path(command, path, count);
}

void next_command_put(struct shell_command *command, const struct style *style)
{
	if (style->terminal && command->built.text) {
		print_paint(style, PAINT_DIM);
		output_string(style->out, style->ascii ? "next: " : "next \xc2\xb7 ");
		output_bytes(style->out, command->built.text,
			command->built.used); /* shell_command.h escapes hidden characters */
		print_paint(style, PAINT_NONE);
		output_char(style->out, '\n');
	}
	free(command->built.text);
	*command = (struct shell_command){ .ascii = false };
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

/* Adds a word of a view's next command: %m is the metric, %p the path of the first row. Returns
 * false if there is no such path. */
static bool add_command_word(
	struct shell_command *command, const struct report *report, const char *word, size_t length)
{
	const char *metric = report->options->metric_name;

	if (length == 2 && !memcmp(word, "%p", 2))
		return add_first_path(command, &report->rows);
	if (length == 2 && !memcmp(word, "%m", 2)) {
		metric = metric ? metric : metrics[report->processes->all[0].metric].key;
		shell_command_add_word(command, metric, strlen(metric));
	} else {
		text_add(&command->built, " %.*s", (int)length, word);
	}
	return true;
}

void next_command_of_view(const struct report *report, const struct style *style)
{
	const char *word = report->options->view->next;
	struct shell_command command = { .ascii = style->ascii };
	size_t length;

	if (!word || !style->terminal || !report->processes->shown)
		return;
	length = strcspn(word, " ");
	text_add(&command.built, "pperf-report %.*s", (int)length, word);
	next_command_add_files(&command, report->options);
	for (word += length; *word; word += length) {
		word++;
		length = strcspn(word, " ");
		if (!add_command_word(&command, report, word, length)) {
			free(command.built.text);
			return;
		}
	}
	next_command_put(&command, style);
}
