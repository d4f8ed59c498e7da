/* SPDX-License-Identifier: MIT
 * Says what is missing where a source was not recorded, and what to do about the reason. The view
 * info and the first screen print it of a trace, and --legend all of it, where pperf doctor reads
 * it.
 */
#ifndef PPERF_REPORT_VIEWS_SOURCE_REASONS_H
#define PPERF_REPORT_VIEWS_SOURCE_REASONS_H

#include "report/base/text_builder.h"
#include "report/trace/trace_reader.h"

struct source_reason {
	const char *source; /* META source.NAME; "": every source */
	const char *reason; /* a part of the state that the library writes; "": any state */
	const char *remedy; /* what to do, as a clause */
};

/* The first that fits counts. */
extern const struct source_reason source_reasons[];
extern const size_t source_reason_count;

/* Returns the remedy for a state of META source.NAME, or NULL if there is none. */
const char *source_remedy(const char *source, struct trace_text state);

/* Adds one line, such as "→ no tensor memory: unset that variable", without its end. Adds nothing
 * if the source is complete or absent, or if it is partial and has no remedy. */
void source_add_advice(
	struct text_builder *line, const char *source, struct trace_text state, bool ascii);

#endif
