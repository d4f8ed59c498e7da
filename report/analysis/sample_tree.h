/* SPDX-License-Identifier: MIT
 *
 * Makes trees of the functions that samples found: below the nodes of the call tree, by callers, or
 * flat. A node has the name of its function, and its library or file as `domain`. Its values are in
 * its part `sampled`.
 */
#ifndef PPERF_REPORT_ANALYSIS_SAMPLE_TREE_H
#define PPERF_REPORT_ANALYSIS_SAMPLE_TREE_H

#include "report/analysis/sample_stacks.h"

enum node_kind sample_node_kind(const struct sample_cells *cells, const struct sample_frame *frame);

/* Each returns a tree that the caller frees. */

/* The functions below the nodes of the call tree in which they ran. Which frames are outside of a
 * node's ranges is not recorded: those that all stacks of a node and of the nodes below it have in
 * common are left out, except the innermost of them. `node_of`, if not NULL,
 * receives for each node of the call tree that of the new tree, or 0; the caller frees it. */
struct tree *sample_tree_by_path(struct sample_cells *cells, uint32_t **node_of);
/* Moves the samples of the process's call tree to functions, which it adds to that tree: below the
 * nodes in which they ran (BY_PATH), or below the root with the Python frames, the native ones or
 * all of them (BY_PYTHON, BY_NATIVE, BY_ALL). For views that show nothing else of the tree
 * afterwards. Frames deeper than TREE_DEPTH_MAX count for the frame there. */
void sample_tree_graft(struct sample_cells *cells, enum rows_by by);
/* The functions alone, each below its caller. */
struct tree *sample_tree_of_functions(struct sample_cells *cells, enum sample_frames which);
/* Each function, with its callers below it. A node has the samples of the root function. */
struct tree *sample_tree_of_callers(struct sample_cells *cells, enum sample_frames which);
/* One node for each function, line or library (BY_FUNCTION, BY_LINE, BY_LIBRARY). Totals include
 * what it called; a sample counts once for a function that called itself. With BY_LINE and
 * SAMPLE_FRAMES_MERGED, a line of Python has the samples of the native functions that it called. */
struct tree *sample_tree_flat(
	struct sample_cells *cells, enum rows_by by, enum sample_frames which);

#endif
