/* SPDX-License-Identifier: MIT
 * fuzz_files.c: what a user hands over beside traces: rules of categories, baselines of a gate, the command line.
 *
 * The input: a byte that chooses, then the file; or arguments, one a line.
 */
#include "tests/fuzz/host.h"
#include "tests/fuzz/target.h"

#include "report/options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS_MOST 24

struct line {
	char *words[ARGUMENTS_MOST + 2];
	int count;
};

/* Only read: what they ask for is not done, since it may be to write somewhere. */
static int read_options(void *context)
{
	struct line *line = context;

	optind = 0;
	options_read(line->count, line->words);
	return 0;
}

static void take_arguments(const uint8_t *data, size_t bytes)
{
	struct line line = { .words = { (char *)(uintptr_t)"pperf-report" }, .count = 1 };
	char *text = malloc(bytes + 1), *next = text;

	memcpy(text, data, bytes);
	text[bytes] = '\0';
	while (line.count <= ARGUMENTS_MOST && (line.words[line.count] = strsep(&next, "\n")))
		line.count++;
	line.words[line.count] = NULL;
	host_call(read_options, &line);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const char *words[8];

	if (bytes < 1)
		return -1;
	if (data[0] % 3 == 0) {
		take_arguments(data + 1, bytes - 1);
	} else if (data[0] % 3 == 1) {
		words[0] = "categories";
		words[1] = "--categories";
		words[2] = host_file("rules", data + 1, bytes - 1);
		words[3] = target_other();
		host_report(words, 4);
	} else {
		words[0] = "gate";
		words[1] = host_file("baseline", data + 1, bytes - 1);
		words[2] = target_other();
		words[3] = "-f";
		words[4] = data[0] & 64 ? "text" : "json";
		host_report(words, 5);
	}
	return 0;
}
