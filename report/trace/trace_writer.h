/* SPDX-License-Identifier: MIT
 * trace_write.h: a trace of our own format (collector/trace_format.h) made of what another tool has recorded, for the
 * reader to open. Ticks are nanoseconds since the trace's start; nothing is rounded.
 *
 *	struct trace_writer *writer = writer_new(fd, realtime_ns, pid);
 *
 *	writer_meta(writer, "rank", "3", 1);
 *	node = writer_node(writer, &(struct trace_node){ .name = writer_name(writer, "step", 4), .kind = TRACE_NODE_RANGE });
 *	writer_stream(writer, tid);
 *	writer_push(writer, 100, node);
 *	writer_pop(writer, 200, 0);
 *	ok = writer_close(writer, duration, true);
 *
 * One stream at a time, its events in order of their times. Memory: two blocks and what is open.
 */
#ifndef PPERF_REPORT_TRACE_TRACE_WRITER_H
#define PPERF_REPORT_TRACE_TRACE_WRITER_H

#include "collector/trace_format.h"
#include <stdbool.h>

struct trace_writer;

/* Into an empty file. realtime_ns: CLOCK_REALTIME at time 0. */
struct trace_writer *writer_new(int fd, uint64_t realtime_ns, uint32_t pid);

/* The dictionary. A text over TRACE_TEXT_MAX is cut. */
void writer_meta(struct trace_writer *writer, const char *key, const char *value, size_t length);
uint32_t writer_name(struct trace_writer *writer, const char *text, size_t length);
/* A place; its head is filled here. The id. */
uint32_t writer_node(struct trace_writer *writer, const struct trace_node *node);
/* Any record of the dictionary, whole but for the size in its head. */
void writer_dictionary(
	struct trace_writer *writer, enum trace_kind kind, void *record, size_t size);

/* A thread's events from here on. `time`: since the trace's start, never less than before. */
void writer_stream(struct trace_writer *writer, uint32_t tid);
void writer_push(struct trace_writer *writer, uint64_t time, uint32_t node);
/* The range closes that has `index` others inside (0: the innermost). */
void writer_pop(struct trace_writer *writer, uint64_t time, uint32_t index);
/* A record that begins with struct trace_timed; size, kind and stamp are filled here. */
void writer_timed(struct trace_writer *writer, uint64_t time, enum trace_kind kind, void *record,
	size_t size);
/* One of a GPU, without a stamp; its times are CLOCK_REALTIME: writer_realtime. */
void writer_plain(struct trace_writer *writer, enum trace_kind kind, void *record, size_t size);
uint64_t writer_realtime(const struct trace_writer *writer, uint64_t time);

/* Writes what is left and frees. whole: nothing is missing at the end. False: it could not be written (errno). */
bool writer_close(struct trace_writer *writer, uint64_t duration, bool whole);

#endif
