/* SPDX-License-Identifier: MIT
 *
 * Writes a scene as compact JSON, for the page and for tests: the hidden view `scene`.
 *
 *	"scene": {
 *	  "strings": ["", "gemm", ...],            all names; others are indices of it
 *	  "nodes": {"id": [...], "parent": [...], "name": [...]},  of the call tree, those used
 *	  "whole": SPAN,
 *	  "windows": [{"begin_ns", "end_ns", "kinds": ["worst step"], "step", "findings": [0],
 *	               "span": SPAN}]
 *	}
 *	SPAN = {"origin_ns", "end_ns", "width_ns", "columns", "lanes": [LANE], "memory": [MEMORY]}
 *	LANE = {"kind": "gpu" | "stream" | "thread", "label", "device", "stream", "thread", "rest",
 *	        "events_seen",
 *	        "series": [{"name", "level", "total_ns", "count", "at": [...], "ns": [...],
 *	                    "counts": [...]}],
 *	        "dominants": [{"level", "at": [...], "node": [...], "ns": [...]}],
 *	        "events": {"begin_ns": [...], "duration_ns": [...], "node": [...], "name": [...],
 *	                   "kind": [...]}}
 *	MEMORY = {"device", "of": "tensors" | "device memory", "peak_bytes", "peak_ns",
 *	          "owners": [{"node", "remainder", "at_peak_bytes"}], "others_at_peak_bytes",
 *	          "before_at_peak_bytes", "at": [...], "at_ns": [...], "level": [...],
 *	          "reserved": [...], "reserved_max": [...], "owner": [[...], ...],
 *	          "others": [...], "before": [...]}
 *
 * `at` lists columns with a value. It and begin_ns hold differences to the value before. `kind` of
 * an event is an index of the lane's series names ("kinds"). Keys without a value are left out.
 */
#ifndef PPERF_REPORT_SCENE_SCENE_JSON_H
#define PPERF_REPORT_SCENE_SCENE_JSON_H

#include "report/scene/scene.h"
#include "report/text/json_writer.h"

/* Writes the object. */
void scene_json_write(struct json_writer *json, const struct scene *scene);

#endif
