/* SPDX-License-Identifier: MIT
 * apart.h: the names of a table, made short so that those of one list can still be told apart, as far as one more
 * stretch of each can do that. What the ellipsis would hide of several names that then read the same is shown from
 * where they differ.
 *
 *	sm80_xmma_fprop_64x128_warpgroup_cudnn   ->  sm80_...64x1...cudnn
 *	sm80_xmma_fprop_64x64_warpgroup_cudnn    ->  sm80_...64x6...cudnn
 */
#ifndef PPERF_REPORT_TEXT_SHORTEN_NAMES_H
#define PPERF_REPORT_TEXT_SHORTEN_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shortened_name {
	char *whole,
		*text; /* visible.h; text: what is shown, made by apart_names; both freed by apart_free */
	size_t columns; /* for it */
	uint32_t group; /* of those that are to be told apart */
	bool is_path;   /* its end tells most, then its components */
};

/* Makes the texts. */
void shorten_names(struct shortened_name *names, size_t count, bool ascii);
/* The array, too. */
void shorten_names_free(struct shortened_name *names, size_t count);

#endif
