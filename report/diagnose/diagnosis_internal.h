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
struct occurrences_at_node {
	uint64_t total_ns, longest_ns, longest_at_ns; /* total_ns: 1 more for each */
};
struct occurrences {
	uint64_t count, total_ns, bytes, longest_ns, longest_at_ns;
	uint32_t longest_name;
	struct occurrences_at_node *of_node;
	size_t room;
};

void occurrences_add(struct occurrences *occurrences, uint32_t node, uint32_t name, uint64_t at_ns,
	uint64_t duration_ns);
uint32_t occurrences_top_node(
	const struct occurrences *occurrences); /* the node with most of it; 0 none */
/* The finding's example is the longest at its place, if that has any. */
void occurrences_set_example(const struct occurrences *occurrences, struct finding *finding);
/* The finding's place is the one with most of it, and its example the longest there. */
void occurrences_set_node(const struct occurrences *occurrences, struct finding *finding);

/* Of calls that CUPTI and the library may both have recorded: the records of one of them. */
struct call_occurrences {
	struct occurrences recorded, reported;
};
const struct occurrences *call_occurrences_shown(const struct call_occurrences *calls);

#define CLOCK_WINDOWS_MAX 64u

/* One kernel at one place whose instances differ, and when. */
struct variable_kernel {
	uint32_t node; /* 0: none */
	uint64_t excess_ns;
	uint64_t *medians; /* by node: of those that can be compared; 0: of others */
	double own[CLOCK_WINDOWS_MAX], others[CLOCK_WINDOWS_MAX]; /* sums of duration / median */
	uint32_t own_count[CLOCK_WINDOWS_MAX], others_count[CLOCK_WINDOWS_MAX];
};

struct diagnose_facts {
	uint64_t span_ns, busy_ns, idle_ns; /* of the GPUs, summed */
	uint64_t steady_from_ns, steady_to_ns,
		steady_ns; /* steady_ns: how long the steady part is */
	uint64_t whole_ns; /* from the GPUs' first work to their last */
	bool has_steps;
	uint64_t works, calls, kernels, launched, host_copies, known_copies, streams_waiting;
	struct occurrences tiny, tiny_calls; /* kernels; the calls that launched them */
	struct occurrences pageable, before_gemm;
	struct call_occurrences allocations, queries, waits; /* waits: the whole trace */
	uint64_t steady_launches;
	struct variable_kernel variable;
	/* from the rows of `idle` */
	uint64_t cause_ns[GAP_CAUSE_COUNT], cause_gaps[GAP_CAUSE_COUNT],
		cause_longest_ns[GAP_CAUSE_COUNT];
	uint32_t cause_node[GAP_CAUSE_COUNT];
	uint64_t cause_node_ns[GAP_CAUSE_COUNT];
	char blocked_by[128]; /* the call that the longest gap of synchronisation is put down to */
	/* gaps of LIMIT_DEAD_NS that are launch-bound, or in which memory was taken, from the first step on and before it;
	 * shorter and longer ones that are launch-bound; of synchronisation (of these two and the shorter ones: the longest); of LIMIT_HELD_NS that are dependencies */
	struct occurrences dead_windows, dead_allocating, dead_before, launch_short, launch_long,
		sync_gaps, held;
};

#define DIAGNOSE_TEXT_BUFFERS 24u

struct diagnosis {
	const struct options *options;
	struct processes *processes;
	struct process *process;
	const struct profile *profile;
	struct diagnose_facts facts;
	char text_buffers
		[DIAGNOSE_TEXT_BUFFERS]
		[512]; /* of texts being put together: each lives until so many others were made */
	unsigned next_buffer;
};

/* Fills in diagnosis->facts; frees them. */
void diagnose_facts_read(struct diagnosis *diagnosis);
void diagnose_facts_free(struct diagnosis *diagnosis);

/* Idle time of short gaps in which the host had not asked yet. */
uint64_t diagnose_short_launch_gaps(const struct diagnosis *diagnosis, uint64_t *gaps);
/* Whether the moment is in the steady part. */
bool diagnose_is_steady(const struct diagnosis *diagnosis, uint32_t step, uint64_t at_ns);
/* How sure one can be of what is only steady, and why. */
void finding_trust_steady(const struct diagnosis *diagnosis, struct finding *finding);
/* part is at least so many thousandths of whole. */
bool diagnose_is_share(uint64_t part, uint64_t whole, uint64_t per_mille);

/* Pieces of text. */
const char *diagnose_time(struct diagnosis *diagnosis, uint64_t ns);
const char *diagnose_bytes(struct diagnosis *diagnosis, uint64_t bytes);
const char *diagnose_count(struct diagnosis *diagnosis, uint64_t count);
const char *diagnose_plural(
	struct diagnosis *diagnosis, uint64_t count, const char *what); /* `1 call`, `2 calls` */
const char *diagnose_share(struct diagnosis *diagnosis, uint64_t part, uint64_t whole);
const char *diagnose_name(struct diagnosis *diagnosis, uint32_t text);
const char *diagnose_escaped(struct diagnosis *diagnosis, const char *bytes, size_t length);
/* printf into one of a finding's texts, which is cut where it is full. */
void finding_set_text(char *text, size_t room, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#define SET_TEXT(text, ...) finding_set_text(text, sizeof(text), __VA_ARGS__)
/* Says in `why` what is lacking. */
void finding_set_unchecked(struct finding *finding, const char *what);

/* The rules. diagnose_gpu.c: what the GPU did. */
void diagnose_compute_bound(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_dominant_event(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_tiny_calls(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_launch_starvation(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_forward_backward(struct diagnosis *diagnosis, struct finding *finding);
/* diagnose_idle.c: when it did nothing. */
void diagnose_overhead_bound(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_dead_windows(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_synchronisation(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_other_process(struct diagnosis *diagnosis, struct finding *finding);
/* diagnose_calls.c: what the host asked for. */
void diagnose_planning_queries(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_steady_allocation(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_pageable_copies(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_copy_before_gemm(struct diagnosis *diagnosis, struct finding *finding);
/* diagnose_host.c: beginnings, compilers, and what measuring costs. */
void diagnose_cold_start(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_compile_tax(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_recompilation(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_profiler_cost(struct diagnosis *diagnosis, struct finding *finding);
/* diagnose_data.c: what steps wait for. */
void diagnose_data_loading(struct diagnosis *diagnosis, struct finding *finding);
/* diagnose_spread.c: one kernel, and how its durations are spread. */
void diagnose_kernel_variability(struct diagnosis *diagnosis, struct finding *finding);
void variability_pick_kernel(struct diagnosis *diagnosis); /* before the pass of facts */
void variability_add(struct diagnosis *diagnosis, const struct activity *work);

#endif
