/* SPDX-License-Identifier: MIT
 * event_text.h: Prints the events of a trace as lines, which tests compare.
 *
 *	100 s1 push step            time, stream, what happens, its text
 *	150 s1   pop layer 110      two blanks for each range around it; when the range opened
 *	200 s1 gap 2 seen 150       so many payloads are missing; the last time the stream was seen
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

/* Opens the built trace, or `bytes`, from a file in memory. */
struct trace_reader *open_built(struct trace_builder *builder);
struct trace_reader *open_bytes(const void *bytes, size_t count);
/* Returns the message with which the reader refuses `bytes`, or NULL. Static. */
const char *refusal_of(const void *bytes, size_t count);

#endif
