/* SPDX-License-Identifier: MIT
 * kineto_facts.c: what the file knows of the run and of its devices, and what of the file is missing, odd or in no view.
 */
#include "report/import/convert/convert.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static void put_meta(struct kineto_build *build, const char *key, const char *value)
{
	writer_meta(build->writer, key, value, strlen(value));
}

static void put_own(struct kineto_build *build, uint32_t pid)
{
	const struct kineto *kineto = build->kineto;
	const struct text own = text_of(kineto->texts, pid);

	for (size_t i = 0; i < kineto->fact_count; i++) {
		const struct text key = text_of(kineto->texts, kineto->facts[i].key),
				  value = text_of(kineto->texts, kineto->facts[i].value);

		if (key.length < 8 || memcmp(key.bytes, "process.", 8))
			writer_meta(build->writer, key.bytes, value.bytes, value.length);
		else if (key.length - 8 == own.length && !memcmp(key.bytes + 8, own.bytes, own.length))
			writer_meta(build->writer, "command", value.bytes, value.length);
	}
}

static bool any_kind(const struct kineto *kineto, uint16_t first, uint16_t second)
{
	for (size_t i = 0; i < kineto->range_count; i++)
		if (kineto->ranges[i].kind == first || kineto->ranges[i].kind == second)
			return true;
	return false;
}

static void put_sources(struct kineto_build *build, bool added)
{
	const struct kineto *kineto = build->kineto;

	if (*kineto->maker && (kineto->range_count || kineto->moment_count))
		put_meta(build, "source.nvtx", "on");
	if (any_kind(kineto, TRACE_NODE_OP, TRACE_NODE_BACKWARD))
		put_meta(build, "source.torch_ops", "on");
	if (any_kind(kineto, TRACE_NODE_MODULE, TRACE_NODE_MODULE))
		put_meta(build, "source.torch_modules", "on");
	if (kineto->memory_count)
		put_meta(build, "source.torch_memory",
			added ? "partial: the file does not say what the allocator holds; its levels are added up from "
				"the least that they can be"
			      : "on");
	if (kineto->gpu_count)
		put_meta(build, "source.cupti", "on");
	if (build->stacks.written)
		put_meta(build, "source.python_stacks", "on");
}

/* What of the file is in no view, by category; those for which there is no room together. */
static void put_left_out(struct kineto_build *build)
{
	const struct kineto *kineto = build->kineto;
	char line[1024];
	uint64_t others = 0;
	size_t used = 0;

	for (size_t i = 0; i < kineto->left_out_count; i++) {
		const struct text category = text_of(kineto->texts, kineto->left_outs[i].category);

		if (used + 160 < sizeof line)
			used += (size_t)snprintf(line + used, sizeof line - used, "%s%" PRIu64 " %.*s", used ? ", " : "",
				kineto->left_outs[i].events, category.length < 60 ? (int)category.length : 60, category.bytes);
		else
			others += kineto->left_outs[i].events;
	}
	if (others)
		used += (size_t)snprintf(line + used, sizeof line - used, ", %" PRIu64 " " KINETO_OTHERS, others);
	if (build->counts.twice)
		used += (size_t)snprintf(line + used, sizeof line - used, "%s%" PRIu64 " calls a second time", used ? ", " : "",
			build->counts.twice);
	if (used)
		writer_meta(build->writer, "import.left_out", line, used);
}

/* How much of the file was read, and what is kept as sums only. */
static void put_counts(struct kineto_build *build)
{
	const struct kineto_cpu_memory *cpu = &build->cpu;
	char line[256];
	int used;

	snprintf(line, sizeof line, "%" PRIu64, build->kineto->events);
	put_meta(build, "import.events", line);
	if (!cpu->allocs && !cpu->frees)
		return;
	used = snprintf(line, sizeof line, "%" PRIu64 " times %" PRIu64 " bytes taken, %" PRIu64 " times %" PRIu64 " given back",
		cpu->allocs, cpu->alloc_bytes, cpu->frees, cpu->free_bytes);
	if (cpu->peak)
		snprintf(line + used, sizeof line - (size_t)used, ", %" PRIu64 " at most at one time", cpu->peak);
	put_meta(build, "import.cpu_memory", line);
}

__attribute__((format(printf, 3, 4))) static void warn(struct kineto_build *build, const char *key, const char *format, ...)
{
	char line[512];
	va_list list;

	va_start(list, format);
	vsnprintf(line, sizeof line, format, list);
	va_end(list);
	put_meta(build, key, line);
}

static void put_warnings(struct kineto_build *build)
{
	const struct kineto *kineto = build->kineto;

	if (*kineto->broken_in)
		warn(build, "warning.import_cut",
			"the table %s: %s; what follows in it is missing, what precedes it is shown", kineto->broken_in,
			kineto->problem);
	else if (kineto->cut)
		warn(build, "warning.import_cut",
			"byte %" PRIu64 " of the JSON: %s; what follows is missing, what precedes it is shown",
			kineto->broken_at, kineto->problem);
	if (kineto->bad)
		warn(build, "warning.import_bad",
			"%" PRIu64 " events have no time or length that can be read; they are in no figure",
			kineto->bad);
	if (kineto->not_ended)
		warn(build, "warning.import_open",
			"%" PRIu64 " ranges have no end in the file; they count up to its last event", kineto->not_ended);
	if (kineto->whole_graphs)
		warn(build, "warning.import_graphs",
			"%" PRIu64 " launches of graphs were recorded as a whole: each is one piece of work, from the start of its "
			"first kernel to the end of its last", kineto->whole_graphs);
	if (build->counts.too_deep)
		warn(build, "warning.import_deep",
			"%" PRIu64 " ranges begin inside of more others than a program nests; they are left out", build->counts.too_deep);
	if (build->counts.overlapping)
		warn(build, "warning.import_overlap",
			"%" PRIu64 " ranges end before one that began in them does; that one's time from there on is "
			"what is around both's",
			build->counts.overlapping);
}

static uint32_t narrow(uint64_t value)
{
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static void put_devices(struct kineto_build *build)
{
	const struct kineto *kineto = build->kineto;

	for (size_t i = 0; i < kineto->device_count; i++) {
		const struct kineto_device *device = &kineto->devices[i];
		struct trace_device record = { .device = narrow(device->id),
			.compute_major = narrow(device->major),
			.compute_minor = narrow(device->minor),
			.multiprocessors = narrow(device->multiprocessors),
			.warp_threads = narrow(device->warp_threads),
			.max_threads_per_sm = narrow(device->threads_per_sm),
			.max_threads_per_block = narrow(device->threads_per_block),
			.registers_per_sm = narrow(device->registers_per_sm),
			.registers_per_block = narrow(device->registers_per_block),
			.shared_bytes_per_sm = narrow(device->shared_per_sm),
			.shared_bytes_per_block = narrow(device->shared_per_block),
			.memory_bytes = device->memory_bytes,
			.name = kineto_name(build, device->name) };

		memcpy(record.uuid, device->uuid, sizeof record.uuid);
		writer_dictionary(build->writer, TRACE_DEVICE, &record, sizeof record);
	}
}

void kineto_facts_write(struct kineto_build *build, uint32_t pid, bool added)
{
	put_meta(build, "import.format", *build->kineto->maker ? build->kineto->maker : "torch.profiler (Kineto)");
	put_own(build, pid);
	put_sources(build, added);
	put_devices(build);
	put_left_out(build);
	put_counts(build);
	put_warnings(build);
}
