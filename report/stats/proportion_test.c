/* SPDX-License-Identifier: MIT */
#include "report/stats/proportion_test.h"

#include <math.h>

struct change_test proportion_test(const double share[2], const double count[2])
{
	struct change_test result = { .p = 1, .shift = share[1] - share[0] };
	const double both = count[0] + count[1];
	const double pooled = both > 0 ? (share[0] * count[0] + share[1] * count[1]) / both : 0;
	const double deviation = sqrt(pooled * (1 - pooled) * (1 / count[0] + 1 / count[1]));
	const double expected = fmin(pooled, 1 - pooled) * fmin(count[0], count[1]);

	if (expected < PROPORTION_EXPECTED_MIN)
		return result;
	result.tested = true;
	result.p = erfc(fabs(result.shift) / deviation / sqrt(2));
	return result;
}
