/* SPDX-License-Identifier: MIT */
#include "report/stats/student_t.h"
#include <math.h>

#define FRACTION_TERMS_MAX 500
#define FRACTION_PRECISION 1e-14
#define TINY 1e-300
/* From here on the asymptotic series of digamma and trigamma have 12 exact digits. */
#define SERIES_FROM 12.0

/* Keeps a term of the continued fraction away from 0, by which the next step divides. */
static double away_from_zero(double value)
{
	return fabs(value) < TINY ? TINY : value;
}

/* Evaluates the continued fraction of the incomplete beta function (A&S 26.5.8) by Lentz's
 * method. It converges quickly for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), value = d;

	for (int m = 1; m <= FRACTION_TERMS_MAX; m++) {
		const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
			     odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));

		d = 1 / away_from_zero(1 + even * d);
		c = away_from_zero(1 + even / c);
		value *= d * c;
		d = 1 / away_from_zero(1 + odd * d);
		c = away_from_zero(1 + odd / c);
		value *= d * c;
		if (fabs(d * c - 1) < FRACTION_PRECISION)
			break;
	}
	return value;
}

/* Returns the regularized incomplete beta function I_x(a, b). */
static double incomplete_beta(double x, double a, double b)
{
	double front;

	if (x <= 0)
		return 0;
	if (x >= 1)
		return 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
					 : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_t_two_sided(double t, double freedom)
{
	return incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5);
}

double f_upper_tail(double f, double above, double below)
{
	return incomplete_beta(below / (below + above * f), below / 2, above / 2);
}

double digamma(double x)
{
	double below = 0, square;

	while (x < SERIES_FROM) {
		below += 1 / x;
		x += 1;
	}
	square = 1 / (x * x);
	return log(x) - 0.5 / x - square * (1.0 / 12 - square * (1.0 / 120 - square / 252)) - below;
}

double trigamma(double x)
{
	double below = 0, square;

	while (x < SERIES_FROM) {
		below += 1 / (x * x);
		x += 1;
	}
	square = 1 / (x * x);
	return (1 + 0.5 / x + square * (1.0 / 6 - square * (1.0 / 30 - square / 42))) / x + below;
}

double trigamma_inverse(double y)
{
	double low = 1e-6, high = 1e7;

	for (int i = 0; i < 100; i++) { /* trigamma falls, and 10^13 is less than 2^100 */
		const double middle = sqrt(low * high);

		if (trigamma(middle) > y)
			low = middle;
		else
			high = middle;
	}
	return sqrt(low * high);
}
