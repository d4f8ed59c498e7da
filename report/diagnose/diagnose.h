/* SPDX-License-Identifier: MIT
 * diagnose.h: the checklist of a good engineer: rules, each of which looks at a process and finds something, or nothing, or
 * says what it lacks to look. A new rule is an entry in the table of diagnose.c and a function in one of diagnose_*.c;
 * thresholds are in diagnose_limits.h alone.
 *
 * Steps may be a small part of a run that is long in getting ready, and what is much of them little of the whole: there rules
 * of shares that find nothing are asked once more, of the usual steps alone.
 *
 * Rules reckon nothing that a view has: they take the rows of `idle`, the fold's sums, and facts from one pass over the
 * activities (diagnose_facts.c). Steady: in usual steps; where no steps were found, from a quarter of the GPUs' span on to their
 * last work.
 */
#ifndef PPERF_DIAGNOSE_H
#define PPERF_DIAGNOSE_H

#include "report/diagnose/limits.h"
#include "report/analysis/gap_cause.h"
#include "report/table/view.h"

enum finding_state {
	FINDING_CLEAR,     /* looked, and nothing stands out */
	FINDING_UNCHECKED, /* the trace lacks what it takes; `why` says what */
	FINDING_NOTE,      /* what kind of program it is: nothing is wrong */
	FINDING_FOUND,
};
enum finding_confidence { CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };

struct diagnosis;
struct diagnose_rule;

/* What a rule says. Texts are ours; names in them are harmless and short (diagnose_name). Begins as zeros, but for rule
 * and of. */
struct finding {
	const struct diagnose_rule *rule;
	const struct diagnosis *of; /* whose fold and options it is of */
	enum finding_state state;
	enum finding_confidence confidence;
	char sentence[512]; /* what is the matter */
	char evidence[768]; /* figures */
	char why[384];      /* of the confidence; UNCHECKED: what is lacking */
	char next[512];     /* what to do */
	char view[64];      /* the words of the command that shows it, between `pperf-report` and the traces */
	uint32_t node;      /* of the tree: where; 0: nowhere in particular */
	uint64_t count;     /* how many there are of it */
	uint64_t impact_ns, impact_bytes; /* what it costs; 0: not said */
	bool upper_bound;   /* impact: at most so much can be had, not all of it; else it was measured, and is all of it */
	uint64_t example_ns; /* when one instance began, since the trace's start */
	bool has_example, at_path; /* at_path: the command is of that place: its path follows view */
};

/* What a rule must have. */
enum diagnose_need {
	NEED_TIMES = 1,    /* work with times */
	NEED_LAUNCHES = 2, /* work whose call is known */
	NEED_CALLS = 4,    /* calls to CUDA */
	NEED_STEPS = 8,
	NEED_RANGES = 16,
	OF_STEPS_TOO = 32, /* it is about shares of the time: what it does not find in the whole it may in the steps */
};

struct diagnose_rule {
	const char *name, *about; /* about: for the legend */
	unsigned needs;           /* enum diagnose_need, or-ed */
	void (*look)(struct diagnosis *diagnosis, struct finding *finding);
};

extern const struct diagnose_rule diagnose_rules[]; /* name NULL: ends the list */
#define DIAGNOSE_RULES 19u

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
