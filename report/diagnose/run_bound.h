/* SPDX-License-Identifier: MIT
 *
 * Says what bounds a run: divides the time of its GPUs among the things that took it, and names the
 * largest one that could be removed.
 *
 * The time is that of the steady-state steps or, without steps, from the first GPU operation to the
 * last; the sum over the GPUs that had work. Each nanosecond has one class:
 *
 * | class            | the GPU                                                             |
 * |------------------|---------------------------------------------------------------------|
 * | compute          | ran a kernel that computes, or a memset                             |
 * | communication    | communicated, and computed nothing (exposed)                        |
 * | copies           | only copied                                                         |
 * | copy calls       | was idle, and waited for the host in a copy call                    |
 * | launch           | was idle, and its next operation was not launched yet, or just now  |
 * | host             | as launch, for STEP_IDLE_LONG_NS or more at a time                  |
 * | data loading     | as launch, while the launching thread fetched a batch               |
 * | compilation      | as launch, while the launching thread compiled                      |
 * | kernel gaps      | was idle for microseconds between operations launched in time       |
 * | first calls      | was idle, as the launching thread was in a first call that took     |
 * |                  | much longer than later ones (first_calls.h)                         |
 * | allocation       | was idle, as the launching thread allocated or freed memory         |
 * | synchronisation  | was idle, as the launching thread waited for the GPU before         |
 * | event wait       | was idle, and launched work waited for an event of the trace        |
 * | unexplained wait | was idle, and launched work waited: the trace does not say for what |
 * | unknown          | may have been busy, or was idle for a reason not in the trace       |
 *
 * A run is bound by the largest class other than compute that takes BOUND_SHARE_MIN of the time,
 * otherwise by compute if that takes half of it, otherwise by nothing in particular. Instead of
 * compute, memory bandwidth bounds it where a model shows that memory limits more than half of all
 * GPU time; the time of the kernels is of the class compute all the same. Launch and
 * host are judged together, and so are copies and copy calls, event wait and unexplained wait: the
 * larger one of the two names the verdict.
 */
#ifndef PPERF_REPORT_DIAGNOSE_RUN_BOUND_H
#define PPERF_REPORT_DIAGNOSE_RUN_BOUND_H

#include "report/analysis/critical_path/critical_path_walk.h"
#include "report/diagnose/finding.h"
#include "report/run/process.h"

/* Percent of the time. At 30 % of idle or exposed time, no faster kernel can make up for it. */
#define BOUND_SHARE_MIN 30u
/* Percent of a roof: well written kernels reach more of what limits them. */
#define BOUND_ROOF_MIN 60u
/* The critical path of more GPU operations takes longer than all else of the first screen. */
#define BOUND_PATH_OPERATIONS_MAX 500000u
/* With fewer GPU operations than this, a trace is a sample of nothing. */
#define BOUND_OPERATIONS_MIN 10u

#define BOUNDS(X)                           \
	X(COMPUTE, "compute")               \
	X(COMMUNICATION, "communication")   \
	X(COPIES, "copies")                 \
	X(COPY_CALLS, "copy calls")         \
	X(LAUNCH, "launch")                 \
	X(HOST, "host")                     \
	X(GAPS, "kernel gaps")              \
	X(DATA, "data loading")             \
	X(COMPILATION, "compilation")       \
	X(FIRST, "first calls")             \
	X(ALLOCATION, "allocation")         \
	X(SYNC, "synchronisation")          \
	X(EVENT, "event wait")              \
	X(UNEXPLAINED, "unexplained wait")  \
	X(UNKNOWN, "unknown")               \
	X(NOTHING, "nothing in particular") \
	X(BANDWIDTH, "memory bandwidth")    \
	X(UNJUDGED, "unjudged")

enum bound {
#define X(bound, name) BOUND_##bound,
	BOUNDS(X)
#undef X
		BOUND_COUNT
};
#define BOUND_CLASSES BOUND_NOTHING /* classes of time; the later ones are verdicts only */

/* What path_ns is the time of, for text. */
#define PATH_TIME_NAME "the critical path"

struct run_bound {
	uint64_t ns[BOUND_CLASSES]; /* by class; their sum is whole_ns */
	/* Of that, time in steps before the first GPU operation of a GPU and after the last. That
	 * of BOUND_LAUNCH has the part that is of the class host, too. */
	uint64_t ends_ns[BOUND_CLASSES];
	uint64_t whole_ns;
	/* Of whole_ns: idle time, as the view `idle` has it. The examined time itself, which with
	 * several GPUs is less than whole_ns. */
	uint64_t idle_ns, time_ns;
	/* Of BOUND_UNKNOWN: time in which it is not recorded whether the GPU was busy. The rest is
	 * idle time without a known cause. */
	uint64_t not_recorded_ns;
	/* By class and node of the call tree: exposed communication and copies by the node that
	 * launched them, idle time by the node that caused it (step_idle.h). The host's part of
	 * launch-bound time is in BOUND_LAUNCH, too. NULL: the class has none. */
	uint64_t *node_ns[BOUND_CLASSES];
	uint32_t nodes;
	/* GPU time in the examined steps, and of that what was launched in no such step: work of
	 * the step before, for which the first one may wait. 0 without steps. */
	uint64_t gpu_ns, gpu_of_others_ns;
	/* The classes launch and host together, as the view `idle` divides them. */
	struct launch_parts {
		uint64_t launch_ns, host_ns, latency_ns, ends_ns;
	} launch_parts;
	/* intervals of the class host: their number, and the longest */
	uint64_t long_gaps, longest_gap_ns;
	enum bound bound;
	enum finding_confidence confidence;
	size_t steps;        /* steady-state steps that were examined; 0: the whole trace */
	uint64_t operations; /* GPU operations in that time */
	/* Of all GPU time of the trace, the part in operators whose limit a model knows, and the
	 * parts of that which memory and arithmetic limit: they reach BOUND_ROOF_MIN of that roof.
	 * Read for BOUND_COMPUTE and BOUND_BANDWIDTH. */
	uint64_t modelled_ns, memory_limited_ns, arithmetic_limited_ns;
	/* The critical path in that time: all of it, by kind, the host's part (program and calls),
	 * and that of GPU work. 0: not read, as the trace is large, or only a part of it is
	 * selected. */
	uint64_t path_ns, path_of_kind[PATH_KIND_COUNT], path_host_ns, path_gpu_ns;
	/* Of path_of_kind[PATH_HOST]: while the thread fetched a batch, and while it compiled. */
	uint64_t path_data_ns, path_compilation_ns;
	/* The call path whose GPU work has the most time of PATH_EVENT and PATH_UNEXPLAINED, and
	 * that time. 0: there is none. */
	uint32_t path_wait_node;
	uint64_t path_wait_node_ns;
	/* The same of the whole trace: all but the host's part. */
	uint64_t whole_path_others_ns;
	struct critical_path_graph *path; /* NULL: not read */
};

struct bound_pass;
struct activity_visitor;
struct idle_part;

/* Begins to compute it. */
struct bound_pass *run_bound_begin(struct process *process);
/* Return what reads the activities for it: GPU work, the ends of idle time and the critical
 * path. */
struct activity_visitor run_bound_work(struct bound_pass *pass);
struct activity_visitor run_bound_ends(struct bound_pass *pass);
struct activity_visitor run_bound_path(struct bound_pass *pass);
/* Returns true if the critical path may be read, which needs all launches. It may be read, too, if
 * only the operations in the examined steps are few enough: with more than twice as many in the
 * trace, launches are then read in a pass of their own. `timeline`: of the trace, or NULL. */
bool run_bound_needs_launches(const struct process *process, const struct timeline *timeline);
/* Adds idle time. */
void run_bound_add_idle(struct bound_pass *pass, const struct idle_part *idle);
/* Computes it when all activities were read, and frees `pass`. May read the critical path.
 * `options`: for the roofline of compute-bound runs. The caller frees the result with
 * run_bound_free. */
struct run_bound run_bound_finish(const struct options *options, struct bound_pass *pass);
void run_bound_drop(struct bound_pass *pass); /* frees a pass without result; NULL is allowed */
void run_bound_free(struct run_bound *bound); /* all zero is allowed */
/* Returns the class of idle time with a cause. */
enum bound run_bound_class_of(enum gap_cause cause);

const char *bound_name(enum bound bound);

/* Returns what whole_ns is the time of, for text. */
const char *run_bound_time_name(const struct run_bound *bound);
/* Returns the class that is judged together with `class`; 0: none. */
enum bound run_bound_partner(enum bound class);
/* Returns the time of a class and of the one that is judged together with it. */
uint64_t run_bound_ns(const struct run_bound *bound, enum bound class);
/* Returns true if the critical path is known, and most of it is the host's: then faster kernels
 * hardly shorten the run. */
bool run_bound_host_on_path(const struct run_bound *bound);
/* Returns by how much less GPU work can shorten the time `whole_ns`, of which it is a part: not by
 * the host's part of the critical path. UINT64_MAX: the path is not known. */
uint64_t run_bound_gain_max(const struct run_bound *bound, uint64_t whole_ns);
/* Returns true if `part` is at least `percent` percent of `whole`, and not 0. */
bool run_bound_is_percent(uint64_t part, uint64_t whole, unsigned percent);

/* Sets the members sentence, evidence, reason and view of `text`, and next where the findings do
 * not say what to do. `first`: the finding that gains most; `own`: the one about what bounds the
 * run. NULL: none. */
void run_bound_explain(struct diagnosis *diagnosis, const struct run_bound *bound,
	const struct finding *first, const struct finding *own, struct finding *text);

#endif
