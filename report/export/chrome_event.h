/* SPDX-License-Identifier: MIT
 * Writes the objects of a Chrome trace: events with arguments, as PyTorch's profiler (Kineto)
 * names them.
 *
 * In an object, what is equal in many events comes first, then the ids, then time and duration: a
 * compressor then finds one long match instead of several short ones. That makes a .json.gz of a
 * training program 12 % smaller than with the times before the arguments.
 */
#ifndef PPERF_REPORT_EXPORT_CHROME_EVENT_H
#define PPERF_REPORT_EXPORT_CHROME_EVENT_H

#include "report/export/record_events.h"
#include "report/text/output.h"

struct chrome {
	struct output *out;
	const struct process *process;
	struct record_events *events;
	uint64_t shift_ns; /* added to the process's times: its start after the file's zero */
	uint64_t at_ns, duration_ns; /* of the event being written */
	bool has_duration;
	uint32_t pid;
	uint64_t first_id;      /* added to ids of arrows, unique in the file */
	uint64_t first_gpu_pid; /* GPU n has the pid first_gpu_pid + n */
	bool has_args;          /* the event being written has an argument */
	uint64_t event_count;
	bool groups_written[64]; /* by number of the CUDA stream, see chrome_gpu.c */
};

/* Begins an event: its phase, category (NULL: none), name, pid, tid and time. */
void chrome_begin(struct chrome *chrome, char phase, const char *category, struct string_view name,
	uint64_t pid, uint64_t tid, uint64_t at_ns);
/* Sets the duration of a phase X event. */
void chrome_duration(struct chrome *chrome, uint64_t duration_ns);
/* Adds another member of the event, before any id and argument. */
void chrome_member(struct chrome *chrome, const char *json);
/* Adds the id of an arrow or a start/end range, after any other member. */
void chrome_id(struct chrome *chrome, uint64_t id);
/* Each adds an argument. chrome_arg_begin writes the key only; the caller writes the value. */
void chrome_arg_begin(struct chrome *chrome, const char *key);
void chrome_arg(struct chrome *chrome, const char *key, uint64_t value);
void chrome_arg_signed(struct chrome *chrome, const char *key, int64_t value);
void chrome_arg_text(struct chrome *chrome, const char *key, struct string_view text);
void chrome_arg_string(struct chrome *chrome, const char *key, const char *string);
void chrome_arg_triple(struct chrome *chrome, const char *key, const uint32_t values[3]);
/* Adds the argument `Call stack` if the stack has Python frames. */
void chrome_arg_stack(struct chrome *chrome, uint32_t stack);
void chrome_end(struct chrome *chrome);

/* Writes nanoseconds as microseconds with up to three decimals, without zeros at the end. */
void chrome_put_microseconds(struct output *out, uint64_t ns);

struct string_view chrome_view(const char *string);

/* Writes an end of the arrow from a launch to its work: 's' the begin, 'f' the end. A launch of a
 * graph has one begin and several ends. */
void chrome_put_arrow(struct chrome *chrome, char phase, uint64_t pid, uint64_t tid,
	uint64_t correlation, uint64_t at_ns);

/* Writes what happened on a thread of the program. */
void chrome_put_host(struct chrome *chrome, const struct host_event *event);
/* Writes GPU work with the end of the arrow from its launch, or a wait of a CUDA stream. */
void chrome_put_gpu(struct chrome *chrome, const struct gpu_event *gpu);
void chrome_put_annotation(struct chrome *chrome, const struct gpu_annotation *annotation);
/* The tid of a CUDA stream's lane. */
uint64_t chrome_stream_tid(uint32_t stream, uint32_t lane, enum record_lane_kind kind);

#endif
