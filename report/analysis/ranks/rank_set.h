/* SPDX-License-Identifier: MIT
 * ranks.h: several processes that work together in one report: their clocks laid over each other by the moments at which collectives ended, what each
 * waited and what it transferred, who came last how often, and what that one did meanwhile.
 *
 * A collective matches those of other ranks by its place in the order of its communicator. Communicators belong together if their process groups
 * are, where the traces name them, their kinds of collectives are the same in the same order and their ends keep the same distance; where traces do not begin at the same moment one of them is
 * moved by up to RANKS_SHIFT collectives. What matches nothing is counted.
 *
 * *Wait* of a rank: from where its own part begins to where the last rank's does, at most to its own end; *transfer*: the rest. Nobody came
 * last where the last two are apart by no more than their clocks' residual: undecided.
 *
 * Memory: places times ranks, and 80 bytes a collective and rank.
 */
#ifndef PPERF_REPORT_ANALYSIS_RANKS_RANK_SET_H
#define PPERF_REPORT_ANALYSIS_RANKS_RANK_SET_H

#include "report/stats/theil_sen.h"
#include "report/analysis/ranks/collectives.h"
#include "report/run/process.h"

#define RANKS_SHIFT_MAX 32
#define RANKS_STRAGGLERS_MAX 3u /* stragglers */
#define RANK_RESIDUAL_MAX_NS \
	50000u /* a fit is refused above this, and above half of a collective's usual duration */

/* What ranks and kinds of collectives come to, of those that matched. */
struct rank_sums {
	uint64_t matched, decided;
	uint64_t last, late_ns,
		late_median_ns; /* how often it was the last, by how much: altogether, usually */
	uint64_t wait_ns, transfer_ns;
	uint64_t unmatched, unmatched_ns;
};

struct rank_process {
	struct process *process;
	int64_t number; /* its own, else that of its file */
	struct collectives collectives;
	struct theil_sen_fit fit; /* to the reference; of the reference itself: none */
	bool aligned;
	uint32_t by;   /* index of the rank that it was fitted to */
	char why[200]; /* not aligned: why not */
	struct rank_sums sums;
	struct profile *profile; /* of that pass: whose tree nodes are of; NULL before */
};

/* A rank's communicator in a group: instance i is its collective i + shift. */
struct rank_communicator {
	uint32_t rank, communicator;
	int64_t shift;
};

struct collective_group {
	struct rank_communicator *members; /* by rank */
	size_t count, room;
	size_t instances; /* of the first member; shift 0 */
};

/* How a matched collective ended. */
struct outcome {
	uint32_t group, instance;
	uint32_t last; /* rank; UINT32_MAX: undecided */
	uint64_t late_ns;
	uint64_t wait_ns, transfer_ns; /* all ranks together */
	uint8_t kind;
};

/* One kind of collective at one place. */
struct collective_row {
	uint8_t kind;
	uint32_t node; /* of the reference's tree */
	uint64_t count, wait_ns, transfer_ns, decided;
	uint64_t last;      /* how often the rank that was last most often was it */
	uint32_t last_rank; /* index; UINT32_MAX: none was decided */
};

/* Who was last more often than chance would have it, and where it spent more than the others before these collectives. */
struct straggler {
	uint32_t rank;
	double expected; /* times, by chance */
	uint64_t late_ns;
	bool gpu;                   /* more is explained by its GPU's work than by its CPU's time */
	uint64_t more_ns;           /* in `node`, all in it; 0: nothing explains it */
	uint32_t node;              /* of its own tree */
	uint64_t own_ns, others_ns; /* there: its own, the median of the others */
};

struct ranks {
	struct processes processes;
	struct rank_process *ranks; /* by number */
	size_t count;
	uint32_t without; /* processes without collectives, left out */
	bool counted;     /* some have no number of their own */
	struct collective_group *groups;
	size_t group_count, group_room;
	struct outcome *outcomes;
	size_t outcome_count, outcome_room;
	struct collective_row *rows; /* the longest wait first */
	size_t row_count, row_room;
	struct straggler stragglers[RANKS_STRAGGLERS_MAX];
	size_t straggler_count;
	uint64_t undecided, decided;
};

/* ---- between its files ---- */

/* rank_groups.c: fills groups, then each rank's fit. */
void ranks_group(struct ranks *ranks);
/* A time of a rank on the reference's clock. */
int64_t ranks_time(const struct ranks *ranks, uint32_t rank, int64_t time_ns);
/* The collective of a member; NULL: there is none. */
struct collective *group_collective(
	const struct ranks *ranks, const struct rank_communicator *member, size_t instance);

/* rank_waits.c: fills outcomes and sums; when each collective has its node, rows. */
void ranks_wait(struct ranks *ranks);
void ranks_rows(struct ranks *ranks);
/* rank_blame.c: one more pass over each trace, for where collectives were launched, and for stragglers. */
void ranks_find_stragglers(struct ranks *ranks);

/* Whether --rank asks for it. */
bool rank_is_wanted(const struct options *options, const struct rank_process *rank);
/* The names from the root to a node of a rank's tree; to be freed. */
struct trace_text *ranks_path(const struct rank_process *rank, uint32_t node, size_t *count);

/* Reads every rank of the run that options->files name, and fills all of `ranks`. Too few ranks end the program with a sentence. */
void ranks_read(struct ranks *ranks, const struct options *options);
void ranks_free(struct ranks *ranks);

#endif
