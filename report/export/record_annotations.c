/* SPDX-License-Identifier: MIT
 *
 * Annotations of GPU work. GPU work is read by correlation id, so that of one launch sequence
 * follows each other: it becomes one piece. The pieces are sorted by range and CUDA stream, joined,
 * and sorted by their begins.
 */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/export/record_events_internal.h"

#define PIECES_IN_MEMORY 8192u

static int compare_pieces(const void *a, const void *b)
{
	const struct gpu_annotation *left = a, *right = b;

	if (left->range_number != right->range_number)
		return COMPARE(left->range_number, right->range_number);
	if (left->device != right->device)
		return COMPARE(left->device, right->device);
	if (left->stream != right->stream)
		return COMPARE(left->stream, right->stream);
	return COMPARE(left->begin_ns, right->begin_ns);
}

/* Outer ranges have smaller numbers. */
static int compare_annotations(const void *a, const void *b)
{
	const struct gpu_annotation *left = a, *right = b;

	if (left->begin_ns != right->begin_ns)
		return COMPARE(left->begin_ns, right->begin_ns);
	if (left->end_ns != right->end_ns)
		return COMPARE(right->end_ns, left->end_ns);
	return compare_pieces(a, b);
}

void annotations_begin(struct record_events *events)
{
	static const char what[] = "the annotations of GPU work";
	const size_t size = sizeof(struct gpu_annotation);

	events->pieces = external_sort_new(size, PIECES_IN_MEMORY, compare_pieces, what);
	events->annotations = external_sort_new(size, PIECES_IN_MEMORY, compare_annotations, what);
}

/* Makes `whole` cover `piece` too, if both are of one range and CUDA stream. */
static bool extend(struct gpu_annotation *whole, const struct gpu_annotation *piece)
{
	if (whole->range_number != piece->range_number || whole->device != piece->device ||
		whole->stream != piece->stream)
		return false;
	if (piece->begin_ns < whole->begin_ns)
		whole->begin_ns = piece->begin_ns;
	if (piece->end_ns > whole->end_ns)
		whole->end_ns = piece->end_ns;
	return true;
}

static void put_piece(struct external_sort *sort, const struct gpu_annotation *piece)
{
	if (piece->range_number)
		*(struct gpu_annotation *)external_sort_add(sort) = *piece;
}

void annotations_add(struct record_events *events, const struct gpu_event *gpu,
	const struct record_annotation *annotation)
{
	const struct gpu_annotation added = { .begin_ns = gpu->begin_ns,
		.end_ns = gpu->end_ns,
		.range_number = annotation->number,
		.name = annotation->name,
		.own_name = annotation->own_name,
		.device = gpu->device,
		.stream = gpu->record.gpu.stream };

	if (!added.range_number || extend(&events->piece, &added))
		return;
	put_piece(events->pieces, &events->piece);
	events->piece = added;
}

void annotations_join(struct record_events *events)
{
	struct gpu_annotation whole = { .range_number = 0 };
	const struct gpu_annotation *piece;

	put_piece(events->pieces, &events->piece);
	external_sort_rewind(events->pieces);
	for (; (piece = external_sort_peek(events->pieces)); external_sort_next(events->pieces)) {
		if (extend(&whole, piece))
			continue;
		put_piece(events->annotations, &whole);
		whole = *piece;
	}
	put_piece(events->annotations, &whole);
	external_sort_free(events->pieces);
}

/* ---- reading ---- */

/* Whether operations of the stream overlap, so that ends of annotations may cross them. */
static bool has_many_lanes(
	const struct record_events *events, const struct gpu_annotation *annotation)
{
	for (size_t i = 0; i < events->lane_count; i++) {
		const struct record_lane *lane = &events->lanes[i];

		if (lane->kind == LANE_WORK && lane->lane && lane->device == annotation->device &&
			lane->stream == annotation->stream)
			return true;
	}
	return false;
}

/* Whether an annotation nests in those that are open on its lane. */
static bool nests(const struct record_events *events, const struct gpu_annotation *annotation)
{
	for (size_t i = 0; i < events->open_count; i++) {
		const struct gpu_annotation *open = &events->open_annotations[i];

		if (open->device == annotation->device && open->stream == annotation->stream &&
			open->lane == annotation->lane && open->end_ns < annotation->end_ns)
			return false;
	}
	return true;
}

static void close_annotations(struct record_events *events, uint64_t at_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < events->open_count; i++)
		if (events->open_annotations[i].end_ns > at_ns)
			events->open_annotations[kept++] = events->open_annotations[i];
	events->open_count = kept;
}

static void note_lane(struct record_events *events, const struct gpu_annotation *annotation)
{
	for (size_t i = 0; i < events->lane_count; i++) {
		const struct record_lane *lane = &events->lanes[i];

		if (lane->kind == LANE_ANNOTATION && lane->device == annotation->device &&
			lane->stream == annotation->stream && lane->lane == annotation->lane)
			return;
	}
	*ARRAY_ADD(events->lanes, events->lane_room,
		events->lane_count) = (struct record_lane){ .device = annotation->device,
		.stream = annotation->stream,
		.lane = annotation->lane,
		.kind = LANE_ANNOTATION };
}

const struct gpu_annotation *record_events_next_annotation(struct record_events *events)
{
	const struct gpu_annotation *next = external_sort_peek(events->annotations);
	struct gpu_annotation *annotation = &events->current_annotation;

	if (!next)
		return NULL;
	*annotation = *next;
	external_sort_next(events->annotations);
	close_annotations(events, annotation->begin_ns);
	annotation->lane = has_many_lanes(events, annotation);
	while (!nests(events, annotation))
		annotation->lane++;
	if (annotation->lane)
		note_lane(events, annotation);
	*ARRAY_ADD(events->open_annotations, events->open_room, events->open_count) = *annotation;
	return annotation;
}
