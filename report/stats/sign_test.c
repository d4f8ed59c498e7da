/* SPDX-License-Identifier: MIT
 *
 * The terms of the binomial distribution are added from `positive` on. Each follows from the one
 * before, so only the first needs the logarithm of a factorial.
 */
#include "report/stats/sign_test.h"
#include <math.h>

double sign_test(size_t positive, size_t count)
{
	const double n = (double)count, k = (double)positive;
	double term, sum;

	if (!positive)
		return 1;
	if (positive > count)
		return 0;
	term = exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2));
	sum = term;
	for (size_t i = positive; i < count; i++) {
		term *= (double)(count - i) / (double)(i + 1);
		sum += term;
		if (term < sum * 1e-17 && i > count / 2)
			break;
	}
	return sum < 1 ? sum : 1;
}
