/* SPDX-License-Identifier: MIT
 * Writes what the file says about the run and its devices, and what of the file is missing or
 * damaged.
 */
#include "report/base/text_builder.h"
#include "report/import/convert/convert.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_metadata(struct conversion *conversion, const char *key, const char *value)
{
	writer_meta(conversion->writer, key, value, strlen(value));
}

static void write_file_metadata(struct conversion *conversion, uint32_t pid)
{
	const struct event_rows *imported = conversion->imported;
	const struct string_view own = string_table_get(imported->texts, pid);

	for (size_t i = 0; i < imported->metadata_count; i++) {
		const struct string_view key = string_table_get(
						 imported->texts, imported->metadata[i].key),
					 value = string_table_get(
						 imported->texts, imported->metadata[i].value);

		if (key.length < 8 || memcmp(key.bytes, "process.", 8))
			writer_meta(conversion->writer, key.bytes, value.bytes, value.length);
		else if (key.length - 8 == own.length &&
			 !memcmp(key.bytes + 8, own.bytes, own.length))
			writer_meta(conversion->writer, "command", value.bytes, value.length);
	}
}

static bool any_kind(const struct event_rows *imported, uint16_t first, uint16_t second)
{
	for (size_t i = 0; i < imported->range_count; i++)
		if (imported->ranges[i].kind == first || imported->ranges[i].kind == second)
			return true;
	return false;
}

static bool text_begins_with(const struct event_rows *imported, uint32_t text, const char *begin)
{
	const struct string_view view = string_table_get(imported->texts, text);

	return view.length >= strlen(begin) && !memcmp(view.bytes, begin, strlen(begin));
}

/* Returns true for an AMD GPU, whose activity roctracer or rocprofiler recorded. Files differ in
 * the version they name, and all call functions of HIP. */
static bool is_of_rocm(const struct event_rows *imported)
{
	for (size_t i = 0; i < imported->metadata_count; i++)
		if (text_begins_with(imported, imported->metadata[i].key, "version.roctracer") ||
			text_begins_with(imported, imported->metadata[i].key, "version.hip"))
			return true;
	for (size_t i = 0; i < imported->call_count; i++)
		if (text_begins_with(imported, imported->calls[i].name, "hip"))
			return true;
	return false;
}

/* Rows with places come from a memory timeline. */
static const char *torch_memory_state(const struct event_rows *imported, bool levels_computed)
{
	if (imported->memories[0].place)
		return "partial: categories and sizes of one device, which the file does not name "
		       "(shown as GPU 0), without addresses, segments, ranges, steps and lines";
	return levels_computed ? "partial: the file does not give the allocator's total at the "
				 "start; levels are lower bounds"
			       : "on";
}

static void write_source_metadata(struct conversion *conversion, bool levels_computed)
{
	const struct event_rows *imported = conversion->imported;

	if (*imported->producer && (imported->range_count || imported->instant_count))
		write_metadata(conversion, "source.nvtx", "on");
	if (any_kind(imported, TRACE_NODE_OP, TRACE_NODE_BACKWARD))
		write_metadata(conversion, "source.torch_ops", "on");
	if (any_kind(imported, TRACE_NODE_MODULE, TRACE_NODE_MODULE))
		write_metadata(conversion, "source.torch_modules", "on");
	if (imported->memory_count)
		write_metadata(conversion, "source.torch_memory",
			torch_memory_state(imported, levels_computed));
	if (imported->gpu_count)
		write_metadata(conversion,
			is_of_rocm(imported) ? "source.roctracer" : "source.cupti", "on");
	if (conversion->stacks.written)
		write_metadata(conversion, "source.python_stacks", "on");
}

/* Writes the numbers of events that are not imported, by category. Categories beyond the length
 * of the line are summed up. `markers`: of the tool's own markers, else of all others. */
static void write_skipped(struct conversion *conversion, const char *meta_key, bool markers)
{
	const struct event_rows *imported = conversion->imported;
	char line[1024];
	uint64_t others = 0;
	size_t used = 0;

	for (size_t i = 0; i < imported->skip_count; i++) {
		const struct string_view category = string_table_get(
			imported->texts, imported->skips[i].category);

		if (imported->skips[i].is_marker != markers)
			continue;
		if (used + 160 < sizeof line)
			used += (size_t)snprintf(line + used, sizeof line - used,
				"%s%" PRIu64 " %.*s", used ? ", " : "", imported->skips[i].events,
				category.length < 60 ? (int)category.length : 60, category.bytes);
		else
			others += imported->skips[i].events;
	}
	if (others)
		used += (size_t)snprintf(
			line + used, sizeof line - used, ", %" PRIu64 " " IMPORTED_OTHERS, others);
	if (conversion->counts.duplicates && !markers)
		used += (size_t)snprintf(line + used, sizeof line - used,
			"%s%" PRIu64 " calls that the file has twice", used ? ", " : "",
			conversion->counts.duplicates);
	if (conversion->counts.outside_samples && !markers)
		used += (size_t)snprintf(line + used, sizeof line - used,
			"%s%" PRIu64 " CPU samples before the first event or after the last",
			used ? ", " : "", conversion->counts.outside_samples);
	if (used)
		writer_meta(conversion->writer, meta_key, line, used);
}

/* Writes when the trace begins on the file's own clock, if that counts from the start of the
 * recording. */
static void write_begin(struct conversion *conversion)
{
	char line[32];

	if (!conversion->imported->counts_from_start || conversion->first <= 0)
		return;
	snprintf(line, sizeof line, "%" PRId64, conversion->first);
	write_metadata(conversion, "import.begin_ns", line);
}

/* Writes the number of events, and the sums of the CPU's allocator events. */
static void write_counts(struct conversion *conversion)
{
	const struct conversion_cpu_memory *cpu = &conversion->cpu;
	char line[256];
	int used;

	snprintf(line, sizeof line, "%" PRIu64, conversion->imported->events);
	write_metadata(conversion, "import.events", line);
	if (!cpu->allocs && !cpu->frees)
		return;
	used = snprintf(line, sizeof line,
		"%" PRIu64 " allocations of %" PRIu64 " bytes, %" PRIu64 " frees of %" PRIu64
		" bytes",
		cpu->allocs, cpu->alloc_bytes, cpu->frees, cpu->free_bytes);
	if (cpu->peak)
		snprintf(line + used, sizeof line - (size_t)used, ", peak %" PRIu64 " bytes",
			cpu->peak);
	write_metadata(conversion, "import.cpu_memory", line);
}

__attribute__((format(printf, 3, 4))) static void write_warning(
	struct conversion *conversion, const char *key, const char *format, ...)
{
	struct text_builder line = { .text = NULL };
	va_list list;

	va_start(list, format);
	text_add_list(&line, format, list);
	va_end(list);
	write_metadata(conversion, key, line.text);
	free(line.text);
}

static void write_warnings(struct conversion *conversion)
{
	const struct event_rows *imported = conversion->imported;

	if (*imported->problem_table)
		write_warning(conversion, "warning.import_cut",
			"the table %s: %s; the rest of it is missing, what comes before is shown",
			imported->problem_table, imported->problem);
	else if (imported->truncated)
		write_warning(conversion, "warning.import_cut",
			"byte %" PRIu64
			" of the JSON: %s; the rest is missing, what comes before is shown",
			imported->problem_at, imported->problem);
	if (imported->unreadable)
		write_warning(conversion, "warning.import_bad",
			"%" PRIu64
			" events have no readable time or duration; they are in no figure",
			imported->unreadable);
	if (imported->unended)
		write_warning(conversion, "warning.import_open",
			"%" PRIu64
			" ranges have no end in the file; they are counted up to its last event",
			imported->unended);
	if (imported->unsplit_graphs)
		write_warning(conversion, "warning.import_graphs",
			"%" PRIu64
			" graph launches were recorded as a whole: each is one operation, from the "
			"start of its first kernel to the end of its last",
			imported->unsplit_graphs);
	if (conversion->counts.too_deep)
		write_warning(conversion, "warning.import_deep",
			"%" PRIu64 " ranges are nested deeper than the limit; they are left out",
			conversion->counts.too_deep);
	if (conversion->counts.overlapping)
		write_warning(conversion, "warning.import_overlap",
			"%" PRIu64 " ranges end before a range inside them does; the rest of that "
			"inner range counts in their parent",
			conversion->counts.overlapping);
}

static uint32_t saturate_u32(uint64_t value)
{
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static void write_devices(struct conversion *conversion)
{
	const struct event_rows *imported = conversion->imported;

	for (size_t i = 0; i < imported->device_count; i++) {
		const struct imported_device *device = &imported->devices[i];
		struct trace_device record = { .device = saturate_u32(device->id),
			.compute_major = saturate_u32(device->major),
			.compute_minor = saturate_u32(device->minor),
			.multiprocessors = saturate_u32(device->multiprocessors),
			.warp_threads = saturate_u32(device->warp_threads),
			.max_threads_per_sm = saturate_u32(device->threads_per_sm),
			.max_threads_per_block = saturate_u32(device->threads_per_block),
			.registers_per_sm = saturate_u32(device->registers_per_sm),
			.registers_per_block = saturate_u32(device->registers_per_block),
			.shared_bytes_per_sm = saturate_u32(device->shared_per_sm),
			.shared_bytes_per_block = saturate_u32(device->shared_per_block),
			.memory_bytes = device->memory_bytes,
			.name = convert_name(conversion, device->name) };

		memcpy(record.uuid, device->uuid, sizeof record.uuid);
		writer_dictionary(conversion->writer, TRACE_DEVICE, &record, sizeof record);
	}
}

void convert_metadata(struct conversion *conversion, uint32_t pid, bool levels_computed)
{
	write_metadata(conversion, "import.format",
		*conversion->imported->producer ? conversion->imported->producer
						: "torch.profiler (Kineto)");
	write_begin(conversion);
	write_file_metadata(conversion, pid);
	write_source_metadata(conversion, levels_computed);
	write_devices(conversion);
	write_skipped(conversion, "import.left_out", false);
	write_skipped(conversion, "import.markers", true);
	write_counts(conversion);
	write_warnings(conversion);
}
