/* SPDX-License-Identifier: MIT
 * fold_gaps.c: each moment in which a GPU had nothing to do, charged to the work that ended it, and so to whoever
 * launched that: it kept the GPU waiting. Records come roughly by their start; they wait here until nothing earlier is
 * expected, as in the timeline, so that both come to the same idle time.
 */
#include "report/gpu/cupti_handover.h"
#include "report/base/alloc.h"
#include "report/profile/profile_state.h"
#include "report/gpu/interval_queue.h"
#include <stdlib.h>

struct gaps_device {
	uint32_t device;
	struct intervals waiting;
	uint64_t covered; /* the last moment at which it was busy */
	bool begun;
};

struct gaps {
	struct gaps_device devices[TIMELINE_DEVICES];
	size_t count;
};

static struct gaps_device *device_of(struct gaps *gaps, uint32_t device)
{
	size_t i = 0;

	while (i < gaps->count && gaps->devices[i].device != device)
		i++;
	if (i == TIMELINE_DEVICES)
		return &gaps->devices[TIMELINE_DEVICES - 1];
	if (i == gaps->count)
		gaps->devices[gaps->count++].device = device;
	return &gaps->devices[i];
}

static void advance(struct fold *fold, struct gaps_device *device)
{
	const struct interval next = intervals_take(&device->waiting);

	if (device->begun && next.start > device->covered && next.tag) {
		const uint64_t idle = next.start - device->covered -
				      away_within(timeline_away(fold->timeline), AWAY_REALTIME, device->covered, next.start);

		tree_gpu(fold->tree, next.tag)->idle_before_ns += idle;
		fold->totals.gpu_idle_charged_ns += idle;
	}
	if (!device->begun || next.end > device->covered)
		device->covered = next.end;
	device->begun = true;
}

void fold_gaps_add(struct fold *fold, uint32_t leaf, const struct trace_gpu *gpu)
{
	struct gaps *gaps = fold->state->gaps;
	struct gaps_device *device;

	if (!fold->timeline || fold->options.no_owners || fold->options.target || fold->options.observer || (!gpu->start_ns && !gpu->end_ns))
		return;
	if (!gaps)
		gaps = fold->state->gaps = need(sizeof *gaps);
	device = device_of(gaps, gpu->device);
	intervals_add(&device->waiting, (struct interval){ .start = gpu->start_ns,
						.end = gpu->end_ns > gpu->start_ns ? gpu->end_ns : gpu->start_ns,
						.tag = leaf });
	if (intervals_waiting(&device->waiting) > TIMELINE_AHEAD)
		advance(fold, device);
}

void fold_gaps_end(struct fold *fold)
{
	struct gaps *gaps = fold->state->gaps;

	for (size_t i = 0; gaps && i < gaps->count; i++)
		while (intervals_waiting(&gaps->devices[i].waiting))
			advance(fold, &gaps->devices[i]);
}

void fold_gaps_free(struct gaps *gaps)
{
	for (size_t i = 0; gaps && i < gaps->count; i++)
		intervals_free(&gaps->devices[i].waiting);
	free(gaps);
}
