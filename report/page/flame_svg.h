/* SPDX-License-Identifier: MIT
 * Draws one metric of a flame graph as an SVG file without a script, for documents and for CI.
 * Each frame has a <title> with its path and value, which browsers show on hover.
 */
#ifndef PPERF_REPORT_PAGE_FLAME_SVG_H
#define PPERF_REPORT_PAGE_FLAME_SVG_H

#include "report/page/flame_tree.h"
#include "report/text/output.h"

/* `title`: foreign text, what was recorded. `metric`: index of flame.metrics. Where most of a
 * metric of time is outside of the steps, draws the steps only and removes the other values, unless
 * `is_whole`. */
void flame_svg_write(struct output *out, struct flame *flame, enum flame_shape shape, size_t metric,
	const char *title, bool is_whole, bool iec);

#endif
