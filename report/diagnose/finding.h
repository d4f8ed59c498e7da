/* SPDX-License-Identifier: MIT
 * Defines what a rule of diagnose reports (a finding) and what a rule is.
 */
#ifndef PPERF_REPORT_DIAGNOSE_FINDING_H
#define PPERF_REPORT_DIAGNOSE_FINDING_H

#include <stdbool.h>
#include <stdint.h>

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
	char view
		[64]; /* the words of the command that shows it, between `pperf-report` and the traces */
	uint32_t node;                    /* of the tree: where; 0: nowhere in particular */
	uint64_t count;                   /* how many there are of it */
	uint64_t impact_ns, impact_bytes; /* what it costs; 0: not said */
	bool upper_bound; /* impact: at most so much can be had, not all of it; else it was measured, and is all of it */
	uint64_t example_ns; /* when one instance began, since the trace's start */
	bool has_example,
		at_path; /* at_path: the command is of that place: its path follows view */
};

/* What a rule must have. */
enum diagnose_need {
	NEED_TIMES = 1,    /* work with times */
	NEED_LAUNCHES = 2, /* work whose call is known */
	NEED_CALLS = 4,    /* calls to CUDA */
	NEED_STEPS = 8,
	NEED_RANGES = 16,
	CHECK_STEPS_TOO =
		32, /* it is about shares of the time: what it does not find in the whole it may in the steps */
};

struct diagnose_rule {
	const char *name, *about; /* about: for the legend */
	unsigned needs;           /* enum diagnose_need, or-ed */
	void (*check)(struct diagnosis *diagnosis, struct finding *finding);
};

#endif
