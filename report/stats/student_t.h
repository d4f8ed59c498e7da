/* SPDX-License-Identifier: MIT
 * Computes tail probabilities of the t and F distributions, and the functions that fit a prior to
 * sample variances.
 *
 * Source of the formulas: Abramowitz and Stegun, Handbook of Mathematical Functions, chapters 6
 * and 26.
 */
#ifndef PPERF_REPORT_STATS_STUDENT_T_H
#define PPERF_REPORT_STATS_STUDENT_T_H

/* Returns the probability that |T| is at least |t|, where T has `freedom` degrees of freedom. */
double student_t_two_sided(double t, double freedom);
/* Returns the probability that F is at least `f`, with `above` and `below` degrees of freedom. */
double f_upper_tail(double f, double above, double below);

/* The first and the second derivative of log(gamma(x)), for x > 0. */
double digamma(double x);
double trigamma(double x);
/* Returns x > 0 with trigamma(x) = y, for y > 0. */
double trigamma_inverse(double y);

#endif
