/* SPDX-License-Identifier: MIT
 * large_range_trace.h: a trace of nothing but ranges, for measurements, and the least that could be
 * called a fold of the same events: 16 bytes an event in memory, a stack, a hash table of nodes,
 * count, total, self, shortest, longest.
 *
 * The events: ranges nested RANGE_TRACE_DEPTH deep, RANGE_TRACE_CHAINS chains of names, some 20 to
 * 50 ticks apart; about 5000 nodes. 4 bytes each in the trace.
 */
#ifndef PPERF_TESTS_SUPPORT_LARGE_RANGE_TRACE_H
#define PPERF_TESTS_SUPPORT_LARGE_RANGE_TRACE_H

#include <stddef.h>
#include <stdint.h>

enum { RANGE_TRACE_DEPTH = 5, RANGE_TRACE_CHAINS = 996 };

struct range_event {
	uint64_t stamp;
	uint32_t id, reserved; /* id: of the name; 0: the innermost range closes */
};

/* Returns `count` events, an even number, to be freed. A forked child does not inherit them, so
 * they do not count in its peak memory. Ends the program if there is no memory. */
struct range_event *range_trace_events(size_t count);
/* Writes the trace of `count` events and returns its bytes. With `outermost` all are inside one
 * more range, `whole_program`. */
uint64_t range_trace_write(const char *path, size_t count, int outermost);
/* Aggregates the events. Returns how many ranges have closed. */
uint64_t range_trace_reference(const struct range_event *events, size_t count);

#endif
