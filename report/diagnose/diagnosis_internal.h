/* SPDX-License-Identifier: MIT
 * Declares what the files of this folder share: the facts that rules look at, the texts they write, and the rules.
 *
 * Rules compute nothing that a view has: they use the rows of `idle`, the profile's sums, and the facts of one more pass
 * over the trace (facts.c). "Steady" means in steady-state steps; where no steps were found, from a quarter of the GPUs'
 * span to their last work.
 */
#ifndef PPERF_REPORT_DIAGNOSE_DIAGNOSIS_INTERNAL_H
#define PPERF_REPORT_DIAGNOSE_DIAGNOSIS_INTERNAL_H

#include "report/analysis/activities.h"
#include "report/analysis/gap_cause.h"
#include "report/diagnose/finding.h"
#include "report/diagnose/limits.h"
#include "report/table/view.h"

/* Things of one sort that happened: how many, how long, where most of it, and the longest. */
struct happened_there {
	uint64_t total_ns, longest_ns, longest_at_ns; /* total_ns: 1 more for each */
};
struct happened {
	uint64_t count, total_ns, bytes, longest_ns, longest_at_ns;
	uint32_t longest_name;
	struct happened_there *of_node;
	size_t room;
};

void happened_add(struct happened *happened, uint32_t node, uint32_t name, uint64_t at_ns, uint64_t duration_ns);
uint32_t happened_most(const struct happened *happened); /* the node with most of it; 0 none */
/* The finding's example is the longest at its place, if that has any. */
void happened_example(const struct happened *happened, struct finding *finding);
/* The finding's place is the one with most of it, and its example the longest there. */
void happened_place(const struct happened *happened, struct finding *finding);

/* Of calls that CUPTI and the library may both have recorded: the records of one of them. */
struct happened_calls {
	struct happened recorded, told;
};
const struct happened *happened_shown(const struct happened_calls *calls);

#define CLOCK_WINDOWS_MOST 64u

/* One kernel at one place whose instances differ, and when. */
struct variable_kernel {
	uint32_t node; /* 0: none */
	uint64_t excess_ns;
	uint64_t *medians; /* by node: of those that can be compared; 0: of others */
	double own[CLOCK_WINDOWS_MOST], others[CLOCK_WINDOWS_MOST]; /* sums of duration / median */
	uint32_t own_count[CLOCK_WINDOWS_MOST], others_count[CLOCK_WINDOWS_MOST];
};

struct diagnose_facts {
	uint64_t span_ns, busy_ns, idle_ns; /* of the GPUs, summed */
	uint64_t steady_from_ns, steady_to_ns, steady_ns; /* steady_ns: how long the steady part is */
	uint64_t whole_ns; /* from the GPUs' first work to their last */
	bool has_steps;
	uint64_t works, calls, kernels, launched, host_copies, known_copies, streams_waiting;
	struct happened tiny, tiny_calls; /* kernels; the calls that launched them */
	struct happened pageable, before_gemm;
	struct happened_calls allocations, queries, waits; /* waits: the whole trace */
	uint64_t steady_launches;
	struct variable_kernel variable;
	/* from the rows of `idle` */
	uint64_t cause_ns[GAP_CAUSE_COUNT], cause_gaps[GAP_CAUSE_COUNT], cause_longest_ns[GAP_CAUSE_COUNT];
	uint32_t cause_node[GAP_CAUSE_COUNT];
	uint64_t cause_node_ns[GAP_CAUSE_COUNT];
	char blocked_by[128]; /* the call that the longest gap of synchronisation is put down to */
	/* gaps of LIMIT_DEAD_NS that are launch-bound, or in which memory was taken, from the first step on and before it;
	 * shorter and longer ones that are launch-bound; of synchronisation (of these two and the shorter ones: the longest); of LIMIT_HELD_NS that are dependencies */
	struct happened dead, dead_allocating, dead_before, late, launch_long, synced, held;
};

#define DIAGNOSE_PIECES 24u

struct diagnosis {
	const struct options *options;
	struct processes *processes;
	struct process *process;
	const struct fold *fold;
	struct diagnose_facts facts;
	char pieces[DIAGNOSE_PIECES][512]; /* of texts being put together: each lives until so many others were made */
	unsigned piece;
};

/* Fills in diagnosis->facts; frees them. */
void diagnose_facts_read(struct diagnosis *diagnosis);
void diagnose_facts_free(struct diagnosis *diagnosis);

/* Idle time of short gaps in which the host had not asked yet. */
uint64_t diagnose_late(const struct diagnosis *diagnosis, uint64_t *gaps);
/* Whether the moment is in the steady part. */
bool diagnose_is_steady(const struct diagnosis *diagnosis, uint32_t step, uint64_t at_ns);
/* How sure one can be of what is only steady, and why. */
void diagnose_trust_steady(const struct diagnosis *diagnosis, struct finding *finding);
/* part is at least so many thousandths of whole. */
bool diagnose_is_share(uint64_t part, uint64_t whole, uint64_t per_mille);

/* Pieces of text. */
const char *diagnose_time(struct diagnosis *diagnosis, uint64_t ns);
const char *diagnose_bytes(struct diagnosis *diagnosis, uint64_t bytes);
const char *diagnose_count(struct diagnosis *diagnosis, uint64_t count);
const char *diagnose_counted(struct diagnosis *diagnosis, uint64_t count, const char *what); /* `1 call`, `2 calls` */
const char *diagnose_share(struct diagnosis *diagnosis, uint64_t part, uint64_t whole);
const char *diagnose_name(struct diagnosis *diagnosis, uint32_t text);
const char *diagnose_bytes_name(struct diagnosis *diagnosis, const char *bytes, size_t length);
/* printf into one of a finding's texts, which is cut where it is full. */
void diagnose_say(char *text, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define SAY(text, ...) diagnose_say(text, sizeof(text), __VA_ARGS__)
/* Says in `why` what is lacking. */
void diagnose_lacks(struct finding *finding, const char *what);

/* The rules. diagnose_gpu.c: what the GPU did. */
void diagnose_compute_bound(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_dominant(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_tiny(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_starved(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_backward(struct diagnosis *diagnosis, struct finding *finding);
/* diagnose_idle.c: when it did nothing. */
void diagnose_overhead_bound(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_dead(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_synchronisation(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_other_process(struct diagnosis *diagnosis, struct finding *finding);
/* diagnose_calls.c: what the host asked for. */
void diagnose_queries(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_allocation(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_pageable(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_before_gemm(struct diagnosis *diagnosis, struct finding *finding);
/* diagnose_host.c: beginnings, compilers, and what measuring costs. */
void diagnose_cold_start(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_compile_tax(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_recompilation(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_cost(struct diagnosis *diagnosis, struct finding *finding);
/* diagnose_data.c: what steps wait for. */
void diagnose_data(struct diagnosis *diagnosis, struct finding *finding);
/* diagnose_spread.c: one kernel, and how its durations are spread. */
void diagnose_variability(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_variable_choose(struct diagnosis *diagnosis); /* before the pass of facts */
void diagnose_variable_add(struct diagnosis *diagnosis, const struct activity *work);

#endif
