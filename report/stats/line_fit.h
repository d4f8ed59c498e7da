/* SPDX-License-Identifier: MIT
 * Fits a line to points robustly (Theil-Sen): the slope is the median of the slopes between any two
 * points, the intercept the median of what remains. Up to a quarter of the points may be completely
 * wrong.
 */
#ifndef PPERF_REPORT_STATS_LINE_FIT_H
#define PPERF_REPORT_STATS_LINE_FIT_H

#include <stdbool.h>
#include <stddef.h>

#define LINE_FIT_POINTS_MIN 4u
#define LINE_FIT_POINTS_MAX 256u /* points that are used, evenly spaced in the order of x */

struct line_point {
	double x, y;
};

struct line_fit {
	double slope, intercept;
	/* The intercepts with the slopes that a tenth of all slopes exceeds, and that a tenth does
	 * not reach. */
	double intercept_low, intercept_high;
	double spread;   /* median distance of the points from the line, in y */
	double median_y; /* of the points */
};

/* Fits a line, and sorts the points by x. Returns false if there are fewer than
 * LINE_FIT_POINTS_MIN points, or all have one x. */
bool line_fit(struct line_point *points, size_t count, struct line_fit *fit);

#endif
