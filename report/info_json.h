/* SPDX-License-Identifier: MIT
 * info_json.h: one trace's `info` as a JSON object.
 */
#ifndef PPERF_INFO_JSON_H
#define PPERF_INFO_JSON_H

#include "report/info_collect.h"
#include "report/out.h"

void info_write_json(struct out *out, const struct info *info);

#endif
