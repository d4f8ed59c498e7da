/* SPDX-License-Identifier: MIT
 * away.c: see away.h.
 */
#include "report/gpu/cupti_handover.h"

#include "report/base/alloc.h"
#include "report/base/error.h"

#include <stdlib.h>

static struct away_span *last(const struct away *away, enum away_axis axis)
{
	return away->count ? &away->spans[axis][away->count - 1] : NULL;
}

/* A damaged trace, or a clock that was set, may say what cannot be: none begins before the one before it has ended. */
static void begin(struct away *away, const uint64_t *at_ns)
{
	for (int axis = 0; axis < AWAY_AXES; axis++) {
		const struct away_span *before = last(away, (enum away_axis)axis);
		const uint64_t earliest = before ? before->end_ns : 0;

		grow(&away->spans[axis], &away->room[axis], away->count + 1, sizeof **away->spans);
		away->spans[axis][away->count] = (struct away_span){
			.begin_ns = at_ns[axis] > earliest ? at_ns[axis] : earliest,
			.end_ns = UINT64_MAX,
			.before_ns = away->count ? away->spans[axis][away->count - 1].before_ns +
				away->spans[axis][away->count - 1].end_ns - away->spans[axis][away->count - 1].begin_ns : 0,
		};
	}
	away->count++;
	away->open = true;
}

static void end(struct away *away, const uint64_t *at_ns)
{
	for (int axis = 0; axis < AWAY_AXES; axis++) {
		struct away_span *span = last(away, (enum away_axis)axis);

		span->end_ns = at_ns[axis] > span->begin_ns ? at_ns[axis] : span->begin_ns;
	}
	away->open = false;
}

static void take(struct away *away, const struct trace_event *event)
{
	const struct trace_away *record = event->record;
	const uint64_t at_ns[AWAY_AXES] = { event->time_ns, record->realtime_ns };

	if (record->edge == TRACE_AWAY_BEGINS && !away->open)
		begin(away, at_ns);
	else if (record->edge == TRACE_AWAY_ENDS && away->open)
		end(away, at_ns);
}

struct away *away_read(struct trace_reader *reader)
{
	struct trace_event event;
	struct away *away;
	int status;

	if (!reader_meta(reader, "cupti.yielded").known)
		return NULL;
	away = need(sizeof *away);
	reader_rewind(reader);
	while ((status = reader_next(reader, &event)) > 0)
		if (event.kind == TRACE_AWAY)
			take(away, &event);
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(reader));
	away->ns = away_within(away, AWAY_TRACE, 0, reader_duration_ns(reader));
	return away;
}

void away_free(struct away *away)
{
	if (!away)
		return;
	for (int axis = 0; axis < AWAY_AXES; axis++)
		free(away->spans[axis]);
	free(away);
}

static uint64_t until(const struct away *away, enum away_axis axis, uint64_t at_ns)
{
	size_t low = 0, high = away->count;
	const struct away_span *span;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (away->spans[axis][middle].begin_ns < at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return 0;
	span = &away->spans[axis][low - 1];
	return span->before_ns + (at_ns < span->end_ns ? at_ns : span->end_ns) - span->begin_ns;
}

uint64_t away_within(const struct away *away, enum away_axis axis, uint64_t from_ns, uint64_t to_ns)
{
	return away && to_ns > from_ns ? until(away, axis, to_ns) - until(away, axis, from_ns) : 0;
}
