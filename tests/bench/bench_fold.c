/* SPDX-License-Identifier: MIT
 * bench_fold.c: how fast a trace of nothing but ranges is folded, against the reference of
 * large_range_trace.h. Processor time, in turns; exits with 1 if the gate is missed.
 */
#include "report/base/error.h"
#include "report/profile/profile.h"
#include "tests/support/large_range_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 7 };
#define PAIRS 10000000u
#define GATE 0.35

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Opening and finding the blocks included. */
static uint64_t run_ours(const char *path)
{
	const struct profile_options options = { .device = -1, .metric = METRIC_CPU };
	struct string_table *texts = string_table_new();
	char error[READER_ERROR_BYTES];
	struct trace_reader *reader = reader_open(path, error);
	struct profile *profile;
	uint64_t calls = 0;

	if (!reader)
		fatal(STATUS_UNREADABLE, "%s", error);
	if (steps_find(reader, NULL, NULL)) /* as the tool does: one look at the names */
		fatal(STATUS_UNREADABLE, "the trace that was made has steps");
	profile = profile_build(reader, texts, &options);
	if (!reader_integrity(reader)->complete)
		fatal(STATUS_UNREADABLE, "the trace that was made is not whole");
	for (uint32_t id = 1; id < profile->tree->count; id++)
		calls += profile->tree->nodes[id].calls;
	profile_free(profile);
	reader_close(reader);
	string_table_free(texts);
	return calls;
}

static int by_value(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

int main(void)
{
	const size_t count = 2 * (size_t)PAIRS;
	struct range_event *events = range_trace_events(count);
	double ours[ROUNDS], reference[ROUNDS], ratios[ROUNDS];
	const char *path = "bench-fold.bin";
	const uint64_t bytes = range_trace_write(path, count, 0);

	for (int round = 0; round < ROUNDS; round++) {
		double start = cpu_seconds();

		if (range_trace_reference(events, count) != PAIRS)
			fatal(STATUS_UNREADABLE, "the reference lost count");
		reference[round] = cpu_seconds() - start;
		start = cpu_seconds();
		if (run_ours(path) != PAIRS)
			fatal(STATUS_UNREADABLE, "the fold lost count");
		ours[round] = cpu_seconds() - start;
		ratios[round] = reference[round] / ours[round];
	}
	unlink(path);
	free(events);
	qsort(ours, ROUNDS, sizeof *ours, by_value);
	qsort(reference, ROUNDS, sizeof *reference, by_value);
	qsort(ratios, ROUNDS, sizeof *ratios, by_value);
	printf("%-6s %-52s %8.3f of the reference (at least %g)  %.1f million events a second, "
	       "reference %.1f; %.1f "
	       "bytes a pair\n",
		ratios[ROUNDS / 2] >= GATE ? "ok" : "MISSED", "fold", ratios[ROUNDS / 2], GATE,
		(double)count / ours[ROUNDS / 2] / 1e6, (double)count / reference[ROUNDS / 2] / 1e6,
		(double)bytes / PAIRS);
	return ratios[ROUNDS / 2] < GATE;
}
