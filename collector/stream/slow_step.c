/* SPDX-License-Identifier: MIT */
#include "collector/stream/slow_step.h"

#include "collector/file/ring.h"
#include "collector/file/trace_file.h"

#include <string.h>

static uint32_t limit_tenths;
static uint64_t durations[SLOW_STEP_HISTORY]; /* of the last steps */
static uint32_t steps;                        /* that ended */
static uint64_t step_began;

void slow_step_configure(uint32_t tenths)
{
	limit_tenths = tenths;
	steps = 0;
	step_began = 0;
}

/* Returns the median of the `count` last durations. */
static uint64_t median_of(uint32_t count)
{
	uint64_t sorted[SLOW_STEP_HISTORY];

	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = i;

		for (; at > 0 && sorted[at - 1] > durations[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = durations[i];
	}
	return sorted[count / 2];
}

uint64_t slow_step_begins(uint64_t now)
{
	const uint64_t took = step_began ? now - step_began : 0;
	const uint32_t count = steps < SLOW_STEP_HISTORY ? steps : SLOW_STEP_HISTORY;
	const uint64_t median = count >= SLOW_STEP_HISTORY_MIN ? median_of(count) : 0;
	bool slow = false;

	step_began = now;
	if (!took)
		return 0;
	slow = median && took / limit_tenths > median / 10;
	durations[steps++ % SLOW_STEP_HISTORY] = took;
	if (slow && ring_is_used() && trace_header())
		ring_stop(TRACE_STOP_SLOW_STEP, false, took, median);
	return slow ? median : 0;
}
