/* SPDX-License-Identifier: MIT */
#include "report/run/options.h"

bool focus_next_component(const char **path, char *out, size_t *length)
{
	const char *from = *path;

	*length = 0;
	if (!*from)
		return false;
	for (; *from && *from != '/'; from++) {
		if (*from == '\\' && (from[1] == '/' || from[1] == '\\'))
			from++;
		out[(*length)++] = *from;
	}
	*path = *from ? from + 1 : from;
	return true;
}
