/* SPDX-License-Identifier: MIT
 * Builds flame graphs of the processes shown, or of two traces.
 *
 * | metric    | own value of a frame                                                              |
 * |-----------|-----------------------------------------------------------------------------------|
 * | gpu       | ns of kernels, copies and memsets, in the frame of the operation                  |
 * | cpu       | ns of its ranges or calls, without those inside; of all threads                   |
 * | idle      | ns in which the GPU was idle until the operation of the frame began               |
 * | sampled   | ns of CPU time by samples, in the functions that ran                              |
 * | sampled_wall | the same, with the time in which threads waited                                |
 * | allocated | bytes of tensors allocated in it and live at the peak of tensor memory            |
 * | reserved  | bytes of device memory allocated in it and live at the peak of device memory      |
 * | tensors   | bytes of all tensors allocated in it                                              |
 * | alloc     | bytes of all device memory allocated in it                                        |
 * | a counter | the sum of the increases that were reported in it                                 |
 */
#ifndef PPERF_REPORT_PAGE_FLAME_BUILD_H
#define PPERF_REPORT_PAGE_FLAME_BUILD_H

#include "report/page/flame_tree.h"

#define FLAME_COUNTERS_MAX 8u /* further counters are left out */

/* Builds the shapes that the traces have, of the metrics with a value above 0. With
 * options->no_fold there is no FLAME_FOLDED. The processes must outlive the result. */
struct flame *flame_build(const struct options *options, struct processes *processes);
/* Builds the differential flame graph of two processes. A frame is in both if the names and kinds
 * on its path are the same. */
struct flame *flame_build_diff(
	const struct options *options, struct processes *before, struct processes *after);
void flame_free(struct flame *flame);

/* Returns the kind of the frames of a node. */
enum flame_kind flame_kind_of(const struct node *node);
/* Keeps the metric with this key or title only. Returns false if there is none. */
bool flame_has_metric(const struct flame *flame, const char *name, size_t *metric);

#endif
