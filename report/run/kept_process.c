/* SPDX-License-Identifier: MIT */
#include "report/run/kept_process.h"
#include "report/base/temporary_file.h"
#include "report/import/open_trace.h"
#include "report/profile/kept_profile.h"
#include "report/steps/kept_steps.h"
#include <stdlib.h>
#include <unistd.h>

#define KIND "profile"
#define BYTES_MAX (UINT64_C(256) << 20)
#define NO_OWNERS 1u
#define NO_PERCENTILES 2u
#define NO_SAMPLE_PLACES 4u

/* ---- keys ---- */

struct cache_key kept_process_key(const struct process *process, const struct options *options)
{
	const struct profile_options wanted = process_profile_options(process, options);
	struct cache_key key = { { 0 } };

	if (options->no_cache || process->windows || process->handovers || options->steps ||
		options->categories || options->graphs || options->redact)
		return key;
	key = open_trace_key(process->path, process->reader);
	cache_key_add(&key, options->no_steps);
	cache_key_add_text(&key, options->step_marker);
	cache_key_add(&key, wanted.no_fold);
	cache_key_add(&key, wanted.demangle);
	cache_key_add(&key, (uint64_t)wanted.device);
	cache_key_add(&key, wanted.pick_metric ? METRIC_COUNT : wanted.metric);
	cache_key_add_text(&key, wanted.counter);
	return key;
}

static struct cache_key key_of_parts(const struct cache_key *key, unsigned left_out)
{
	struct cache_key of_parts = *key;

	cache_key_add(&of_parts, left_out);
	return of_parts;
}

/* Returns what the profile does not have: NO_OWNERS, NO_PERCENTILES, NO_SAMPLE_PLACES. */
static unsigned parts_left_out(const struct process *process, const struct options *options)
{
	const struct profile_options wanted = process_profile_options(process, options);

	return (wanted.no_owners_and_delays ? NO_OWNERS : 0) |
	       (wanted.no_percentiles ? NO_PERCENTILES : 0) |
	       (wanted.sample_places ? 0 : NO_SAMPLE_PLACES);
}

/* ---- writing ---- */

static void write_texts(const struct string_table *texts, struct value_writer *writer)
{
	const uint32_t count = string_table_count(texts);

	value_write_u64(writer, count);
	for (uint32_t id = 1; id < count; id++) {
		const struct string_view text = string_table_get(texts, id);

		value_write_array(writer, text.bytes, text.length, 1);
	}
}

bool kept_process_encode(struct process *process, FILE *file)
{
	struct value_writer writer = { .file = file, .bytes_max = BYTES_MAX };
	const struct profile *profile = process->profile;
	struct reader_end end;

	if (!reader_end_says_all(process->reader))
		return false;
	end = reader_end_of_pass(process->reader);
	value_write(&writer, &end, sizeof end);
	write_texts(process->texts, &writer);
	steps_write(process->steps, &writer);
	value_write_u64(&writer, process->timeline != NULL);
	value_write_u64(&writer, profile->owns_timeline);
	if (profile->timeline)
		timeline_write(profile->timeline, &writer);
	profile_write(profile, &writer);
	return !writer.failed && !fflush(file);
}

void kept_process_write(
	struct process *process, const struct options *options, const struct cache_key *key)
{
	/* without samples, the profile has all their places */
	const unsigned not_there = process->profile->counts.cpu_samples ? 0 : NO_SAMPLE_PLACES;
	const struct cache_key of_parts = key_of_parts(
		key, parts_left_out(process, options) & ~not_there);
	struct cache_part part = { .count = 1 };
	const int fd = cache_key_is_set(key) ? temporary_file_create() : -1;
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w+b");

	if (file && kept_process_encode(process, file) &&
		open_trace_key_is_current(&of_parts, process->path)) {
		part.bytes = (uint64_t)ftello(file);
		cache_store(&of_parts, KIND, &part, fd);
	}
	if (file)
		fclose(file);
	else if (fd >= 0)
		close(fd);
}

/* ---- reading ---- */

/* Gives each text the number that it had. */
static void read_texts(struct string_table *texts, struct value_reader *reader)
{
	const uint32_t count = (uint32_t)value_read_below(reader, UINT32_MAX);

	value_check(reader, count > 0);
	for (uint32_t id = 1; id < count && !reader->failed; id++) {
		uint64_t length;
		char *text = value_read_array(reader, &length, UINT32_MAX, 1);

		value_check(reader, length && string_table_intern(texts, text, length) == id);
		free(text);
	}
}

/* What is read, before it becomes part of the process. */
struct kept_parts {
	struct reader_end end;
	struct string_table *texts;
	struct steps *steps;
	struct timeline *timeline;
	struct profile *profile;
	bool is_of_process, is_of_profile; /* who frees the timeline; both false: there is none */
};

static void read_parts(struct kept_parts *parts, struct process *process,
	const struct options *options, struct value_reader *reader)
{
	struct profile_options wanted;

	value_read(reader, &parts->end, sizeof parts->end);
	parts->texts = string_table_new();
	read_texts(parts->texts, reader);
	parts->steps = steps_read(reader, reader_node_count(process->reader));
	parts->is_of_process = value_read_below(reader, 1);
	parts->is_of_profile = value_read_below(reader, 1);
	value_check(reader, !parts->is_of_process || !parts->is_of_profile);
	if (parts->is_of_process || parts->is_of_profile)
		parts->timeline = timeline_read(process->reader, options->device, reader);
	wanted = process_profile_options(process, options);
	wanted.found_steps = parts->steps;
	wanted.timeline = parts->is_of_process ? parts->timeline : NULL;
	parts->profile = profile_read(process->reader, parts->texts, &wanted, reader);
}

static void free_parts(struct kept_parts *parts)
{
	profile_free(parts->profile);
	timeline_free(parts->timeline);
	steps_free(parts->steps);
	string_table_free(parts->texts);
}

bool kept_process_decode(
	struct process *process, const struct options *options, FILE *file, uint64_t bytes)
{
	struct value_reader reader = { .file = file, .left = bytes };
	struct kept_parts parts = { .profile = NULL };

	read_parts(&parts, process, options, &reader);
	if (reader.failed || reader.left || !reader_resume_end(process->reader, &parts.end)) {
		free_parts(&parts);
		return false;
	}
	string_table_free(process->texts);
	process->texts = parts.texts;
	process->steps = parts.steps;
	process->timeline = parts.is_of_process ? parts.timeline : NULL;
	process->profile = parts.profile;
	process->profile->timeline = parts.timeline;
	process->profile->owns_timeline = parts.is_of_profile;
	return true;
}

static bool read_entry(
	struct process *process, const struct options *options, const struct cache_key *key)
{
	struct cache_part part;
	const int fd = cache_open(key, KIND, 0, &part);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "rb");
	bool good;

	if (fd >= 0 && !file)
		close(fd);
	if (!file)
		return false;
	good = kept_process_decode(process, options, file, part.bytes);
	fclose(file);
	return good;
}

/* A profile that has more than is wanted will do. */
bool kept_process_read(
	struct process *process, const struct options *options, const struct cache_key *key)
{
	const unsigned left_out = parts_left_out(process, options);

	for (unsigned other = left_out + 1; cache_key_is_set(key) && other-- > 0;) {
		const struct cache_key of_parts = key_of_parts(key, other);

		if (!(other & ~left_out) && read_entry(process, options, &of_parts))
			return true;
	}
	return false;
}
