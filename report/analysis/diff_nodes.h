/* SPDX-License-Identifier: MIT
 *
 * Matches the call trees of two runs, top down: the children of matched nodes are matched by name,
 * kind, module class and NVTX domain. What is then left of both runs under one parent is matched by
 * these rules:
 *
 * | status   | of the same parent, one child in each run                                         |
 * |----------|-----------------------------------------------------------------------------------|
 * | replaced | GPU operations (kernels, copies, memsets) of one kind, with similar names or as   |
 * |          | the only ones left; modules of one name and different classes                     |
 * | renamed  | modules of one class, or ranges, with the same children                           |
 * | new      | only the second run has it                                                        |
 * | gone     | only the first run has it                                                         |
 *
 * The nodes of (a, b) are those of (b, a), with new and gone swapped.
 */
#ifndef PPERF_REPORT_ANALYSIS_DIFF_NODES_H
#define PPERF_REPORT_ANALYSIS_DIFF_NODES_H

#include "report/analysis/compared_run.h"
#include "report/stats/change_test.h"

/* status, name in the output */
#define DIFF_STATUSES(X)             \
	X(DIFF_BOTH, "both")         \
	X(DIFF_NEW, "new")           \
	X(DIFF_REMOVED, "gone")      \
	X(DIFF_REPLACED, "replaced") \
	X(DIFF_RENAMED, "renamed")

enum diff_status {
#define X(status, name) status,
	DIFF_STATUSES(X)
#undef X
};

/* What identifies a node under its parent. Texts of the diff. */
struct diff_key {
	uint32_t name, domain, class;
	uint8_t kind; /* enum node_kind */
};

struct diff_node {
	uint32_t parent, first_child, next, depth;
	struct diff_key key;        /* in the second run, unless it is gone */
	struct diff_key before_key; /* replaced or renamed: in the first run; else equal to key */
	enum diff_status status;
	uint32_t of[2];            /* the first matching node of each run's tree; 0: none */
	double value[2], calls[2]; /* before and after; of a step or of the whole run */
	const double *samples[2];  /* NULL: none */
	double *own_samples[2];    /* allocated: of several matching nodes */
	uint32_t n[2];             /* number of samples in each run */
	struct change_test test;   /* p is adjusted */
	bool significant;          /* or not tested, large, and new or gone */
	bool outlier;     /* significant, and far from the median change of all call paths */
	bool shown;       /* in text: it or a descendant is significant, or changed much without a
			     test */
	bool is_small;    /* too small to be tested */
	uint32_t same_as; /* the ancestor with the same samples, whose test is its own; 0: none */
	double largest_change; /* of the changes shown in it and below */
};

struct diff_nodes {
	struct diff_node *all; /* parents before children; 0: the root */
	uint32_t count;
	size_t room;
};

/* Matches the nodes that have a value of the metric, themselves or below, in the metric samples of
 * both sides. Interns names in `texts`. */
void diff_nodes_match(
	struct diff_nodes *nodes, struct string_table *texts, const struct compared_run sides[2]);
void diff_nodes_free(struct diff_nodes *nodes);

/* after - before */
double diff_node_change(const struct diff_node *node);

#endif
