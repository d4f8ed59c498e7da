/* SPDX-License-Identifier: MIT
 *
 * The hidden view `scene`, for tests: what pictures are drawn from, as JSON (scene_json.h). --help
 * does not list it, and its format may change at any time.
 */
#ifndef PPERF_REPORT_SUMMARY_SCENE_VIEW_H
#define PPERF_REPORT_SUMMARY_SCENE_VIEW_H

#include "report/run/options.h"

int scene_view(const struct options *options);

#endif
