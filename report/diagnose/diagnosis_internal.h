/* SPDX-License-Identifier: MIT
 *
 * Declares what the files of this folder share: the facts that rules look at, the texts they write,
 * and the rules.
 * Rules do not compute again what a view shows. They use the rows of the view `idle`, the sums of
 * the profile, and facts from one more pass over the trace (facts.c).
 *
 * The steady part of a trace is its steady-state steps. Without steps, it begins when a quarter of
 * the time from the first to the last GPU work has passed, and ends with the last GPU work.
 */
#ifndef PPERF_REPORT_DIAGNOSE_DIAGNOSIS_INTERNAL_H
#define PPERF_REPORT_DIAGNOSE_DIAGNOSIS_INTERNAL_H

#include "report/analysis/activities.h"
#include "report/analysis/first_calls.h"
#include "report/analysis/gap_cause.h"
#include "report/analysis/step_stats.h"
#include "report/diagnose/finding.h"
#include "report/diagnose/limits.h"
#include "report/diagnose/run_bound.h"
#include "report/table/view.h"

/* The occurrences of one kind of event at one node. */
struct occurrences_at_node {
	/* total_ns: sum of the durations, each increased by 1 ns so that events without a duration
	 * count */
	uint64_t total_ns, longest_ns, longest_at_ns;
};
/* The occurrences of one kind of event: number, times, and the longest. */
struct occurrences {
	uint64_t count, total_ns, bytes, longest_ns, longest_at_ns;
	uint32_t longest_name;
	struct occurrences_at_node *of_node;
	size_t room;
};

void occurrences_add(struct occurrences *occurrences, uint32_t node, uint32_t name, uint64_t at_ns,
	uint64_t duration_ns);
/* Returns the node with the largest total time; 0: none. */
uint32_t occurrences_top_node(const struct occurrences *occurrences);
/* Sets the time that the finding prints as `example at` to that of the longest occurrence at
 * finding->node, if there is one. */
void occurrences_set_example(const struct occurrences *occurrences, struct finding *finding);
/* Sets finding->node to the node with the largest total time, and then the example as
 * occurrences_set_example does. */
void occurrences_set_node(const struct occurrences *occurrences, struct finding *finding);

/* Occurrences of calls that both pperf (`recorded`) and CUPTI (`reported`) may have. */
struct call_occurrences {
	struct occurrences recorded, reported;
};
/* Returns the member with more occurrences. They are not added, because both may describe the same
 * calls. */
const struct occurrences *call_occurrences_shown(const struct call_occurrences *calls);

/* A call in which its thread waits for the GPU (blocking_rule.c). */
struct blocking_call {
	uint64_t begin_ns, end_ns;
	uint32_t tid, owner, name;
	uint32_t stack; /* 0: none */
	bool copies;    /* it copies, and waits for the copy, or before it for its stream */
	bool reads;     /* it reads a value of a tensor (blocking_find_reads) */
	/* it is the synchronisation that follows a copy, and counts as one call with it */
	bool of_copy;
	uint64_t with_sync_ns; /* its length, with that of its synchronisation */
};
/* A thread that launches on a GPU, and the kernels that it launched there. */
struct launching_thread {
	uint64_t kernels;
	uint32_t tid, device;
};

/* A gap of LIMIT_LONG_GAP_NS or more, after start-up, for which the host was late. */
struct long_launch_gap {
	uint64_t at_ns, length_ns;
	uint32_t node, tid; /* of the launch after it */
};

#define FIRST_CALLS_LISTED 3u

/* Idle time in slow first calls (first_call_rule.c). */
struct first_call_gaps {
	struct occurrences gaps;
	uint64_t *idle_ns; /* by number of the first call; NULL: none */
};

/* For how long the first operation of a GPU waited after its launch (first_wait.h). */
struct first_wait_fact {
	uint64_t ns, at_ns, stream; /* ns 0: none waited */
	uint32_t node, stack;       /* of its launch */
};

/* A launch-bound gap or a launch latency, of the longest ones. */
struct launch_gap {
	uint64_t at_ns, length_ns;
};

#define CLOCK_PARTS_MAX 64u

/* One kernel at one node whose instances differ in duration, and the relative durations of all
 * comparable kernels in equal parts of the trace. */
struct variable_kernel {
	uint32_t node; /* 0: none */
	uint64_t excess_ns;
	/* of the kernel that would be reported, were its grid or its launch known */
	uint64_t unknown_excess_ns;
	uint64_t *medians; /* by node: median duration; 0: kernels that cannot be compared */
	/* sums of duration / median, by part of the trace */
	double own[CLOCK_PARTS_MAX], others[CLOCK_PARTS_MAX];
	uint32_t own_count[CLOCK_PARTS_MAX], others_count[CLOCK_PARTS_MAX];
};

#define HOST_PLACES 4u
#define HOST_FUNCTIONS 3u

/* A range or call that a launching thread was in during long gaps. */
struct host_place {
	uint32_t node; /* 0: in no recorded range or call */
	uint64_t ns, samples;
	uint64_t function_count; /* that CPU samples name */
	char functions[384];     /* the HOST_FUNCTIONS with most samples, with their shares */
};

/* What launching threads did in long gaps (host_activity.c). */
struct host_activity {
	uint64_t total_ns, mpi_ns;             /* mpi_ns: part of total_ns, in calls of MPI */
	struct host_place places[HOST_PLACES]; /* those with most time */
	unsigned count, last; /* last: the place that the following rows describe */
};

/* A call that requests a property or a plan, in the steady-state part. */
struct query_call {
	uint64_t begin_ns, duration_ns;
	uint32_t tid;
	bool recorded; /* by pperf; else by CUPTI (call_occurrences) */
};

struct diagnose_facts {
	/* Sums over the GPUs. The span is from the first operation of each to its last: busy, idle
	 * and unknown time. */
	uint64_t span_ns, busy_ns, idle_ns;
	/* duration of the steady part */
	uint64_t steady_from_ns, steady_to_ns, steady_ns;
	uint64_t whole_ns; /* from the GPUs' first work to their last */
	uint64_t run_ns;   /* of the whole trace, also if only some steps are examined */
	bool has_steps;
	uint64_t steady_steps; /* set by the rules that compare steps */
	uint64_t operations, calls, kernels, communications, launched, host_copies, known_copies;
	uint64_t *category_ns; /* GPU time by category (work_categories.h) of the full names */
	uint64_t own_launches; /* kernels of no CUDA graph whose launch is in the trace */
	struct occurrences tiny, tiny_calls; /* kernels, and the calls that launched them */
	struct occurrences pageable, before_gemm;
	uint64_t *gemm_copies; /* begins of those of before_gemm */
	size_t gemm_copy_count, gemm_copy_room;
	struct occurrences pageable_to_host; /* those of pageable that copy to the host */
	struct occurrences device_copies;    /* copies within a GPU */
	/* waits: of the whole trace, not only of its steady part */
	struct call_occurrences allocations, queries, waits;
	struct query_call *query_calls; /* those of `queries` */
	size_t query_call_count, query_call_room;
	/* of the whole trace: recorded by CUPTI; by pperf */
	uint64_t allocation_calls[2];
	struct variable_kernel variable;
	struct blocking_call *blocking;
	size_t blocking_count, blocking_room;
	uint64_t blocking_ns; /* sum of their lengths */
	struct launching_thread *launching;
	size_t launching_count, launching_room;
	/* from the rows of `idle` */
	uint64_t cause_ns[GAP_CAUSE_COUNT], cause_gaps[GAP_CAUSE_COUNT],
		cause_longest_ns[GAP_CAUSE_COUNT];
	uint32_t cause_node[GAP_CAUSE_COUNT];
	uint64_t cause_node_ns[GAP_CAUSE_COUNT];
	struct host_activity host;
	/* by node: idle time before its launches, and of their latency */
	uint64_t *launch_idle_of_node;
	size_t launch_idle_room;
	/* the call that blocked the thread in the longest gap with the cause synchronisation */
	char blocked_by[128];
	/* of the longest wait of launched work: the call that the launching thread was in, and the
	 * stream */
	char host_call[128];
	uint64_t waiting_stream;
	uint32_t waiting_stack; /* call stack of the launch of the work that waited; 0: none */
	struct launch_gap *launch_gaps;
	size_t launch_gap_count, launch_gap_room;
	struct first_wait_fact first_wait; /* the longest of those of all GPUs */
	/* of event_gaps: by what the work waits for */
	uint64_t event_ns[GAP_EVENT_COUNT];
	/* The longest gaps (GAPS_MAX in facts.c), by cause:
	 *   launch_short     launch-bound or launch latency, shorter than LIMIT_LONG_GAP_NS
	 *   launch_long      the same, LIMIT_LONG_GAP_NS or more, after start-up
	 *   launch_long_before_steps  the same, before the first step (start-up)
	 *   sync_gaps        synchronisation
	 *   waiting_gaps     event wait or unexplained wait, LIMIT_HELD_NS or more
	 *   event_gaps       those of waiting_gaps behind a cudaStreamWaitEvent */
	struct occurrences launch_short, launch_long, launch_long_before_steps, sync_gaps,
		waiting_gaps, event_gaps;
	struct long_launch_gap *long_gaps;
	size_t long_gap_count, long_gap_room;
	struct first_call_gaps first;
};

/* What the trace shows of the program, so that advice fits it. */
struct program_traits {
	bool uses_pytorch; /* it has operators or modules */
	bool trains;       /* it has a backward pass or an optimizer */
	/* Its optimizer works on many tensors at once: foreach or fused. Without ranges of an
	 * optimizer: some operator or kernel does. */
	bool has_foreach_optimizer;
	bool has_ranges; /* it has ranges of its own (NVTX) */
	bool has_python_stacks;
	bool launches_graphs; /* CUDA graphs, in the trace */
	bool compiles;        /* it calls functions that torch.compile made */
	bool is_hip;          /* its calls are those of HIP, on an AMD GPU */
};

/* Timed GPU work that counts. */
struct work_time {
	uint64_t begin_ns, end_ns;
	uint32_t name, device; /* name: text */
};
/* The work that runs while a call may block its thread (blocking_rule.c). */
struct work_meanwhile {
	struct spill_list *list;   /* struct work_time, in no order */
	struct work_time *running; /* while no such call was seen */
	size_t running_count, room;
	uint64_t blocked_until_ns; /* when the last of the calls so far returned */
};

/* A part of idle time that a host further ahead of the GPU would have prevented. Its cause is not
 * GAP_KERNELS, GAP_EVENT, GAP_UNEXPLAINED or GAP_UNKNOWN. */
struct late_idle {
	uint64_t begin_ns, end_ns, length_ns;
	uint32_t device, tid; /* of the work that ended it; tid: of the thread that launched that */
	enum gap_cause cause;
};

#define DIAGNOSE_TEXT_BUFFERS 24u

struct diagnosis {
	const struct options *options;
	struct processes *processes;
	struct process *process;
	const struct profile *profile;
	struct diagnose_facts facts;
	struct run_bound bound; /* see diagnose_bound() */
	/* What was read for the verdict, and for the rows of `overlap`. NULL: these are made. */
	struct bound_pass *bound_pass;
	struct overlap *overlap;
	struct collective_list *collectives;
	struct spill_list *late_idle; /* struct late_idle */
	struct work_meanwhile work;
	struct rows overlap_rows;     /* see diagnose_overlap_rows() */
	struct program_traits traits; /* see diagnose_traits() */
	bool has_traits;
	/* Rules of classes report whatever is LIMIT_MINOR or more: a smaller finding is shown. */
	bool reports_small;
	/* Buffers of the texts that diagnose_* return. A text is valid until DIAGNOSE_TEXT_BUFFERS
	 * more are made. */
	char text_buffers[DIAGNOSE_TEXT_BUFFERS][512];
	unsigned next_buffer;
};

/* Fills diagnosis->facts from the trace. diagnose_facts_free() frees them. */
void diagnose_facts_read(struct diagnosis *diagnosis);
void diagnose_facts_free(struct diagnosis *diagnosis);

/* Returns what bounds the run. The first call computes it, and reads the critical path. */
const struct run_bound *diagnose_bound(struct diagnosis *diagnosis);
/* Returns all rows of the view `overlap`. They belong to the diagnosis. */
const struct rows *diagnose_overlap_rows(struct diagnosis *diagnosis);
/* Returns the statistics of each step, which the first call reads in one more pass. The process
 * must have steps. */
const struct step_table *diagnose_step_table(struct diagnosis *diagnosis);

/* Returns the traits of the program. The first call walks the tree for them. */
struct program_traits diagnose_traits(struct diagnosis *diagnosis);
/* Return the advice to use CUDA graphs, or to compile, as a noun. For a program that does so, it is
 * about what the program leaves out. */
const char *diagnose_graphs_advice(struct diagnosis *diagnosis);
const char *diagnose_compile_advice(struct diagnosis *diagnosis);
/* Returns the idle time before launches and during their latency, in parts shorter than
 * LIMIT_LONG_GAP_NS, and the number of gaps in `gaps`. */
uint64_t diagnose_short_launch_gaps(const struct diagnosis *diagnosis, uint64_t *gaps);
/* Returns true if `at_ns`, which is in the step with the index `step`, is in the steady part. */
bool diagnose_is_steady(const struct diagnosis *diagnosis, uint32_t step, uint64_t at_ns);
/* Sets the confidence of a finding about the steady part, and the reason for it. */
void finding_trust_steady(const struct diagnosis *diagnosis, struct finding *finding);
/* Returns true if `part` is at least `per_mille` thousandths of `whole`, and not 0. */
bool diagnose_is_share(uint64_t part, uint64_t whole, uint64_t per_mille);

/* Returns true if the kernel with this name communicates with other GPUs. `name`: text. */
bool diagnose_is_communication(const struct diagnosis *diagnosis, uint32_t name);

/* Returns true if for much of the time it is unknown what the GPU did. */
bool diagnose_hides_work(const struct diagnosis *diagnosis);
/* Returns the options for the rows of the view `view`: all rows, up to `top` of a level. */
struct options diagnose_row_options(const struct options *options, const char *view, uint32_t top);

/* Texts for findings, in diagnosis->text_buffers. Names are escaped and shortened. Escaping them
 * again, as paragraph_text does, changes nothing. */
const char *diagnose_time(struct diagnosis *diagnosis, uint64_t ns);
const char *diagnose_bytes(struct diagnosis *diagnosis, uint64_t bytes);
const char *diagnose_rate(struct diagnosis *diagnosis, uint64_t bytes, uint64_t ns);
const char *diagnose_count(struct diagnosis *diagnosis, uint64_t count);
/* Returns a text such as `1 call` or `2 calls`. */
const char *diagnose_plural(struct diagnosis *diagnosis, uint64_t count, const char *what);
const char *diagnose_share(struct diagnosis *diagnosis, uint64_t part, uint64_t whole);
const char *diagnose_name(struct diagnosis *diagnosis, uint32_t text);
/* Returns the name of a node of the call tree. A module whose name is only `*` has its class, too.
 */
const char *diagnose_node(struct diagnosis *diagnosis, uint32_t node);
const char *diagnose_escaped(struct diagnosis *diagnosis, const char *bytes, size_t length);
/* Formats one of a finding's texts. A text that does not fit is cut. */
void finding_set_text(char *text, size_t room, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#define SET_TEXT(text, ...) finding_set_text(text, sizeof(text), __VA_ARGS__)
/* Sets the state FINDING_FOUND. */
void finding_set_found(struct finding *finding, enum finding_confidence confidence);
/* Sets what was found at `node`, and that `impact_ns` is an upper bound of what it costs. */
void finding_set_impact(struct finding *finding, uint32_t node, uint64_t count, uint64_t impact_ns);
/* Sets the node of a finding to the one with the most time, with its share. If that is less than
 * half, appends to the sentence the innermost node that has most of the time below it. `ns`: time
 * by node. Called when the sentence is complete. */
void finding_set_place(
	struct diagnosis *diagnosis, struct finding *finding, const uint64_t *ns, size_t room);
/* For finding_set_unchecked. */
#define NO_STEPS_FOUND "no steps were found in the trace (see --step-marker)"
/* Sets what a class of the verdict (run_bound_ns) costs: its time in the steady-state steps, as the
 * verdict has it. If that is less than `per_mille` thousandths of the steps, or the verdict is not
 * about steps, `span_ns`: its time in the GPUs' span. Returns true, and sets whole_ns, whole_name
 * and impact_ns, if that is at least `per_mille` thousandths of the steps or of the span. */
bool finding_set_class(struct diagnosis *diagnosis, struct finding *finding, enum bound class,
	uint64_t span_ns, uint64_t per_mille);
/* After finding_set_class: sets the place of the finding by the time of the class in what the
 * headline is of, the steps or the GPUs' span. `ns`: time by node in the whole trace, for where
 * the verdict does not have the headline. Called when the sentence is complete. */
void finding_set_class_place(struct diagnosis *diagnosis, struct finding *finding, enum bound class,
	const uint64_t *ns, size_t room);
/* The same. In the whole trace, the time is that of `occurrences`. */
void finding_set_class_place_of(struct diagnosis *diagnosis, struct finding *finding,
	enum bound class, const struct occurrences *occurrences);
/* Sets by how much the run gets shorter at most, by the critical path, if GPU work that `selects`
 * accepts took only `left` (0 to 1) of its time. If the impact is a part of steady-state steps,
 * only their work is shortened. Called when the impact and whole_ns are set; sets nothing if the
 * path is not known. */
void finding_set_gain(struct diagnosis *diagnosis, struct finding *finding, double left,
	bool (*selects)(const struct path_node *work, void *context), void *context);
/* Sets what a rule has measured: LIMIT_SHOWN of `whole_ns` or more, and less than its threshold of
 * `per_mille` thousandths. A finding that is clear shows it. */
void finding_set_small(struct finding *finding, uint64_t ns, uint64_t per_mille, uint64_t whole_ns,
	const char *whole_name);
/* Sets the state FINDING_UNCHECKED. `what` says what the trace lacks. */
void finding_set_unchecked(struct finding *finding, const char *what);

/* Appends to the evidence what the program did before the first GPU operation, if that is much of
 * the run (startup.c). */
void diagnose_list_startup(struct diagnosis *diagnosis, struct finding *text);
/* Sets the member `next` of a verdict about kernels: the largest ones (bound_kernels.c). */
void bound_kernels_advise(struct diagnosis *diagnosis, struct finding *text);

/* Rules about what the GPU did (gpu_rules.c). */
void diagnose_dominant_event(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_tiny_calls(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_small_grids(struct diagnosis *diagnosis, struct finding *finding);
/* The rule about the ratio of backward to forward (backward_rule.c). */
void diagnose_forward_backward(struct diagnosis *diagnosis, struct finding *finding);
/* The rule about FP32 matrix products (matrix_rules.c). */
void diagnose_tensor_cores(struct diagnosis *diagnosis, struct finding *finding);
/* Rules about communication between GPUs (communication_rules.c). */
void diagnose_exposed_communication(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_exposed_copies(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_collective_waits(struct diagnosis *diagnosis, struct finding *finding);
/* Returns what most of the time in event_gaps waits for. */
enum gap_event diagnose_event(const struct diagnosis *diagnosis);
/* Returns true if the longest wait of launched work begins within 1 ms of the trace. It is then
 * most likely for work from before the trace began. */
bool diagnose_waits_from_the_start(const struct diagnosis *diagnosis);
/* Returns the name of the call that makes a stream wait for an event. */
const char *diagnose_event_call(struct diagnosis *diagnosis);
/* Rules about idle time of the GPU (idle_rules.c). */
void diagnose_host_bound(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_launch_bound(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_synchronisation(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_event_wait(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_unexplained_wait(struct diagnosis *diagnosis, struct finding *finding);
/* Adds a row of `idle` about what the host did in long gaps; other rows are passed over. */
void host_activity_add_row(struct diagnosis *diagnosis, const struct row *row);
/* Returns the share of the long gaps in which the host is in MPI, if it is large, or NULL. */
const char *host_activity_mpi_share(struct diagnosis *diagnosis);
/* Returns what has most time of the long gaps, is not MPI, and has CPU samples. NULL: nothing. */
const struct host_place *host_activity_sampled(const struct diagnosis *diagnosis);
/* Appends to sentence and evidence what the host did in long gaps, if the trace shows more than
 * the place of a finding does: MPI, CPU samples, or the ranges of a program without PyTorch. */
void host_activity_explain(struct diagnosis *diagnosis, struct finding *finding);
/* Sets the advice for calls that wait for the GPU, by the operators around finding->node
 * (wait_advice.c). */
void diagnose_advise_on_waits(struct diagnosis *diagnosis, struct finding *finding);
/* The same, of calls that read values of tensors, and of other calls. */
void diagnose_advise_on_blocked(struct diagnosis *diagnosis, const struct occurrences *reads,
	const struct occurrences *others, struct finding *finding);
/* Returns true if an operator at the node, or around it, reads a value of a tensor, as
 * Tensor.item() does. */
bool diagnose_reads_value(const struct diagnosis *diagnosis, uint32_t node);
/* The rule about calls in which the host is blocked (blocking_rule.c). */
void diagnose_blocking_calls(struct diagnosis *diagnosis, struct finding *finding);
/* Adds GPU work, or a call, to the calls that block their threads. `stream_end_ns`: the end of the
 * work before it on its stream, or 0. */
void blocking_add_work(
	struct diagnosis *diagnosis, const struct activity *work, uint64_t stream_end_ns);
void blocking_add_call(struct diagnosis *diagnosis, const struct activity *call);
void blocking_free_work(struct work_meanwhile *meanwhile);
/* Finds which of the calls read values of tensors, by their operators and Python frames. */
void blocking_find_reads(struct diagnosis *diagnosis);
void blocking_free(struct diagnose_facts *facts);
/* Returns for how long the thread that launches most kernels is blocked in calls that wait for the
 * GPU: in the steady-state steps, or from the first GPU operation to the last. */
uint64_t blocking_launcher_ns(const struct diagnosis *diagnosis, bool in_steps);
/* Returns for how long the threads that launch kernels are blocked at nodes with copies from or to
 * pageable memory, without calls that read values. Stores the node with most of it in `*node`. */
uint64_t blocking_pageable_ns(const struct diagnose_facts *facts, uint32_t *node);
/* Rules about CUDA calls and copies (call_rules.c). */
void diagnose_attribute_queries(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_steady_allocation(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_pageable_copies(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_copy_before_gemm(struct diagnosis *diagnosis, struct finding *finding);
/* Rules about the first steps and the cost of profiling (host_rules.c). */
void diagnose_cold_start(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_profiler_cost(struct diagnosis *diagnosis, struct finding *finding);
/* Adds a row of the view `idle` with the cause GAP_FIRST. */
void first_call_gap_add(
	struct diagnosis *diagnosis, const struct row *row, uint64_t at_ns, uint64_t length_ns);
/* Reports these, and kernels that the driver loaded at their first use, as cold start. Returns
 * false if there is too little of that. */
bool diagnose_first_calls(struct diagnosis *diagnosis, struct finding *finding);
/* Reports single slow launches of a run with steps, if the GPU is idle in them for long enough. */
void diagnose_slow_launches(struct diagnosis *diagnosis, struct finding *finding);
/* Rules about torch.compile (compile_rules.c). */
void diagnose_compile_tax(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_compilation(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_recompilation(struct diagnosis *diagnosis, struct finding *finding);
/* Writes the innermost lines of the program's own Python code of a stack, as `; allocated at
 * train.py:6 Net.forward < train.py:14 <module>`. Writes nothing if the trace has none. */
void diagnose_python_lines(struct diagnosis *diagnosis, uint32_t stack, char *text, size_t room);
/* Returns the tensors of the device of the levels; NULL: there are none. */
const struct memory_level *diagnose_tensor_level(const struct diagnosis *diagnosis);

/* Rules about memory that grows, one step that needs more, and running out (memory_rules.c). */
void diagnose_memory_growth(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_scalar_keeps_graph(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_pinned_growth(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_memory_spike(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_out_of_memory(struct diagnosis *diagnosis, struct finding *finding);
/* Rules about reserved memory that no tensor uses (waste_rules.c). */
void diagnose_memory_fragmentation(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_pinned_segments(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_dynamic_shapes(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_idle_cache(struct diagnosis *diagnosis, struct finding *finding);
/* Rules about who needs the memory of the GPU (capacity_rules.c). */
void diagnose_memory_outside(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_managed_memory(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_other_process(struct diagnosis *diagnosis, struct finding *finding);
/* Rules about what training keeps (training_memory_rules.c). */
void diagnose_optimizer_twice(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_activations_kept(struct diagnosis *diagnosis, struct finding *finding);
/* The rule about data that steps wait for (data_rules.c). */
void diagnose_data_loading(struct diagnosis *diagnosis, struct finding *finding);
/* Rules about what samples of threads show (sample_rules.c). */
void diagnose_python_bound(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_garbage_collection(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_lock_wait(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_oversubscribed(struct diagnosis *diagnosis, struct finding *finding);
void diagnose_kernel_time(struct diagnosis *diagnosis, struct finding *finding);
/* The rule about a kernel with different durations (variability_rule.c). */
void diagnose_kernel_variability(struct diagnosis *diagnosis, struct finding *finding);
/* Picks the kernel to examine. Called before the pass over the activities. */
void variability_pick_kernel(struct diagnosis *diagnosis);
/* Adds the duration of a kernel to the sums of its part of the trace. */
void variability_add(struct diagnosis *diagnosis, const struct activity *work);

#endif
