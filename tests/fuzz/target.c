/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/target.h"
#include "tests/fuzz/host.h"
#include "tests/support/training_trace.h"

#include <stdio.h>

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

int target_import(const uint8_t *data, size_t bytes)
{
	const char *const *line;
	const char *words[8];
	size_t count = 0;

	if (bytes < 1)
		return -1;
	line = lines[*data % (sizeof lines / sizeof *lines)];
	while (count < 5 && line[count]) {
		words[count] = line[count];
		count++;
	}
	words[count++] = host_file("import", data + 1, bytes - 1);
	host_report(words, count);
	return 0;
}
