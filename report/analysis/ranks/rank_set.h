/* SPDX-License-Identifier: MIT
 *
 * Compares the ranks of one distributed run: aligns their clocks by the ends of collectives,
 * computes wait and transfer time, and finds stragglers and what delayed them.
 *
 * A collective matches those of other ranks by its position in its communicator. Two communicators
 * match under these conditions:
 *
 * - Their process groups are equal, if the traces name them.
 * - Their kinds of collectives come in the same order.
 * - Their ends keep the same distance.
 *
 * Traces may begin at different times, so one communicator may be shifted by up to RANKS_SHIFT_MAX
 * collectives. Unmatched collectives are counted.
 *
 * | term      | meaning                                                                        |
 * |-----------|--------------------------------------------------------------------------------|
 * | wait      | of a rank: from its own start to the last rank's start, at most to its own end |
 * | transfer  | the rest of the collective                                                     |
 * | undecided | the last two starts differ by no more than the residual of the clock fits      |
 *
 * Memory: proportional to nodes times ranks, and 80 bytes a collective and rank.
 */
#ifndef PPERF_REPORT_ANALYSIS_RANKS_RANK_SET_H
#define PPERF_REPORT_ANALYSIS_RANKS_RANK_SET_H

#include "report/stats/theil_sen.h"
#include "report/analysis/ranks/collectives.h"
#include "report/base/text_builder.h"
#include "report/run/process.h"

#define RANKS_SHIFT_MAX 32
#define RANKS_STRAGGLERS_MAX 3u /* reported */
/* A fit is refused above this residual, unless the residual is below half of the median duration of
 * a collective. */
#define RANK_RESIDUAL_MAX_NS 50000u

/* Sums over the collectives of a rank. All members but `unmatched` and `unmatched_ns` are over the
 * matched ones. */
struct rank_sums {
	uint64_t matched;
	uint64_t decided; /* collectives of which it is known which rank began last */
	/* How often this rank began last; its outcome.late_ns in total, and in the median. */
	uint64_t last, late_ns, late_median_ns;
	uint64_t wait_ns, transfer_ns;
	uint64_t unmatched, unmatched_ns; /* the other collectives: number, time */
};

struct rank_process {
	struct process *process;
	int64_t number; /* the trace's rank; if not all traces have one, the index of the file */
	struct collectives collectives;
	struct theil_sen_fit fit; /* to the clock of the reference; unset for the reference */
	bool aligned;
	uint32_t aligned_with;      /* index of the rank that it was aligned with */
	char unaligned_reason[200]; /* if not aligned: the reason */
	struct rank_sums sums;
	/* Made by ranks_find_stragglers; NULL before. Its tree has the nodes of `collectives`. */
	struct profile *profile;
};

/* A communicator of a rank in a group. Instance i of the group is its collective i + shift. */
struct rank_communicator {
	uint32_t rank, communicator;
	int64_t shift;
};

struct collective_group {
	struct rank_communicator *members; /* by rank */
	size_t count, room;
	size_t instances; /* number of collectives of the first member, whose shift is 0 */
};

/* The result of a matched collective. */
struct outcome {
	uint32_t group, instance;
	uint32_t last;    /* index of the rank that began last; UINT32_MAX: undecided */
	uint64_t late_ns; /* last start minus the start before it */
	uint64_t wait_ns, transfer_ns; /* sums over all ranks */
	int64_t last_start_ns;         /* on the reference's clock */
	uint8_t kind;
};

/* One kind of collective at one node. */
struct collective_row {
	uint8_t kind;
	uint32_t node; /* of the reference's tree */
	uint64_t count, wait_ns, transfer_ns, decided;
	uint64_t last_count; /* of the rank that was last most often: how often */
	uint32_t last_rank;  /* its index; UINT32_MAX: all undecided */
};

/* A rank that was last more often than by chance, and where it spent more time than the others
 * before these collectives. */
struct straggler {
	uint32_t rank;
	double expected; /* how often it would be last by chance */
	uint64_t late_ns;
	bool gpu; /* its GPU work explains half of the delay, or more of it than its CPU time */
	uint64_t more_ns; /* excess in `node`, descendants included; 0: no explanation found */
	uint32_t node;    /* of the rank's own tree */
	uint64_t own_ns, others_ns; /* time in `node`: its own, the median of the others */
};

struct ranks {
	struct processes processes;
	struct rank_process *all; /* sorted by `number` */
	size_t count;
	uint32_t processes_without_collectives; /* processes without collectives, left out */
	bool numbered_by_file;                  /* some traces have no rank of their own */
	struct collective_group *groups;
	size_t group_count, group_room;
	struct outcome *outcomes;
	size_t outcome_count, outcome_room;
	struct collective_row *rows; /* the longest wait first */
	size_t row_count, row_room;
	struct straggler stragglers[RANKS_STRAGGLERS_MAX];
	size_t straggler_count;
	uint64_t undecided, decided;
	struct text_builder problem; /* why the ranks cannot be compared; empty: they can */
};

/* Converts a time of `rank` to the reference's clock. */
int64_t ranks_time(const struct ranks *ranks, uint32_t rank, int64_t time_ns);
/* Returns how long `rank` waited in one of its collectives. 0 if that has no match. */
uint64_t ranks_wait_ns(
	const struct ranks *ranks, uint32_t rank, const struct collective *collective);

/* ---- internal: shared by the files of this folder ---- */

/* Fills groups, then the clock fit of each rank. */
void ranks_group(struct ranks *ranks);
/* Returns the collective of a member, or NULL if it has none for `instance`. */
struct collective *group_collective(
	const struct ranks *ranks, const struct rank_communicator *member, size_t instance);

/* Computes the wait times: fills `outcomes` and the sums of each rank. */
void ranks_compute_waits(struct ranks *ranks);
/* Fills `rows` from `outcomes`. ranks_find_stragglers must have set the nodes of the
 * collectives. */
void ranks_make_rows(struct ranks *ranks);
/* Finds the nodes of collectives and the stragglers, by one more pass over each trace. */
void ranks_find_stragglers(struct ranks *ranks);

/* Returns whether --rank selects the rank. */
bool rank_is_wanted(const struct options *options, const struct rank_process *rank);
/* Returns the names from the outermost range to `node`, a node of rank->profile, and sets `count`
 * to their number (0 for node 0). Requires ranks_find_stragglers. The caller frees the array. */
struct trace_text *ranks_path(const struct rank_process *rank, uint32_t node, size_t *count);

/* Reads every rank of the run that options->files name, and fills all of `ranks`. Returns false and
 * sets ranks->problem if fewer than two ranks have collectives, or two have the same number. In
 * both cases ranks_free frees what was read. */
bool ranks_read(struct ranks *ranks, const struct options *options);
void ranks_free(struct ranks *ranks);

#endif
