/* SPDX-License-Identifier: MIT
 *
 * States the verdict on a run as data: the sentences of the first screen, the nodes that they name,
 * and the figures in them. For the JSON of `summary` and for the page.
 */
#ifndef PPERF_REPORT_SUMMARY_VERDICT_H
#define PPERF_REPORT_SUMMARY_VERDICT_H

#include "report/table/view.h"
#include "report/text/json_writer.h"
#include "report/text/paragraph.h"

/* What a sentence is about. */
#define VERDICT_TOPICS(X)                                                                         \
	/* what bounds the run, or without GPU work and memory, where its CPU time went */        \
	X(BOUND, "verdict")                                                                       \
	X(EVIDENCE, "evidence") /* the figures that support it */                                 \
	X(NEXT, "next")         /* what to do */                                                  \
	X(GPU_TIME, "gpu time") /* where GPU work was launched; without a verdict also how busy \
				 * the GPU was */ \
	X(MEMORY, "memory")     /* the peak of device memory */                                   \
	X(COVERAGE, "coverage") /* how many GPU records were attributed to ranges */              \
	X(STEPS, "steps")       /* which steps were found, and how */

enum verdict_topic {
#define X(topic, name) VERDICT_##topic,
	VERDICT_TOPICS(X)
#undef X
		VERDICT_TOPIC_COUNT
};

/* A node that a sentence names. */
struct verdict_place {
	uint32_t node; /* of process->profile->tree; 0: the sentence names none */
	/* its time or bytes, and those of the whole */
	uint64_t amount, whole;
};

struct run_verdict {
	struct process *process;
	/* By topic. Names in sentences are escaped as in text output; NULL: no sentence. Owned. */
	char *sentences[VERDICT_TOPIC_COUNT];
	struct verdict_place places[VERDICT_TOPIC_COUNT];
	/* "compute", "launch", ... and "high", "medium" or "low", as in the view `diagnose`; NULL:
	 * there is no verdict. Owned. */
	char *bound, *confidence;
	char *command; /* that shows more; NULL: none. Owned. */
	/* Busy and idle time of the GPUs in the steady-state steps, as in the view `steps`. Both 0:
	 * there are none, or they overlap. The share is busy / (busy + idle). */
	uint64_t steps_busy_ns, steps_idle_ns;
	/* The same from the first GPU operation to the last. */
	uint64_t busy_ns, idle_ns;
};

/* Makes the verdict of a process of `processes`. Runs the rules of the view `diagnose`: `rows`
 * receives its rows, and belongs to the caller. */
struct run_verdict *run_verdict_read(const struct options *options,
	const struct processes *processes, struct process *process, struct rows *rows);
void run_verdict_free(struct run_verdict *verdict); /* NULL is allowed */

/* Appends that compilation is what took the time of a run without GPU work, from the rows of
 * `diagnose`. Returns the row of the larger finding about it; NULL, and appends nothing: it took
 * less than BOUND_SHARE_MIN of the run. */
const struct row *verdict_add_compilation(
	struct paragraph *paragraph, const struct process *process, const struct rows *rows);

/* Returns true for a row of the kind `verdict` that says that there is too little GPU work: then
 * the sentence about where the CPU time went is the evidence. */
bool verdict_is_unjudged(const struct row *row);

/* Writes the verdict as an object. */
void run_verdict_write_json(struct json_writer *json, const struct run_verdict *verdict);

#endif
