/* SPDX-License-Identifier: MIT
 * event_text.h: Prints the events of a trace as lines, which tests compare.
 *
 * Prints the events of a trace as lines, so that a test can state what it expects.
 *
 *	100 s1 push step            time, stream, kind, text
 *	150 s1   pop layer 110      two blanks per enclosing range; when the range opened
 *	200 s1 gap 2 seen 150       number of missing payloads; last time the stream was seen
 *	200 s1 unended step 100 seen 150
 *	300 s1 end
 *
 * CLOCK records are left out. Everything here fails the test with a sentence when a trace cannot be
 * read.
 */
#ifndef PPERF_TESTS_SUPPORT_EVENT_TEXT_H
#define PPERF_TESTS_SUPPORT_EVENT_TEXT_H

#include "report/trace/trace_reader.h"
#include "tests/support/trace_builder.h"

/* Returns the lines of all events. The caller frees them. */
char *events_to_text(struct trace_reader *reader);

/* Opens the trace that was built, from a file in memory. */
struct trace_reader *open_built(struct trace_builder *builder);
struct trace_reader *open_bytes(const void *bytes, size_t count);
/* Returns why the bytes are rejected, in a static buffer, or NULL if they are accepted. */
const char *refusal_of(const void *bytes, size_t count);

#endif
