/* SPDX-License-Identifier: MIT */
#include "report/part/part_inputs.h"
#include "report/analysis/ranks/rank_inputs.h"
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/error.h"
#include "report/base/hash_index.h"
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

static void add_input(struct part_inputs *inputs, const char *path)
{
	struct part_input *input = ARRAY_ADD(inputs->all, inputs->room, inputs->count);
	char *real = realpath(path, NULL);
	struct stat status = { .st_size = 0 };

	*input = (struct part_input){ .path = strdup(path), .real = real ? real : strdup(path) };
	stat(input->real, &status);
	input->bytes = (uint64_t)status.st_size;
	input->file = hash_bytes(0, input->real, strlen(input->real));
	input->version = hash_u64(
		hash_u64(hash_u64(input->file ^ input->bytes) ^ (uint64_t)status.st_mtim.tv_sec) ^
		(uint64_t)status.st_mtim.tv_nsec);
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
		add_input(inputs, found.all[i]->process.path);
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
		if (!read_number(launchers[i].index, &index))
			continue;
		if (options->tasks)
			*count = options->tasks;
		else if (!read_number(launchers[i].count, count))
			fatal(STATUS_USAGE,
				"--share: %s is set, but how many processes there are is not "
				"known; "
				"give --tasks N",
				launchers[i].index);
		if (index >= *count)
			fatal(STATUS_USAGE, "--share: %s is %llu, but there are only %llu tasks",
				launchers[i].index, (unsigned long long)index,
				(unsigned long long)*count);
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

/* Adds the versions that a manifest lists: each trace has a member "version", 16 digits. A name of
 * a file cannot look like one, because its quotation marks are escaped. */
static void add_versions(uint64_t **versions, size_t *room, size_t *count, const char *text)
{
	static const char key[] = "\"version\":\"";

	if (!strstr(text, "\"schema\":\"pperf.part/1\""))
		return;
	while ((text = strstr(text, key))) {
		text += sizeof key - 1;
		*ARRAY_ADD(*versions, *room, *count) = strtoull(text, NULL, 16);
	}
}

static uint64_t *list_done(const char *folder, size_t *count)
{
	struct text_builder pattern = { .text = NULL };
	uint64_t *versions = NULL;
	glob_t found = { .gl_pathc = 0 };
	size_t room = 0;

	*count = 0;
	text_add(&pattern, "%s/manifest/*.json", folder);
	if (!glob(pattern.text, 0, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc; i++) {
			char *text = read_manifest(found.gl_pathv[i]);

			if (text)
				add_versions(&versions, &room, count, text);
			free(text);
		}
	globfree(&found);
	free(pattern.text);
	if (*count)
		qsort(versions, *count, sizeof *versions, compare_u64);
	return versions;
}

static void leave_out_done(struct part_inputs *inputs, const char *folder)
{
	size_t count, kept = 0;
	uint64_t *done = list_done(folder, &count);

	for (size_t i = 0; i < inputs->count; i++)
		if (count &&
			bsearch(&inputs->all[i].version, done, count, sizeof *done, compare_u64)) {
			free_input(&inputs->all[i]);
			inputs->done++;
		} else {
			inputs->all[kept++] = inputs->all[i];
		}
	inputs->count = kept;
	free(done);
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
	leave_out_done(&inputs, options->output);
	return inputs;
}
