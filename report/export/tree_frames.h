/* SPDX-License-Identifier: MIT
 *
 * Walks the nodes of call trees that have an amount of their own, with the path of each.
 */
#ifndef PPERF_REPORT_EXPORT_TREE_FRAMES_H
#define PPERF_REPORT_EXPORT_TREE_FRAMES_H

#include "report/analysis/tree_amounts.h"
#include "report/run/process.h"

/* Which amounts a format writes, by enum tree_amount. */
struct frame_amounts {
	bool chosen[AMOUNT_COUNT];
};

/* Returns the amount of -m, or all of them without -m. Ends the program if -m is a metric that does
 * not add up, such as a level. */
struct frame_amounts frame_amounts_of(const struct options *options);
/* Returns the one amount of -m. Without -m: sampled time with --by, and if there is nothing else;
 * else GPU time, and CPU time where there is none. */
enum tree_amount frame_amount_of(const struct options *options, const struct process *process);

/* The path of one node. nodes[0] is the outermost node; a process is around it if several are
 * written. All zero at first. */
struct frame_path {
	const struct process *process;
	uint32_t *nodes;
	size_t count, room;
};

/* Sets the path of a node. Node 0 has an empty path. */
void frame_path_set(struct frame_path *path, const struct process *process, uint32_t node);
void frame_path_free(struct frame_path *path);

/* Returns the name of a node, at most FRAME_NAME_BYTES bytes of it: the begin and the end of longer
 * ones. Control characters and bytes that are not UTF-8 are escaped. Valid until the next call. */
#define FRAME_NAME_BYTES 400u
struct string_view frame_name(const struct process *process, uint32_t node);

#endif
