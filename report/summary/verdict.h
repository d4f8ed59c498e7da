/* SPDX-License-Identifier: MIT
 *
 * States the verdict on a run as data: the sentences of the first screen, what they are about, and
 * the figures in them. The first screen, its JSON and the page have it from here.
 */
#ifndef PPERF_REPORT_SUMMARY_VERDICT_H
#define PPERF_REPORT_SUMMARY_VERDICT_H

#include "report/diagnose/run_bound.h"
#include "report/table/view.h"

#define VERDICT_SENTENCES_MAX 8u
#define VERDICT_PLACES_MAX 4u

/* What a sentence is about. The title is that of the first screen. */
enum verdict_topic {
	VERDICT_BOUND,    /* "verdict": what bounds the run, or where its CPU time went */
	VERDICT_EVIDENCE, /* the figures that support it */
	VERDICT_NEXT,     /* what to do */
	VERDICT_GPU_TIME, /* "gpu time": how busy the GPU was, where its work was launched */
	VERDICT_MEMORY,   /* "memory": the peak of device memory */
	VERDICT_OOM,      /* "out of memory" */
};

struct verdict_sentence {
	enum verdict_topic topic;
	char *text; /* owned; names in it are escaped as in text output */
};

/* A node that a sentence names. */
struct verdict_place {
	enum verdict_topic topic;
	uint32_t node;          /* of process->profile->tree */
	uint64_t amount, whole; /* its figure, and what that is a part of: ns or bytes */
};

struct run_verdict {
	struct process *process;
	struct verdict_sentence sentences[VERDICT_SENTENCES_MAX];
	size_t sentence_count;
	struct verdict_place places[VERDICT_PLACES_MAX];
	size_t place_count;
	/* "compute", "launch", ... as in the view `diagnose`; NULL: there is no verdict. */
	const char *bound;
	const char *confidence; /* "high", "medium" or "low"; NULL: there is no verdict */
	char *command;          /* that shows more, with the trace; NULL: none */
	/* Busy and idle time of the steady-state steps, as in the view `steps`. Both 0: there are
	 * none, or they overlap. The busy share is busy / (busy + idle). */
	uint64_t steps_busy_ns, steps_idle_ns;
	/* Of the whole run: the same of the time from the first GPU operation to the last. */
	uint64_t busy_ns, idle_ns;
};

/* Makes the verdict. Runs the rules of the view `diagnose`; `rows` receives the rows of that view:
 * verdict and findings. */
struct run_verdict *run_verdict_read(
	const struct options *options, struct process *process, struct rows *rows);
void run_verdict_free(struct run_verdict *verdict); /* NULL is allowed */

struct json_writer;
/* Writes the object "verdict". */
void run_verdict_write_json(struct json_writer *json, const struct run_verdict *verdict);

#endif
