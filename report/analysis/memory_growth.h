/* SPDX-License-Identifier: MIT
 *
 * Tests whether memory grows from step to step, by what each step left allocated at the end.
 *
 * The late steps are those after the first third, without the last one: what that one allocated may
 * be freed by the step that would follow. Memory grows if
 *
 *   - at least GROWTH_STEPS_SHARE of the late steps left something, and
 *   - in the second half of the late steps no more than half of what was left replaced older
 *     memory of the same call path. A cache that is full leaves as much as it frees.
 *
 * The rate is the median slope (Theil-Sen) of the sum that the late steps left. `p` is that of the
 * sign test: how likely as many late steps left something if half of all steps did.
 */
#ifndef PPERF_REPORT_ANALYSIS_MEMORY_GROWTH_H
#define PPERF_REPORT_ANALYSIS_MEMORY_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GROWTH_STEPS_SHARE 0.8
#define GROWTH_P 0.01 /* above this, growth may be chance */

/* The late ones of `count` steps: from `from` on, before `to`. `half`: where their second half
 * begins. */
struct late_steps {
	size_t from, half, to;
};
struct late_steps late_steps_of(size_t count);

struct memory_growth {
	size_t late, left;    /* late steps; those of them that left something */
	uint64_t left_bytes;  /* what all steps left */
	uint64_t late_blocks; /* number of blocks that the late steps left */
	double rate;          /* bytes per step; 0: it does not grow */
	double p;
	bool grows;
};

/* What one step left. */
struct left_by_step {
	uint64_t bytes, blocks;
};

/* `steps`: one entry for each of `count` steps. `replaced_bytes`: what was freed in the second half
 * of the late steps, had been allocated before it, and had lived longer than two steps. */
struct memory_growth memory_growth_test(
	const struct left_by_step *steps, size_t count, uint64_t replaced_bytes);

/* Returns whether the growth is too regular for chance. */
static inline bool memory_growth_is_certain(const struct memory_growth *growth)
{
	return growth->grows && growth->p < GROWTH_P;
}

#endif
