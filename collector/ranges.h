/* SPDX-License-Identifier: MIT
 * ranges.h: the open ranges of a thread, and what opens and closes them, whoever asks (NVTX today).
 * Threads: any. Texts are copied during the call. Each function does its own stream_enter.
 */
#ifndef PPERF_RANGES_H
#define PPERF_RANGES_H

#include "trace_format.h"

/* An interned text or a domain: lives for ever, also in a forked child. Its address is the handle that a program holds. */
struct text {
	uint32_t name; /* 0: it did not get an id */
	uint32_t bytes;
	const char *chars; /* terminated, for convenience; may hold any bytes */
};

/* Of a range or mark. Zeros: none. */
struct range_attributes {
	uint32_t flags; /* enum trace_range_flag */
	uint32_t category, color, payload_type;
	uint64_t payload;
};

#define RANGE_REFUSED (-1)

/* Push: the level of the range just opened, outermost 0, in its domain; counted even if the record was lost. `attributes` may be NULL.
 * Pop: the level of the range just closed, RANGE_REFUSED if the domain has none open on this thread. domain: a name id, 0 the default. */
int range_push(uint32_t domain, const char *text, const struct range_attributes *attributes);
int range_push_text(uint32_t domain, const struct text *text, const struct range_attributes *attributes);
int range_pop(uint32_t domain);

/* A process-wide id, never 0; may be ended on any thread, once. */
uint64_t range_start(uint32_t domain, const char *text, size_t bytes, const struct range_attributes *attributes);
void range_end(uint64_t id);

void range_mark(uint32_t domain, const char *text, size_t bytes, const struct range_attributes *attributes);

#endif
