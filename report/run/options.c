/* SPDX-License-Identifier: MIT */
#include "report/run/options.h"
#include <ctype.h>
#include <stdlib.h>

/* Reads `\xff`. Returns the bytes read, 0 if there is no such escape at `from`. */
static size_t read_byte_escape(const char *from, char *byte)
{
	if (from[0] != '\\' || from[1] != 'x' || !isxdigit((unsigned char)from[2]) ||
		!isxdigit((unsigned char)from[3]))
		return 0;
	*byte = (char)strtoul((const char[]){ from[2], from[3], '\0' }, NULL, 16);
	return 4;
}

bool focus_next_component(const char **path, char *out, size_t *length)
{
	const char *from = *path;

	*length = 0;
	if (!*from)
		return false;
	while (*from && *from != '/') {
		const size_t escape = read_byte_escape(from, &out[*length]);

		if (escape) {
			from += escape;
			++*length;
			continue;
		}
		if (*from == '\\' && (from[1] == '/' || from[1] == '\\'))
			from++;
		out[(*length)++] = *from++;
	}
	*path = *from ? from + 1 : from;
	return true;
}
