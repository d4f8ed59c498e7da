/* SPDX-License-Identifier: MIT
 *
 * Reads where a process was when its trace ended: which ranges its threads were in, and how many
 * collectives of each communicator it had requested. For traces of processes that were killed, or
 * that are still running. GPU records of the last collectives are then missing, but their requests
 * are not:
 *
 * - a launch in a range of a collective (nccl:all_reduce), without a GPU record
 * - such a range that is still open
 *
 * The communicator of a request is that of earlier collectives of the same call path. A call path
 * with collectives of several communicators is not counted.
 */
#ifndef PPERF_REPORT_ANALYSIS_RANKS_RANK_END_H
#define PPERF_REPORT_ANALYSIS_RANKS_RANK_END_H

#include "report/analysis/ranks/collectives.h"
#include "report/run/process.h"

#define RANK_END_FRAMES 8u /* of a stack that are kept */

/* A thread with open ranges, in a call of NCCL, or with a stack. */
struct end_thread {
	uint32_t tid;
	/* Since the start of the trace: begin of the call of NCCL; if there is none, of the
	 * innermost range; without that, of the last call with a stack. */
	uint64_t begin_ns;
	const char *call; /* function of NCCL that did not return; NULL: none */
	char **path;      /* names of the open ranges, from the outermost; any bytes, terminated */
	size_t path_count;
	char *source; /* file, line and function that entered the innermost range; NULL: unknown */
	/* Stack of the thread's last call that has one, innermost first. */
	char *frames[RANK_END_FRAMES];
	size_t frame_count;
};

struct rank_end {
	struct end_thread *threads;
	size_t thread_count, room;
	uint64_t *requested; /* by communicator */
};

/* Reads the trace of an open process once more. `collectives` are its own. */
struct rank_end *rank_end_read(struct process *process, const struct collectives *collectives);
void rank_end_free(struct rank_end *end); /* NULL is allowed */

#endif
