/* SPDX-License-Identifier: MIT
 * gate.h: the view `gate`, for CI: whether a run needs more of something than another, or than a baseline, by more than
 * is allowed.
 */
#ifndef PPERF_GATE_H
#define PPERF_GATE_H

struct options;

/* Returns the exit status. */
int gate_view(const struct options *options);

#endif
