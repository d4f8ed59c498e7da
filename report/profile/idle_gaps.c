/* SPDX-License-Identifier: MIT
 * Charges each idle gap of a GPU to the work that ended it.
 *
 * So the gap belongs to the range that launched the work and kept the GPU waiting.
 *
 * Records come roughly in the order of their starts. They wait here until no earlier one is
 * expected, as in the timeline, so that both compute the same idle time.
 */
#include "report/base/alloc.h"
#include "report/profile/profile_state.h"
#include "report/gpu/interval_queue.h"
#include <stdlib.h>

struct idle_gaps_device {
	uint32_t device;
	struct interval_queue waiting;
	uint64_t covered; /* end of the last busy time */
	bool begun;
};

struct idle_gaps {
	struct idle_gaps_device devices[TIMELINE_DEVICES];
	size_t count;
};

static void close_next_gap(struct profile *profile, struct idle_gaps_device *device)
{
	const struct interval next = interval_queue_pop(&device->waiting);

	if (device->begun && next.start > device->covered && next.tag) {
		const uint64_t idle = next.start - device->covered -
				      timeline_unknown_within(profile->timeline, device->device,
					      HANDOVER_REALTIME, device->covered, next.start);

		tree_gpu(profile->tree, next.tag)->idle_before_ns += idle;
		profile->totals.gpu_idle_charged_ns += idle;
	}
	if (!device->begun || next.end > device->covered)
		device->covered = next.end;
	device->begun = true;
}

void idle_gaps_add(struct profile *profile, uint32_t leaf, const struct trace_gpu *gpu)
{
	struct idle_gaps *gaps = profile->state->idle_gaps;
	struct idle_gaps_device *device;

	if (!profile->timeline || profile->options.no_owners_and_delays ||
		profile->options.target ||
		(profile->options.observer && !profile->options.observer_joins) ||
		(!gpu->start_ns && !gpu->end_ns))
		return;
	if (!gaps)
		gaps = profile->state->idle_gaps = xcalloc(sizeof *gaps);
	device = device_slot(gaps->devices, &gaps->count, sizeof *gaps->devices, gpu->device);
	interval_queue_push(&device->waiting,
		(struct interval){ .start = gpu->start_ns,
			.end = gpu->end_ns > gpu->start_ns ? gpu->end_ns : gpu->start_ns,
			.tag = leaf });
	if (interval_queue_length(&device->waiting) > TIMELINE_AHEAD)
		close_next_gap(profile, device);
}

void idle_gaps_finish(struct profile *profile)
{
	struct idle_gaps *gaps = profile->state->idle_gaps;

	for (size_t i = 0; gaps && i < gaps->count; i++)
		while (interval_queue_length(&gaps->devices[i].waiting))
			close_next_gap(profile, &gaps->devices[i]);
}

void idle_gaps_free(struct idle_gaps *gaps)
{
	for (size_t i = 0; gaps && i < gaps->count; i++)
		interval_queue_free(&gaps->devices[i].waiting);
	free(gaps);
}
