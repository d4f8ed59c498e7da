/* SPDX-License-Identifier: MIT
 * Records the events of one thread. An event reserves, fills and commits: no lock, no malloc, and a
 * system call only when a slot is full.
 * Every function works on the calling thread's own stream. It may be called from any thread at any
 * time. The process's first event creates the trace file. A forked child gets a file and streams of
 * its own. In a signal handler that interrupted pperf itself, stream_enter returns false and the
 * event is counted as lost.
 *
 *	if (!stream_enter())
 *		return;
 *	struct trace_range *mark = stream_record(TRACE_MARK, sizeof *mark);
 *	if (mark) {
 *		mark->name = id;
 *		stream_commit();
 *	}
 *	stream_leave();
 */
#ifndef PPERF_COLLECTOR_STREAM_STREAM_H
#define PPERF_COLLECTOR_STREAM_STREAM_H

#include "collector/trace_format.h"
#include <stdbool.h>

struct stream;
struct trace_settings;

/* Configures the collector; `settings` are those of trace_configure. Called once, before any thread
 * records. Creates no file. Without this call nothing is recorded. */
void stream_configure(const struct trace_settings *settings);

/* Begins pperf's work on this thread. Returns false if pperf is already working here (re-entry) or
 * recording is off. Then the caller does nothing, and does not call stream_leave. */
bool stream_enter(void);
void stream_leave(void);

/* Begins work that writes only to the dictionary: needs no stream and creates no file. Returns as
 * stream_enter does. */
bool stream_enter_dictionary_only(void);

/* Reserves a record of `size` bytes, a multiple of 8; texts may follow the struct. It is zeroed,
 * and its head has kind, size and the node of the innermost open range. TIMED kinds also have the
 * stamp. Returns NULL if there is no room; the event is then counted. Between stream_enter and
 * stream_leave. Nothing else may be recorded before stream_commit. */
void *stream_record(enum trace_kind kind, size_t size);

/* As stream_record, with a given `stamp`. It must not be before the stream's last one. */
void *stream_record_at(enum trace_kind kind, size_t size, uint64_t stamp);

/* Publishes the record that stream_record returned. From here on it survives the end of the
 * process. */
void stream_commit(void);

/* Enclose the handling of an event that is skipped because recording is paused, if nothing else
 * counts it. Between stream_enter and stream_leave. `begin`: what the first one returned. */
uint64_t stream_begin_skipped_event(enum trace_skip_kind kind);
void stream_end_skipped_event(enum trace_skip_kind kind, uint64_t begin);

/* Records that pperf spent `ticks` from `begin` on capturing a call stack. Between stream_enter and
 * stream_leave. */
void stream_write_stack_cost(uint64_t begin, uint64_t ticks);

/* Returns the node of this thread's innermost open range; 0 if there is none. Between stream_enter
 * and stream_leave. */
uint32_t stream_node(void);

/* Returns the kernel's id of this thread, which is cached. */
uint32_t stream_tid(void);

/* A position in this thread's slot, for records that are written only to measure their cost. */
struct stream_position {
	uint64_t used, last;
	uint32_t sequence;
};

/* Makes room for `bytes` and saves the position. Returns false if this thread has no stream, or no
 * room. */
bool stream_position_save(struct stream_position *position, uint64_t bytes);
/* Removes the records of this thread since the position, and returns the number of their events.
 * Returns 0 and removes nothing if the slot was sealed meanwhile. */
uint64_t stream_position_restore(const struct stream_position *position);

/* Seals this thread's slot and releases it. Called when the thread ends. */
void stream_end(void);

/* stream_fork_prepare is called before a fork, on the thread that forks, and stream_forked in the
 * child. They matter if a signal handler that interrupted pperf's work forks, and the child returns
 * from it. The interrupted work then ends in private memory that is never written to a file. */
void stream_fork_prepare(void);
void stream_forked(void);

/* Ends recording at a clean end of the process: seals this thread's slot and closes the dictionary,
 * whose blocks get their CRC. */
void stream_end_process(void);

#endif
