/* SPDX-License-Identifier: MIT
 * Reads a process for formats that write single events: ranges, calls and GPU work in the order
 * of their begins, each once, when both its ends are known. GPU work is joined to its launch.
 *
 *	struct record_events *events = record_events_read(process, options);
 *	struct record_event event;
 *
 *	while (record_events_next(events, &event))
 *		...
 *
 * Memory does not depend on the number of events: they are sorted in temporary files. All times
 * are nanoseconds since the trace's start. With --steps, what is outside of the steps is left out,
 * and ranges are cut at their edges; GPU work belongs to the steps if its launch does.
 */
#ifndef PPERF_REPORT_EXPORT_RECORD_EVENTS_H
#define PPERF_REPORT_EXPORT_RECORD_EVENTS_H

#include "report/run/process.h"

enum host_kind {
	HOST_RANGE,
	HOST_ASYNC, /* a start/end range: it may overlap others and end on another thread */
	HOST_CALL,  /* of CUDA */
	HOST_MARK,
	HOST_TENSOR, /* a block of PyTorch's allocator was allocated or freed */
	HOST_OOM,    /* PyTorch's allocator ran out of memory */
	HOST_COUNTER,
	HOST_OVERHEAD /* of CUPTI or the driver */
};

/* What happened on a thread of the program. */
struct host_event {
	uint64_t begin_ns, end_ns;
	uint64_t number; /* of events in the order of their begins: outer ranges first; not 0 */
	/* RANGE: its `number`. Others: that of the innermost open range. 0: it is a module, or
	 * there is none. */
	uint64_t range_number;
	union {
		/* RANGE, of an operator or a backward function. `number`: of the operator that
		 * created the backward function, for an operator with such a function its own, else
		 * 0. */
		struct {
			uint64_t number, begin_ns;
			uint32_t tid;    /* of that operator; 0: it is not known */
			uint32_t thread; /* number of its thread, from 1 */
		} forward;
		struct {
			uint64_t correlation; /* 0: none */
			uint64_t bytes, address;
			uint32_t record_kind; /* enum trace_kind */
			uint32_t result;
		} call;
		struct {
			uint64_t address, allocated, reserved;
			int64_t bytes;
		} tensor;
		struct {
			uint64_t bits; /* of an int64_t or a double */
			uint32_t type; /* enum trace_metric_type */
		} counter;
	} of;
	uint32_t tid;
	uint32_t node;  /* RANGE: its node of the trace. Others: of the innermost open range */
	uint32_t name;  /* for record_event_name */
	uint32_t stack; /* CALL, TENSOR: as in struct trace_call */
	uint32_t device;
	uint32_t depth; /* RANGE: number of open ranges around it */
	uint8_t kind;   /* enum host_kind */
	bool own_name;
	bool left_open;   /* it had no end */
	bool in_operator; /* range_number is that of an operator */
	bool has_work;    /* CALL: GPU work that is exported too has its correlation id */
};

/* What a GPU did: a KERNEL, GPU_COPY, GPU_SET or GPU_SYNC. */
struct gpu_event {
	uint64_t begin_ns, end_ns, arrival;
	/* Of its launch. `launch_tid` 0: the launch is not known. */
	uint64_t launch_begin_ns, range_number, operator_number;
	uint32_t launch_tid;
	uint32_t kind;   /* enum trace_kind */
	uint32_t device; /* also of a GPU_SYNC */
	/* GPU_SYNC that makes a stream wait: where the awaited event was recorded.
	 * waited_correlation 0: not known. */
	uint64_t waited_correlation;
	uint32_t waited_stream;
	/* 0: its CUDA stream did nothing else when it began; else the number of such operations,
	 * as it is where launches overlap (programmatic dependent launch, graphs). */
	uint32_t lane;
	union {
		struct trace_gpu gpu;
		struct trace_kernel kernel;
		struct trace_gpu_copy copy;
		struct trace_gpu_sync sync;
	} record;
};

/* One of the two is NULL. */
struct record_event {
	const struct host_event *host;
	const struct gpu_event *gpu;
};

/* What the lanes of a CUDA stream hold: operations, waits, or annotations. */
enum record_lane_kind { LANE_WORK, LANE_SYNC, LANE_ANNOTATION };

/* A lane of a CUDA stream: operations of which none overlaps another, or annotations that nest. */
struct record_lane {
	uint64_t end_ns; /* of its last operation so far */
	uint32_t device, stream, lane;
	enum record_lane_kind kind;
};

/* The time from the begin of the first to the end of the last operation of a CUDA stream among
 * those that were launched in one range and not in a range inside it (Kineto's
 * gpu_user_annotation). Operators and modules are not ranges here. */
struct gpu_annotation {
	uint64_t begin_ns, end_ns;
	uint64_t range_number; /* of the range, as in its HOST_RANGE */
	uint32_t name;         /* for record_annotation_name */
	uint32_t device, stream;
	/* 0: it nests in the operations of the stream's lane 0 and the annotations before it. Else
	 * the number of a lane of annotations, from 1. */
	uint32_t lane;
	bool own_name;
};

struct record_events;

struct record_events *record_events_read(
	const struct process *process, const struct options *options);
void record_events_free(struct record_events *events);

/* Sets `event` to the next event, valid until the next call. Returns false at the end. */
bool record_events_next(struct record_events *events, struct record_event *event);
/* Returns the next annotation, in the order of their begins, valid until the next call. NULL at
 * the end. To be called after the last event. */
const struct gpu_annotation *record_events_next_annotation(struct record_events *events);
/* Starts again at the first event. */
void record_events_rewind(struct record_events *events);

/* Returns the name of a host event. Valid as long as `events`. */
struct string_view record_event_name(
	const struct record_events *events, const struct host_event *event);
struct string_view record_annotation_name(
	const struct record_events *events, const struct gpu_annotation *annotation);
/* Returns the name of a kernel, with template arguments and parameters. That of an imported trace
 * is as its file has it. */
struct string_view record_kernel_name(
	struct record_events *events, const struct trace_kernel *kernel);

/* Returns the lanes of the events and annotations so far. */
const struct record_lane *record_events_lanes(const struct record_events *events, size_t *count);

/* Returns how many operations have no times and are left out. */
uint64_t record_events_untimed(const struct record_events *events);

#endif
