/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/target.h"
#include "tests/fuzz/host.h"
#include "tests/training.h"

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
