/* SPDX-License-Identifier: MIT */
#include "tests/support/profile_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "profile_fixture: %s\n", what);
	abort();
}

static struct profile_options plain(void)
{
	return (struct profile_options){
		.device = -1, .metric = METRIC_CPU, .pick_metric = true, .demangle = DEMANGLE_SHORT
	};
}

void fixture_rebuild(struct profile_fixture *fixture, const struct profile_options *options)
{
	const struct profile_options usual = plain();

	profile_free(fixture->profile);
	fixture->profile = profile_build(
		fixture->reader, fixture->texts, options ? options : &usual);
}

struct profile_fixture fixture_of(
	struct trace_builder *builder, const struct profile_options *options)
{
	char path[] = "/tmp/pperf-fixture.XXXXXX", error[READER_ERROR_BYTES];
	struct profile_fixture fixture = { .texts = string_table_new() };
	const int fd = mkstemp(path);

	if (fd < 0 || close(fd))
		die("no file can be written in /tmp");
	builder_write(builder, path);
	builder_free(builder);
	fixture.reader = reader_open(path, error);
	if (!fixture.reader)
		die(error);
	fixture_rebuild(&fixture, options);
	unlink(path);
	return fixture;
}

void fixture_free(struct profile_fixture *fixture)
{
	profile_free(fixture->profile);
	reader_close(fixture->reader);
	string_table_free(fixture->texts);
}

static uint32_t child(
	const struct profile_fixture *fixture, uint32_t parent, const char *name, size_t length)
{
	const struct tree *tree = fixture->profile->tree;

	for (uint32_t id = tree->nodes[parent].first_child; id; id = tree->nodes[id].next) {
		const struct string_view text = string_table_get(
			fixture->texts, tree->nodes[id].name);

		if (text.length == length && memcmp(text.bytes, name, length) == 0)
			return id;
	}
	return 0;
}

const struct node *fixture_node(const struct profile_fixture *fixture, const char *path)
{
	uint32_t node = 0;

	for (;;) {
		const size_t length = strcspn(path, "/");

		node = child(fixture, node, path, length);
		if (!node)
			return NULL;
		if (!path[length])
			return &fixture->profile->tree->nodes[node];
		path += length + 1;
	}
}

void fixture_check(const struct profile_fixture *fixture)
{
	char problem[256];

	if (!profile_check_conservation(fixture->profile, problem, sizeof problem))
		die(problem);
}
