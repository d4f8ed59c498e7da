/* SPDX-License-Identifier: MIT
 * Writes what the head of a page says: which traces, of what program and GPU, whether they are
 * complete, and the commands that show the same figures as text.
 */
#ifndef PPERF_REPORT_PAGE_PAGE_HEAD_H
#define PPERF_REPORT_PAGE_PAGE_HEAD_H

#include "report/analysis/ranks/rank_set.h"
#include "report/text/json_writer.h"

/* Returns the name of the trace, or of both, without folders: foreign text. The caller frees it. */
char *page_title(const struct options *options, size_t count);
/* Writes the members `head` and `commands`. `sides`: one, or before and after. */
void page_head_write(struct json_writer *json, const struct options *options,
	const struct processes *sides, size_t count);
/* The same of several ranks: an element of `head` for each. The first one has the warnings of
 * all. */
void page_head_write_ranks(
	struct json_writer *json, const struct options *options, const struct ranks *ranks);

#endif
