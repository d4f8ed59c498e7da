/* SPDX-License-Identifier: MIT */
#include "report/gpu/cupti_handover.h"

#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/search.h"

#include <stdlib.h>

/* The last handover; a span of no time if there is none. */
static struct handover_span last_handover(const struct handover_list *handovers, int axis)
{
	return handovers->count ? handovers->spans[axis][handovers->count - 1]
				: (struct handover_span){ .begin_ns = 0 };
}

/* Adds a span without an end. A damaged trace or a change of the clock may yield overlaps. No
 * span begins before the end of the one before it. */
static void begin_handover(struct handover_list *handovers, const uint64_t *at_ns)
{
	for (int axis = 0; axis < HANDOVER_AXES; axis++) {
		const struct handover_span last = last_handover(handovers, axis);

		array_grow_zeroed(&handovers->spans[axis], &handovers->room[axis],
			handovers->count + 1, sizeof **handovers->spans);
		handovers->spans[axis][handovers->count] = (struct handover_span){
			.begin_ns = at_ns[axis] > last.end_ns ? at_ns[axis] : last.end_ns,
			.end_ns = UINT64_MAX,
			.before_ns = last.before_ns + last.end_ns - last.begin_ns,
		};
	}
	handovers->count++;
	handovers->open = true;
}

static void end_handover(struct handover_list *handovers, const uint64_t *at_ns)
{
	for (int axis = 0; axis < HANDOVER_AXES; axis++) {
		struct handover_span *span = &handovers->spans[axis][handovers->count - 1];

		span->end_ns = at_ns[axis] > span->begin_ns ? at_ns[axis] : span->begin_ns;
	}
	handovers->open = false;
}

static void read_handover_record(struct handover_list *handovers, const struct trace_event *event)
{
	const struct trace_away *record = event->record;
	const uint64_t at_ns[HANDOVER_AXES] = { event->time_ns, record->realtime_ns };

	if (record->edge == TRACE_AWAY_BEGINS && !handovers->open)
		begin_handover(handovers, at_ns);
	else if (record->edge == TRACE_AWAY_ENDS && handovers->open)
		end_handover(handovers, at_ns);
}

struct handover_list *handover_list_read(struct trace_reader *reader)
{
	struct trace_event event;
	struct handover_list *handovers;
	int status;

	if (!reader_meta(reader, "cupti.yielded").known)
		return NULL;
	handovers = xcalloc(sizeof *handovers);
	reader_rewind(reader);
	while ((status = reader_next(reader, &event)) > 0)
		if (event.kind == TRACE_AWAY)
			read_handover_record(handovers, &event);
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(reader));
	handovers->ns = handover_list_overlap_ns(
		handovers, HANDOVER_TRACE_TIME, 0, reader_duration_ns(reader));
	return handovers;
}

void handover_list_free(struct handover_list *handovers)
{
	if (!handovers)
		return;
	for (int axis = 0; axis < HANDOVER_AXES; axis++)
		free(handovers->spans[axis]);
	free(handovers);
}

DEFINE_COUNT_WHILE(spans_begun, struct handover_span, item->begin_ns < limit)

static uint64_t handover_ns_until(
	const struct handover_list *handovers, enum handover_axis axis, uint64_t at_ns)
{
	const size_t begun = spans_begun(handovers->spans[axis], handovers->count, at_ns);
	const struct handover_span *span;

	if (!begun)
		return 0;
	span = &handovers->spans[axis][begun - 1];
	return span->before_ns + (at_ns < span->end_ns ? at_ns : span->end_ns) - span->begin_ns;
}

uint64_t handover_list_overlap_ns(const struct handover_list *handovers, enum handover_axis axis,
	uint64_t from_ns, uint64_t to_ns)
{
	return handovers && to_ns > from_ns ? handover_ns_until(handovers, axis, to_ns) -
						      handover_ns_until(handovers, axis, from_ns)
					    : 0;
}
