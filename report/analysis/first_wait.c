/* SPDX-License-Identifier: MIT */
#include "report/analysis/first_wait.h"

struct device_begun {
	uint32_t device;
	bool begun;
};

size_t first_waits_find(const struct process *process, struct activities *activities,
	struct first_wait waits[TIMELINE_DEVICES])
{
	const struct profile_options *options = &process->profile->options;
	struct device_begun devices[TIMELINE_DEVICES] = { { .device = 0 } };
	const struct timeline_device *all;
	const size_t expected = timeline_devices(process->profile->timeline, &all);
	const struct activity *one;
	size_t known = 0, found = 0, begun = 0;

	if (options->steps || options->windows)
		return 0;
	for (activities_rewind(activities);
		begun < expected && (one = activities_first(activities));
		activities_next(activities)) {
		struct device_begun *device;
		uint64_t wait_ns;

		if (!activity_is_work(one) || !one->timed)
			continue;
		device = device_slot(devices, &known, sizeof *devices, one->device);
		if (device->begun)
			continue;
		device->begun = true;
		begun++;
		wait_ns = gap_wait_begin(one->call_begin_ns, one->call_end_ns, one->begin_ns);
		if (one->has_call && one->begin_ns - wait_ns >= FIRST_WAIT_MIN_NS)
			waits[found++] = (struct first_wait){ .begin_ns = wait_ns, .work = *one };
	}
	return found;
}
