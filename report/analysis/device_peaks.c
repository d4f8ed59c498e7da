/* SPDX-License-Identifier: MIT */
#include "report/analysis/device_peaks.h"
#include "report/table/column.h"
#include "report/text/format_number.h"
#include "report/text/paragraph.h"
#include <stdio.h>
#include <string.h>

struct text peaks_device_name(struct process *process, uint32_t device)
{
	const struct trace_device *known = process_device(process, device);
	struct trace_text name;

	if (!known)
		return (struct text){ "", 0 };
	name = reader_name(process->reader, known->name);
	return (struct text){ name.bytes, name.length };
}

const char *peaks_origin(const struct peaks *peaks)
{
	static const char *const from[] = { [PEAKS_NONE] = "",
		[PEAKS_OF_TABLE] = "table",
		[PEAKS_OF_PART] = "table, by SMs",
		[PEAKS_OF_ATTRIBUTES] = "attributes" };

	return from[peaks->from];
}

struct peaks peaks_of_process(struct process *process, const struct peaks_table *table, uint32_t number)
{
	const struct trace_device *device = process_device(process, number);
	const struct text name = peaks_device_name(process, number);
	const struct trace_device_rates *rates;
	struct peaks_device known;
	struct peaks peaks = { .from = PEAKS_NONE };

	if (!device)
		return peaks;
	known = (struct peaks_device){ .name = name.bytes,
		.name_bytes = name.length,
		.major = device->compute_major,
		.minor = device->compute_minor,
		.multiprocessors = device->multiprocessors };
	for (uint32_t i = 0; (rates = reader_dictionary(process->reader, TRACE_DEVICE_RATES, i)); i++) {
		if (rates->device != number)
			continue;
		known.clock_hz = rates->clock_khz * UINT64_C(1000);
		known.memory_clock_hz = rates->memory_clock_khz * UINT64_C(1000);
		known.bus_bits = rates->bus_bits;
	}
	peaks_find(table, &known, &peaks);
	return peaks;
}

static void say(const struct style *style, uint32_t number, const struct peaks *peaks, const struct cell *known)
{
	static const char *const names[PEAK_COUNT] = {
#define X(id, name) [PEAK_##id] = #name,
		PEAKS(X)
#undef X
	};
	struct paragraph paragraph = { .style = style, .indent = 10 };
	char title[32], share[NUMBER_BYTES];
	bool any = false;

	for (unsigned i = 0; i < PEAK_COUNT; i++) {
		if (peaks->flops[i] <= 0 || i == PEAK_FP64 || i == PEAK_FP64_MATRIX)
			continue;
		paragraph_add(&paragraph, "%s%s %.1f", any ? ", " : "TFLOP/s at most: ", names[i], peaks->flops[i] / 1e12);
		any = true;
	}
	if (peaks->bytes > 0)
		paragraph_add(&paragraph, "%smemory %.2f TB/s", any ? "; " : "", peaks->bytes / 1e12);
	if (peaks->from == PEAKS_NONE)
		paragraph_add(&paragraph, "what it can do is not known (--peaks FILE says it)");
	else
		paragraph_add(&paragraph, " (%s)", peaks_origin(peaks));
	if (known->kind == CELL_REAL) {
		number_real(share, known->real * 100, 1);
		paragraph_add(&paragraph, ". FLOPs or bytes are known of %s %% of its GPU time", share);
	}
	snprintf(title, sizeof title, "device %u", number);
	paragraph_put(&paragraph, title);
}

void peaks_lead(const struct report *report, const struct style *style)
{
	struct peaks_table *table = peaks_read(report->options->peaks);
	const struct column *kind = column_find("kind", 4), *device = column_find("device", 6),
			    *share = column_find("known_share", 11);

	for (size_t i = 0; i < report->rows.count; i++) {
		const struct row *row = &report->rows.rows[i];
		const struct cell is = column_value(kind, row, &report->rows);
		struct peaks peaks;
		struct cell known;
		uint32_t number;

		if (is.kind != CELL_TEXT || is.text.length != 6 || memcmp(is.text.bytes, "device", 6) != 0)
			continue;
		number = (uint32_t)column_value(device, row, &report->rows).number;
		peaks = peaks_of_process(row->process, table, number);
		known = column_value(share, row, &report->rows);
		say(style, number, &peaks, &known);
	}
	peaks_free(table);
}
