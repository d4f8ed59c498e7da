/* SPDX-License-Identifier: MIT
 * Declares what the files of the scene share while it is read.
 */
#ifndef PPERF_REPORT_SCENE_SCENE_INTERNAL_H
#define PPERF_REPORT_SCENE_SCENE_INTERNAL_H

#include "report/scene/scene.h"

#define SCENE_SPANS_MAX (SCENE_WINDOWS_MAX + 1u) /* the whole run first, then the windows */
#define SCENE_CANDIDATES 4u

/* The nodes that may have most of the time of a level in a column. Holds the heaviest nodes in one
 * pass (Misra and Gries): each node with more than a fifth of the time is among them, and `ns` is
 * at most a fifth of the time too low. */
struct scene_candidates {
	uint64_t ns[SCENE_CANDIDATES];
	uint32_t node[SCENE_CANDIDATES];
};

/* A lane while it is read. */
struct lane_builder {
	struct scene_lane *lane;
	size_t series_room, event_room;
	/* SCENE_THREAD: by level, SCENE_COLUMNS each; NULL: nothing yet */
	struct scene_candidates *candidates[SCENE_LEVELS];
	bool has_too_many; /* its events were dropped */
};

/* A span while it is read. */
struct span_builder {
	struct scene_span *span;
	struct lane_builder *lanes;
	/* Only what is inside is added. Otherwise the first and the last column have the rest. */
	bool is_window;
	size_t events, events_max, lane_events_max; /* events: kept in all lanes */
};

/* Something that happened on a lane. `length_ns` may differ from the interval by what two clocks
 * differ. */
struct scene_occurrence {
	uint64_t begin_ns, end_ns, length_ns;
	uint32_t node, name, kind;
	bool is_event; /* false: only columns have it */
};

/* Returns the index of the column at `at_ns`; before and after the span that of the first and the
 * last one. */
size_t scene_column_at(const struct scene_span *span, uint64_t at_ns);
/* Sets the width of the columns for the time from `begin_ns` to `end_ns`. */
void scene_span_begin(struct scene_span *span, uint64_t begin_ns, uint64_t end_ns);
/* Adds `what` to lane `lane` of the span. */
void span_builder_add(
	struct span_builder *builder, size_t lane, const struct scene_occurrence *what);
/* Sorts, and selects the dominant nodes. */
void span_builder_finish(struct span_builder *builder);
void scene_span_free(struct scene_span *span);

struct memory_builder;

/* Makes the memory lanes of each span, for the devices that have memory. */
struct memory_builder *memory_builder_new(
	struct process *process, struct span_builder *spans, size_t span_count);
void memory_builder_restart(struct memory_builder *memory);
void memory_builder_add(struct memory_builder *memory, const struct observed_memory *seen);
/* Which of the tensors so far are still held is not known. */
void memory_builder_forget_tensors(struct memory_builder *memory);
void memory_builder_finish(struct memory_builder *memory);
void memory_builder_free(struct memory_builder *memory);

/* Selects up to SCENE_OWNERS_MAX nodes that together held most of `at_peak` (bytes by node, without
 * the nodes below; `tree->count` elements). Begins with the root and replaces the node with most
 * bytes by those of its descendants that branch, while they fit. A node below OWNER_MIN_PERCENT of
 * the whole is no owner. Returns the number, by bytes, descending. */
size_t scene_owners_select(const struct tree *tree, const uint64_t *at_peak,
	struct scene_owner owners[SCENE_OWNERS_MAX]);

#endif
