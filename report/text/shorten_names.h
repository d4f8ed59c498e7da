/* SPDX-License-Identifier: MIT
 * Shortens the names of a table so that the names of one group remain distinct where possible.
 * If several names look the same because the ellipsis hides their difference, each is shown from
 * there on.
 *
 *	sm80_xmma_fprop_64x128_warpgroup_cudnn   ->  sm80_...64x1...cudnn
 *	sm80_xmma_fprop_64x64_warpgroup_cudnn    ->  sm80_...64x6...cudnn
 *
 * Callers (` < FRAME`) that all paths of a group end with become an ellipsis if a path is too wide:
 *
 *	linear / mm < model.py:7 f < train.py:3 main    ->  linear / mm < model.py:7 f < ...
 */
#ifndef PPERF_REPORT_TEXT_SHORTEN_NAMES_H
#define PPERF_REPORT_TEXT_SHORTEN_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shortened_name {
	/* `whole`: the escaped name, in which shorten_names replaces callers that all share.
	 * `text`: the name to show, set by shorten_names. shorten_names_free frees both. */
	char *whole, *text;
	size_t columns; /* for `text`; SIZE_MAX: the whole name */
	uint32_t group; /* names of one group must differ */
	/* A path is shortened by report/text/shorten_path.h, but one with callers at its beginning.
	 * `two_lines`: a path that is too long may have a second line. */
	bool is_path, two_lines;
	size_t shared; /* bytes at the beginning that all paths of the group have; set here */
};

/* Sets the text of each name. */
void shorten_names(struct shortened_name *names, size_t count, bool ascii);
/* Frees the texts and the array. */
void shorten_names_free(struct shortened_name *names, size_t count);

#endif
