/* SPDX-License-Identifier: MIT */
#include "report/print/shell_command.h"
#include "report/base/alloc.h"
#include "report/table/view.h"
#include "report/base/escape.h"
#include <stdlib.h>
#include <string.h>

static bool needs_no_quotes(const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!(bytes[i] >= 'a' && bytes[i] <= 'z') &&
			!(bytes[i] >= 'A' && bytes[i] <= 'Z') &&
			!(bytes[i] >= '0' && bytes[i] <= '9') &&
			(!bytes[i] || !strchr("_./:=@%+,-", bytes[i])))
			return false;
	return length > 0;
}

/* Whether a terminal shows the bytes unchanged. */
static bool needs_no_escape(const char *bytes, size_t length, bool ascii)
{
	const size_t room = 6 * length + 1;
	char *shown = xcalloc(room);
	bool same;

	escape_text(shown, room, bytes, length, ascii);
	same = strlen(shown) == length && memcmp(shown, bytes, length) == 0;
	free(shown);
	return same;
}

static void add_quoted(struct text_builder *built, const char *bytes, size_t length)
{
	text_add(built, "'");
	for (size_t i = 0; i < length; i++)
		text_add_bytes(
			built, bytes[i] == '\'' ? "'\\''" : bytes + i, bytes[i] == '\'' ? 4 : 1);
	text_add(built, "'");
}

static void add_escaped(struct text_builder *built, const char *bytes, size_t length)
{
	text_add(built, "$'");
	for (size_t i = 0; i < length; i++) {
		const unsigned char byte = (unsigned char)bytes[i];

		text_add(built,
			byte < ' ' || byte >= 0x7f || byte == '\'' || byte == '\\' ? "\\%03o"
										   : "%c",
			byte);
	}
	text_add(built, "'");
}

void shell_command_add_word(struct shell_command *command, const char *bytes, size_t length)
{
	text_add(&command->built, " ");
	if (needs_no_quotes(bytes, length))
		text_add_bytes(&command->built, bytes, length);
	else if (needs_no_escape(bytes, length, command->ascii))
		add_quoted(&command->built, bytes, length);
	else
		add_escaped(&command->built, bytes, length);
}

void shell_command_add_file(struct shell_command *command, const char *path)
{
	struct text_builder safe = { .text = NULL };

	text_add(&safe, "%s%s", *path == '-' || view_find(path) ? "./" : "", path);
	shell_command_add_word(command, safe.text, safe.used);
	free(safe.text);
}

void shell_command_add_files(struct shell_command *command, const struct options *options)
{
	for (size_t i = 0; i < options->file_count; i++)
		shell_command_add_file(command, options->files[i]);
}
