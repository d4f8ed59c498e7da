/* SPDX-License-Identifier: MIT
 *
 * Writes a trace of ranges only, for measurements, and aggregates the same events in the simplest
 * possible way as a reference.
 *
 * The reference has 16 bytes per event in memory, a stack, and a hash table of nodes with count,
 * total, self, shortest and longest time. The events are ranges nested RANGE_TRACE_DEPTH deep, in
 * RANGE_TRACE_CHAINS chains of names, 20 to 51 ticks apart. They have about 5000 nodes and take 4
 * bytes each in the trace.
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
