/* SPDX-License-Identifier: MIT */
#include "collector/sample/brake.h"

#include <stdbool.h>

#define SECOND_NS UINT64_C(1000000000)
#define WINDOW_NS (5 * SECOND_NS)

/* A process that sleeps has nearly no CPU time to compare with: less than 1/200 of a core is never
 * too much. */
static bool is_too_much(const struct sampler_cost *from, const struct sampler_cost *to)
{
	const uint64_t own_ns = to->own_ns - from->own_ns;

	return own_ns > (to->process_ns - from->process_ns) / 50 &&
	       own_ns > (to->now_ns - from->now_ns) / 200;
}

static bool is_cheap(const struct sampler_cost *from, const struct sampler_cost *to)
{
	return to->own_ns - from->own_ns <= (to->process_ns - from->process_ns) / 200;
}

enum brake_verdict brake_judge(struct brake *brake, const struct sampler_cost *now)
{
	enum brake_verdict verdict = BRAKE_KEEP;

	if (!brake->window.now_ns)
		brake->window = brake->last = *now;
	if (now->now_ns - brake->window.now_ns < WINDOW_NS) {
		/* Stays where it is from the fifth second on. */
		if (now->now_ns - brake->window.now_ns <= WINDOW_NS - SECOND_NS)
			brake->last = *now;
		return BRAKE_KEEP;
	}
	if (is_too_much(&brake->window, now) && is_too_much(&brake->last, now))
		verdict = BRAKE_SLOWER;
	else if (is_cheap(&brake->window, now))
		verdict = BRAKE_FASTER;
	brake->window = brake->last = *now;
	return verdict;
}
