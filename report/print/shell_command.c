/* SPDX-License-Identifier: MIT */
#include "report/print/shell_command.h"
#include "report/base/alloc.h"
#include "report/table/view.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append_bytes(struct shell_command *command, const char *bytes, size_t length)
{
	array_grow_zeroed(&command->text, &command->room, command->used + length + 1, 1);
	memcpy(command->text + command->used, bytes, length);
	command->used += length;
	command->text[command->used] = '\0';
}

void shell_command_add(struct shell_command *command, const char *text)
{
	append_bytes(command, text, strlen(text));
}

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

static void add_quoted(struct shell_command *command, const char *bytes, size_t length)
{
	append_bytes(command, "'", 1);
	for (size_t i = 0; i < length; i++) {
		if (bytes[i] == '\'')
			shell_command_add(command, "'\\''");
		else
			append_bytes(command, bytes + i, 1);
	}
	append_bytes(command, "'", 1);
}

static void add_escaped(struct shell_command *command, const char *bytes, size_t length)
{
	char text[8];

	shell_command_add(command, "$'");
	for (size_t i = 0; i < length; i++) {
		const unsigned char byte = (unsigned char)bytes[i];

		if (byte < ' ' || byte >= 0x7f || byte == '\'' || byte == '\\')
			snprintf(text, sizeof text, "\\%03o", byte);
		else
			snprintf(text, sizeof text, "%c", byte);
		shell_command_add(command, text);
	}
	append_bytes(command, "'", 1);
}

void shell_command_add_word(struct shell_command *command, const char *bytes, size_t length)
{
	append_bytes(command, " ", 1);
	if (needs_no_quotes(bytes, length))
		append_bytes(command, bytes, length);
	else if (needs_no_escape(bytes, length, command->ascii))
		add_quoted(command, bytes, length);
	else
		add_escaped(command, bytes, length);
}

void shell_command_add_file(struct shell_command *command, const char *path)
{
	char *safe;

	if (*path != '-' && !view_find(path)) {
		shell_command_add_word(command, path, strlen(path));
		return;
	}
	safe = xcalloc(strlen(path) + 3);
	sprintf(safe, "./%s", path);
	shell_command_add_word(command, safe, strlen(safe));
	free(safe);
}

void shell_command_add_files(struct shell_command *command, const struct options *options)
{
	for (size_t i = 0; i < options->file_count; i++)
		shell_command_add_file(command, options->files[i]);
}
