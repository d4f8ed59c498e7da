/* SPDX-License-Identifier: MIT */
#include "report/analysis/stream_table.h"
#include "report/base/alloc.h"
#include <stdio.h>
#include <stdlib.h>

#define SLOTS (4 * LANES_MOST) /* a power of two, and never full: there are few devices (timeline.h) */

static uint32_t *slot_of(const struct lanes *lanes, uint32_t device, uint64_t stream)
{
	uint64_t hash = (stream ^ (uint64_t)device << 32) * 0x9e3779b97f4a7c15u;
	uint32_t at = (uint32_t)(hash >> 32) & (SLOTS - 1);

	while (lanes->slots[at] && (lanes->lanes[lanes->slots[at] - 1].device != device ||
					   lanes->lanes[lanes->slots[at] - 1].stream != stream))
		at = (at + 1) & (SLOTS - 1);
	return &lanes->slots[at];
}

uint32_t lanes_number(struct lanes *lanes, uint32_t device, uint64_t stream)
{
	const struct lane *last = lanes->count ? &lanes->lanes[lanes->last] : NULL;
	uint32_t *slot;

	if (last && last->device == device && last->stream == stream)
		return lanes->last;
	if (!lanes->slots)
		lanes->slots = need(SLOTS * sizeof *lanes->slots);
	slot = slot_of(lanes, device, stream);
	if (!*slot && lanes->count >= LANES_MOST) {
		stream = LANES_REST;
		slot = slot_of(lanes, device, stream);
	}
	if (!*slot) {
		grow(&lanes->lanes, &lanes->room, (size_t)lanes->count + 1, sizeof *lanes->lanes);
		lanes->lanes[lanes->count] = (struct lane){ .stream = stream, .device = device };
		*slot = ++lanes->count;
	}
	return lanes->last = *slot - 1;
}

void lanes_free(struct lanes *lanes)
{
	free(lanes->lanes);
	free(lanes->slots);
	*lanes = (struct lanes){ .count = 0 };
}

size_t lane_label(const struct lane *lane, const struct activities *activities, char *out, size_t room)
{
	const struct text name = activities_stream_name(activities, lane->device, lane->stream);
	int length;

	if (lane->stream == LANES_REST)
		length = snprintf(out, room, "(all other streams)");
	else if (name.length)
		length = snprintf(out, room, "stream %llu \"%.*s\"", (unsigned long long)lane->stream,
			(int)(name.length < 200 ? name.length : 200), name.bytes);
	else
		length = snprintf(out, room, "stream %llu", (unsigned long long)lane->stream);
	return (size_t)length < room ? (size_t)length : room - 1;
}
