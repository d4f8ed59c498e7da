/* SPDX-License-Identifier: MIT
 *
 * Reads what a process did over time, for pictures: when each GPU was busy and why it was idle,
 * what ran on each CUDA stream, in which ranges each host thread was, and who held memory.
 *
 *	struct scene_window_list wanted = { .count = 0 };
 *
 *	scene_windows_add_usual(&wanted, process);     scene_windows.h
 *	struct scene *scene = scene_read(process, &wanted);
 *	... scene->whole.lanes[i].series[j].ns[column] ...
 *	scene_free(scene);
 *
 * A span is a part of the time axis with its own columns. `whole` is the run. `windows` are parts
 * that are shown in more detail. All columns of a span have the same width, a power of two. Of
 * what crosses the edge of a column, each column has its part. Of the whole run:
 *
 * | what                                 | is, to the nanosecond                                 |
 * |--------------------------------------|-------------------------------------------------------|
 * | GPU lane, series busy                | busy_ns of the device in the view `streams`           |
 * | GPU lane, series of a cause          | gap_ns of the device's cause in the view `idle`       |
 * | stream lanes, series of a category   | gpu_total_ns in the view `categories`, over all lanes |
 * | stream lane, all series              | gpu_total_ns of the stream in the view `streams`      |
 * | thread lane, series of level 0       | time of the thread in ranges, each nanosecond once    |
 * | memory lane, the highest column      | peak in the view `memory`, to the byte                |
 *
 * Idle, busy and GPU time that the clock of a GPU measured is placed by the clock of the host, and
 * keeps its length. So a column may have a few nanoseconds more than its width.
 *
 * Every lane has columns. Lanes of few events have all their events, too (struct scene_lane).
 *
 * - Times: nanoseconds since the start of the trace.
 * - Selection: as in the views. With --device other devices are left out. With --steps and
 *   PPERF_SCHEDULE only what counts is in the columns.
 * - Names: node is an index in process->profile->tree, name a text of process->texts.
 * - Memory: proportional to lanes and windows, at most some megabytes; independent of events.
 * - Passes: one over the trace, and two over its GPU operations and calls in temporary files.
 */
#ifndef PPERF_REPORT_SCENE_SCENE_H
#define PPERF_REPORT_SCENE_SCENE_H

#include "report/analysis/step_idle.h"
#include "report/scene/scene_windows.h"

#define SCENE_COLUMNS 2048u
#define SCENE_LEVELS 5u /* of nested ranges that a thread lane has: the outermost */
/* The lanes of a process. What other streams of a device, and other threads, did is summed in one
 * more lane each (scene_lane.is_rest). Those with the most time have lanes of their own. */
#define SCENE_STREAMS_MAX 32u
#define SCENE_THREADS_MAX 8u
#define SCENE_MEMORIES_MAX 16u
/* A lane with more events has none, only columns. If all lanes of a span have more than TOTAL, the
 * ones with most events lose them. */
#define SCENE_WHOLE_EVENTS_MAX 20000u
#define SCENE_WHOLE_EVENTS_TOTAL 60000u
#define SCENE_WINDOW_EVENTS_MAX 5000u
#define SCENE_WINDOW_EVENTS_TOTAL 10000u
#define SCENE_OWNERS_MAX 8u

enum scene_lane_kind { SCENE_GPU, SCENE_STREAM, SCENE_THREAD, SCENE_RANK, SCENE_COLLECTIVES };

/* scene_series.kind of a SCENE_GPU lane. A cause is SCENE_IDLE + idle_cause (step_idle.h). */
#define SCENE_BUSY 0u
#define SCENE_UNKNOWN 1u /* it is not known whether the GPU was busy */
#define SCENE_IDLE 2u
/* scene_series.kind of a SCENE_RANK lane (scene_ranks.h): those of a GPU, where busy time is
 * without this. */
#define SCENE_EXPOSED 1000u /* communicates and computes nothing */

/* scene_series.kind of a SCENE_COLLECTIVES lane. */
enum scene_collective_part { SCENE_WAIT, SCENE_TRANSFER, SCENE_UNMATCHED };

/* Time of one kind in each column. */
struct scene_series {
	/* SCENE_GPU: see above; SCENE_STREAM: category (categories_name of process->categories);
	 * SCENE_THREAD: level, 0 is outermost; SCENE_COLLECTIVES: enum scene_collective_part */
	uint32_t kind;
	/* Sums over the columns. count: operations, gaps, or ranges; of busy time intervals. */
	uint64_t total_ns, count;
	uint64_t *ns;     /* SCENE_COLUMNS */
	uint32_t *counts; /* of those that begin in the column */
};

/* The node that had most of the time of one level of a thread in one column. */
struct scene_dominant {
	uint64_t ns;   /* at least; exact if the column has three nodes or fewer */
	uint32_t node; /* 0: the thread was in no range of this level */
};

/* One operation, gap or range. */
struct scene_event {
	uint64_t begin_ns, duration_ns;
	/* SCENE_STREAM: the leaf of the call tree; SCENE_THREAD: the range; SCENE_GPU: where the
	 * host was late, as in the view `idle`. 0: none, or it does not count. */
	uint32_t node;
	/* SCENE_STREAM: kernel, copy or memset; SCENE_THREAD: the label of this range, with its
	 * numbers; SCENE_GPU: the operation that ended the gap. 0: not known. */
	uint32_t name;
	uint32_t kind; /* as in struct scene_series */
};

struct scene_lane {
	enum scene_lane_kind kind;
	uint32_t device; /* SCENE_GPU, SCENE_STREAM; SCENE_RANK: how many GPUs it has */
	uint32_t tid;    /* SCENE_THREAD */
	uint64_t stream; /* SCENE_STREAM: CUPTI's id */
	bool is_rest;    /* of all other streams of the device, or of all other threads */
	/* A name such as `GPU 0`, `stream 7 "copies"` or `thread 4711`; any bytes, terminated. */
	char *label;
	/* By kind. Only kinds that occur. Of a window, what is inside it; NULL where `events` has
	 * it. */
	struct scene_series *series;
	size_t series_count;
	/* SCENE_THREAD: [SCENE_LEVELS * SCENE_COLUMNS], by level, then column; else NULL */
	struct scene_dominant *dominants;
	/* All events of the lane in the span, by begin. NULL: there are too many, or none. Of a
	 * window, whole events that overlap it. */
	struct scene_event *events;
	size_t event_count; /* in `events` */
	/* Of a window: scene.whole.lanes has the events, so that neither `events` nor `series` is
	 * set here (SCENE_GPU: `series` is). */
	bool is_in_whole;
	uint64_t events_seen; /* also if `events` does not have them */
};

/* Who held memory in a column: all figures are of one moment, the first one at which the level was
 * highest. So owners + others + before add up to `level`. */
struct scene_memory_column {
	uint64_t at_ns;
	uint64_t level;    /* 0: nothing was held, or nothing is known yet */
	uint64_t reserved; /* device memory that the process held on the device */
	uint64_t owners[SCENE_OWNERS_MAX];
	uint64_t others; /* of no owner of the lane */
	uint64_t before; /* tensors that no record allocated, such as before the trace began */
	uint64_t reserved_max; /* the highest value in the column, not of this moment */
};

/* A part of the call tree that held memory at the peak. */
struct scene_owner {
	uint32_t node; /* what was allocated in it and below counts, except what is of another owner
			* below it. The same place in other steps and sections counts, too. */
	bool is_remainder; /* another owner of the lane is below it */
	uint64_t at_peak;
};

/* The memory of one device: of tensors if PyTorch's allocator was followed, else device memory. */
struct scene_memory {
	uint32_t device;
	bool is_tensors;
	bool has_reserved;
	uint64_t peak, peak_ns;                      /* as in the view `memory` */
	struct scene_owner owners[SCENE_OWNERS_MAX]; /* by bytes at the peak, descending */
	size_t owner_count;
	uint64_t others_at_peak, before_at_peak;
	struct scene_memory_column *columns; /* SCENE_COLUMNS */
};

/* A part of the time axis. Column i is from origin_ns + (i << shift) to the next one's begin. What
 * is before origin_ns counts in the first column. Columns beyond end_ns are empty. */
struct scene_span {
	uint64_t origin_ns, end_ns;
	unsigned shift;
	size_t columns; /* those that begin before end_ns; at most SCENE_COLUMNS */
	/* GPUs by number, each followed by its streams (those with most time first, the rest
	 * last), then threads (those with most time first). The same lanes in each span. */
	struct scene_lane *lanes;
	size_t lane_count;
	struct scene_memory *memories; /* by device; the owners are the same in each span */
	size_t memory_count;
};

struct scene {
	struct process *process;
	struct scene_span whole;
	struct scene_window *windows;    /* by begin */
	struct scene_span *window_spans; /* of each window */
	size_t window_count;
};

/* Reads the scene of a process whose profile is built. `wanted`: the windows; NULL: none. Windows
 * with the same interval become one. */
struct scene *scene_read(struct process *process, const struct scene_window_list *wanted);
void scene_free(struct scene *scene); /* NULL is allowed */
/* Frees the events of the whole run, so that only columns are left. The scene must have no
 * windows. */
void scene_drop_events(struct scene *scene);

/* Returns the name of a series of a lane: busy, unrecorded, a cause of idle time, or a category.
 * NULL: of a thread, where the kind is a level. */
const char *scene_series_name(
	const struct scene *scene, const struct scene_lane *lane, uint32_t kind);

#endif
