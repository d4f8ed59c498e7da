/* SPDX-License-Identifier: MIT
 * Finds the known name that is nearest to a misspelt word, for "did you mean".
 *
 *	struct suggestion near = suggest_for(word, strlen(word));
 *	for (each known name)
 *		suggest_offer(&near, name);
 *	fatal(STATUS_USAGE, "there is no thing `%s`%s", word, suggest_text(&near, "see --help"));
 */
#ifndef PPERF_REPORT_TEXT_SUGGEST_H
#define PPERF_REPORT_TEXT_SUGGEST_H

#include <stddef.h>

/* Longer words and names are never near to each other. */
#define SUGGEST_BYTES 64

struct suggestion {
	const char *word;
	size_t length;
	size_t distance;          /* of `best`; before the first, the limit */
	char best[SUGGEST_BYTES]; /* "": none of the names was near enough */
};

struct suggestion suggest_for(const char *word, size_t length);

/* Keeps `name` if it is nearer than all names before. The distance is the number of letters to
 * insert, delete, replace or swap with the next; case counts for nothing. For a word of at least
 * three letters, all that a name has more at its end counts as one letter. */
void suggest_offer(struct suggestion *suggestion, const char *name);

/* Returns the end of a sentence: "; did you mean `NAME`?", or "; " and `otherwise` if no name was
 * near, or "" if `otherwise` is NULL as well. Valid until the next call. */
const char *suggest_text(const struct suggestion *suggestion, const char *otherwise);

#endif
