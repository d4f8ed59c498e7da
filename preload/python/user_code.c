/* SPDX-License-Identifier: MIT */
#include "preload/python/user_code.h"

#include <string.h>

#define FOLDERS_MAX 8u
#define FOLDER_BYTES 512u

static struct {
	char text[FOLDER_BYTES];
	size_t bytes;
} folders[FOLDERS_MAX];
static size_t folder_count;

void python_add_library_folder(const char *folder, size_t bytes)
{
	if (!bytes || bytes > FOLDER_BYTES || folder_count == FOLDERS_MAX)
		return;
	memcpy(folders[folder_count].text, folder, bytes);
	folders[folder_count++].bytes = bytes;
}

static bool starts_with(const char *file, size_t bytes, const char *text)
{
	size_t length = strlen(text);

	return bytes >= length && !memcmp(file, text, length);
}

static bool path_contains(const char *file, size_t bytes, const char *part)
{
	return memmem(file, bytes, part, strlen(part)) != NULL;
}

/* True for names of code without a file that the user typed: given with -c, in a console or in a
 * notebook's cell. Other names in `<>` are code that was generated. */
static bool is_typed(const char *file, size_t bytes)
{
	static const char *const names[] = { "<stdin>", "<string>", "<console>", "<python-input-",
		"<ipython-input-" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (starts_with(file, bytes, names[i]))
			return true;
	return false;
}

bool python_is_user_code(const char *file, size_t bytes)
{
	static const char *const parts[] = { "/site-packages/", "/dist-packages/",
		"/torchinductor_" };

	if (!bytes)
		return false;
	if (file[0] == '<')
		return is_typed(file, bytes);
	for (size_t i = 0; i < folder_count; i++)
		if (bytes > folders[i].bytes && file[folders[i].bytes] == '/' &&
			!memcmp(file, folders[i].text, folders[i].bytes))
			return false;
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (path_contains(file, bytes, parts[i]))
			return false;
	return true;
}
