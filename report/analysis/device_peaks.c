/* SPDX-License-Identifier: MIT */
#include "report/analysis/device_peaks.h"

struct string_view peaks_device_name(struct process *process, uint32_t device)
{
	const struct trace_device *known = process_device(process, device);
	struct trace_text name;

	if (!known)
		return (struct string_view){ "", 0 };
	name = reader_name(process->reader, known->name);
	return (struct string_view){ name.bytes, name.length };
}

const char *peaks_origin(const struct peaks *peaks)
{
	static const char *const from[] = { [PEAKS_NONE] = "",
		[PEAKS_FROM_TABLE] = "table",
		[PEAKS_FROM_PARTIAL_GPU] = "table, by SMs",
		[PEAKS_FROM_ATTRIBUTES] = "attributes" };

	return from[peaks->from];
}

static void read_device_rates(
	const struct process *process, uint32_t number, struct peaks_device *device)
{
	const struct trace_device_rates *rates;

	for (uint32_t i = 0; (rates = reader_dictionary(process->reader, TRACE_DEVICE_RATES, i));
		i++) {
		if (rates->device != number)
			continue;
		device->clock_hz = rates->clock_khz * UINT64_C(1000);
		device->memory_clock_hz = rates->memory_clock_khz * UINT64_C(1000);
		device->bus_bits = rates->bus_bits;
	}
}

struct peaks peaks_of_process(
	struct process *process, const struct peaks_table *table, uint32_t number)
{
	const struct trace_device *device = process_device(process, number);
	const struct string_view name = peaks_device_name(process, number);
	struct peaks_device known;
	struct peaks peaks = { .from = PEAKS_NONE };

	if (!device)
		return peaks;
	known = (struct peaks_device){ .name = name.bytes,
		.name_bytes = name.length,
		.major = device->compute_major,
		.minor = device->compute_minor,
		.multiprocessors = device->multiprocessors };
	read_device_rates(process, number, &known);
	peaks_find(table, &known, &peaks);
	return peaks;
}
