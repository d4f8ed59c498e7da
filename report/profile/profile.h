/* SPDX-License-Identifier: MIT
 * fold.h: one pass over a trace, and what it comes to. Memory grows with places, sites and shapes, never with events.
 *
 * Work of a GPU is owned by the range in which it was launched; the join is by correlation id only. What was launched
 * in no range, or whose launch is not in the trace, belongs to the node `unattributed` (or one of that kind in the
 * section that it was launched in). Ranges that start on one
 * thread and end on another (start/end) own nothing and stand below the node `spans`.
 */
#ifndef PPERF_REPORT_PROFILE_PROFILE_H
#define PPERF_REPORT_PROFILE_PROFILE_H

#include "report/profile/instance.h"
#include "report/gpu/correlation_join.h"
#include "report/gpu/launch_configs.h"
#include "report/profile/memory_owners.h"
#include "report/profile/metric.h"
#include "report/profile/node_names.h"
#include "report/steps/find_steps.h"
#include "report/gpu/device_timeline.h"
#include "report/steps/schedule_windows.h"

/* Two clocks, read one after the other, are apart by what came between the readings: some microseconds where a processor
 * is shared. Work that seems to begin before its launch by no more than this tells of that, not of a clock that is
 * wrong. */
#define CLOCK_TOLERANCE_NS 20000u

/* An instance of a range, found in an earlier pass. */
struct profile_target {
	uint32_t stream, node;
	uint64_t begin_ns, end_ns;
	long double value; /* of the metric */
	const struct tree *
		previous_tree; /* of a fold with the same options that has ended: how long places took; NULL: there is none */
};

/* Whose durations are to be kept in a pass that is made for them: by node, by kernel. */
struct durations_kept {
	uint8_t *nodes, *kernels;
	uint32_t node_count, kernel_count;
};

/* A range, or the part of one that counts, that is over. */
struct observed_segment {
	const struct trace_stream *thread;
	uint32_t node, trace_node; /* place 0: a section */
	uint64_t begin_ns, total_ns, self_ns;
};

/* A call to CUDA, as the fold saw it. node: its leaf; owner: of whom; both as far as it counts, else 0. */
struct observed_call {
	const struct trace_event *event; /* its record begins with struct trace_call */
	uint64_t begin_ns, duration_ns;
	uint32_t node, owner, name; /* name: text */
	bool counts;
};

/* Work of a GPU, joined to its call. launch: NULL: none is known. node, owner: as above; kernel: index in fold.kernels. */
struct observed_gpu_work {
	const struct trace_gpu *gpu;
	const struct gpu_launch *launch;
	uint64_t begin_ns, end_ns; /* since the trace's start; not timed: 0 */
	uint32_t node, owner, name, kernel;
	bool timed, counts;
};

/* An instance of a range. value: of the metric, not known when it closes. */
struct observed_instance {
	uint32_t node, stream, trace_node;
	uint64_t begin_ns, end_ns;
	long double value;
};

/* Who is told, one by one, in a pass that is made for it, what is in a trace. NULL: of no interest. at_ns: when its range
 * or call began, since the trace's start. */
struct profile_observer {
	void *context;
	void (*restart)(void *context); /* the trace is read from its beginning; maybe once more */
	/* Each amount of the metric: */
	/* A call, or work of a GPU. */
	void (*leaf)(
		void *context, uint32_t node, bool is_work, uint64_t at_ns, uint64_t duration_ns);
	void (*instance)(void *context, uint32_t node, uint64_t at_ns,
		long double value); /* of a range, all in it */
	void (*ended)(void *context,
		const struct observed_instance *instance); /* the same, and more of it */
	void (*segment)(void *context,
		const struct observed_segment *part); /* each time, as far as it counts */
	/* How long an instance of a range took, whatever the metric; before the two above tell of it. */
	void (*closed)(void *context, const struct observed_instance *instance);
	const uint8_t *closed_nodes; /* by node: not 0: of these only; NULL: of all */
	uint32_t closed_node_count;
	/* What tensors and device memory hold from then on; without a record of device memory, what PyTorch's allocator does. */
	void (*level)(void *context, uint64_t at_ns, int64_t allocated, int64_t reserved);
	/* Whatever happened, whether it counts or not: */
	void (*call)(void *context, const struct observed_call *call);
	void (*work)(void *context, const struct observed_gpu_work *work);
	void (*record)(void *context, const struct trace_event *event); /* API, GPU_SYNC, OBJECT */
	void (*counting)(void *context, bool counts,
		uint64_t at_ns); /* from then on; parts of a trace only */
};

struct profile_options {
	bool no_fold;
	enum demangle_form demangle;
	int64_t device;     /* -1: work of all; the level of the one that is seen first */
	enum metric metric; /* what is worst */
	bool pick_metric; /* instead: gpu if anything was timed on a GPU, else cpu; fold.options says which */
	const char *counter; /* METRIC_USER: its name */
	const struct steps *
		found_steps; /* steps that nobody marked; NULL: none, or not wanted. Outlives the fold */
	const struct recording_windows
		*windows; /* NULL: everything was recorded. Outlives the fold */
	bool steps;       /* only from first_step to last_step */
	uint64_t first_step, last_step;
	/* With this one, or an observer of calls or ranges, what places come to is not complete. */
	const struct profile_target *target; /* keep the children of this one; NULL: of none */
	double min_percent_of_target; /* of its value: children with less are kept together only; 0: 1, below: 0 */
	const struct durations_kept *only;       /* NULL: all durations */
	const struct profile_observer *observer; /* NULL: nobody */
	struct timeline *
		timeline; /* made in an earlier pass; outlives the fold. NULL: the fold makes its own, if there is one */
	bool no_timeline;    /* nobody asks for busy and idle */
	bool no_owners;      /* nor who ended idle moments, and how long launches waited */
	bool no_percentiles; /* nor for percentiles of places */
};

/* Numbers of things; what is not named says so. Of the whole trace, whatever the options. */
struct profile_counts {
	uint64_t events;
	uint64_t
		records; /* of calls, tensors and what CUPTI told: whatever is neither a range nor a mark, a counter, a clock */
	uint64_t launches, copies_called, sets_called,
		graph_launches;                           /* that worked and were not captured */
	uint64_t kernels, copies, sets;                   /* delivered by CUPTI */
	uint64_t graph_kernels, graph_copies, graph_sets; /* of these: made by graphs */
	uint64_t captured, failed_calls, syncs;
	uint64_t attributed, unattributed; /* GPU records: with a range, without; together all */
	uint64_t
		without_launch; /* of unattributed: no launch of that id is known; the rest was launched in no range */
	uint64_t untimed, missing_records, dropped, unread_buffers, batches;
	uint64_t
		early; /* work that began clearly before the call that launched it: one of the clocks is wrong */
	uint64_t backwards;    /* work that ended before it began */
	uint64_t unknown_ends; /* start/end: END of a range that is not open */
	uint64_t async_left_open;
	uint64_t yielded,
		yielded_calls; /* times that CUPTI was another client's; launches, copies and sets then */
	uint64_t steps;        /* seen */
	uint64_t
		counted; /* calls of operators that were only counted, as far as they are in the tree */
	uint64_t overhead_records, api_records, gpu_memory_records, marks, metrics;
};

struct profile_totals {
	uint64_t wall_ns; /* from the trace's start to its last event, or of the steps asked for */
	uint64_t cpu_self_ns; /* in ranges, each moment of a thread once */
	uint64_t gpu_sum_ns, gpu_busy_ns, gpu_idle_ns, gpu_unknown_ns;
	uint64_t
		gpu_idle_charged_ns; /* to work that ended it; of the whole trace all of gpu_idle_ns */
	/* of the devices' unions (timeline.h); of the whole trace only */
	uint64_t gpu_computation_ns, gpu_communication_ns, gpu_exposed_communication_ns,
		gpu_copy_ns, gpu_exposed_copy_ns;
	uint64_t attributed_ns, unattributed_ns;
	uint64_t method_ns[METHOD_COUNT], method_records[METHOD_COUNT];
	uint64_t alloc_bytes, free_bytes; /* device memory */
	uint64_t self_ns, overhead_ns;    /* pperf's own time; CUPTI's */
	int64_t reserved_now, reserved_peak;
	uint64_t reserved_peak_at_ns;
	uint32_t level_device; /* whose levels these are; UINT32_MAX: no device memory was taken */
	bool has_tensors;
	int64_t allocated_now, allocated_peak;
	uint64_t tensor_alloc_bytes, tensor_free_bytes;
};

/* A range that was open when memory ran out. */
struct oom_open_range {
	uint32_t label; /* text */
	int64_t grown;  /* what tensors held more than when it began */
};

/* What the ranges of a thread come to, each moment once, as far as it counts. */
struct profile_thread_time {
	uint32_t tid;
	uint64_t self_ns;
};

/* A call that CUPTI timed (struct trace_api), by name. */
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
	struct timeline *timeline; /* NULL: nothing was timed on a GPU */
	bool owns_timeline;
	struct profile_counts counts;
	struct profile_totals totals;
	struct api_time *apis;
	uint32_t api_count;
	struct profile_thread_time
		*threads; /* those on which a range was, in the order of their ends */
	size_t thread_count, thread_room;
	struct oom_open_range *oom_ranges; /* of memory->ooms, each from the outermost on */
	uint32_t oom_range_count;
	uint32_t unattributed, async_ranges; /* nodes; 0: there is nothing of it */
	struct instance *target; /* the instance that was asked for, with its kept children */
	uint32_t counter_unit;   /* METRIC_USER: text */
	bool counter_found, has_steps;
	struct profile_state *state; /* while it runs */
};

/* The whole trace from its beginning. A read error ends the program. texts: where names go; shared by the folds of
 * one trace. */
struct profile *profile_build(struct trace_reader *reader, struct string_table *texts,
	const struct profile_options *options);
void profile_free(struct profile *profile);

/* The options of one more pass over the same trace that is only made to tell an observer: no figure of its own that takes
 * time (busy and idle, owners of idle moments, percentiles), and no metric but the one that was found. */
struct profile_options profile_options_for_observer(
	const struct profile *profile, const struct profile_observer *observer);

/* Whether that root of the tree is part of what shares are shares of. time: of the CPU; what ran backward has that
 * where it ran, and what is in no step would make those small that somebody looks for. */
bool profile_root_has_share(const struct profile *profile, uint32_t root, bool time);

/* Makes the percentiles of places with up to SAMPLES_EXACT instances exact, where all values together did not fit: as
 * many more passes as it takes to see them in parts. Usually none. */
void profile_refine_percentiles(struct profile *profile);

/* Whether every nanosecond and byte that came in is owned by exactly one node, and the sums agree. `problem`: room
 * for a sentence. */
bool profile_check_conservation(const struct profile *profile, char *problem, size_t room);

#endif
