/* SPDX-License-Identifier: MIT */
#include "report/print/shell_command.h"
#include "report/base/alloc.h"
#include "report/table/view.h"
#include "report/base/escape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(struct command *command, const char *bytes, size_t length)
{
	grow(&command->text, &command->room, command->used + length + 1, 1);
	memcpy(command->text + command->used, bytes, length);
	command->used += length;
	command->text[command->used] = '\0';
}

void command_add(struct command *command, const char *text)
{
	add(command, text, strlen(text));
}

static bool is_plain(const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!(bytes[i] >= 'a' && bytes[i] <= 'z') && !(bytes[i] >= 'A' && bytes[i] <= 'Z') && !(bytes[i] >= '0' && bytes[i] <= '9') &&
			(!bytes[i] || !strchr("_./:=@%+,-", bytes[i])))
			return false;
	return length > 0;
}

/* Whether a terminal may see it as it is. */
static bool is_visible(const char *bytes, size_t length, bool ascii)
{
	const size_t room = 6 * length + 1;
	char *shown = need(room);
	bool same;

	visible(shown, room, bytes, length, ascii);
	same = strlen(shown) == length && memcmp(shown, bytes, length) == 0;
	free(shown);
	return same;
}

static void add_quoted(struct command *command, const char *bytes, size_t length)
{
	add(command, "'", 1);
	for (size_t i = 0; i < length; i++) {
		if (bytes[i] == '\'')
			command_add(command, "'\\''");
		else
			add(command, bytes + i, 1);
	}
	add(command, "'", 1);
}

static void add_escaped(struct command *command, const char *bytes, size_t length)
{
	char text[8];

	command_add(command, "$'");
	for (size_t i = 0; i < length; i++) {
		const unsigned char byte = (unsigned char)bytes[i];

		if (byte < ' ' || byte >= 0x7f || byte == '\'' || byte == '\\')
			snprintf(text, sizeof text, "\\%03o", byte);
		else
			snprintf(text, sizeof text, "%c", byte);
		command_add(command, text);
	}
	add(command, "'", 1);
}

void command_word(struct command *command, const char *bytes, size_t length)
{
	add(command, " ", 1);
	if (is_plain(bytes, length))
		add(command, bytes, length);
	else if (is_visible(bytes, length, command->ascii))
		add_quoted(command, bytes, length);
	else
		add_escaped(command, bytes, length);
}

void command_file(struct command *command, const char *path)
{
	char *safe;

	if (*path != '-' && !view_find(path)) {
		command_word(command, path, strlen(path));
		return;
	}
	safe = need(strlen(path) + 3);
	sprintf(safe, "./%s", path);
	command_word(command, safe, strlen(safe));
	free(safe);
}

void command_files(struct command *command, const struct options *options)
{
	for (size_t i = 0; i < options->file_count; i++)
		command_file(command, options->files[i]);
}
