/* SPDX-License-Identifier: MIT */
#include "report/page/page_head.h"
#include "report/base/text_builder.h"
#include "report/page/flame_data.h"
#include "report/page/page_text.h"
#include "report/print/next_command.h"
#include <stdlib.h>
#include <string.h>

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

char *page_title(const struct options *options, size_t count)
{
	struct text_builder title = { .text = NULL };
	struct page_text page;

	for (size_t i = 0; i < count; i++)
		text_add(&title, "%s%s", i ? " \xe2\x86\x92 " : "", file_name(options->files[i]));
	page = page_text_of(title.text, title.used);
	free(title.text);
	return page.text;
}

static void put_devices(struct json_writer *json, const struct process *process)
{
	const uint32_t count = reader_dictionary_count(process->reader, TRACE_DEVICE);

	json_put_begin(json, "devices", '[');
	for (uint32_t i = 0; i < count; i++) {
		const struct trace_device *device = reader_dictionary(
			process->reader, TRACE_DEVICE, i);
		const struct trace_text name = reader_name(process->reader, device->name);

		json_write_begin(json, '{');
		page_put_text(json, "name", name.bytes, name.length);
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
}

static void put_warnings(struct json_writer *json, const struct processes *of)
{
	json_put_begin(json, "warnings", '[');
	for (size_t i = 0; of && i < of->warning_count; i++)
		json_write_string(json, of->warnings[i]);
	json_write_end(json, ']');
}

/* Writes a process whose trace is `path`. `of`: the run whose warnings are written, or NULL. */
static void put_process(struct json_writer *json, const char *path, const struct process *process,
	size_t process_count, const struct processes *of)
{
	json_write_begin(json, '{');
	page_put_text(json, "file", file_name(path), strlen(file_name(path)));
	page_put_text(json, "command", process->command, strlen(process->command));
	json_put_unsigned(json, "duration", process->wall_ns);
	json_put_unsigned(json, "processes", process_count);
	json_put_known_unsigned(json, "rank", (uint64_t)process->rank, process->rank >= 0);
	json_put_bool(json, "simulated", process->simulated);
	json_put_bool(json, "complete", process->complete && process->integrity.conserved);
	json_put_bool(json, "imported", process_meta(process, "import.format").known);
	put_devices(json, process);
	put_warnings(json, of);
	json_write_end(json, '}');
}

/* Writes a command up to its traces and the options that decide how nodes are named. */
static void put_command(struct json_writer *json, const struct options *options, const char *view)
{
	struct shell_command command = { .ascii = false };

	next_command_begin(&command, view);
	next_command_add_files(&command, options);
	page_put_text(json, view, command.built.text, command.built.used);
	free(command.built.text);
}

void page_head_write(struct json_writer *json, const struct options *options,
	const struct processes *sides, size_t count)
{
	json_put_bool(json, "iec", options->style.iec);
	json_put_begin(json, "head", '[');
	for (size_t i = 0; i < count; i++)
		put_process(json, options->files[i], &sides[i].all[0], sides[i].count, &sides[i]);
	json_write_end(json, ']');
	json_put_begin(json, "commands", '{');
	if (count == 2) {
		put_command(json, options, "diff");
	} else {
		put_command(json, options, "tree");
		put_command(json, options, "memory");
		put_command(json, options, "steps");
	}
	json_write_end(json, '}');
}

void page_head_write_ranks(
	struct json_writer *json, const struct options *options, const struct ranks *ranks)
{
	json_put_bool(json, "iec", options->style.iec);
	json_put_begin(json, "head", '[');
	for (uint32_t i = 0; i < ranks->count; i++) {
		put_process(json, ranks->all[i].process->path, ranks_open(ranks, i, NULL), 1,
			i ? NULL : &ranks->processes);
		ranks_close(ranks, i);
	}
	json_write_end(json, ']');
	json_put_begin(json, "commands", '{');
	put_command(json, options, "ranks");
	json_write_end(json, '}');
}
