/* SPDX-License-Identifier: MIT
 *
 * Writes a scene as compact JSON, for the page and for tests: the hidden view `scene`.
 *
 *	SCENE  = {"whole": SPAN, "windows": [WINDOW], "nodes": {"id": [...], "parent": [...],
 *	          "name": [...]}, "strings": [...]}
 *	WINDOW = {"begin_ns", "end_ns", "kinds": ["worst step"], "step", "findings": [0],
 *	          "span": SPAN}
 *	SPAN   = {"origin_ns", "end_ns", "width_ns", "columns", "lanes": [LANE],
 *	          "memory": [MEMORY]}
 *	LANE   = {"kind": "gpu" | "stream" | "thread", "label", "device", "stream", "thread",
 *	          "rest", "events_seen", "in_whole", "series": [SERIES], "dominants": [DOMINANT],
 *	          "events": EVENTS}
 *	SERIES = {"name" (thread: "level"), "total_ns", "count", "at": [...], "ns": [...],
 *	          "counts": [...]}
 *	DOMINANT = {"level", "at": [...], "node": [...], "ns": [...]}
 *	EVENTS = {"kinds": [...], "begin_ns": [...], "duration_ns": [...], "kind": [...],
 *	          "node": [...], "name": [...]}
 *	MEMORY = {"device", "of": "tensors" | "device memory", "peak_bytes", "peak_ns",
 *	          "owners": [{"node", "remainder", "at_peak_bytes"}], "others_at_peak_bytes",
 *	          "before_at_peak_bytes", "at": [...], "at_ns": [...], "level": [...],
 *	          "reserved": [...], "reserved_max": [...], "owner": [[...], ...],
 *	          "others": [...], "before": [...]}
 *
 * - `at` lists the columns with a value. Of memory, it lists the columns whose bytes differ from
 *   those of the column before; a column that is not listed is as the last one that is.
 * - `at`, `begin_ns` and `at_ns` hold differences to the element before.
 * - `kind` of an event is an index in `kinds`: names as of series, or levels of a thread.
 * - `name` (of events and nodes) is an index in `strings`, `node` a number in nodes.id; 0 is none.
 * - Keys without a value are left out. `nodes` has the nodes that are used, and those around them.
 */
#ifndef PPERF_REPORT_SCENE_SCENE_JSON_H
#define PPERF_REPORT_SCENE_SCENE_JSON_H

#include "report/scene/scene.h"
#include "report/text/json_writer.h"

/* Writes the object SCENE. `write_name` writes a string of `strings`; NULL: json_write_text. */
void scene_json_write(struct json_writer *json, const struct scene *scene,
	void (*write_name)(struct json_writer *json, struct string_view name));

#endif
