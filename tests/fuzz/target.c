/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/target.h"
#include "report/cache/cache.h"
#include "tests/fuzz/host.h"
#include "tests/support/training_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *target_other(void)
{
	static char path[256];
	struct training training;
	const unsigned char *bytes;
	size_t count;

	if (*path)
		return path;
	training = training_new();
	builder_header(training.builder)->pid = 101;
	for (int step = 0; step < 6; step++)
		train_step(&training, "Net");
	bytes = builder_bytes(training.builder, &count);
	snprintf(path, sizeof path, "%s", host_file("other.bin", bytes, count));
	builder_free(training.builder);
	return path;
}

static const char *const lines[][5] = {
	{ "tree", "-f", "json" },
	{ "summary" },
	{ "table", "-f", "csv", "--all" },
	{ "dump", "-f", "json" },
	{ "info" },
	{ "idle", "-f", "json" },
	{ "memory", "-f", "csv" },
	{ "steps", "-f", "json" },
	{ "ranks", "-f", "json" },
	{ "critical", "-f", "json" },
	{ "critical-path" },
	{ "diagnose", "-f", "json" },
	{ "table", "--by", "stack" },
	{ "roofline", "-f", "csv" },
};

void target_show(uint8_t choice, const char *path)
{
	const char *const *line = lines[choice % (sizeof lines / sizeof *lines)];
	const char *words[8];
	size_t count = 0;

	while (count < 5 && line[count]) {
		words[count] = line[count];
		count++;
	}
	words[count++] = path;
	host_report(words, count);
}

int target_import(const uint8_t *data, size_t bytes)
{
	if (bytes < 1)
		return -1;
	target_show(*data, host_file("import", data + 1, bytes - 1));
	return 0;
}

/* ---- the cache: these functions take the place of those of report/cache/cache.h ---- */

static const uint8_t *kept;
static size_t kept_bytes;

struct cache_key __real_cache_key_of(int fd, const char *path);
struct cache_key __wrap_cache_key_of(int fd, const char *path);
int __real_cache_open(
	const struct cache_key *key, const char *kind, uint32_t number, struct cache_part *part);
int __wrap_cache_open(
	const struct cache_key *key, const char *kind, uint32_t number, struct cache_part *part);

void target_keep(const uint8_t *bytes, size_t count)
{
	kept = bytes;
	kept_bytes = count;
}

struct cache_key __wrap_cache_key_of(int fd, const char *path)
{
	struct cache_key key = __real_cache_key_of(fd, path);

	if (kept)
		key.words[8] = 1; /* as cache_key_is_set wants it */
	return key;
}

int __wrap_cache_open(
	const struct cache_key *key, const char *kind, uint32_t number, struct cache_part *part)
{
	int fd;

	if (!kept)
		return __real_cache_open(key, kind, number, part);
	if (strcmp(kind, "profile") != 0)
		return -1;
	fd = memfd_create("kept", MFD_CLOEXEC);
	if (fd < 0 || pwrite(fd, kept, kept_bytes, 0) != (ssize_t)kept_bytes)
		abort();
	*part = (struct cache_part){ .count = 1, .bytes = kept_bytes };
	return fd;
}
