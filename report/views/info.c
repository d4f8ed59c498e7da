/* SPDX-License-Identifier: MIT */
#include "report/print/next_command.h"
#include "report/views/views.h"

#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/import/open_trace.h"
#include "report/base/text_builder.h"
#include "report/views/info_json.h"
#include "report/views/source_reasons.h"
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

static void count_flush(
	struct info *info, const struct trace_event *event, const struct trace_self *self)
{
	const double duration_ns = (double)reader_duration_ns(info->reader);
	const uint64_t peak_bytes = UINT64_C(1024) * self->peak_kib;
	const double part = duration_ns > 0 ? (double)event->time_ns / duration_ns * INFO_PARTS : 0;
	struct info_flushes *flushes =
		&info->flushes[part < INFO_PARTS ? (unsigned)part : INFO_PARTS - 1];

	flushes->count++;
	flushes->total_ns += reader_duration(info->reader, self->stamp, self->duration);
	if (peak_bytes > flushes->peak_memory_bytes)
		flushes->peak_memory_bytes = peak_bytes;
}

static void count_event(struct info *info, const struct trace_event *event)
{
	const struct trace_gpu_batch *batch = event->record;
	const struct trace_self *self = event->record;

	info->records[event->kind]++;
	info->recorded += event->kind < TRACE_KINDS || event->kind == EVENT_POP ||
			  event->kind == EVENT_UNMATCHED;
	if (event->kind == TRACE_SELF && self->what == TRACE_SELF_FLUSH)
		count_flush(info, event, self);
	if (event->kind == TRACE_GPU_BATCH) {
		info->dropped += batch->dropped;
		info->unread += batch->unread;
	}
}

/* Reads the whole trace. Ends the program with a message if it cannot be read. */
static void collect(struct info *info, const char *path)
{
	char error[READER_ERROR_BYTES];
	struct trace_event event;
	int status;

	*info = (struct info){ .reader = import_open_trace(path, error) };
	if (!info->reader)
		fatal(STATUS_UNREADABLE, "%s", error);
	while ((status = reader_next(info->reader, &event)) > 0)
		count_event(info, &event);
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(info->reader));
	info->integrity = *reader_integrity(info->reader);
	info->handovers = handover_list_read(info->reader);
}

static void release(struct info *info)
{
	handover_list_free(info->handovers);
	reader_close(info->reader);
}

/* One trace as text. */
struct info_page {
	struct output *out;
	struct info *info;
	struct trace_reader *reader;
	bool ascii;
};

static void write_escaped(const struct info_page *page, struct trace_text text)
{
	char *shown = xcalloc((size_t)text.length * 6 + 1);

	output_bytes(page->out, shown,
		escape_text(
			shown, (size_t)text.length * 6 + 1, text.bytes, text.length, page->ascii));
	free(shown);
}

static struct trace_text string_text(const char *string)
{
	return (struct trace_text){ string, (uint32_t)strlen(string), true };
}

static void put_title(const struct info_page *page, const char *word)
{
	output_string(page->out, word);
	for (size_t i = strlen(word); i < TITLE_COLUMNS + 1; i++)
		output_char(page->out, ' ');
}

__attribute__((format(printf, 3, 4))) static void put_field(
	const struct info_page *page, const char *word, const char *format, ...)
{
	struct text_builder line = { .text = NULL };
	va_list arguments;

	va_start(arguments, format);
	text_add_list(&line, format, arguments);
	va_end(arguments);
	put_title(page, word);
	output_string(page->out, line.text);
	output_char(page->out, '\n');
	free(line.text);
}

static void put_text_field(const struct info_page *page, const char *word, struct trace_text text)
{
	if (!text.known)
		return;
	put_title(page, word);
	write_escaped(page, text);
	output_char(page->out, '\n');
}

static void put_meta_field(const struct info_page *page, const char *word, const char *key)
{
	put_text_field(page, word, reader_meta(page->reader, key));
}

/* Another tool's file lacks what libpperf.so records about itself. */
static bool is_imported(const struct info_page *page)
{
	return reader_meta(page->reader, "import.format").known;
}

static bool has_prefix(struct trace_text text, const char *prefix)
{
	return text.length > strlen(prefix) && !memcmp(text.bytes, prefix, strlen(prefix));
}

/* Prints all META values whose keys begin with `prefix` ("env.", "version." ...), without that
 * prefix. */
static void put_meta_family(const struct info_page *page, const char *word, const char *prefix)
{
	for (uint32_t i = 0; i < reader_meta_count(page->reader); i++) {
		struct trace_text key, value;

		reader_meta_at(page->reader, i, &key, &value);
		if (!has_prefix(key, prefix))
			continue;
		key.bytes += strlen(prefix);
		key.length -= (uint32_t)strlen(prefix);
		put_title(page, word);
		write_escaped(page, key);
		output_char(page->out, ' ');
		write_escaped(page, value);
		output_char(page->out, '\n');
		word = "";
	}
}

static void info_put_process(const struct info_page *page)
{
	const struct trace_header *header = reader_header(page->reader);
	time_t seconds = (time_t)(header->start.realtime_ns / 1000000000u);
	char when[64] = "", duration[FORMAT_NUMBER_BYTES];
	struct tm broken;

	if (gmtime_r(&seconds, &broken))
		strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &broken);
	format_with_unit(
		duration, UNIT_TIME, (int64_t)reader_duration_ns(page->reader), false, page->ascii);
	put_meta_field(page, "imported", "import.format");
	put_meta_field(page, "of processes", "import.processes");
	put_meta_field(page, "of events", "import.events");
	put_meta_field(page, "not shown", "import.left_out");
	put_meta_field(page, "markers", "import.markers");
	put_meta_field(page, "CPU memory", "import.cpu_memory");
	put_meta_field(page, "GPU numbers", "import.devices");
	put_meta_field(page, "NCCL groups", "import.process_groups");
	put_meta_field(page, "command", "command");
	put_meta_field(page, "program", "exe");
	put_meta_field(page, "directory", "directory");
	put_meta_field(page, "host", "host");
	if (is_imported(page))
		put_field(page, "process", "%u", header->pid);
	else
		put_field(page, "process", "%u, child of %u%s", header->pid, header->parent_pid,
			header->flags & TRACE_FORKED ? ", forked without exec" : "");
	put_meta_field(page, "rank", "rank");
	/* Earlier times count from an unknown epoch. */
	if (header->start.realtime_ns >= YEAR_2001_NS)
		put_field(page, "started", "%s.%09" PRIu64 " UTC", when,
			header->start.realtime_ns % 1000000000u);
	put_field(page, "recorded", "%s", duration);
	if (!is_imported(page))
		put_field(page, "ended", "%s",
			header->flags & TRACE_ENDED
				? "cleanly"
				: "no: killed, ended by _exit, or still running");
}

static void info_put_sources(const struct info_page *page)
{
	const bool rocm = reader_meta(page->reader, "source.roctracer").known;

	for (size_t i = 0; i < TRACE_SOURCES; i++) {
		const char *const source = trace_source_names[i];
		struct text_builder advice = { .text = NULL };
		struct trace_text state;

		/* the GPU's activity has one source */
		if (!strcmp(source, rocm ? "cupti" : "roctracer"))
			continue;
		state = reader_meta_of(page->reader, "source", source);
		put_title(page, i ? "" : "sources");
		output_string(page->out, source);
		output_char(page->out, ' ');
		write_escaped(page, state.known ? state : string_text("absent"));
		output_char(page->out, '\n');
		source_add_advice(&advice, source, state, page->ascii);
		if (advice.text)
			put_field(page, "", "%s", advice.text);
		free(advice.text);
	}
}

/* Prints the times in which CUPTI was handed over. What the GPU did in them was not recorded. */
static void info_put_handover(const struct info_page *page)
{
	const struct handover_list *handovers = page->info->handovers;

	for (size_t i = 0; handovers && i < handovers->count; i++) {
		const struct handover_span *span = &handovers->spans[HANDOVER_TRACE_TIME][i];
		char from[FORMAT_NUMBER_BYTES], to[FORMAT_NUMBER_BYTES] = "the end";

		format_with_unit(from, UNIT_TIME, (int64_t)span->begin_ns, false, page->ascii);
		if (span->end_ns != UINT64_MAX)
			format_with_unit(to, UNIT_TIME, (int64_t)span->end_ns, false, page->ascii);
		put_field(page, i ? "" : "away", "from %s to %s another profiler used CUPTI", from,
			to);
	}
}

/* Prints one value for each part of the run: "1.2 ms, 1.3 ms, 4.0 ms", or what it lacks. */
static void add_parts(struct text_builder *line, const struct info_page *page, bool memory)
{
	const struct info_flushes *flushes = page->info->flushes;

	for (unsigned i = 0; i < INFO_PARTS; i++) {
		const uint64_t count = flushes[i].count;
		const uint64_t value = memory  ? flushes[i].peak_memory_bytes
				       : count ? flushes[i].total_ns / count
					       : 0;
		char text[FORMAT_NUMBER_BYTES];

		if (!value)
			snprintf(text, sizeof text, "%s", memory ? "not measured" : "no flush");
		else
			format_with_unit(text, memory ? UNIT_BYTES : UNIT_TIME, clamp_to_i64(value),
				false, page->ascii);
		text_add(line, "%s%s", i ? ", " : "", text);
	}
}

/* Prints whether flushing CUPTI's buffers and the process's memory grew during the run. */
static void info_put_flushes(const struct info_page *page)
{
	const struct info_flushes *flushes = page->info->flushes;
	struct text_builder times = { .text = NULL }, peaks = { .text = NULL };
	uint64_t count = 0, peak_bytes = 0;

	for (unsigned i = 0; i < INFO_PARTS; i++) {
		count += flushes[i].count;
		peak_bytes |= flushes[i].peak_memory_bytes;
	}
	if (!count)
		return;
	add_parts(&times, page, false);
	put_field(page, "flushes",
		"%" PRIu64 " of CUPTI's buffers; average in each third of the run: %s", count,
		times.text);
	add_parts(&peaks, page, true);
	if (peak_bytes)
		put_field(page, "memory", "peak of the process in each third of the run: %s",
			peaks.text);
	free(times.text);
	free(peaks.text);
}

static void info_put_devices(const struct info_page *page)
{
	const struct trace_device *device;

	for (uint32_t i = 0; (device = reader_dictionary(page->reader, TRACE_DEVICE, i)); i++) {
		char memory[FORMAT_NUMBER_BYTES], line[256];

		format_with_unit(
			memory, UNIT_BYTES, clamp_to_i64(device->memory_bytes), false, page->ascii);
		put_title(page, i ? "" : "devices");
		snprintf(line, sizeof line, "%u ", device->device);
		output_string(page->out, line);
		write_escaped(page, reader_name(page->reader, device->name));
		snprintf(line, sizeof line, ", compute capability %u.%u, %u multiprocessors, %s\n",
			device->compute_major, device->compute_minor, device->multiprocessors,
			memory);
		output_string(page->out, line);
	}
}

/* Prints the number of calls that were only counted. */
static void info_put_counted(const struct info_page *page)
{
	uint32_t node_count;
	const uint64_t calls = reader_counted_calls(page->reader, &node_count);

	put_field(page, "counted", "%" PRIu64 " calls at %u nodes, in %" PRIu64 " blocks", calls,
		node_count, reader_layout(page->reader)->totals);
}

static void info_put_file(const struct info_page *page)
{
	const struct trace_header *header = reader_header(page->reader);
	const struct trace_layout *layout = reader_layout(page->reader);
	uint64_t payload = layout->chunk_bytes + layout->slot_bytes,
		 recorded = page->info->recorded;
	char size[FORMAT_NUMBER_BYTES], each[FORMAT_NUMBER_BYTES], build_id[41];

	format_with_unit(size, UNIT_BYTES, (int64_t)layout->file_bytes, false, page->ascii);
	format_unsigned(each, payload, recorded ? recorded : 1, 2);
	for (unsigned i = 0; i < sizeof header->build_id; i++)
		snprintf(build_id + 2 * i, 3, "%02x", header->build_id[i]);
	put_field(page, is_imported(page) ? "read as" : "file",
		"%s, format %u: %" PRIu64 " sealed blocks, %" PRIu64 " slots in use, %" PRIu64
		" dictionary blocks",
		size, header->version, layout->chunks, layout->slots, layout->dictionary);
	if (layout->totals)
		info_put_counted(page);
	put_field(page, "threads", "%" PRIu64, layout->streams);
	if (!is_imported(page))
		put_field(page, "clock", "%s, %.3f MHz",
			header->clock_kind == TRACE_CLOCK_TSC ? "time stamp counter"
							      : "CLOCK_MONOTONIC",
			reader_ticks_per_second(page->reader) / 1e6);
	put_field(page, "dictionary", "%u nodes, %u counters, %u modules, %u stacks, %u bytes",
		reader_node_count(page->reader) - 2,
		reader_dictionary_count(page->reader, TRACE_COUNTER),
		reader_dictionary_count(page->reader, TRACE_MODULE),
		reader_dictionary_count(page->reader, TRACE_STACK) +
			reader_dictionary_count(page->reader, TRACE_PYTHON_STACK),
		(uint32_t)layout->dictionary_bytes);
	if (!is_imported(page))
		put_field(page, "run", "0x%016" PRIx64 ", written by libpperf.so with build id %s",
			header->run_id, build_id);
	put_field(page, "records", "%" PRIu64 ", %s bytes each", recorded, recorded ? each : "0");
	for (uint32_t kind = 0; kind < EVENT_KINDS; kind++)
		if (page->info->records[kind] && event_kind_name(kind))
			put_field(page, "", "%12" PRIu64 " %s", page->info->records[kind],
				event_kind_name(kind));
}

static void info_put_counters(const struct info_page *page)
{
	const struct trace_counter *counter;

	for (uint32_t i = 0; (counter = reader_dictionary(page->reader, TRACE_COUNTER, i)); i++) {
		struct trace_text domain = reader_name(page->reader, counter->domain),
				  unit = reader_name(page->reader, counter->unit);

		put_title(page, i ? "" : "counters");
		write_escaped(page, reader_name(page->reader, counter->name));
		output_string(page->out, domain.known ? " of " : "");
		write_escaped(page, domain);
		output_string(page->out, unit.known ? ", " : "");
		write_escaped(page, unit);
		output_char(page->out, '\n');
	}
}

struct info_loss {
	uint64_t count;
	const char *what;
};

static size_t list_losses(const struct info *info, struct info_loss *losses)
{
	const struct trace_integrity *all = &info->integrity;
	const struct info_loss every[] = {
#define X(name, text) { all->lost[TRACE_LOST_##name], "events: " text },
		TRACE_LOSSES(X)
#undef X
			{ info->dropped, "GPU records: dropped by CUPTI" },
		{ info->unread, "CUPTI buffers with an unreadable tail" },
		{ all->missing_chunks, "missing blocks" },
		{ all->torn_chunks, "torn blocks, skipped" },
		{ all->damaged_payloads, "blocks with a damaged record, read up to that record" },
		{ all->damaged_blocks, "damaged block headers or dictionary blocks" },
		{ all->cut_blocks, "blocks truncated by the end of the file, read up to there" },
		{ all->cut_bytes, "bytes missing at the end of the file" },
		{ all->skipped_bytes, "bytes outside any block" },
		{ all->unmatched_ends - all->pops_without_push, "pops without an open range" },
		{ all->unended, "ranges with a lost end" },
		{ all->resumed, "ranges with a lost start" },
		{ all->unknown_kinds, "records of a newer pperf, skipped" },
		{ all->unknown_nodes, "uses of a node that is not in the dictionary" },
		{ all->clock_violations, "timestamps out of order, corrected" },
		{ all->clock_samples_refused,
			"clock samples that contradict the others, not used" },
	};
	size_t count = 0;

	for (size_t i = 0; i < sizeof every / sizeof *every; i++)
		if (every[i].count)
			losses[count++] = every[i];
	return count;
}

static void info_put_losses(const struct info_page *page)
{
	struct info_loss losses[64];
	size_t count = list_losses(page->info, losses);
	const char *warning;

	put_field(page, "complete", "%s", page->info->integrity.complete ? "yes" : "no");
	for (size_t i = 0; i < count; i++)
		put_field(page, i ? "" : "losses", "%12" PRIu64 " %s", losses[i].count,
			losses[i].what);
	if (page->info->integrity.pops_without_push)
		put_field(page, "notes", "%12" PRIu64 " pops of the program without a push",
			page->info->integrity.pops_without_push);
	if (page->info->integrity.tail_at_risk)
		put_field(page, "",
			"the file system does not support mapping: what was recorded after the "
			"last sealed block is missing");
	put_meta_family(page, "warnings", "warning.");
	for (unsigned i = 0; (warning = reader_warning(page->reader, i)); i++)
		put_text_field(page, i ? "" : "damage", string_text(warning));
}

static void write_trace_text(struct output *out, struct info *info, bool ascii)
{
	struct info_page page = { out, info, info->reader, ascii };

	put_text_field(&page, "trace", string_text(reader_path(info->reader)));
	info_put_process(&page);
	put_meta_family(&page, "versions", "version.");
	info_put_sources(&page);
	info_put_handover(&page);
	info_put_flushes(&page);
	put_meta_family(&page, "CUPTI issue", "cupti.known.");
	put_meta_family(&page, "settings", "env.");
	put_meta_field(&page, "CUDA graphs", "graphs");
	info_put_devices(&page);
	info_put_counters(&page);
	info_put_file(&page);
	info_put_losses(&page);
}

static void add_trace_warnings(struct processes *processes, const struct info *info)
{
	const char *warning;

	for (uint32_t i = 0; i < reader_meta_count(info->reader); i++) {
		struct trace_text key, value;

		reader_meta_at(info->reader, i, &key, &value);
		if (has_prefix(key, "warning."))
			processes_warn(processes, "%s: %.*s", reader_path(info->reader),
				(int)(value.length < 900 ? value.length : 900), value.bytes);
	}
	for (unsigned i = 0; (warning = reader_warning(info->reader, i)); i++)
		processes_warn(processes, "%s", warning);
}

/* Profiles the traces first, because the envelope has figures about the join of GPU records. */
static void write_info_json(struct output *out, const struct options *options, struct info *infos)
{
	struct processes processes = processes_read_named(options);
	struct report report = { .options = options, .processes = &processes };

	for (size_t i = 0; i < options->file_count; i++)
		add_trace_warnings(&processes, &infos[i]);
	print_json_head(&report, out);
	output_string(out, ",\n \"rows\": [");
	for (size_t i = 0; i < options->file_count; i++) {
		output_string(out, i ? ",\n  " : "\n  ");
		info_write_json(out, &infos[i]);
	}
	output_string(out, "]}\n");
	processes_free(&processes);
}

/* Writes a line for each kind of record. */
static void write_info_csv(
	struct output *out, const struct options *options, const struct info *infos)
{
	output_string(out, "file,pid,kind,records\r\n");
	for (size_t i = 0; i < options->file_count; i++)
		for (uint32_t kind = 0; kind < EVENT_KINDS; kind++) {
			if (!infos[i].records[kind] || !event_kind_name(kind))
				continue;
			output_csv_text(out, options->files[i], strlen(options->files[i]));
			output_char(out, ',');
			output_unsigned(out, reader_header(infos[i].reader)->pid);
			output_char(out, ',');
			output_string(out, event_kind_name(kind));
			output_char(out, ',');
			output_unsigned(out, infos[i].records[kind]);
			output_string(out, "\r\n");
		}
}

static void write_info_text(struct output *out, const struct options *options, struct info *infos)
{
	const struct style style = style_of(&options->style, out);
	struct shell_command command = { .ascii = style.ascii };

	for (size_t i = 0; i < options->file_count; i++) {
		if (i)
			output_char(out, '\n');
		write_trace_text(out, &infos[i], style.ascii);
	}
	next_command_begin(&command, "tree");
	next_command_add_files(&command, options);
	next_command_put(&command, &style);
}

int info_view(const struct options *options)
{
	struct info *infos = xcalloc(options->file_count * sizeof *infos);
	struct output *out;
	bool complete = true;

	for (size_t i = 0; i < options->file_count; i++) {
		collect(&infos[i], options->files[i]);
		complete &= infos[i].integrity.complete;
	}
	out = output_open(options->output);
	if (options->format == FORMAT_JSON)
		write_info_json(out, options, infos);
	else if (options->format == FORMAT_CSV)
		write_info_csv(out, options, infos);
	else
		write_info_text(out, options, infos);
	output_close(out, options->output);
	for (size_t i = 0; i < options->file_count; i++)
		release(&infos[i]);
	free(infos);
	return options->strict && !complete ? STATUS_UNREADABLE : STATUS_OK;
}
