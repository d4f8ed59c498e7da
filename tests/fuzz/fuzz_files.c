/* SPDX-License-Identifier: MIT
 * fuzz_files.c: what a user hands over beside traces: rules of categories, peaks of GPUs, baselines
 * of a gate, the command line.
 *
 * The input: a byte that chooses, then the file; or arguments, one a line.
 */
#include "tests/fuzz/host.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/target.h"

#include "report/cli/command_line.h"

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
	command_line_parse(line->count, line->words);
	return 0;
}

static void take_arguments(const uint8_t *data, size_t bytes)
{
	struct line line = { .words = { (char *)(uintptr_t) "pperf-report" }, .count = 1 };
	char *text = malloc(bytes + 1), *next = text;

	memcpy(text, data, bytes);
	text[bytes] = '\0';
	while (line.count <= ARGUMENTS_MOST && (line.words[line.count] = strsep(&next, "\n")))
		line.count++;
	line.words[line.count] = NULL;
	host_call(read_options, &line);
	free(text);
}

enum { ARGUMENTS, RULES, BASELINE, PEAKS, KINDS };

static void take_file(unsigned kind, const char *format, const uint8_t *data, size_t bytes)
{
	static const char *const of[KINDS][2] = { [RULES] = { "categories", "--categories" },
		[BASELINE] = { "gate" },
		[PEAKS] = { "roofline", "--peaks" } };
	const char *words[8];
	size_t count = 0;

	for (size_t i = 0; i < 2 && of[kind][i]; i++)
		words[count++] = of[kind][i];
	words[count++] = host_file("given", data, bytes);
	words[count++] = target_other();
	words[count++] = "-f";
	words[count++] = format;
	host_report(words, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const char *const formats[] = { "text", "json", "csv" };

	if (bytes < 1)
		return -1;
	if (data[0] % KINDS == ARGUMENTS)
		take_arguments(data + 1, bytes - 1);
	else
		take_file(data[0] % KINDS, formats[data[0] / KINDS % 3], data + 1, bytes - 1);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
	struct dice dice = { seed };

	if (bytes < 2 || data[0] % KINDS != BASELINE || !dice_below(&dice, 3))
		return LLVMFuzzerMutate(data, bytes, room);
	return 1 + mutate_json(data + 1, bytes - 1, room - 1, &dice);
}
