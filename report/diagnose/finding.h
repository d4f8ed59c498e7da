/* SPDX-License-Identifier: MIT
 *
 * Defines what a rule of the view `diagnose` reports (a finding), and what a rule is.
 */
#ifndef PPERF_REPORT_DIAGNOSE_FINDING_H
#define PPERF_REPORT_DIAGNOSE_FINDING_H

#include <stdbool.h>
#include <stdint.h>

enum finding_state {
	FINDING_CLEAR,     /* checked, and nothing was found */
	FINDING_UNCHECKED, /* the trace lacks the data to check; `reason` says what */
	FINDING_NOTE,      /* describes the program, without a fault */
	FINDING_FOUND,
};
enum finding_confidence { CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };

struct diagnosis;
struct diagnose_rule;

/* The result of a rule. Names in its texts are escaped and shortened (diagnose_name). All members
 * start as zero, except `rule` and `diagnosis`. */
struct finding {
	const struct diagnose_rule *rule;
	/* the diagnosis that it is part of: gives the profile and the options */
	const struct diagnosis *diagnosis;
	enum finding_state state;
	enum finding_confidence confidence;
	char sentence[512]; /* what was found */
	char evidence[768]; /* the figures that support it */
	char reason[384];   /* reason for the confidence; FINDING_UNCHECKED: what is missing */
	char next[768];     /* what to do */
	/* Words of the command that shows it, between `pperf-report` and the traces. */
	char view[64];
	uint32_t node;  /* where, in the tree; 0: at no particular node */
	uint32_t stack; /* the call stack of a launch there; 0: none */
	/* What is at `node`, of what is anywhere, or of the impact if that is more; 0: not known
	 * (finding_set_place). */
	uint64_t place_ns, places_ns;
	bool is_second_place;             /* more than at `node` is at no node */
	const char *places_name;          /* what places_ns is the time of; NULL: of the impact */
	uint64_t count;                   /* number of occurrences */
	uint64_t impact_ns, impact_bytes; /* cost; 0: not known */
	/* What impact_ns is a part of. 0: the GPU span or the run, by the needs of the rule. */
	uint64_t whole_ns;
	const char *whole_name;
	bool upper_bound; /* true: impact is the most that can be gained; false: it was measured */
	bool together; /* upper_bound is that of all occurrences; those at one place gain little */
	/* Instead: impact is the time of what would become faster, by how much is not known. */
	bool concerned;
	/* by how much the run gets shorter at most, as the critical path has it (finding_set_gain)
	 */
	uint64_t gain_ns;
	bool has_gain;
	/* Of the impact: idle time of the GPU that the verdict has as the class `idle_of` (enum
	 * bound), which may have a finding of its own. 0: none. */
	uint64_t idle_of_ns;
	unsigned idle_of;
	char same_idle_as[64]; /* the name of that finding */
	bool is_duplicate;     /* all of its time is idle time of that finding */
	const char *see;       /* the rule whose finding it refers to, if that finds something */
	uint64_t example_ns;   /* start of one instance, in ns since the start of the trace */
	bool ends_run;         /* it costs the run, not time: ordered first */
	bool last;             /* ordered after the other findings that cost as much */
	bool explains_end;     /* why memory ran out: ordered after what ends the run */
	bool has_example, at_path; /* at_path: the command needs the path of `node` after `view` */
};

/* What a rule needs from the trace, or-ed. */
enum diagnose_need {
	NEED_TIMES = 1,    /* GPU work with times */
	NEED_LAUNCHES = 2, /* GPU work whose launch is known */
	NEED_CALLS = 4,    /* CUDA calls */
	NEED_STEPS = 8,
	NEED_RANGES = 16,
	/* Not a need: the rule is about shares of time, and is checked again on steady-state steps
	 * if it finds nothing. */
	CHECK_STEPS_TOO = 32,
	NEED_MEMORY = 64, /* levels of tensor or device memory */
	/* Not a need: in a trace with GPU work, the cost is a part of the GPUs' span. */
	COSTS_GPU_TIME = 128,
	/* Not a need: what it advises shortens GPU work, which gains nothing where that work is not
	 * on the critical path. */
	SHORTENS_GPU_WORK = 256,
	NEED_ALLOCATIONS = 512, /* of any kind, also of the host's pinned memory */
	NEED_SAMPLES = 1024,    /* samples of threads */
};

struct diagnose_rule {
	const char *name, *about; /* about: for --legend */
	unsigned needs;           /* enum diagnose_need, or-ed */
	void (*check)(struct diagnosis *diagnosis, struct finding *finding);
};

#endif
