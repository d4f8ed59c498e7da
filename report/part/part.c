/* SPDX-License-Identifier: MIT */
#include "report/part/part.h"
#include "report/analysis/step_stats.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/hash_index.h"
#include "report/base/text_builder.h"
#include "report/diagnose/diagnose.h"
#include "report/import/open_trace.h"
#include "report/part/part_inputs.h"
#include "report/part/part_process.h"
#include "report/part/part_stretches.h"
#include "report/table/view.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAME_BYTES 17u

/* A process that was written, for the manifest. */
struct part_entry {
	uint64_t trace;
	int64_t rank;
	enum rank_input_status status;
	bool is_fault; /* damaged or incomplete */
	const struct part_input *input;
};

struct part_faults {
	size_t count;            /* processes that are damaged or incomplete */
	size_t readable, absent; /* processes that can be read; whose files are not there */
};

#define FAULTS_NAMED 20u

struct part_task {
	const struct options *options;
	const struct categories *categories;
	struct part_file files[PART_TABLE_COUNT];
	char name[NAME_BYTES];
	struct part_entry *entries;
	size_t count, room;
	struct part_faults *faults;
};

/* ---- one trace ---- */

#define HASH_LANES 4u
#define HASHED_WORDS 16384u

/* Each lane hashes every fourth word, so that the processor need not wait for the word before. */
static void hash_words(uint64_t lanes[HASH_LANES], const uint64_t *words)
{
	for (size_t i = 0; i < HASHED_WORDS; i += HASH_LANES)
		for (size_t lane = 0; lane < HASH_LANES; lane++) {
			const uint64_t sum = lanes[lane] +
					     words[i + lane] * UINT64_C(0x9e3779b97f4a7c15);

			lanes[lane] = (sum << 31 | sum >> 33) * UINT64_C(0xbf58476d1ce4e5b9);
		}
}

/* Returns a hash of a file's bytes, by which copies are found. */
static uint64_t hash_file(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	static uint64_t words[HASHED_WORDS];
	uint64_t lanes[HASH_LANES] = { 1, 2, 3, 4 }, hash = 0;
	ssize_t got;

	while (fd >= 0 && (got = read(fd, words, sizeof words)) > 0) {
		memset((char *)words + got, 0, sizeof words - (size_t)got);
		hash_words(lanes, words);
		hash = hash_u64(hash ^ (uint64_t)got);
	}
	for (size_t lane = 0; lane < HASH_LANES; lane++)
		hash = hash_u64(hash ^ lanes[lane]);
	if (fd >= 0)
		close(fd);
	return hash;
}

static char *shown_name(const struct part_task *task, const struct rank_input *input,
	const struct part_input *from, uint64_t trace)
{
	struct text_builder name = { .text = NULL };
	const size_t given = strlen(from->path);

	if (task->options->redact)
		text_add(&name, "trace-%016llx", (unsigned long long)trace);
	else
		text_add(&name, "%s%s", from->path,
			strlen(input->process.path) > given ? input->process.path + given : "");
	return name.text;
}

/* Adds the collectives, the table of the steps, and what the findings need. */
static void read_part_in(const struct options *options, struct shared_pass *pass)
{
	const struct steps *steps = pass->process->steps;

	rank_input_read_in(options, pass);
	if (steps && steps->count)
		step_table_read_in(pass);
	if (!options->no_findings)
		diagnose_read_in(options, pass);
}

/* Reads a process, and in the same pass what is written of it. Returns false if it cannot be
 * read. The profile is not kept: those of thousands of ranks would fill the cache. */
static bool read_input(const struct part_task *task, struct rank_input *input)
{
	struct options options = *task->options;

	options.no_cache = true;
	return rank_input_read(input, task->categories, &options, read_part_in);
}

/* Counts a process that was written, and says what is wrong with the first ones. */
static bool note_fault(struct part_faults *faults, const struct rank_input *input, bool is_open)
{
	const bool is_fault = rank_input_is_fault(input) || (is_open && !input->process.complete);

	faults->readable += is_open;
	faults->absent += !is_open && access(input->process.path, F_OK) != 0;
	faults->count += is_fault;
	if (rank_input_is_fault(input) && faults->count <= FAULTS_NAMED)
		warn_user("%s", input->why);
	return is_fault;
}

/* Writes process `number` of a file, which has the path `path`. */
static void write_process(
	struct part_task *task, const struct part_input *from, size_t number, const char *path)
{
	struct rank_inputs one = { .count = 0 };
	struct rank_input *input = rank_inputs_add(&one, path);
	const uint64_t trace = number ? hash_u64(from->file ^ number) : from->file;
	char *name = shown_name(task, input, from, trace);
	struct part_process part = { .input = input,
		.trace = trace,
		.content = hash_file(from->real),
		.file = name,
		.files = task->files,
		.options = task->options };

	input->bytes = from->bytes;
	part.is_open = read_input(task, input);
	part_process_write(&part);
	*ARRAY_ADD(task->entries, task->room, task->count) = (struct part_entry){ trace,
		input->process.rank, input->status, note_fault(task->faults, input, part.is_open),
		from };
	if (part.is_open)
		process_close(&input->process);
	free(name);
	rank_inputs_free(&one);
}

static void write_file(struct part_task *task, const struct part_input *input)
{
	size_t count;

	write_process(task, input, 0, input->path);
	count = open_trace_process_count(input->path);
	for (size_t i = 1; i < count; i++) {
		char *other = open_trace_process_path(input->path, i);

		write_process(task, input, i, other);
		free(other);
	}
	open_trace_forget(input->path);
}

/* ---- the manifest ---- */

static void put_entry(
	struct json_writer *json, const struct part_task *task, const struct part_entry *entry)
{
	char hex[NAME_BYTES];

	output_char(json->out, '\n');
	json_write_begin(json, '{');
	snprintf(hex, sizeof hex, "%016llx", (unsigned long long)entry->trace);
	json_put_string(json, "trace", hex);
	snprintf(hex, sizeof hex, "%016llx", (unsigned long long)entry->input->file);
	json_put_string(json, "input", hex);
	snprintf(hex, sizeof hex, "%016llx", (unsigned long long)entry->input->version);
	json_put_string(json, "version", hex);
	json_put_bool(json, "fault", entry->is_fault);
	json_put_string(json, "real", task->options->redact ? NULL : entry->input->real);
	json_put_string(json, "file", task->options->redact ? NULL : entry->input->path);
	json_put_known_signed(json, "rank", entry->rank, entry->rank >= 0);
	json_put_string(json, "status", rank_input_status_name(entry->status));
	json_put_unsigned(json, "bytes", entry->input->bytes);
	json_write_end(json, '}');
}

static void put_manifest(const struct part_task *task, const uint64_t *bytes, struct output *out)
{
	struct json_writer json = { .out = out };
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	json_write_begin(&json, '{');
	json_put_string(&json, "schema", PART_SCHEMA);
	json_put_string(&json, "task", task->name);
	json_put_unsigned(&json, "written_unix_ns",
		(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
	json_put_bool(&json, "redacted", task->options->redact);
	json_put_bool(&json, "findings", !task->options->no_findings);
	json_put_begin(&json, "traces", '[');
	for (size_t i = 0; i < task->count; i++)
		put_entry(&json, task, &task->entries[i]);
	json_write_end(&json, ']');
	json_put_begin(&json, "tables", '{');
	for (enum part_table table = 0; table < PART_TABLE_COUNT; table++) {
		json_put_begin(&json, part_table_name(table), '{');
		json_put_unsigned(&json, "rows", task->files[table].rows);
		json_put_unsigned(&json, "bytes", bytes[table]);
		part_put_columns(&json, table);
		json_write_end(&json, '}');
	}
	json_write_end(&json, '}');
	json_write_end(&json, '}');
	output_char(out, '\n');
}

static void write_manifest(const struct part_task *task, const uint64_t *bytes)
{
	struct text_builder folder = { .text = NULL }, name = { .text = NULL };
	struct output *out;
	char *temporary;

	text_add(&folder, "%s/manifest", task->options->output);
	part_make_folder(folder.text);
	text_add(&name, "%s/%s.json", folder.text, task->name);
	text_add(&folder, "/%s.json.%ld.tmp", task->name, (long)getpid());
	temporary = folder.text;
	out = output_open(temporary);
	put_manifest(task, bytes, out);
	output_close(out, temporary);
	if (rename(temporary, name.text))
		fatal(STATUS_UNREADABLE, "%s: cannot be created:", name.text);
	free(temporary);
	free(name.text);
}

/* ---- tasks ---- */

/* Writes one task. */
static void write_task(const struct options *options, const struct categories *categories,
	const struct part_input *inputs, size_t count, struct part_faults *faults)
{
	struct part_task task = { .options = options, .categories = categories, .faults = faults };
	uint64_t name = 0, bytes[PART_TABLE_COUNT];

	for (size_t i = 0; i < count; i++)
		name = hash_u64(name ^ inputs[i].version);
	snprintf(task.name, sizeof task.name, "%016llx", (unsigned long long)name);
	for (enum part_table table = 0; table < PART_TABLE_COUNT; table++)
		part_file_open(&task.files[table], options->output, table, task.name);
	for (size_t i = 0; i < count; i++)
		write_file(&task, &inputs[i]);
	for (enum part_table table = 0; table < PART_TABLE_COUNT; table++)
		bytes[table] = part_file_finish(&task.files[table]);
	for (enum part_table table = 0; table < PART_TABLE_COUNT; table++)
		part_file_publish(&task.files[table]);
	write_manifest(&task, bytes);
	free(task.entries);
}

/* Returns how many inputs from the first on are one task. */
static size_t task_length(const struct part_inputs *inputs, size_t first)
{
	uint64_t bytes = inputs->all[first].bytes;
	size_t end = first + 1;

	while (end < inputs->count && bytes + inputs->all[end].bytes <= PART_TASK_BYTES)
		bytes += inputs->all[end++].bytes;
	return end - first;
}

/* Returns the exit status. Traces that cannot be read are no failure of one share of many: another
 * share may have good ones. Files that are not there are a wrong argument. */
static int say_what_was_done(const struct options *options, const struct part_inputs *inputs,
	const struct part_faults *faults)
{
	if (faults->count > FAULTS_NAMED)
		warn_user("%zu more traces are damaged or incomplete; `pperf ranks` names them",
			faults->count - FAULTS_NAMED);
	printf("%zu trace%s: %zu written, %zu %s there\n", inputs->found,
		inputs->found == 1 ? "" : "s", inputs->count, inputs->done,
		inputs->done == 1 ? "was" : "were");
	if (inputs->count && !inputs->done && !faults->readable &&
		(!options->share || faults->absent == inputs->count))
		return STATUS_UNREADABLE;
	return options->strict && (faults->count || inputs->done_faults) ? STATUS_UNREADABLE
									 : STATUS_OK;
}

int part_view(const struct options *given)
{
	struct options options = *given;
	struct categories *categories;
	struct part_inputs inputs;
	struct part_faults faults = { .count = 0 };
	int status;

	if (options.stretches)
		return part_stretches(given);
	if (!options.output)
		fatal(STATUS_USAGE,
			"part needs the folder of the parts: pperf-report part TRACES -o "
			"PARTS");
	if (options.tasks && !options.share)
		fatal(STATUS_USAGE, "--tasks says how many processes share the traces, and needs "
				    "--share");
	options.all = true;
	options.rank = -1;
	/* All rows, as in JSON. */
	options.format = FORMAT_JSON;
	options.top = UINT32_MAX;
	options.columns = options.sort = NULL;
	inputs = part_inputs_find(&options);
	categories = categories_read(options.categories);
	for (size_t i = 0, length; i < inputs.count; i += length) {
		length = task_length(&inputs, i);
		write_task(&options, categories, inputs.all + i, length, &faults);
	}
	status = say_what_was_done(&options, &inputs, &faults);
	part_inputs_free(&inputs);
	categories_free(categories);
	return status;
}
