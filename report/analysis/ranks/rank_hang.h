/* SPDX-License-Identifier: MIT
 *
 * Finds collectives that some ranks wait in and others have not requested, at the end of traces of
 * which one was cut by a kill or is still being written. A rank whose file is cut or damaged is not
 * judged, because what it requested last is not known.
 *
 * | communicator             | requests                                                       |
 * |--------------------------|----------------------------------------------------------------|
 * | with a key of NCCL       | the calls of NCCL (communicator_requests.h): collectives, the  |
 * |                          | making of the communicator, sends and receives of two ranks    |
 * | any other                | GPU records, launches and ranges (rank_end.h)                  |
 *
 * Ranks that were killed while the program made progress were at different collectives for that
 * reason. So the result says where each rank was, and for how long.
 */
#ifndef PPERF_REPORT_ANALYSIS_RANKS_RANK_HANG_H
#define PPERF_REPORT_ANALYSIS_RANKS_RANK_HANG_H

#include "report/analysis/ranks/rank_set.h"

/* A rank that others wait for. */
struct absent_rank {
	int64_t number;
	uint32_t rank;                  /* index; UINT32_MAX: it has no collectives */
	const struct rank_input *input; /* NULL: it has no trace */
};

/* A collective that not all members of a communicator have requested: the earliest. */
struct rank_hang {
	char *communicator;    /* its name, terminated; NULL: unknown; owned */
	uint64_t number;       /* of that collective, from 1; 0: the making of the communicator */
	const char *operation; /* the function of NCCL that a rank waits in; NULL: unknown */
	/* Of a send and receive: the ranks in the communicator. Else both are UINT32_MAX. */
	uint32_t from, to;
	uint32_t *waiting; /* ranks that requested it, ascending */
	size_t waiting_count, waiting_room;
	struct absent_rank *absent; /* ranks that did not, ascending */
	size_t absent_count, absent_room;
	size_t unknown_count; /* further ones, whose numbers are not known */
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
/* Returns whether an absent rank waits in another hang. */
bool rank_hang_waits_elsewhere(const struct rank_hangs *hangs, const struct absent_rank *absent);
/* Returns how long a range of a rank was open when the last event of any rank was recorded. A
 * process that hangs may record nothing, so it was open for at least that long. */
uint64_t rank_hang_open_ns(const struct rank_hangs *hangs, const struct ranks *ranks,
	const struct absent_rank *absent, uint64_t begin_ns);
void rank_hangs_free(struct rank_hangs *hangs);

/* ---- internal: shared by the files of this folder ---- */

/* Adds a hang. `name`: of the communicator. */
struct rank_hang *rank_hangs_add(struct rank_hangs *hangs, struct trace_text name, uint64_t number);
void rank_hang_add_waiting(struct rank_hangs *hangs, struct rank_hang *hang, uint32_t rank);
void rank_hang_add_absent(struct rank_hang *hang, const struct ranks *ranks, uint32_t rank);
/* Adds the hangs of communicators with a key. */
void rank_hangs_find_by_requests(struct rank_hangs *hangs, const struct ranks *ranks);

#endif
