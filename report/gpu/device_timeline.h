/* SPDX-License-Identifier: MIT
 * timeline.h: when each device was busy: the union of its kernels, copies and sets over all streams, never their sum;
 * and what of that was computation (kernels and sets), communication (kernels of NCCL or RCCL) and copies.
 *
 * And the same of what was launched within the trace, and of each stream.
 *
 * Records of the GPU reach a trace long after they ran, in no strict order. So a pass over the trace comes first, in
 * which they are shown to the timeline: it finds each device's first and last moment and its totals, and notes when
 * each began and ended, out of memory, to answer later, for ever later moments, how long a device had been idle. Memory:
 * TIMELINE_AHEAD intervals. Records further out of order than that are counted (late); their time may then be missing
 * from busy.
 *
 *	timeline = timeline_new(reader, -1);
 *	for each event of a pass: timeline_show(timeline, &event);
 *	timeline_end(timeline);
 */
#ifndef PPERF_REPORT_GPU_DEVICE_TIMELINE_H
#define PPERF_REPORT_GPU_DEVICE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMELINE_AHEAD 65536u
#define TIMELINE_DEVICES 64u /* more are counted as the last */
#define TIMELINE_STREAMS 4096u

struct timeline_work {
	uint64_t records, sum_ns; /* timed work */
	uint64_t busy_ns;         /* the union */
	uint64_t kernel_ns, computation_ns, communication_ns,
		copy_ns;                   /* unions, too; kernels without sets */
	uint64_t exposed_communication_ns; /* while nothing was computed */
	uint64_t exposed_copy_ns;          /* while nothing was computed or communicated */
	uint64_t first_ns,
		last_ns; /* CLOCK_REALTIME; span = last - first, idle = span - busy - the device's unknown */
};

struct timeline_stream {
	uint32_t context, stream;
	uint64_t records, sum_ns, busy_ns;
};

struct timeline_device {
	uint32_t device;
	struct timeline_work all,
		launched; /* launched: but for work that is known to have no launch in the trace */
	uint64_t
		unknown_ns; /* of the span of all, not busy: while CUPTI was another client's (away.h) */
	struct timeline_stream *
		streams; /* by context, then number; those beyond TIMELINE_STREAMS are the last one */
	size_t stream_count;
};

/* The element of `devices` for a device: `count` of them are used, TIMELINE_DEVICES at most, of `bytes` each; the first
 * member of each is the device's number, a uint32_t. A device that has none gets the next one, or if all are used the
 * last one. */
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

struct handover_list;
struct timeline;
struct trace_event;
struct trace_reader;
struct trace_text;

/* A kernel of that name (mangled or not) is communication. */
bool timeline_is_communication(struct trace_text name);

/* Of what the reader is about to read from its beginning; device: only that one, -1 all. The reader must live until
 * timeline_end. */
struct timeline *timeline_new(struct trace_reader *reader, int64_t device);
/* Any event; what is not timed work of a GPU is passed over. */
void timeline_add(struct timeline *timeline, const struct trace_event *event);
/* All of it was shown. */
void timeline_end(struct timeline *timeline);
/* It was, in some pass. */
bool timeline_has_ended(const struct timeline *timeline);
void timeline_close(struct timeline *timeline); /* NULL is fine */

/* The same in a pass of its own. NULL: nothing was timed on a GPU. */
struct timeline *timeline_open(struct trace_reader *reader, int64_t device);
/* Moments are asked for from the first one on again, and nobody watches. */
void timeline_rewind(struct timeline *timeline);

/* By number of the device. */
size_t timeline_devices(const struct timeline *timeline, const struct timeline_device **devices);
uint64_t timeline_late_records(const struct timeline *timeline);

/* When CUPTI was another client's; NULL: never. */
const struct handover_list *timeline_handovers(const struct timeline *timeline);

/* How long, summed over the devices, each had been idle between its first moment and this one (ns since the trace's
 * start), its last one at most. Never called for an earlier moment than before. */
uint64_t timeline_idle(struct timeline *timeline, uint64_t now_ns);
/* The same for busy, and for what is not known. */
uint64_t timeline_busy(struct timeline *timeline, uint64_t now_ns);
uint64_t timeline_unknown(struct timeline *timeline, uint64_t now_ns);

/* From now on `gap` is told of each stretch in which a device had nothing to do (ns since the trace's start), as somebody
 * asks for later moments; UINT64_MAX: all. Of one device by time. What is not known (away) is still in it. */
void timeline_on_gap(struct timeline *timeline,
	void (*gap)(void *context, uint64_t from_ns, uint64_t to_ns), void *context);

#endif
