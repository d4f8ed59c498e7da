/* SPDX-License-Identifier: MIT
 * info.c: see info.h.
 */
#include "report/print/next_command.h"
#include "report/views/views.h"

#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/views/info_json.h"
#include "report/text/format_number.h"
#include "report/print/print.h"
#include "report/trace/record_check.h"
#include "report/base/escape.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TITLE_COLUMNS 11
#define YEAR_2001_NS UINT64_C(1000000000000000000)

/* One trace as text. */
struct page {
	struct out *out;
	struct info *info;
	struct trace_reader *reader;
	bool ascii;
};

static void write_visible(const struct page *page, struct trace_text text)
{
	char *shown = need((size_t)text.length * 6 + 1);

	out_bytes(page->out, shown, visible(shown, (size_t)text.length * 6 + 1, text.bytes, text.length, page->ascii));
	free(shown);
}

static struct trace_text text_from(const char *string)
{
	return (struct trace_text){ string, (uint32_t)strlen(string), true };
}

static void title(const struct page *page, const char *word)
{
	out_string(page->out, word);
	for (size_t i = strlen(word); i < TITLE_COLUMNS + 1; i++)
		out_char(page->out, ' ');
}

__attribute__((format(printf, 3, 4))) static void say(
	const struct page *page, const char *word, const char *format, ...)
{
	char line[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof line, format, arguments);
	va_end(arguments);
	title(page, word);
	out_string(page->out, line);
	out_char(page->out, '\n');
}

static void say_text(const struct page *page, const char *word, struct trace_text text)
{
	if (!text.known)
		return;
	title(page, word);
	write_visible(page, text);
	out_char(page->out, '\n');
}

static void say_meta(const struct page *page, const char *word, const char *key)
{
	say_text(page, word, reader_meta(page->reader, key));
}

/* What pperf's own library tells of itself, another tool's file does not. */
static bool is_imported(const struct page *page)
{
	return reader_meta(page->reader, "import.format").known;
}

static bool begins_with(struct trace_text text, const char *prefix)
{
	return text.length > strlen(prefix) && !memcmp(text.bytes, prefix, strlen(prefix));
}

/* Every META of a family: "env.", "version." ...; `bare` without it. */
static void say_metas(const struct page *page, const char *word, const char *prefix)
{
	for (uint32_t i = 0; i < reader_metas(page->reader); i++) {
		struct trace_text key, value;

		reader_meta_at(page->reader, i, &key, &value);
		if (!begins_with(key, prefix))
			continue;
		key.bytes += strlen(prefix);
		key.length -= (uint32_t)strlen(prefix);
		title(page, word);
		write_visible(page, key);
		out_char(page->out, ' ');
		write_visible(page, value);
		out_char(page->out, '\n');
		word = "";
	}
}

static void say_process(const struct page *page)
{
	const struct trace_header *header = reader_header(page->reader);
	time_t seconds = (time_t)(header->start.realtime_ns / 1000000000u);
	char when[64] = "", duration[NUMBER_BYTES];
	struct tm broken;

	if (gmtime_r(&seconds, &broken))
		strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &broken);
	number_scaled(duration, UNIT_TIME, (int64_t)reader_duration_ns(page->reader), false, page->ascii);
	say_meta(page, "imported", "import.format");
	say_meta(page, "of processes", "import.processes");
	say_meta(page, "of events", "import.events");
	say_meta(page, "in no view", "import.left_out");
	say_meta(page, "CPU memory", "import.cpu_memory");
	say_meta(page, "command", "command");
	say_meta(page, "program", "exe");
	say_meta(page, "directory", "directory");
	say_meta(page, "host", "host");
	if (is_imported(page))
		say(page, "process", "%u", header->pid);
	else
		say(page, "process", "%u, child of %u%s", header->pid, header->parent_pid,
			header->flags & TRACE_FORKED ? ", by fork alone" : "");
	say_meta(page, "rank", "rank");
	if (header->start.realtime_ns >= YEAR_2001_NS) /* else its times count from nobody knows when */
		say(page, "started", "%s.%09" PRIu64 " UTC", when, header->start.realtime_ns % 1000000000u);
	say(page, "recorded", "%s", duration);
	if (!is_imported(page))
		say(page, "ended", "%s",
			header->flags & TRACE_ENDED ? "cleanly" : "no: it was killed, left by _exit, or is still running");
}

static void say_sources(const struct page *page)
{
	static const char *const sources[] = { "nvtx", "torch_ops", "torch_modules", "torch_memory", "python_stacks",
		"cuda_symbols", "cupti" };

	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
		char key[64];
		struct trace_text state;

		snprintf(key, sizeof key, "source.%s", sources[i]);
		state = reader_meta(page->reader, key);
		title(page, i ? "" : "sources");
		out_string(page->out, sources[i]);
		out_char(page->out, ' ');
		write_visible(page, state.known ? state : text_from("absent"));
		out_char(page->out, '\n');
	}
}

/* When CUPTI was another client's: what the GPU did then is in no record. */
static void say_away(const struct page *page)
{
	const struct away *away = page->info->away;

	for (size_t i = 0; away && i < away->count; i++) {
		const struct away_span *span = &away->spans[AWAY_TRACE][i];
		char from[NUMBER_BYTES], to[NUMBER_BYTES] = "the end";

		number_scaled(from, UNIT_TIME, (int64_t)span->begin_ns, false, page->ascii);
		if (span->end_ns != UINT64_MAX)
			number_scaled(to, UNIT_TIME, (int64_t)span->end_ns, false, page->ascii);
		say(page, i ? "" : "away", "from %s to %s CUPTI was another profiler's", from, to);
	}
}

static void say_devices(const struct page *page)
{
	const struct trace_device *device;

	for (uint32_t i = 0; (device = reader_dictionary(page->reader, TRACE_DEVICE, i)); i++) {
		char memory[NUMBER_BYTES], line[256];

		number_scaled(memory, UNIT_BYTES,
			number_integer(device->memory_bytes), false,
			page->ascii);
		title(page, i ? "" : "devices");
		snprintf(line, sizeof line, "%u ", device->device);
		out_string(page->out, line);
		write_visible(page, reader_name(page->reader, device->name));
		snprintf(line, sizeof line, ", compute capability %u.%u, %u multiprocessors, %s\n",
			device->compute_major, device->compute_minor, device->multiprocessors, memory);
		out_string(page->out, line);
	}
}

/* What is in no record. */
static void say_counted(const struct page *page)
{
	uint32_t places;
	const struct trace_counted *counted = reader_counted(page->reader, &places);
	uint64_t calls = 0;

	for (uint32_t i = 0; i < places; i++)
		calls += counted[i].calls;
	say(page, "counted", "%" PRIu64 " calls of %u places, in %" PRIu64 " blocks", calls, places,
		reader_layout(page->reader)->totals);
}

static void say_file(const struct page *page)
{
	const struct trace_header *header = reader_header(page->reader);
	const struct trace_layout *layout = reader_layout(page->reader);
	uint64_t payload = layout->chunk_bytes + layout->slot_bytes, recorded = page->info->recorded;
	char size[NUMBER_BYTES], each[NUMBER_BYTES], build_id[41];

	number_scaled(size, UNIT_BYTES, (int64_t)layout->file_bytes, false, page->ascii);
	number_unsigned(each, payload, recorded ? recorded : 1, 2);
	for (unsigned i = 0; i < sizeof header->build_id; i++)
		snprintf(build_id + 2 * i, 3, "%02x", header->build_id[i]);
	say(page, is_imported(page) ? "read as" : "file",
		"%s, format %u: %" PRIu64 " sealed blocks, %" PRIu64 " slots in use, %" PRIu64 " dictionary blocks",
		size, header->version, layout->chunks, layout->slots, layout->dictionary);
	if (layout->totals)
		say_counted(page);
	say(page, "threads", "%" PRIu64, layout->streams);
	if (!is_imported(page))
		say(page, "clock", "%s, %.3f MHz",
			header->clock_kind == TRACE_CLOCK_TSC ? "time stamp counter" : "CLOCK_MONOTONIC",
			reader_ticks_per_second(page->reader) / 1e6);
	say(page, "dictionary", "%u nodes, %u counters, %u modules, %u stacks, %u bytes",
		reader_nodes(page->reader) - 2, reader_dictionary_count(page->reader, TRACE_COUNTER),
		reader_dictionary_count(page->reader, TRACE_MODULE), reader_dictionary_count(page->reader, TRACE_STACK) +
			reader_dictionary_count(page->reader, TRACE_PYTHON_STACK),
		(uint32_t)layout->dictionary_bytes);
	if (!is_imported(page))
		say(page, "run", "0x%016" PRIx64 ", written by libpperf.so with build id %s", header->run_id, build_id);
	say(page, "records", "%" PRIu64 ", %s bytes each", recorded, recorded ? each : "0");
	for (uint32_t kind = 0; kind < EVENT_KINDS; kind++)
		if (page->info->records[kind] && event_word(kind))
			say(page, "", "%12" PRIu64 " %s", page->info->records[kind], event_word(kind));
}

static void say_counters(const struct page *page)
{
	const struct trace_counter *counter;

	for (uint32_t i = 0; (counter = reader_dictionary(page->reader, TRACE_COUNTER, i)); i++) {
		struct trace_text domain = reader_name(page->reader, counter->domain),
				  unit = reader_name(page->reader, counter->unit);

		title(page, i ? "" : "counters");
		write_visible(page, reader_name(page->reader, counter->name));
		out_string(page->out, domain.known ? " of " : "");
		write_visible(page, domain);
		out_string(page->out, unit.known ? ", " : "");
		write_visible(page, unit);
		out_char(page->out, '\n');
	}
}

struct loss {
	uint64_t count;
	const char *what;
};

static size_t list_losses(const struct info *info, struct loss *losses)
{
	const struct trace_integrity *all = &info->integrity;
	const struct loss every[] = {
#define X(name, text) { all->lost[TRACE_LOST_##name], "events: " text },
		TRACE_LOSSES(X)
#undef X
			{ info->dropped, "GPU records: dropped by CUPTI" },
		{ info->unread, "CUPTI buffers that ended in something unreadable" },
		{ all->missing_chunks, "blocks that are missing" },
		{ all->torn_chunks, "blocks that are torn, left out" },
		{ all->damaged_payloads, "blocks with a damaged record, read up to there" },
		{ all->damaged_blocks, "damaged block heads or dictionary blocks" },
		{ all->cut_blocks, "blocks that the file ends within, read up to there" },
		{ all->cut_bytes, "bytes missing at the end of the file" },
		{ all->skipped_bytes, "bytes that belong to no block" },
		{ all->unmatched_ends, "ends of ranges that were not open" },
		{ all->unended, "ranges whose end was lost" },
		{ all->resumed, "ranges whose beginning was lost" },
		{ all->unknown_kinds, "records of a newer pperf, left out" },
		{ all->unknown_nodes, "uses of a node that the dictionary lacks" },
		{ all->clock_violations, "times that ran backwards, set right" },
		{ all->clock_samples_refused, "clock samples that contradict the others, not used" },
	};
	size_t count = 0;

	for (size_t i = 0; i < sizeof every / sizeof *every; i++)
		if (every[i].count)
			losses[count++] = every[i];
	return count;
}

static void say_losses(const struct page *page)
{
	struct loss losses[64];
	size_t count = list_losses(page->info, losses);
	const char *warning;

	say(page, "complete", "%s", page->info->integrity.complete ? "yes" : "no");
	for (size_t i = 0; i < count; i++)
		say(page, i ? "" : "losses", "%12" PRIu64 " %s", losses[i].count, losses[i].what);
	if (page->info->integrity.tail_at_risk)
		say(page, "", "the file system could not be mapped: what was recorded after the last seal is missing");
	say_metas(page, "warnings", "warning.");
	for (unsigned i = 0; (warning = reader_warning(page->reader, i)); i++)
		say_text(page, i ? "" : "damage", text_from(warning));
}

static void write_text(struct out *out, struct info *info, bool ascii)
{
	struct page page = { out, info, info->reader, ascii };

	say_text(&page, "trace", text_from(reader_path(info->reader)));
	say_process(&page);
	say_metas(&page, "versions", "version.");
	say_sources(&page);
	say_away(&page);
	say_metas(&page, "settings", "env.");
	say_devices(&page);
	say_counters(&page);
	say_file(&page);
	say_losses(&page);
}

static void warn(struct processes *processes, const struct info *info)
{
	const char *warning;

	for (uint32_t i = 0; i < reader_metas(info->reader); i++) {
		struct trace_text key, value;

		reader_meta_at(info->reader, i, &key, &value);
		if (begins_with(key, "warning."))
			processes_warn(processes, "%s: %.*s", reader_path(info->reader),
				(int)(value.length < 900 ? value.length : 900), value.bytes);
	}
	for (unsigned i = 0; (warning = reader_warning(info->reader, i)); i++)
		processes_warn(processes, "%s", warning);
}

/* The envelope needs what GPU records were joined to, so the traces are folded for it. */
static void write_json(struct out *out, const struct options *options, struct info *infos)
{
	struct processes processes = processes_read_named(options);
	struct report report = { .options = options, .processes = &processes };

	for (size_t i = 0; i < options->file_count; i++)
		warn(&processes, &infos[i]);
	print_json_head(&report, out);
	out_string(out, ",\n \"rows\": [");
	for (size_t i = 0; i < options->file_count; i++) {
		out_string(out, i ? ",\n  " : "\n  ");
		info_write_json(out, &infos[i]);
	}
	out_string(out, "]}\n");
	processes_free(&processes);
}

/* A line for each kind of record. */
static void write_csv(struct out *out, const struct options *options, const struct info *infos)
{
	out_string(out, "file,pid,kind,records\r\n");
	for (size_t i = 0; i < options->file_count; i++)
		for (uint32_t kind = 0; kind < EVENT_KINDS; kind++) {
			if (!infos[i].records[kind] || !event_word(kind))
				continue;
			out_csv_text(out, options->files[i], strlen(options->files[i]));
			out_char(out, ',');
			out_unsigned(out, reader_header(infos[i].reader)->pid);
			out_char(out, ',');
			out_string(out, event_word(kind));
			out_char(out, ',');
			out_unsigned(out, infos[i].records[kind]);
			out_string(out, "\r\n");
		}
}

static void write_texts(struct out *out, const struct options *options, struct info *infos)
{
	const struct style style = style_of(&options->style, out);
	struct command command = { .ascii = style.ascii };

	for (size_t i = 0; i < options->file_count; i++) {
		if (i)
			out_char(out, '\n');
		write_text(out, &infos[i], style.ascii);
	}
	next_begin(&command, "tree");
	next_files(&command, options);
	next_put(&command, &style);
}

int info_view(const struct options *options)
{
	struct info *infos = need(options->file_count * sizeof *infos);
	struct out *out;
	bool complete = true;

	for (size_t i = 0; i < options->file_count; i++) {
		info_collect(&infos[i], options->files[i]);
		complete &= infos[i].integrity.complete;
	}
	out = out_open(options->output);
	if (options->format == FORMAT_JSON)
		write_json(out, options, infos);
	else if (options->format == FORMAT_CSV)
		write_csv(out, options, infos);
	else
		write_texts(out, options, infos);
	out_close(out, options->output);
	for (size_t i = 0; i < options->file_count; i++)
		info_release(&infos[i]);
	free(infos);
	return options->strict && !complete ? STATUS_UNREADABLE : STATUS_FINE;
}
