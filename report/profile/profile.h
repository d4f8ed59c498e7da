/* SPDX-License-Identifier: MIT
 * Builds the call tree and metrics of a trace in one pass.
 *
 * Memory grows with nodes, allocation sites and launch configurations, never with events.
 *
 * GPU work is owned by the range in which it was launched. Records are joined to launches by
 * correlation id only. Work that was launched in no range, or whose launch is not in the trace,
 * belongs to the node `unattributed`. Each step section has its own `unattributed` node.
 *
 * Start/end ranges may begin on one thread and end on another. They own nothing, and are below
 * the node `start-end ranges`.
 */
#ifndef PPERF_REPORT_PROFILE_PROFILE_H
#define PPERF_REPORT_PROFILE_PROFILE_H

#include "report/profile/instance.h"
#include "report/profile/gpu_launch.h"
#include "report/gpu/launch_configs.h"
#include "report/profile/memory_owners.h"
#include "report/profile/metric.h"
#include "report/profile/node_names.h"
#include "report/profile/sample_places.h"
#include "report/steps/find_steps.h"
#include "report/gpu/device_timeline.h"
#include "report/steps/schedule_windows.h"

/* Two clocks read one after the other differ by the time between the two readings: some
 * microseconds on a shared processor. GPU work that seems to begin before its launch by no more
 * than this shows that difference, not a wrong clock. */
#define CLOCK_TOLERANCE_NS 20000u

/* An instance of a range, found in an earlier pass. */
struct profile_target {
	uint32_t stream, node;
	uint64_t begin_ns, end_ns;
	long double value; /* of the metric */
	/* Tree of a finished pass with the same options, which says how long nodes took. NULL:
	 * none. */
	const struct tree *previous_tree;
};

/* A range that has ended, or the part of a range that is counted. */
struct observed_segment {
	const struct trace_stream *thread;
	uint32_t node, trace_node; /* trace_node 0: a step section */
	uint64_t begin_ns, total_ns, self_ns;
};

/* A CUDA call. `node` is its leaf, `owner` the node of the range around it. Both are 0 if the
 * call is not counted. */
struct observed_call {
	const struct trace_event *event; /* its record begins with struct trace_call */
	uint64_t begin_ns, duration_ns;
	uint32_t node, owner, name; /* name: text */
	bool counts;
};

/* GPU work, joined to its call. `launch` is NULL if the call is not known. `node` and `owner`
 * are as in struct observed_call. `kernel` is an index in profile.kernels. */
struct observed_gpu_work {
	const struct trace_gpu *gpu;
	const struct gpu_launch *launch;
	uint64_t begin_ns, end_ns; /* since the trace's start; 0 if not timed */
	uint32_t node, owner, name, kernel;
	bool timed, counts;
};

/* A mapping of physical memory that begins or ends. The record of `event` is a MAPPING. */
struct observed_mapping {
	const struct trace_event *event;
	const struct memory_mapping *mapping;
	bool ends;
};

/* An instance of a range. `value`: of the metric; not known yet in the callback `closed`. */
struct observed_instance {
	uint32_t node, stream, trace_node;
	uint64_t begin_ns, end_ns;
	long double value;
};

/* Memory that was allocated or freed, or both (an address that was allocated again). The record of
 * `event` is an ALLOC, a FREE or a TENSOR. A FREE of a whole context has several changes. */
struct observed_memory {
	const struct trace_event *event;
	const struct memory_change *change;
	const struct memory_owners *memory;
	uint64_t at_ns,
		address;     /* address: of what was allocated or freed; 0: of a whole context */
	uint32_t trace_node; /* around the record */
	uint32_t api;        /* name in the trace of the CUDA call; 0: PyTorch's allocator */
};

/* A sample of a thread: a CPU_SAMPLE or SAMPLE record. Or a SAMPLE_PYTHON record, which belongs to
 * earlier samples of its thread; of it only `event` and `thread` are set. */
struct observed_sample {
	const struct trace_event *event;
	uint32_t node;   /* of the innermost open range of the sampled thread; 0: none is open */
	uint32_t owner;  /* node in which the sample counts; never 0 */
	uint32_t thread; /* index in profile.sampled_threads */
	bool counts;
};

/* Callbacks for one pass over the trace. Members that are not set are skipped. `at_ns` is when
 * the range or call began, since the trace's start. */
struct profile_observer {
	void *context;
	/* The trace is read from its beginning. A second call is possible. */
	void (*restart)(void *context);
	/* The callbacks `leaf`, `instance` and `ended` receive contributions to the metric. */

	/* A call, or GPU work. */
	void (*leaf)(
		void *context, uint32_t node, bool is_work, uint64_t at_ns, uint64_t duration_ns);
	/* An instance of a range, with the metric's value of all inside it. */
	void (*instance)(void *context, uint32_t node, uint64_t at_ns, long double value);
	/* As `instance`, with the instance's stream, trace node and end. */
	void (*ended)(void *context, const struct observed_instance *instance);
	/* Each range that ends, as far as it is counted. */
	void (*segment)(void *context, const struct observed_segment *part);
	/* An instance's duration, whatever the metric is. Called before `instance` and `ended`. */
	void (*closed)(void *context, const struct observed_instance *instance);
	const uint8_t *closed_nodes; /* by node, 0: not reported; NULL: all nodes are */
	uint32_t closed_node_count;
	/* The bytes held by tensors and of device memory from `at_ns` on. Without records of
	 * device memory, `reserved` is what PyTorch's allocator holds. */
	void (*level)(void *context, uint64_t at_ns, int64_t allocated, int64_t reserved);
	/* The following callbacks receive all that happened, whether it is counted or not. */

	/* An allocation or a release that changed something. */
	void (*memory)(void *context, const struct observed_memory *memory);
	/* What happened to tensors may be reported to `memory` later than other events, and in
	 * another thread, but in the order of all that is reported to `memory`, `mapping` and
	 * `memory_mark`, and before the end of the pass. Of the event only kind, time and record
	 * are set then, and trace_node is not. */
	bool memory_may_be_later;
	/* As `memory`, also for a record that changed nothing that is held, such as a TENSOR that
	 * reports a level only. */
	void (*memory_record)(void *context, const struct observed_memory *memory);
	void (*call)(void *context, const struct observed_call *call);
	void (*work)(void *context, const struct observed_gpu_work *work);
	/* A mapping that began, or ended before its memory is reported as freed. */
	void (*mapping)(void *context, const struct observed_mapping *seen);
	/* A TENSOR_OOM, an ALLOC that failed, or a WINDOW with which recording begins again: which
	 * of the tensors so far are still held is then not known. */
	void (*memory_mark)(void *context, const struct trace_event *event);
	void (*sample)(void *context, const struct observed_sample *sample);
	/* An API, GPU_SYNC, OBJECT, COLLECTIVE, START or END record. */
	void (*record)(void *context, const struct trace_event *event);
	/* A value of a counter of the program (METRIC), reported in the tree node `node`. `counts`:
	 * the part of the trace is counted. */
	void (*counter)(void *context, const struct trace_event *event, uint32_t node, bool counts);
	/* Counting starts or stops at `at_ns`. Called only if a part of the trace is
	 * profiled. */
	void (*counting)(void *context, bool counts, uint64_t at_ns);
};

struct profile_options {
	bool no_fold;
	enum demangle_form demangle;
	/* Rules that say which kernels are communication. NULL: none are. Must outlive the
	 * profile. */
	const struct categories *categories;
	int64_t device;     /* -1: work of all devices, and memory levels of the first one seen */
	enum metric metric; /* defines the worst instance */
	/* Replace `metric` by gpu if a GPU timed anything, else by cpu. The result is in
	 * profile.options. */
	bool pick_metric;
	const char *counter; /* METRIC_USER: name of the counter */
	/* Steps that were found without marks. NULL: none, or not wanted. Must outlive the
	 * profile, which adds GPU work to them until steps_finish_gpu. */
	struct steps *found_steps;
	/* Recording windows. NULL: everything was recorded. Must outlive the profile. */
	const struct recording_windows *windows;
	bool steps; /* count only from first_step to last_step */
	uint64_t first_step, last_step;
	/* With a target, or with an observer of calls or ranges, the sums of nodes are
	 * incomplete, because the fast path then skips them; unless the observer joins. */
	const struct profile_target *target; /* keep this instance's children; NULL: none */
	/* Percent of the target's value. Smaller children are kept as groups only. 0: 1 percent.
	 * Negative: 0 percent. */
	double min_percent_of_target;
	const struct profile_observer *observer; /* NULL: none */
	/* The pass makes the whole profile, as without the observer, whose `restart` must be set:
	 * the pass may begin again. */
	bool observer_joins;
	/* Timeline of an earlier pass, which must outlive the profile. NULL: the pass makes one
	 * if the trace has timed GPU work. */
	struct timeline *timeline;
	/* Bytes of tensors of the device before its first record. Known after profile_build of a
	 * trace with tensors, in profile.options. */
	int64_t allocated_at_start;
	bool knows_allocated_at_start;
	bool no_timeline;          /* skip busy and idle time */
	bool no_owners_and_delays; /* skip who ended idle gaps, and launch delays */
	bool no_percentiles;       /* skip percentiles of nodes */
	bool sample_places;        /* make profile.sample_places */
	bool no_samples;           /* leave out samples (reader_leave_out_samples) */
	/* Receives the samples in place of the sums of sample_places. NULL: none. */
	const struct sample_visitor *sample_visitor;
};

/* Counts over the whole trace, whatever the options are. */
struct profile_counts {
	uint64_t events;
	/* CUDA calls, tensor events, records of CUPTI, and LOST, OBJECT and NVTX_SYNC. */
	uint64_t records;
	uint64_t launches, copies_called, sets_called, graph_launches; /* succeeded, not captured */
	uint64_t kernels, copies, sets;                                /* delivered by CUPTI */
	/* part of the above: made by graphs */
	uint64_t graph_kernels, graph_copies, graph_sets;
	uint64_t captured, failed_calls, syncs;
	/* GPU records launched in a range, in none; the sum is all */
	uint64_t attributed, unattributed;
	/* Part of `unattributed` whose correlation id has no launch. The rest was launched in no
	 * range. */
	uint64_t without_launch;
	/* Part of `without_launch`: the id is lower than that of every launch in the trace. Ids are
	 * assigned in sequence, so the launch was made before the trace began. */
	uint64_t launched_before;
	/* Calls for which no GPU record is expected (enum trace_call_flag). */
	uint64_t empty_calls, before_gpu, after_gpu, range_profiled;
	uint64_t untimed, missing_records, dropped, unread_buffers;
	/* Work that began clearly before the call that launched it. One of the clocks is wrong. */
	uint64_t early;
	uint64_t backwards;    /* work that ended before it began */
	uint64_t unknown_ends; /* END of a start/end range that is not open */
	uint64_t async_left_open;
	/* Times that another client had CUPTI. Launches, copies and memsets called
	 * meanwhile. */
	uint64_t yielded, yielded_calls;
	/* Steps seen, those of --steps, and the lowest and highest number, if any was seen. */
	uint64_t steps, chosen_steps, lowest_step, highest_step;
	/* Calls of operators that were only counted (PPERF_OPS=totals), if they are in the tree. */
	uint64_t counted;
	uint64_t overhead_records, driver_overhead_records, metrics, cpu_samples;
};

struct profile_totals {
	uint64_t wall_ns;     /* from the trace's start to its last event; or of the chosen steps */
	uint64_t cpu_self_ns; /* in ranges; each nanosecond of a thread once */
	uint64_t outside_call_ns; /* in CUDA calls outside any range */
	uint64_t gpu_sum_ns, gpu_busy_ns, gpu_idle_ns, gpu_unknown_ns;
	/* Idle time charged to the work that ended it. Equals gpu_idle_ns if the whole trace is
	 * profiled. */
	uint64_t gpu_idle_charged_ns;
	/* Unions over each device's work (device_timeline.h). Only if the whole trace is
	 * profiled. */
	uint64_t gpu_computation_ns, gpu_communication_ns, gpu_exposed_communication_ns,
		gpu_copy_ns, gpu_exposed_copy_ns;
	uint64_t attributed_ns, unattributed_ns;
	uint64_t method_ns[METHOD_COUNT], method_records[METHOD_COUNT];
	uint64_t alloc_bytes, free_bytes; /* device memory */
	uint64_t self_ns, overhead_ns;    /* pperf's own time; CUPTI's */
	/* The driver's overhead, which no profiler causes: trace_overhead_is_driver. */
	uint64_t driver_overhead_ns;
	int64_t reserved_now, reserved_peak;
	uint32_t level_device; /* device of the levels; UINT32_MAX: no memory was allocated */
	bool has_tensors;
	int64_t allocated_now, allocated_peak;
	uint64_t tensor_alloc_bytes, tensor_free_bytes;
};

/* A range that was open when memory ran out. */
struct oom_open_range {
	uint32_t label; /* text */
	/* Growth since it began of what tensors hold; for memory->failed, of device memory. */
	int64_t grown;
};

/* A thread with open ranges when another thread ran out of memory. */
struct oom_thread {
	uint32_t tid;
	uint32_t first_open, open; /* index in profile.oom_ranges; how many */
};

/* The time that a thread spent in ranges, each nanosecond once, as far as it is counted. */
struct profile_thread_time {
	uint32_t tid;
	uint64_t self_ns;
};

/* A thread that was sampled. */
struct sampled_thread {
	uint32_t tid, name; /* name: name id of the trace; 0: not known */
	struct sample_sums sums;
	/* What its CPU clock counted while it was sampled. */
	uint64_t clock_ns;
	uint64_t last_cpu_ns; /* the clock's last value */
	bool has_clock;
};

/* The calls that CUPTI timed (struct trace_api) of one name. */
struct api_time {
	uint32_t name;
	uint64_t calls, total_ns, failed;
};

struct profile {
	struct profile_options options;
	struct trace_reader *reader; /* not owned */
	struct string_table *texts;
	struct tree *tree;
	struct node_names *names;
	struct launch_configs *kernels;
	struct memory_owners *memory;
	struct timeline *timeline; /* NULL: no GPU work was timed */
	bool owns_timeline;
	struct profile_counts counts;
	struct profile_totals totals;
	struct api_time *apis;
	uint32_t api_count;
	/* The threads that had a range, in the order of their ends. */
	struct profile_thread_time *threads;
	size_t thread_count, thread_room;
	/* The threads that were sampled, in the order in which they were first seen. */
	struct sampled_thread *sampled_threads;
	size_t sampled_thread_count, sampled_thread_room;
	struct sample_sums sampled;          /* of all nodes */
	struct sample_places *sample_places; /* NULL: not wanted, or there are no samples */
	/* There are samples, but no ranges, calls, GPU work and memory in which they could be. */
	bool only_samples;
	/* of each entry of memory->ooms and memory->failed; outermost first */
	struct oom_open_range *oom_ranges;
	uint32_t oom_range_count;
	/* of each entry of memory->ooms and memory->failed */
	struct oom_thread *oom_threads;
	uint32_t oom_thread_count;
	uint32_t unattributed, async_ranges; /* nodes; 0: none was needed */
	struct instance *target;             /* the target instance, with the children kept */
	uint32_t counter_unit;               /* METRIC_USER: text */
	bool counter_found, has_steps;
	bool is_new;                 /* profile_fill has not returned yet */
	struct profile_state *state; /* NULL after the pass */
};

/* Makes one pass over the whole trace from its beginning. A read error ends the program. `texts`
 * receives the names, and is shared by all profiles of one trace. */
struct profile *profile_build(struct trace_reader *reader, struct string_table *texts,
	const struct profile_options *options);
/* Returns a profile without events, and without a state. It has its options, in which the metric is
 * chosen, its timeline and an empty tree. An observer that looks at them can then be set in
 * `options`, before profile_fill. */
struct profile *profile_new(struct trace_reader *reader, struct string_table *texts,
	const struct profile_options *options);
/* Makes the pass for a profile of profile_new. profile_build does both. */
void profile_fill(struct profile *profile);
void profile_free(struct profile *profile);

/* The options of one more pass over the same trace that only serves `observer`. The pass keeps
 * the metric of `profile`. It skips busy and idle time, owners of idle gaps, and percentiles. */
struct profile_options profile_options_for_observer(
	const struct profile *profile, const struct profile_observer *observer);

/* Returns when the last step ends, at which the end for memory usually is (memory_end.c).
 * UINT64_MAX: it did not end, or there are no steps. */
uint64_t profile_steps_end_ns(const struct steps *steps);

/* Returns whether the root node `root` is part of the total that percentages are computed of.
 * `of_cpu_time`: of the total of CPU time. Time of what ran backward is in the nodes where it ran.
 * Sections that are no steady-state steps would make the shares of the steps too small. */
bool profile_root_has_share(const struct profile *profile, uint32_t root, bool of_cpu_time);

/* Returns the CPU time of all root nodes that have a share of it. */
long double profile_cpu_of_roots(const struct profile *profile);

/* Returns whether every nanosecond and byte is owned by exactly one node, and all sums agree.
 * Otherwise `problem` receives a sentence, cut to `room` bytes. */
bool profile_check_conservation(const struct profile *profile, char *problem, size_t room);

#endif
