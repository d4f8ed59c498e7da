/* SPDX-License-Identifier: MIT
 * Computes when each device was busy: the union, never the sum, of its kernels, copies and memsets
 * over all CUDA streams. The busy time is split into computation (kernels and memsets),
 * communication (kernels of the category communication, see work_categories.h) and copies. It is
 * also computed for each CUDA stream, and for the work that was launched within the trace.
 *
 * GPU records reach a trace long after the work ran, and in no strict order. The timeline is
 * therefore built in one pass over the trace, which finds each device's first and last time and its
 * totals. That pass also saves when each device was busy, in a temporary file. With these times it
 * can later return how long a device had been idle, for ever later times.
 *
 * Memory: TIMELINE_AHEAD intervals. Records that are further out of order are counted
 * (timeline_late_records). Their time may be missing from the busy time.
 *
 *	timeline = timeline_new(reader, -1, categories);
 *	reader_rewind(reader);
 *	for each event of a pass that timeline_needs: timeline_add(timeline, &event);
 *	timeline_end(timeline);
 */
#ifndef PPERF_REPORT_GPU_DEVICE_TIMELINE_H
#define PPERF_REPORT_GPU_DEVICE_TIMELINE_H

#include "collector/trace_format.h"
#include "report/gpu/unknown_time.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMELINE_AHEAD 65536u
#define TIMELINE_DEVICES 64u /* further devices are counted as the last one */
#define TIMELINE_CUDA_STREAMS 4096u

struct timeline_work {
	uint64_t records, sum_ns; /* timed GPU work */
	uint64_t busy_ns;         /* union */
	/* These are unions too. kernel_ns does not include memsets. */
	uint64_t kernel_ns, computation_ns, communication_ns, copy_ns;
	uint64_t exposed_communication_ns; /* while nothing was computed */
	uint64_t exposed_copy_ns;          /* while nothing was computed or communicated */
	/* CLOCK_REALTIME. Span = last - first, idle = span - busy - the device's unknown_ns. */
	uint64_t first_ns, last_ns;
};

struct timeline_cuda_stream {
	uint32_t context, stream;
	uint64_t records, sum_ns, busy_ns;
};

struct timeline_device {
	uint32_t device;
	/* launched: without work that is known to have no launch in the trace */
	struct timeline_work all, launched;
	/* The part of the span of `all` in which it is unknown whether the device was busy, and
	 * how much of it is due to handovers of CUPTI. The part of the span of `launched`. */
	uint64_t unknown_ns, unknown_handover_ns, unknown_launched_ns;
	struct unknown_time unknown;
	/* Sorted by context, then stream. CUDA streams beyond TIMELINE_CUDA_STREAMS are added to
	 * the last one. */
	struct timeline_cuda_stream *streams;
	size_t stream_count;
};

/* Returns the element of `devices` for a device. `count` elements of `bytes` each are used, at most
 * TIMELINE_DEVICES. The first member of an element is the device's number, a uint32_t. A device
 * without an element gets the next one, or the last one if all are used. */
static inline void *device_slot(void *devices, size_t *count, size_t bytes, uint32_t device)
{
	char *at = devices, *end = at + *count * bytes;

	while (at < end && *(uint32_t *)(void *)at != device)
		at += bytes;
	if (at == end && *count == TIMELINE_DEVICES)
		return end - bytes;
	if (at == end) {
		*(uint32_t *)(void *)at = device;
		++*count;
	}
	return at;
}

struct categories;
struct timeline;
struct trace_event;
struct trace_reader;

/* Starts a timeline of `device`, or of all devices if it is -1. Reads `reader` for handovers, so
 * rewind it before the pass. `reader` and `categories` must live until timeline_end. `categories`
 * NULL: no kernel is communication. */
struct timeline *timeline_new(
	struct trace_reader *reader, int64_t device, const struct categories *categories);
/* Whether timeline_add uses events of `kind`: timed GPU work and graph launches. */
static inline bool timeline_needs(uint32_t kind)
{
	return kind == TRACE_KERNEL || kind == TRACE_GPU_COPY || kind == TRACE_GPU_SET ||
	       kind == TRACE_GRAPH_LAUNCH;
}
/* Adds an event that it needs. */
void timeline_add(struct timeline *timeline, const struct trace_event *event);
/* Ends the pass: all events were added. */
void timeline_end(struct timeline *timeline);
/* Returns true after timeline_end. */
bool timeline_has_ended(const struct timeline *timeline);
void timeline_free(struct timeline *timeline); /* NULL is allowed */

struct value_writer;
struct value_reader;
/* Writes a timeline without the times of its GPU operations, after timeline_end. */
void timeline_write(const struct timeline *timeline, struct value_writer *writer);
/* Reads such a timeline of the trace of `reader`, which must outlive it. The first timeline_rewind
 * makes a pass over the trace for the times. Never NULL; check `from`. */
struct timeline *timeline_read(
	struct trace_reader *reader, int64_t device, struct value_reader *from);

/* Builds a timeline with a pass of its own, and rewinds `reader` afterwards. Returns NULL if no
 * GPU work was timed. */
struct timeline *timeline_open(
	struct trace_reader *reader, int64_t device, const struct categories *categories);
/* Starts again at the first time, and removes the callback of timeline_on_gap. */
void timeline_rewind(struct timeline *timeline);

/* Sets `devices` to the devices, sorted by number. Returns how many there are. */
size_t timeline_devices(const struct timeline *timeline, const struct timeline_device **devices);
uint64_t timeline_late_records(const struct timeline *timeline);

/* Returns how much of the time from `from_ns` to `to_ns` it is unknown whether `device` was busy.
 * After timeline_end. `timeline` may be NULL: 0. */
uint64_t timeline_unknown_within(const struct timeline *timeline, uint32_t device,
	enum handover_axis axis, uint64_t from_ns, uint64_t to_ns);

/* Sets the times, in ns since the start of the trace, at which the first work of a device begins
 * and its last ends. `index`: row in timeline_devices. After timeline_end. */
void timeline_device_span(
	const struct timeline *timeline, size_t index, uint64_t *first_ns, uint64_t *last_ns);

/* Returns how long each device had been idle, summed over the devices. Counts from a device's
 * first time to `now_ns` or its last time, in ns since the start of the trace. `now_ns` must
 * never decrease from call to call, until timeline_rewind. */
uint64_t timeline_idle(struct timeline *timeline, uint64_t now_ns);
/* These two return the busy and the unknown time up to `now_ns`, under the same rules. */
uint64_t timeline_busy(struct timeline *timeline, uint64_t now_ns);
uint64_t timeline_unknown(struct timeline *timeline, uint64_t now_ns);

/* Sets a callback for each interval in which a device had no work. It is called while later
 * calls of timeline_idle or timeline_busy advance. A call with UINT64_MAX reports all intervals.
 * They come in time order per device, in ns since the start of the trace. Unknown time is
 * included. */
void timeline_on_gap(struct timeline *timeline,
	void (*gap)(void *context, uint32_t device, uint64_t from_ns, uint64_t to_ns),
	void *context);

#endif
