/* SPDX-License-Identifier: MIT
 * bench_ranges.c [EVENTS [ROUNDS]]: what each view costs on a trace of nothing but ranges (4 bytes
 * an event: 250000000 make 1 GB), against the reference of large_range_trace.h. Processor time of
 * whole processes, the reference before every few of them; and the most memory. Exits with 1 if a
 * gate is missed.
 *
 * The default is the least of which every place has more instances than are kept one by one, as in
 * a longer trace.
 */
#include "tests/support/large_range_trace.h"
#include "tests/support/view_cost.h"
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 3, ROUNDS_MOST = 9, VIEWS_A_REFERENCE = 3 };
#define EVENTS 42000000u
#define MEMORY_MOST (64 << 10) /* KiB */
#define TIMES_MOST 3.0
#define WHOLE_MOST 4.0 /* critical, where all that was recorded is in one instance */
#define INSTANCES_MOST 8.0

/* times: what it may cost; those of single instances of each root, and of two traces, read them
 * several times. */
static const struct {
	const char *words[VIEW_WORDS];
	double times;
	bool whole; /* of the second trace, in which one more range is around all */
} views[] = {
	{ { "summary" }, TIMES_MOST, false },
	{ { "tree" }, TIMES_MOST, false },
	{ { "tree", "-f", "json" }, TIMES_MOST, false },
	{ { "critical" }, TIMES_MOST, false },
	{ { "critical" }, WHOLE_MOST, true },
	{ { "table" }, TIMES_MOST, false },
	{ { "table", "-f", "json" }, TIMES_MOST, false },
	{ { "table", "--by", "module" }, TIMES_MOST, false },
	{ { "table", "--by", "category" }, TIMES_MOST, false },
	{ { "table", "--by", "thread" }, TIMES_MOST, false },
	{ { "table", "--by", "stream" }, TIMES_MOST, false },
	{ { "table", "--by", "step" }, TIMES_MOST, false },
	{ { "table", "--by", "stack" }, TIMES_MOST, false },
	{ { "table", "--by", "shape" }, TIMES_MOST, false },
	{ { "table", "--by", "rank" }, TIMES_MOST, false },
	{ { "categories" }, TIMES_MOST, false },
	{ { "steps" }, TIMES_MOST, false },
	{ { "kernels" }, TIMES_MOST, false },
	{ { "memory" }, TIMES_MOST, false },
	{ { "api" }, TIMES_MOST, false },
	{ { "streams" }, TIMES_MOST, false },
	{ { "queue" }, TIMES_MOST, false },
	{ { "distribution", "range_7_of_many" }, TIMES_MOST, false },
	{ { "distribution", "whole_program" }, TIMES_MOST, true },
	{ { "idle" }, TIMES_MOST, false },
	{ { "overlap" }, TIMES_MOST, false },
	{ { "roofline" }, TIMES_MOST, false },
	{ { "diagnose" }, TIMES_MOST, false },
	{ { "scene" }, TIMES_MOST, false },
	{ { "critical-path" }, TIMES_MOST, false },
	{ { "info" }, TIMES_MOST, false },
	{ { "tree", "--instances", "worst" }, INSTANCES_MOST, false },
	{ { "critical", "--instances", "first" }, INSTANCES_MOST, false },
};
enum { VIEWS = sizeof views / sizeof *views };

static double run_reference(const struct range_event *events, size_t count)
{
	const double start = view_own_seconds();

	if (range_trace_reference(events, count) != count / 2) {
		fprintf(stderr, "the reference lost count\n");
		exit(2);
	}
	return view_own_seconds() - start;
}

/* Whether it kept to its gate. */
static bool tell(size_t view, double *ratios, unsigned rounds, long kib)
{
	const double ratio = view_median(ratios, rounds);
	const bool good = ratio <= views[view].times && kib <= MEMORY_MOST;
	char name[80] = "";

	for (int i = 0; i < VIEW_WORDS && views[view].words[i]; i++)
		snprintf(name + strlen(name), sizeof name - strlen(name), "%s%s", i ? " " : "",
			views[view].words[i]);
	if (views[view].whole)
		snprintf(name + strlen(name), sizeof name - strlen(name), ", one range around");
	printf("%-6s %-46s %5.2f x the reference (at most %g)  %3ld MiB (at most %d)\n",
		good ? "ok" : "MISSED", name, ratio, views[view].times, kib >> 10,
		MEMORY_MOST >> 10);
	return good;
}

int main(int argc, char **argv)
{
	const size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) / 2 * 2 : EVENTS;
	const unsigned long asked = argc > 2 ? strtoul(argv[2], NULL, 10) : ROUNDS;
	const unsigned rounds = asked < 1 ? 1 : asked > ROUNDS_MOST ? ROUNDS_MOST : (unsigned)asked;
	const char *paths[] = { "bench-ranges.bin", "bench-ranges-whole.bin" };
	struct range_event *events = range_trace_events(count);
	static long kib[VIEWS];
	static double ratios[VIEWS][ROUNDS_MOST], reference;
	uint64_t bytes = 0;
	char report[4096];
	int missed = 0;

	snprintf(report, sizeof report, "%s/../../pperf-report", dirname(argv[0]));
	for (int whole = 0; whole < 2; whole++)
		bytes = range_trace_write(paths[whole], count, whole);
	for (unsigned round = 0; round < rounds; round++)
		for (size_t i = 0; i < VIEWS && missed == 0; i++) {
			struct view_cost cost;

			if (i % VIEWS_A_REFERENCE == 0)
				reference = run_reference(events, count);
			missed = !view_run(report, views[i].words, paths[views[i].whole], &cost);
			ratios[i][round] = cost.seconds / reference;
			kib[i] = cost.kib > kib[i] ? cost.kib : kib[i];
			if (missed)
				printf("MISSED %s: it failed\n", views[i].words[0]);
		}
	for (int whole = 0; whole < 2; whole++)
		unlink(paths[whole]);
	free(events);
	if (missed)
		return 1;
	printf("two traces of %.0f MB, %zu million ranges\n", (double)bytes / 1e6, count / 2000000);
	for (size_t i = 0; i < VIEWS; i++)
		missed += !tell(i, ratios[i], rounds, kib[i]);
	return missed != 0;
}
