/* SPDX-License-Identifier: MIT
 *
 * Finds the traces of a distributed run, and decides which of them are its ranks. A trace that
 * cannot be used never ends the program: it gets a status and a reason.
 *
 * Given are files, directories and patterns (`traces/node*`). The traces of the same run beside a
 * named file belong to it too.
 *
 * Of several traces of one rank, one is used:
 *
 * | traces                                | used                                            |
 * |---------------------------------------|-------------------------------------------------|
 * | of one process, equal bytes           | the first; the others are copies                |
 * | of one process, one of them not whole | the whole one                                   |
 * | of several processes of one run       | the newest whole one that did not end before a  |
 * |                                       | whole one of another rank began; else the       |
 * |                                       | newest. The others are earlier attempts.        |
 * | of several runs                       | that of the chosen run (--run), else of the run |
 * |                                       | with the most ranks, else of the newest         |
 * | others                                | none: which is right is not known               |
 *
 * Processes of several runs are one job if they were recorded at the same time and have different
 * ranks: each task of srun is a run of its own.
 */
#ifndef PPERF_REPORT_ANALYSIS_RANKS_RANK_INPUTS_H
#define PPERF_REPORT_ANALYSIS_RANKS_RANK_INPUTS_H

#include "report/analysis/communicator_requests.h"
#include "report/analysis/ranks/collectives.h"
#include "report/analysis/ranks/rank_end.h"
#include "report/run/process.h"

/* name, name in JSON, what it says of the trace in a sentence: `2 traces are ...` */
#define RANK_INPUT_STATUSES(X)                                        \
	X(OK, "ok", "complete")                                       \
	X(CUT, "cut", "cut off")                                      \
	X(DAMAGED, "damaged", "damaged")                              \
	X(UNREADABLE, "unreadable", "not readable")                   \
	X(EMPTY, "empty", "empty")                                    \
	X(NO_COLLECTIVES, "no_collectives", "without collectives")    \
	X(COPY, "copy", "copies of others")                           \
	X(CONFLICT, "conflict", "of a rank that another trace has")   \
	X(SUPERSEDED, "superseded", "earlier attempts of their rank") \
	X(OTHER_RUN, "other_run", "of another run")

enum rank_input_status {
#define X(id, json, text) RANK_INPUT_##id,
	RANK_INPUT_STATUSES(X)
#undef X
		RANK_INPUT_STATUS_COUNT
};

struct rank_input {
	struct process process; /* closed; its path, rank, pid, times and integrity are kept */
	enum rank_input_status status;
	char *why; /* NULL: ok */
	uint64_t run_id, bytes;
	int64_t world_size; /* ranks of the job: as the launcher and NCCL have it; 0: not known */
	/* Calls may have been made that are not in the trace, at its begin or in the middle. */
	bool lacks_events;
	uint32_t attempt; /* number of earlier attempts of this rank in the same run */
	/* When the last whole trace of its run began. A process that ended before is of an earlier
	 * attempt of the job. */
	uint64_t last_begin_ns;
	bool ended;           /* the process ended by exit(), or the trace is of another tool */
	struct rank_end *end; /* NULL: the process ended, or has no rank */
	struct collectives collectives;
	struct communicator_requests requests;
	struct profile_totals totals;
	bool has_gpu; /* GPU work was timed */
	uint32_t gpu_count;
	uint64_t gpu_last_unix_ns; /* when the last work of its GPUs ended; 0: none */
};

struct rank_inputs {
	struct rank_input **all;
	size_t count, room;
	uint64_t run_id;  /* of the chosen run; 0: the traces do not say */
	size_t run_count; /* runs that were found */
};

/* Lists the traces that options->files mean. Their processes are not opened. */
void rank_inputs_find(struct rank_inputs *inputs, const struct options *options);
/* As rank_inputs_find, without the traces of the same run beside a named file. */
void rank_inputs_find_named(struct rank_inputs *inputs, const struct options *options);
/* Adds the trace `path`. */
struct rank_input *rank_inputs_add(struct rank_inputs *inputs, const char *path);
/* Frees what was converted from the file `path` of another tool, if there are many files. It is
 * closed. */
void rank_inputs_forget(const struct rank_inputs *inputs, const char *path);
void rank_inputs_free(struct rank_inputs *inputs);

/* Opens and profiles the trace of an input, and reads its collectives. Returns true if the process
 * is open now: the caller closes it. Otherwise the status says why the trace cannot be read. `add`:
 * adds analyses to the pass that makes the profile: rank_input_read_in, and maybe others. */
bool rank_input_read(struct rank_input *input, const struct categories *categories,
	const struct options *options, shared_pass_begin *add);
/* Adds what is read of each rank: its collectives. */
void rank_input_read_in(const struct options *options, struct shared_pass *pass);

/* Sets a status that is not OK, and its reason. */
void rank_input_refuse(struct rank_input *input, enum rank_input_status status, const char *format,
	...) __attribute__((format(printf, 3, 4)));
/* Whether its collectives are compared, as far as its status says. */
bool rank_input_is_used(const struct rank_input *input);

/* Whether it is a trace of a rank that is damaged or not used. */
bool rank_input_is_fault(const struct rank_input *input);

/* Chooses one run, and one trace of each rank. Requires that all inputs were read. Ends the program
 * if --run names a run that is not there. */
void rank_inputs_choose(struct rank_inputs *inputs, const struct options *options);

const char *rank_input_status_name(enum rank_input_status status); /* in JSON */
const char *rank_input_status_text(enum rank_input_status status);

#endif
