/* SPDX-License-Identifier: MIT */
#include "report/part/part_inputs.h"
#include "report/analysis/ranks/rank_inputs.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/error.h"
#include "report/base/hash_index.h"
#include "report/base/search.h"
#include "report/base/text_builder.h"
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_BYTES_MAX (64u << 20)

/* ---- the traces ---- */

static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hash = hash_u64(hash ^ (unsigned char)bytes[i]);
	return hash_u64(hash ^ count);
}

/* Returns a hash of the options that decide what is in a part. */
static uint64_t hash_options(const struct options *options, bool has_findings)
{
	const char *const texts[] = { options->step_marker, options->categories };
	uint64_t hash = has_findings;

	hash = hash << 1 | options->no_steps;
	hash = hash << 1 | options->no_fold;
	hash = hash << 1 | options->redact;
	hash = hash_u64(hash ^ (uint64_t)options->device << 8);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (texts[i])
			hash = hash_bytes(hash + i, texts[i], strlen(texts[i]));
	return hash;
}

static uint64_t version_of(uint64_t file, const struct options *options, bool has_findings)
{
	return hash_u64(file ^ hash_options(options, has_findings));
}

static void add_input(struct part_inputs *inputs, const char *path, const struct options *options)
{
	struct part_input *input = ARRAY_ADD(inputs->all, inputs->room, inputs->count);
	char *real = realpath(path, NULL);
	struct stat status = { .st_size = 0 };

	*input = (struct part_input){ .path = strdup(path), .real = real ? real : strdup(path) };
	stat(input->real, &status);
	input->bytes = (uint64_t)status.st_size;
	input->file = hash_bytes(0, input->real, strlen(input->real));
	input->state = hash_u64(
		hash_u64(hash_u64(input->file ^ input->bytes) ^ (uint64_t)status.st_mtim.tv_sec) ^
		(uint64_t)status.st_mtim.tv_nsec);
	input->version = version_of(input->state, options, !options->no_findings);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct part_input *)a)->real, ((const struct part_input *)b)->real);
}

static void find_all(struct part_inputs *inputs, const struct options *options)
{
	struct rank_inputs found = { .count = 0 };

	rank_inputs_find_named(&found, options);
	for (size_t i = 0; i < found.count; i++)
		add_input(inputs, found.all[i]->process.path, options);
	rank_inputs_free(&found);
	if (inputs->count)
		qsort(inputs->all, inputs->count, sizeof *inputs->all, by_path);
}

static void free_input(struct part_input *input)
{
	free(input->path);
	free(input->real);
}

void part_inputs_free(struct part_inputs *inputs)
{
	for (size_t i = 0; i < inputs->count; i++)
		free_input(&inputs->all[i]);
	free(inputs->all);
}

/* ---- shares ---- */

/* The variables that say which of how many processes this one is. */
static const struct {
	const char *index, *count;
} launchers[] = {
	{ "SLURM_PROCID", "SLURM_NTASKS" },
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
	{ "PMI_RANK", "PMI_SIZE" },
	{ "JOB_COMPLETION_INDEX", NULL },
};

static bool read_number(const char *name, uint64_t *number)
{
	const char *text = name ? getenv(name) : NULL;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return !errno && !*end && *number <= UINT32_MAX;
}

/* Returns which share this process has, of `count`. */
static uint64_t read_share(const struct options *options, uint64_t *count)
{
	uint64_t index;

	for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
		if (!getenv(launchers[i].index))
			continue;
		if (!read_number(launchers[i].index, &index))
			fatal(STATUS_USAGE, "--share: %s is `%.40s`, which is no number from 0 on",
				launchers[i].index, getenv(launchers[i].index));
		if (options->tasks)
			*count = options->tasks;
		else if (!read_number(launchers[i].count, count))
			fatal(STATUS_USAGE,
				"--share: %s is set, but how many processes there are is not "
				"known; give --tasks N, from 1 on",
				launchers[i].index);
		if (index >= *count)
			fatal(STATUS_USAGE,
				"--share: %s is %llu, so there must be more than the %llu tasks "
				"that %s says",
				launchers[i].index, (unsigned long long)index,
				(unsigned long long)*count,
				options->tasks ? "--tasks" : launchers[i].count);
		return index;
	}
	fatal(STATUS_USAGE, "--share needs SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK or "
			    "JOB_COMPLETION_INDEX in the environment");
}

/* An index of an input, by size. */
struct sized_input {
	uint64_t bytes;
	size_t index;
};

static int by_most_bytes(const void *a, const void *b)
{
	const struct sized_input *left = a, *right = b;

	return left->bytes != right->bytes ? COMPARE(right->bytes, left->bytes)
					   : COMPARE(left->index, right->index);
}

static size_t smallest(const uint64_t *bytes, size_t count)
{
	size_t least = 0;

	for (size_t i = 1; i < count; i++)
		if (bytes[i] < bytes[least])
			least = i;
	return least;
}

/* Keeps the inputs of one share. The largest is given first, each to the share with the fewest
 * bytes. All processes see the same sizes, and decide the same. */
static void keep_share(struct part_inputs *inputs, uint64_t share, uint64_t count)
{
	struct sized_input *order = xcalloc((inputs->count + 1) * sizeof *order);
	uint64_t *bytes = xcalloc(count * sizeof *bytes);
	bool *is_own = xcalloc(inputs->count + 1);
	size_t kept = 0;

	for (size_t i = 0; i < inputs->count; i++)
		order[i] = (struct sized_input){ inputs->all[i].bytes, i };
	qsort(order, inputs->count, sizeof *order, by_most_bytes);
	for (size_t i = 0; i < inputs->count; i++) {
		const size_t to = smallest(bytes, count);

		bytes[to] += order[i].bytes + 1;
		is_own[order[i].index] = to == share;
	}
	for (size_t i = 0; i < inputs->count; i++)
		if (is_own[i])
			inputs->all[kept++] = inputs->all[i];
		else
			free_input(&inputs->all[i]);
	inputs->count = kept;
	free(order);
	free(bytes);
	free(is_own);
}

/* ---- what is done ---- */

static char *read_manifest(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;
	char *text = NULL;
	ssize_t got = -1;

	if (fd >= 0 && !fstat(fd, &status) && S_ISREG(status.st_mode) &&
		status.st_size <= MANIFEST_BYTES_MAX) {
		text = xcalloc((size_t)status.st_size + 1);
		got = pread(fd, text, (size_t)status.st_size, 0);
	}
	if (fd >= 0)
		close(fd);
	if (got >= 0)
		return text;
	free(text);
	return NULL;
}

/* A trace that is done, as it was then, with the options of then. */
struct done_version {
	uint64_t version;
	bool is_fault;
};

struct done_list {
	struct done_version *all;
	size_t count, room;
	bool has_unredacted;
};

COMPARE_BY_TWO(by_version, struct done_version, version, is_fault)

/* Adds the versions that a manifest lists: each trace has a member "version", 16 digits, and
 * "fault" behind it. A name of a file cannot look like them, because its quotation marks are
 * escaped. */
static void add_versions(struct done_list *list, const char *text)
{
	static const char key[] = "\"version\":\"", fault[] = "\",\"fault\":true";

	if (!strstr(text, "\"schema\":\"pperf.part/1\""))
		return;
	list->has_unredacted |= strstr(text, "\"redacted\":false") != NULL;
	while ((text = strstr(text, key))) {
		char *end;
		struct done_version *one = ARRAY_ADD(list->all, list->room, list->count);

		text += sizeof key - 1;
		one->version = strtoull(text, &end, 16);
		one->is_fault = !strncmp(end, fault, sizeof fault - 1);
	}
}

static struct done_list list_done(const char *folder)
{
	struct text_builder pattern = { .text = NULL };
	struct done_list list = { .count = 0 };
	glob_t found = { .gl_pathc = 0 };

	text_add(&pattern, "%s/manifest/*.json", folder);
	if (!glob(pattern.text, 0, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc; i++) {
			char *text = read_manifest(found.gl_pathv[i]);

			if (text)
				add_versions(&list, text);
			free(text);
		}
	globfree(&found);
	free(pattern.text);
	if (list.count)
		qsort(list.all, list.count, sizeof *list.all, by_version);
	return list;
}

DEFINE_COUNT_WHILE(versions_before, struct done_version, item->version < limit)

static const struct done_version *find_version(const struct done_list *list, uint64_t version)
{
	const size_t at = versions_before(list->all, list->count, version);

	return at < list->count && list->all[at].version == version ? &list->all[at] : NULL;
}

/* Returns the part of an input that is there, or NULL. */
static const struct done_version *find_done(
	const struct done_list *list, const struct part_input *input, const struct options *options)
{
	const struct done_version *done = find_version(list, input->version);

	return done || !options->no_findings
		       ? done
		       : find_version(list, version_of(input->state, options, true));
}

static void leave_out_done(struct part_inputs *inputs, const struct options *options)
{
	struct done_list list = list_done(options->output);
	size_t kept = 0;

	if (options->redact && list.has_unredacted)
		fatal(STATUS_USAGE,
			"%s: has parts that are not redacted; give --redact another folder",
			options->output);
	for (size_t i = 0; i < inputs->count; i++) {
		const struct done_version *done = find_done(&list, &inputs->all[i], options);

		if (done) {
			free_input(&inputs->all[i]);
			inputs->done++;
			inputs->done_faults += done->is_fault;
		} else {
			inputs->all[kept++] = inputs->all[i];
		}
	}
	inputs->count = kept;
	free(list.all);
}

struct part_inputs part_inputs_find(const struct options *options)
{
	struct part_inputs inputs = { .count = 0 };
	uint64_t share, count = 0;

	find_all(&inputs, options);
	if (options->share) {
		share = read_share(options, &count);
		keep_share(&inputs, share, count);
	}
	inputs.found = inputs.count;
	leave_out_done(&inputs, options);
	return inputs;
}
