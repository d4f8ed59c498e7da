/* SPDX-License-Identifier: MIT
 * Words the sentences of the view `ranks`, which text and the page of several ranks print.
 */
#ifndef PPERF_REPORT_VIEWS_RANKS_WORDS_H
#define PPERF_REPORT_VIEWS_RANKS_WORDS_H

#include "report/analysis/ranks/rank_set.h"
#include "report/text/paragraph.h"

/* Each adds one sentence: how many ranks are aligned; how one was; how many collectives match. */
void ranks_add_alignment(struct paragraph *paragraph, const struct ranks *ranks);
void ranks_add_clock(
	struct paragraph *paragraph, const struct ranks *ranks, const struct rank_process *rank);
void ranks_add_matched(struct paragraph *paragraph, const struct ranks *ranks);
/* What made a rank late; that no rank was. */
void ranks_add_straggler(
	struct paragraph *paragraph, const struct ranks *ranks, const struct straggler *straggler);
void ranks_add_no_straggler(struct paragraph *paragraph, const struct ranks *ranks);

/* Writes which rank was last most often in the collectives of a row, and in how many. `undecided`:
 * no rank was last by more than the clocks' residual. */
void ranks_last_text(
	char *text, size_t room, const struct ranks *ranks, const struct collective_row *row);
/* Returns the path of `node` as it is shown, without collective wrappers at its end. The caller
 * frees the text. */
char *ranks_node_text(const struct ranks *ranks, uint32_t node, bool ascii);

#endif
