/* SPDX-License-Identifier: MIT
 * Shortens a call path to one or two lines by leaving out names in its middle. A name is cut only
 * if it is too long by itself.
 *
 *	forward / encoder / layer / linear / addmm → gemm    ->    forward / … / addmm → gemm
 */
#ifndef PPERF_REPORT_TEXT_SHORTEN_PATH_H
#define PPERF_REPORT_TEXT_SHORTEN_PATH_H

#include <stdbool.h>
#include <stddef.h>

struct path_shortening {
	bool two_lines;    /* a second line may be used; it is two columns shorter */
	size_t differs_at; /* a byte of a name that only this path has; SIZE_MAX: none */
	size_t shared;     /* bytes at the beginning that say nothing, as all paths have them */
};

/* Shortens `whole`, an escaped path with names separated by ` / ` and ` → `, to lines of `columns`,
 * separated by a line feed. The last name is always shown, then as far as they fit the one that
 * differs, the first that not all paths share, the one before the last, and more from the end on.
 * The second line is only used if these do not fit on one. The caller frees the result, which
 * is NULL if the name that differs does not fit. */
char *shorten_path(
	const char *whole, size_t columns, const struct path_shortening *how, bool ascii);

#endif
