/* SPDX-License-Identifier: MIT
 * fuzz_trace.c: a trace in any view, format and with any options that change what is read or how it
 * is arranged.
 *
 * The input: CHOICE_BYTES that choose, then the trace. Changes keep the choice, or change only
 * that.
 */
#include "tests/fuzz/host.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/target.h"

#include "report/cli/view_list.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CHOICE_BYTES 8

struct line {
	const char *words[24];
	size_t count;
};

static void add(struct line *line, const char *word)
{
	if (line->count < sizeof line->words / sizeof *line->words)
		line->words[line->count++] = word;
}

static void add_one_of(struct line *line, unsigned char choice, const char *option,
	const char *const *values, size_t count)
{
	if (choice % (count + 1) == count)
		return;
	add(line, option);
	add(line, values[choice % (count + 1)]);
}

static void add_flags(struct line *line, unsigned char choice)
{
	static const char *const flags[] = { "--all", "--ascii", "--no-fold", "--sources",
		"--strict", "--redact", "--no-steps", "--iec" };

	for (unsigned i = 0; i < 8; i++)
		if (choice >> i & 1)
			add(line, flags[i]);
}

/* The view by its name; what needs a terminal is left to fuzz_tui. */
static const struct view *view_of(unsigned char choice)
{
	size_t count = 0;

	while (view_list[count].name)
		count++;
	return strcmp(view_list[choice % count].name, "tui") ? &view_list[choice % count]
							     : &view_list[0];
}

#define ONE_OF(line, choice, option, ...)                                                    \
	do {                                                                                 \
		static const char *const values_[] = { __VA_ARGS__ };                        \
		add_one_of(line, choice, option, values_, sizeof values_ / sizeof *values_); \
	} while (0)

/* One of the tables of the view memory. */
static void choose_memory(struct line *line, unsigned char choice)
{
	if (choice == 4) {
		add(line, "--ledger");
		return;
	}
	if (choice % 4 == 1) {
		add(line, "--map");
	} else if (choice % 4 == 2) {
		add(line, "--over-time");
		return;
	} else if (choice % 4 == 3) {
		ONE_OF(line, choice / 4, "--by", "path", "module", "step", "line", "size",
			"library");
	}
	ONE_OF(line, choice / 32, "--at", "peak,oom,end", "1", "10us,1ms", "0");
}

static void choose(struct line *line, const unsigned char *choice)
{
	const struct view *view = view_of(choice[0]);

	add(line, view->name);
	if (view->subject)
		add(line, choice[7] & 1 ? "step" : "layer");
	ONE_OF(line, choice[1], "-f", "text", "json", "csv");
	add_flags(line, choice[2]);
	ONE_OF(line, choice[3], "-m", "gpu", "cpu", "wall", "idle", "calls", "reserved",
		"allocated", "alloc");
	if (!strcmp(view->name, "table"))
		ONE_OF(line, choice[4], "--by", "name", "shape", "module", "stack", "category",
			"stream", "thread", "rank", "step");
	else if (!strcmp(view->name, "memory"))
		choose_memory(line, choice[4]);
	else if (!strcmp(view->name, "tree") || !strcmp(view->name, "critical"))
		ONE_OF(line, choice[4], "--instances", "worst", "first", "last", "all");
	ONE_OF(line, choice[5], "--demangle", "short", "base", "full", "no");
	ONE_OF(line, choice[5] / 5, "--width", "20", "40", "200");
	ONE_OF(line, choice[6], "--focus", "step", "step/layer", "*");
	ONE_OF(line, choice[6] / 4, "--steps", "0-1", "1");
	ONE_OF(line, choice[6] / 12, "--step-marker", "step", "layer");
	ONE_OF(line, choice[6] / 36, "--min-percent", "0");
	ONE_OF(line, choice[7] / 2, "-s", "calls", "gpu_total_ns", "max_ns");
	ONE_OF(line, choice[7] / 8, "--device", "0");
	ONE_OF(line, choice[7] / 16, "-d", "1", "3");
}

static bool takes_two(const struct line *line)
{
	return !strcmp(line->words[0], "diff") || !strcmp(line->words[0], "gate");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct line line = { .count = 0 };
	const char *path;

	if (bytes < CHOICE_BYTES)
		return -1;
	choose(&line, data);
	path = host_file("trace.bin", data + CHOICE_BYTES, bytes - CHOICE_BYTES);
	/* Of two runs, one that is whole; with --all it is also the other process of this run. */
	if (takes_two(&line) || (data[2] & 1))
		target_other();
	add(&line, path);
	if (takes_two(&line))
		add(&line, target_other());
	host_report(line.words, line.count);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
	struct dice dice = { seed };
	unsigned char *trace;
	size_t count;

	if (bytes < CHOICE_BYTES + 64 || room < CHOICE_BYTES + 64)
		return LLVMFuzzerMutate(data, bytes, room);
	if (!dice_below(&dice, 3))
		data[dice_below(&dice, CHOICE_BYTES)] = (uint8_t)dice_below(&dice, 256);
	if (!dice_below(&dice, 6))
		return bytes;
	/* Heads of blocks are read as the structs that they are. */
	trace = aligned_alloc(64, (room + 63) / 64 * 64);
	if (!trace)
		return bytes;
	count = bytes - CHOICE_BYTES;
	memcpy(trace, data + CHOICE_BYTES, count);
	count = mutate_trace(trace, count, room - CHOICE_BYTES, &dice);
	memcpy(data + CHOICE_BYTES, trace, count);
	free(trace);
	return count + CHOICE_BYTES;
}
