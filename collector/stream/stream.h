/* SPDX-License-Identifier: MIT
 * stream.h: what one thread records. Reserve, fill, commit: no lock, no malloc, and no system call but when a slot is full.
 *
 * Every function here works on the calling thread's own stream and may be called from any thread at any time, also before the file
 * exists (it is then made) and in a forked child (which gets a stream and a file of its own). From a signal handler that interrupts
 * pperf itself, stream_enter refuses and the event is counted.
 *
 *	if (!stream_enter())
 *		return;
 *	struct trace_mark *mark = stream_record(TRACE_MARK, sizeof *mark);
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

/* Once, before any thread records: what trace_file.h says of the settings. Creates no file. Without it nothing is ever recorded. */
void stream_configure(const struct trace_settings *settings);

/* Begins pperf's own work on this thread. false: it is already at work here (re-entered), or recording is off: leave it be. */
bool stream_enter(void);
void stream_leave(void);

/* The same without a stream: for work that only the dictionary sees. Creates no file. */
bool stream_enter_dictionary_only(void);

/* Room for a struct record of `size` bytes (a multiple of 8; texts may follow the struct), zeroed, with its head filled: kind, size, node =
 * the innermost open range; and for TIMED kinds stamp = now. NULL: no room, counted. Between stream_enter and stream_leave only, and nothing else may be recorded
 * between this and stream_commit. */
void *stream_record(enum trace_kind kind, size_t size);

/* The same with the stamp given (it must not lie before the stream's last one). */
void *stream_record_at(enum trace_kind kind, size_t size, uint64_t stamp);

/* Publishes what stream_record returned: from here on it survives the process. */
void stream_commit(void);

/* Around what is done for an event that is not recorded, the window being shut (window.h), and that nobody else counts. Between stream_enter and
 * stream_leave; the second gets what the first has said. */
uint64_t stream_begin_skipped_event(enum trace_skip_kind kind);
void stream_end_skipped_event(enum trace_skip_kind kind, uint64_t begin);

/* The innermost open range of this thread: 0 if none. Between stream_enter and stream_leave. */
uint32_t stream_node(void);

/* The kernel's id of this thread, cached. */
uint32_t stream_tid(void);

/* Seals what this thread has, gives its slot back. Called at the thread's end. */
void stream_end(void);

/* Around a fork, on the thread that forks; stream_forked in the child. A signal handler that has interrupted work on a stream may fork and its child
 * return from it: then that work ends in memory of no consequence. */
void stream_fork_prepare(void);
void stream_forked(void);

/* Seals this thread's slot and the dictionary's CRC at a clean end of the process. */
void stream_end_process(void);

#endif
