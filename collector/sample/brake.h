/* SPDX-License-Identifier: MIT
 * Decides whether the sampler costs too much. It may take 2 % of the process's CPU time over five
 * seconds. What it takes while a program starts is more, because the first samples of each function
 * cost the most. So the last second of the five must be too much as well.
 */
#ifndef PPERF_COLLECTOR_SAMPLE_BRAKE_H
#define PPERF_COLLECTOR_SAMPLE_BRAKE_H

#include <stdint.h>

/* Clocks at one moment, in nanoseconds. */
struct sampler_cost {
	uint64_t now_ns;     /* CLOCK_MONOTONIC */
	uint64_t own_ns;     /* CPU time of the sampler's thread */
	uint64_t process_ns; /* CPU time of the process, the sampler included */
};

/* Zeros at first. */
struct brake {
	struct sampler_cost window, last; /* when the five seconds and their last second began */
};

enum brake_verdict { BRAKE_KEEP, BRAKE_SLOWER, BRAKE_FASTER };

/* Judges the cost when five seconds have passed; before, the rate is to be kept. SLOWER: half of
 * the rate is to be taken. FASTER: a doubled rate would cost half of what is permitted at most.
 * Call it several times a second. */
enum brake_verdict brake_judge(struct brake *brake, const struct sampler_cost *now);

#endif
