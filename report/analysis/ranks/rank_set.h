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
 * A collective counts if a quorum of the members of its communicator have it: --quorum percent, at
 * least two. So a damaged trace costs its own figures only.
 *
 * One trace is open at a time. Each rank is read once, and its clock is fitted once. The second
 * pass, which finds places and what delayed the stragglers, reads few ranks: the reference, the
 * stragglers, RANKS_PEERS_MAX others, and one of each communicator without any of these.
 *
 * Memory: 80 bytes a collective and rank, and proportional to nodes times ranks of the second pass.
 */
#ifndef PPERF_REPORT_ANALYSIS_RANKS_RANK_SET_H
#define PPERF_REPORT_ANALYSIS_RANKS_RANK_SET_H

#include "report/stats/theil_sen.h"
#include "report/analysis/ranks/rank_inputs.h"
#include "report/base/text_builder.h"

#define RANKS_SHIFT_MAX 32
#define RANKS_STRAGGLERS_MAX 3u /* reported */
#define RANKS_PEERS_MAX 32u     /* ranks that stragglers are compared with, evenly by rank */
#define RANKS_PLACES_MAX 32u    /* ranks read again only for the places of their collectives */
#define RANKS_QUORUM 95u        /* percent, if --quorum is not given */
#define RANKS_NO_ISLAND UINT32_MAX
/* The rate of collectives is known if they transfer for this many residuals in the mean. */
#define RANKS_RATE_RESIDUALS 4u
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
	struct rank_input *input;
	struct process *process; /* input->process, closed */
	int64_t number; /* the trace's rank; if not all traces have one, the index of the file */
	struct collectives *collectives; /* of `input` */
	/* To the clock of the reference of its island; unset for that reference. */
	struct theil_sen_fit fit;
	/* Ranks that share communicators, directly or through others, are an island: an index in
	 * ranks->islands, or RANKS_NO_ISLAND. Times of different islands are not compared. */
	uint32_t island;
	bool aligned;           /* in the island of the reference */
	uint32_t aligned_with;  /* index of the rank that it was aligned with */
	char *unaligned_reason; /* if not aligned: the reason; owned */
	struct rank_sums sums;
	bool read_again; /* by the second pass: its collectives have places */
};

/* A communicator of a rank in a group. Instance i of the group is its collective i + shift. */
struct rank_communicator {
	uint32_t rank, communicator;
	int64_t shift;
};

/* Communicators of different ranks that are one. */
struct collective_group {
	struct rank_communicator *members; /* by rank */
	size_t count, room;
	/* The member with the most collectives, whom further ones are compared with. */
	size_t longest;
	/* Instances that any member has. The shift of the first member is 0. */
	int64_t begin, end;
	uint32_t island; /* of most members; RANKS_NO_ISLAND: of none */
	size_t quorum;   /* members that a collective needs to count */
};

/* Ranks whose clocks are aligned to each other. */
struct rank_island {
	uint32_t reference; /* index of the rank whose clock is used */
	size_t count;
};

/* How fast collectives of known size transferred. Sums over collectives and ranks. */
struct transfer_rate {
	uint64_t bytes, bytes_ns, bus_bytes, bus_ns;
	uint64_t residual_ns; /* of the clocks by which these times were measured */
};

/* The result of a matched collective. */
struct outcome {
	int64_t instance;
	uint32_t group;
	uint32_t present; /* members that have it, of group.count */
	uint32_t last;    /* index of the rank that began last; UINT32_MAX: undecided */
	uint64_t late_ns; /* last start minus the start before it */
	uint64_t wait_ns, transfer_ns, exposed_ns; /* sums over all ranks */
	struct transfer_rate rate;
	int64_t last_start_ns; /* on the clock of the island */
	uint8_t kind;
};

/* One kind of collective at one place. */
struct collective_row {
	uint8_t kind;
	uint32_t place; /* call path (ranks_path); 0: not known */
	uint64_t count, wait_ns, transfer_ns, exposed_ns, decided;
	struct transfer_rate rate;
	uint64_t last_count; /* of the rank that was last most often: how often */
	uint32_t last_rank;  /* its index; UINT32_MAX: all undecided */
};

/* A rank that was last more often than by chance, and where it spent more time than the others
 * before these collectives. */
struct straggler {
	uint32_t rank;
	double expected; /* how often it would be last by chance */
	uint64_t late_ns;
	/* The group in which it made the others wait longest. What it did is compared with other
	 * members, before the collectives of this group for which it was last. */
	uint32_t group;
	uint64_t typical_ns; /* its median lateness there, times how often it was last there */
	bool gpu; /* its GPU work explains half of the delay, or more of it than its CPU time */
	uint64_t more_ns; /* excess at `place`, descendants included; 0: no explanation found */
	uint32_t place;   /* call path (ranks_path) */
	uint64_t own_ns, others_ns; /* time at `place`: its own, the median of the peers */
};

struct ranks {
	struct processes processes; /* categories and warnings only */
	struct rank_inputs inputs;  /* all traces that were found */
	size_t input_counts[RANK_INPUT_STATUS_COUNT];
	struct rank_process *all; /* sorted by `number` */
	size_t count;
	uint32_t reference;                     /* index of the rank whose clock is used */
	uint32_t processes_without_collectives; /* processes without collectives, left out */
	bool numbered_by_file;                  /* some traces have no rank of their own */
	int64_t world_size;                     /* number of ranks of the job; 0: not known */
	int64_t *missing;                       /* numbers of the ranks that have no trace */
	size_t missing_count, missing_room;
	bool has_incomplete; /* data are missing or inconsistent in a trace (--strict) */
	unsigned quorum;     /* percent */
	struct collective_group *groups;
	size_t group_count, group_room;
	struct rank_island *islands; /* in the order of their lowest ranks */
	size_t island_count, island_room;
	struct outcome *outcomes;
	size_t outcome_count, outcome_room;
	uint64_t incomplete;         /* outcomes that some member does not have */
	struct collective_row *rows; /* the longest wait first */
	size_t row_count, row_room;
	struct straggler stragglers[RANKS_STRAGGLERS_MAX];
	size_t straggler_count;
	uint64_t undecided, decided;
	/* Call paths of all ranks that were read twice: the text of an id is "PARENT KIND NAME". */
	struct string_table *places;
	struct text_builder problem; /* why the ranks cannot be compared; empty: they can */
};

/* Converts a time of `rank` to the clock of its island's reference. */
int64_t ranks_time(const struct ranks *ranks, uint32_t rank, int64_t time_ns);
/* Returns how long `rank` waited in one of its collectives. 0 if that has no match. */
uint64_t ranks_wait_ns(
	const struct ranks *ranks, uint32_t rank, const struct collective *collective);

/* Opens the process of a rank again, which ranks_close or ranks_free closes. `options`: those of
 * ranks_read, to make its profile too; NULL: no profile. Ends the program if the trace cannot be
 * read any more. */
struct process *ranks_open(const struct ranks *ranks, uint32_t rank, const struct options *options);
void ranks_close(const struct ranks *ranks, uint32_t rank);

/* ---- internal: shared by the files of this folder ---- */

/* Fills groups. */
void ranks_group(struct ranks *ranks);
/* Aligns the clock of each rank, along a spanning tree of the groups. */
void ranks_align_clocks(struct ranks *ranks);
/* Returns why a rank that shares no island with the reference does not. The caller frees it. */
char *ranks_explain_unaligned(const struct ranks *ranks, uint32_t rank);
/* Returns the name of a group's communicator, if the traces have it. */
struct trace_text ranks_group_name(const struct ranks *ranks, uint32_t group);
/* Returns the collective of a member, or NULL if it has none for `instance`. */
struct collective *group_collective(
	const struct ranks *ranks, const struct rank_communicator *member, int64_t instance);
/* As group_collective, but NULL also if the member's clock is not that of the group. */
struct collective *group_comparable(const struct ranks *ranks, const struct collective_group *group,
	const struct rank_communicator *member, int64_t instance);

/* Computes the wait times: fills `outcomes` and the sums of each rank. */
void ranks_compute_waits(struct ranks *ranks);
/* Fills `rows` from `outcomes`. ranks_find_stragglers must have set the places of the
 * collectives. */
void ranks_make_rows(struct ranks *ranks);
/* Finds the places of collectives and the stragglers, by one more pass over some traces. */
void ranks_find_stragglers(struct ranks *ranks, const struct options *options);

/* Returns false if a trace cannot be used, a rank has none, or data are missing in one
 * (--strict). */
bool ranks_are_whole(const struct ranks *ranks);
/* Returns the rows with exposed time, the longest first, and sets `count`. The caller frees the
 * array. */
const struct collective_row **ranks_exposed_rows(const struct ranks *ranks, size_t *count);
/* Returns the exposed communication of all ranks, matched or not. */
uint64_t ranks_exposed_ns(const struct ranks *ranks);
/* Returns the bytes per second and rank while the collectives of a row transfer, without waiting.
 * `on_bus`: the bytes on the bus, as nccl-tests computes them, not those of the message. 0: not
 * known. */
uint64_t collective_row_rate(const struct collective_row *row, bool on_bus);
/* Returns whether --rank selects the rank. */
bool rank_is_wanted(const struct options *options, const struct rank_process *rank);
/* Returns the names from the outermost range to `place`, and sets `count` to their number (0 for
 * place 0). The names are valid as long as `ranks`. The caller frees the array. */
struct trace_text *ranks_path(const struct ranks *ranks, uint32_t place, size_t *count);

/* Reads every rank of the run that options->files name, and fills all of `ranks`. What cannot be
 * read or used is counted, and a warning names it. Returns false and sets ranks->problem if fewer
 * than two ranks have collectives. In both cases ranks_free frees what was read. */
bool ranks_read(struct ranks *ranks, const struct options *options);
void ranks_free(struct ranks *ranks);

#endif
