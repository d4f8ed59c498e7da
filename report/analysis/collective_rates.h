/* SPDX-License-Identifier: MIT
 *
 * Compares the collectives of a process that are equal: of one kernel and of one size. What one of
 * them takes longer than the fastest equal one is not transfer. It waited for other ranks, or the
 * network was shared with others.
 *
 * Memory: 32 bytes for each collective whose size is known.
 */
#ifndef PPERF_REPORT_ANALYSIS_COLLECTIVE_RATES_H
#define PPERF_REPORT_ANALYSIS_COLLECTIVE_RATES_H

#include "report/run/process.h"

struct collective_rates {
	/* Of all collectives whose size is known: bytes of one rank, and the sum of their GPU
	 * time. */
	uint64_t count, bytes, ns;
	/* Time of collectives beyond that of the fastest equal one. */
	uint64_t excess_ns;
	/* The collective with most time beyond the fastest equal one. 0: none has an equal one. */
	uint64_t slowest_ns, fastest_ns, slowest_bytes;
};

/* Reads the activities of a process whose profile is built. */
struct collective_rates collective_rates_read(struct process *process);

#endif
