/* SPDX-License-Identifier: MIT
 * Writes the pages of the view `html` that are about several traces or nights.
 */
#ifndef PPERF_REPORT_PAGE_HTML_PAGES_H
#define PPERF_REPORT_PAGE_HTML_PAGES_H

#include "report/analysis/ranks/rank_set.h"

/* Of a page of several ranks. Those with parts of their own are the stragglers, then the others by
 * number. They share the bytes: parts without single events are written where all would not fit,
 * and none where these would not fit either. The page says what is left out. */
#define HTML_RANK_PAGES_MAX 8u
#define HTML_RANK_PAGES_BYTES 4000000u

/* Writes the page of the ranks of one run, and frees `ranks`. Returns the exit status. */
int html_ranks_page(const struct options *options, struct ranks *ranks);

#define HTML_CHANGES_MAX 400u    /* rows of the view `diff` in a page */
#define HTML_SIDE_BYTES 1800000u /* of each trace; beyond it, lanes have no single events */

/* Writes the page that compares two processes, the first ones of `sides`: before and after. Frees
 * both. Returns the exit status. */
int html_sides_page(const struct options *options, struct processes sides[2]);

/* Writes the page of a history of nights. The only file has its data: the JSON object that `pperf
 * history html` makes. Returns the exit status. */
int html_trends_page(const struct options *options);

#endif
