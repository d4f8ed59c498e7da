/* SPDX-License-Identifier: MIT */
#include "report/analysis/memory_growth.h"
#include "report/analysis/step_stats.h"
#include "report/base/alloc.h"
#include "report/stats/sign_test.h"
#include "report/text/format_number.h"
#include <stdlib.h>

struct late_steps late_steps_of(size_t count)
{
	struct late_steps late = { .from = count / 3 };

	late.to = count ? count - 1 : 0;
	if (late.to < late.from)
		late.to = late.from;
	late.half = late.from + (late.to - late.from) / 2;
	return late;
}

/* Returns the median slope of the sum that the late steps left. */
static double rate_of(const struct left_by_step *steps, const struct late_steps *late)
{
	const size_t count = late->to - late->from;
	int64_t *sums = xcalloc((count + 1) * sizeof *sums), sum = 0;
	double rate;

	for (size_t i = 0; i < count; i++) {
		sum = saturating_add(sum, clamp_to_i64((long double)steps[late->from + i].bytes));
		sums[i] = sum;
	}
	rate = count >= 2 ? step_trend(sums, count) : 0;
	free(sums);
	return rate;
}

struct memory_growth memory_growth_test(
	const struct left_by_step *steps, size_t count, uint64_t replaced_bytes)
{
	const struct late_steps late = late_steps_of(count);
	struct memory_growth growth = { .late = late.to - late.from };
	uint64_t second_half = 0;

	for (size_t i = 0; i < count; i++) {
		growth.left_bytes += steps[i].bytes;
		if (i < late.from || i >= late.to)
			continue;
		growth.left += steps[i].bytes > 0;
		growth.late_blocks += steps[i].blocks;
		if (i >= late.half)
			second_half += steps[i].bytes;
	}
	growth.p = sign_test(growth.left, growth.late);
	growth.grows = growth.late >= 2 &&
		       (double)growth.left >= GROWTH_STEPS_SHARE * (double)growth.late &&
		       replaced_bytes <= second_half / 2;
	if (growth.grows)
		growth.rate = rate_of(steps, &late);
	growth.grows = growth.rate >= 1;
	return growth;
}
