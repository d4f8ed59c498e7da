/* SPDX-License-Identifier: MIT
 * Writes a trace in pperf's format (collector/trace_format.h) from events that another tool
 * recorded. Ticks are nanoseconds since the start of the trace, so nothing is rounded.
 *
 *	struct trace_writer *writer = writer_new(fd, realtime_ns, pid);
 *
 *	writer_meta(writer, "rank", "3", 1);
 *	node = writer_node(writer, &(struct trace_node){
 *		.name = writer_name(writer, "step", 4), .kind = TRACE_NODE_RANGE });
 *	writer_stream(writer, tid);
 *	writer_push(writer, 100, node);
 *	writer_pop(writer, 200, 0);
 *	ok = writer_close(writer, duration, true);
 *
 * Streams are written one after the other, each with its events in time order. Memory: two blocks
 * and the open ranges.
 */
#ifndef PPERF_REPORT_TRACE_TRACE_WRITER_H
#define PPERF_REPORT_TRACE_TRACE_WRITER_H

#include "collector/trace_format.h"
#include <stdbool.h>

struct trace_writer;

/* Starts a trace in the empty file `fd`, which the caller keeps. `realtime_ns`: CLOCK_REALTIME
 * at time 0. */
struct trace_writer *writer_new(int fd, uint64_t realtime_ns, uint32_t pid);

/* Writes a META record. A value longer than TRACE_TEXT_MAX is cut. */
void writer_meta(struct trace_writer *writer, const char *key, const char *value, size_t length);
uint32_t writer_name(struct trace_writer *writer, const char *text, size_t length);
/* Writes a copy of `node`, whose head need not be filled. Returns the id of the node. */
uint32_t writer_node(struct trace_writer *writer, const struct trace_node *node);
/* Writes a dictionary record. `record` is complete except for size and kind in its head. */
void writer_dictionary(
	struct trace_writer *writer, enum trace_kind kind, void *record, size_t size);

/* Starts the stream of a thread. The events that follow belong to it, with times that never
 * decrease. */
void writer_stream(struct trace_writer *writer, uint32_t tid);
void writer_push(struct trace_writer *writer, uint64_t time, uint32_t node);
/* Closes the open range that has `inside` other open ranges inside it (0: the innermost). */
void writer_pop(struct trace_writer *writer, uint64_t time, uint32_t inside);
/* Writes a record that begins with struct trace_timed. Fills its size, kind and stamp. */
void writer_timed(struct trace_writer *writer, uint64_t time, enum trace_kind kind, void *record,
	size_t size);
/* Writes a GPU record, which has no stamp. Its times are CLOCK_REALTIME: convert them with
 * writer_realtime. */
void writer_plain(struct trace_writer *writer, enum trace_kind kind, void *record, size_t size);
uint64_t writer_realtime(const struct trace_writer *writer, uint64_t time);

/* Writes what is left, then frees the writer. `whole`: nothing is missing at the end. Returns
 * false if a write failed (errno). */
bool writer_close(struct trace_writer *writer, uint64_t duration, bool whole);

#endif
