/* SPDX-License-Identifier: MIT
 *
 * Finds collectives that some ranks wait in and others have not requested, at the end of traces of
 * which one was cut by a kill or is still being written. A rank whose file is cut or damaged is not
 * judged, because what it requested last is not known.
 *
 * Ranks that were killed while the program made progress were at different collectives for that
 * reason. So the result says where each rank was, and for how long.
 */
#ifndef PPERF_REPORT_ANALYSIS_RANKS_RANK_HANG_H
#define PPERF_REPORT_ANALYSIS_RANKS_RANK_HANG_H

#include "report/analysis/ranks/rank_set.h"

/* A collective of a group that not all members have requested: the earliest. */
struct rank_hang {
	uint32_t group;
	int64_t instance;  /* the next one after what the absent members requested */
	uint64_t number;   /* of that collective, counted from 1 by the first member */
	uint32_t *waiting; /* ranks that requested it, ascending */
	uint32_t *absent;  /* ranks that did not, ascending */
	size_t waiting_count, absent_count;
	/* An absent rank waits in no other such collective. These hangs come first. */
	bool is_cause;
};

struct rank_hangs {
	struct rank_hang *all;
	size_t count, room;
	bool *waits;       /* by rank: it waits in one of these collectives */
	int64_t latest_ns; /* when the last event of any rank was recorded, on the aligned clock */
};

/* Finds the hangs. None if all processes ended. */
void rank_hangs_find(struct rank_hangs *hangs, const struct ranks *ranks);
/* Returns how long a range of a rank was open when the last event of any rank was recorded. A
 * process that hangs may record nothing, so it was open for at least that long. */
uint64_t rank_hang_open_ns(const struct rank_hangs *hangs, const struct ranks *ranks, uint32_t rank,
	const struct end_thread *thread);
void rank_hangs_free(struct rank_hangs *hangs);

#endif
