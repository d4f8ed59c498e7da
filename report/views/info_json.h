/* SPDX-License-Identifier: MIT
 * info_json.h: one trace's `info` as a JSON object.
 */
#ifndef PPERF_REPORT_VIEWS_INFO_JSON_H
#define PPERF_REPORT_VIEWS_INFO_JSON_H

#include "report/views/info_collect.h"
#include "report/text/output.h"

void info_write_json(struct output *out, const struct info *info);

#endif
