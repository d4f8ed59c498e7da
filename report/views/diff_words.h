/* SPDX-License-Identifier: MIT
 * Words the sentences and cells of the view `diff`, and selects its rows, for text and for the page
 * of two traces.
 */
#ifndef PPERF_REPORT_VIEWS_DIFF_WORDS_H
#define PPERF_REPORT_VIEWS_DIFF_WORDS_H

#include "report/analysis/run_diff.h"
#include "report/text/paragraph.h"

#define DIFF_CELL_BYTES 40

const char *diff_status_name(const struct diff_node *node);
/* Whether the node has a value in one run only. */
bool diff_is_one_sided(const struct diff_node *node);
/* Adds the name, and the class of a module. Of what was replaced or renamed: both names. */
void diff_add_node_name(
	const struct diff *diff, struct paragraph *whole, const struct diff_node *node);
void diff_add_key_name(
	const struct diff *diff, struct paragraph *whole, const struct diff_key *key);
/* Adds what follows the name: how the calls changed, and why a node is not tested or how many
 * values were compared, where this differs between rows. */
void diff_add_remarks(const struct diff *diff, const struct diff_node *node, bool ascii,
	struct text_builder *behind);
/* Writes the change in percent; `-`: there was nothing before. */
void diff_relative_text(char text[DIFF_CELL_BYTES], double before, double after);
/* Writes p, or what the node is instead: new, gone; `-`: it was not tested. */
void diff_significance_text(char text[DIFF_CELL_BYTES], const struct diff_node *node);

/* Whether the node gets a row for its own sake, not as the ancestor of another row. */
bool diff_has_own_row(const struct diff *diff, const struct diff_node *node);
/* Whether the node is between two others with the same samples. It has no row, unless its name
 * changed. */
bool diff_is_between(const struct diff *diff, uint32_t id);
/* Selects the rows to print: those with the largest changes, and their ancestors, at most `limit`.
 * Sets *left_out to the number of others. Returns an array by node, to be freed. */
bool *diff_select_rows(const struct diff *diff, uint32_t limit, uint32_t *left_out);

/* Each adds one sentence: what was compared; how it was tested; the step or run as `gate` compares
 * it; how much the runs differ as a whole (returns false without adding if that is not known); what
 * was found. */
void diff_add_basis(struct paragraph *paragraph, const struct diff *diff);
void diff_add_method(struct paragraph *paragraph);
void diff_add_whole(struct paragraph *paragraph, const struct diff *diff);
bool diff_add_spread(struct paragraph *paragraph, const struct diff *diff);
void diff_add_result(struct paragraph *paragraph, const struct diff *diff);

#endif
