/* SPDX-License-Identifier: MIT
 *
 * Reads what the GPUs of several ranks did over time, on the common clock of the view `ranks`, for
 * pictures. Each rank has two lanes, side by side:
 *
 * | lane              | series                                        | its sum is             |
 * |-------------------|-----------------------------------------------|------------------------|
 * | SCENE_RANK        | busy: not only communicating                  | gpu_busy_ns - exposed  |
 * |                   | exposed communication                         | in the view `ranks`    |
 * |                   | causes of idle time, as in the view `idle`    | gap_ns of the cause    |
 * | SCENE_COLLECTIVES | wait, transfer: of matched collectives        | in the view `ranks`    |
 * |                   | unmatched                                     | unmatched_ns in it     |
 *
 * The events of a lane of collectives are the parts of each of them. Their names are texts such as
 * `all-reduce, rank 2 last by 45.50 us`.
 *
 * - Times: nanoseconds since the first of the ranks' traces began, by the clock of the reference.
 *   An interval is where that clock has it, and as long as its own clock says. A rank that could
 *   not be aligned begins at 0.
 * - Memory: proportional to ranks. Passes: one over the GPU operations of each rank.
 */
#ifndef PPERF_REPORT_SCENE_SCENE_RANKS_H
#define PPERF_REPORT_SCENE_SCENE_RANKS_H

#include "report/analysis/ranks/rank_set.h"
#include "report/scene/scene.h"

#define SCENE_RANKS_COLUMNS 16384u         /* of all ranks; each has at least 33 */
#define SCENE_COLLECTIVE_EVENTS_MAX 20000u /* of all ranks; with more, the longest lists go */

/* Returns a scene whose process is that of the reference, to be freed by scene_free. Lane 2 * i is
 * that of ranks->all[i], lane 2 * i + 1 that of its collectives. The ranks are opened one after the
 * other; the reference stays open. `options`: those of ranks_read. */
struct scene *scene_ranks_read(const struct ranks *ranks, const struct options *options);

#endif
