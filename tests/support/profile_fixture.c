/* SPDX-License-Identifier: MIT */
#include "tests/support/profile_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "folded: %s\n", what);
	abort();
}

static struct profile_options plain(void)
{
	return (struct profile_options){
		.device = -1, .metric = METRIC_CPU, .pick_metric = true, .demangle = DEMANGLE_SHORT
	};
}

void folded_again(struct folded *folded, const struct profile_options *options)
{
	const struct profile_options usual = plain();

	profile_free(folded->profile);
	folded->profile = profile_build(folded->reader, folded->texts, options ? options : &usual);
}

struct folded folded_of(struct trace_builder *builder, const struct profile_options *options)
{
	char path[] = "/tmp/pperf-folded.XXXXXX", error[READER_ERROR_BYTES];
	struct folded folded = { .texts = string_table_new() };
	const int fd = mkstemp(path);

	if (fd < 0 || close(fd))
		die("no file can be written in /tmp");
	builder_write(builder, path);
	builder_free(builder);
	folded.reader = reader_open(path, error);
	if (!folded.reader)
		die(error);
	folded_again(&folded, options);
	unlink(path);
	return folded;
}

void folded_free(struct folded *folded)
{
	profile_free(folded->profile);
	reader_close(folded->reader);
	string_table_free(folded->texts);
}

static uint32_t child(const struct folded *folded, uint32_t parent, const char *name, size_t length)
{
	const struct tree *tree = folded->profile->tree;

	for (uint32_t id = tree->nodes[parent].first_child; id; id = tree->nodes[id].next) {
		const struct string_view text = string_table_get(
			folded->texts, tree->nodes[id].name);

		if (text.length == length && memcmp(text.bytes, name, length) == 0)
			return id;
	}
	return 0;
}

const struct node *folded_node(const struct folded *folded, const char *path)
{
	uint32_t node = 0;

	for (;;) {
		const size_t length = strcspn(path, "/");

		node = child(folded, node, path, length);
		if (!node)
			return NULL;
		if (!path[length])
			return &folded->profile->tree->nodes[node];
		path += length + 1;
	}
}

void folded_check(const struct folded *folded)
{
	char problem[256];

	if (!profile_check_conservation(folded->profile, problem, sizeof problem))
		die(problem);
}
