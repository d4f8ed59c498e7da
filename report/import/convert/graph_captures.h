/* SPDX-License-Identifier: MIT
 * Places the GPU work of CUDA graph launches where it was captured, by a second file that has the
 * capture. vLLM and sglang write such pairs: one file of the captures, one of the replays.
 *
 * A capture is the sequence of launches, copies and memsets between cudaStreamBeginCapture and
 * cudaStreamEndCapture of a thread. A graph launch matches it if the work of the launch has the
 * same number, kinds and, where the capture has them, kernel names, in the order of starts. If only
 * the order differs, the first operation of a name is the first captured call of that name, and so
 * on. A launch that matches captures with different ranges is left as it is.
 *
 * The ranges that were open around the capture are left out.
 */
#ifndef PPERF_REPORT_IMPORT_CONVERT_GRAPH_CAPTURES_H
#define PPERF_REPORT_IMPORT_CONVERT_GRAPH_CAPTURES_H

#include "report/import/convert/event_rows.h"

struct graph_captures;
struct conversion;

/* Finds the captures in `rows`, whose contents move into the result. */
struct graph_captures *graph_captures_new(const struct event_rows *rows);
void graph_captures_free(struct graph_captures *captures); /* NULL is allowed */
/* Returns the number of captures with at least one call. */
size_t graph_captures_count(const struct graph_captures *captures);

/* Sets graph_node of the GPU rows of matching launches, and writes the nodes to the dictionary.
 * Needs conversion->owners. Does nothing if imported->captures is NULL. */
void convert_graph_captures(struct conversion *conversion);

#endif
