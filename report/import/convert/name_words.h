/* SPDX-License-Identifier: MIT
 * Counts the words that the name of an autograd node shares with the name of an operator. The
 * names follow different styles. The node of a layer norm is "Native Layer Norm Backward0" in one
 * word, and its operator has small letters with underscores between the words.
 */
#ifndef PPERF_REPORT_IMPORT_CONVERT_NAME_WORDS_H
#define PPERF_REPORT_IMPORT_CONVERT_NAME_WORDS_H

#include "report/text/string_table.h"
#include <stdbool.h>

#define NAME_WORDS_MAX 16u /* further words of a name are ignored */

/* The words of a name: letters and digits between capital letters and other characters. Words that
 * many names have, such as "Backward0", "Function" and "aten", are left out. */
struct name_words {
	struct string_view words[NAME_WORDS_MAX]; /* valid as long as the name */
	uint32_t count;
};

void name_words_split(struct name_words *words, struct string_view name);
/* Returns how many of the words of `left` are in `right`, in any case of letters. */
uint32_t name_words_shared(const struct name_words *left, const struct name_words *right);

#endif
