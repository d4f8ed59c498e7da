/* SPDX-License-Identifier: MIT
 * bench_pages.c [MEGABYTES [ROUNDS]]: what pictures and exports cost, against the text views of the
 * same trace. Two traces of this size: ranges only (large_range_trace.h), and a training program
 * (large_training_trace.h). Processor time of whole processes, in turns, the least of the rounds;
 * peak memory; and the size of what they write. Exits with 1 if a gate is missed.
 *
 * The gates do not depend on the number of events: 1000 MEGABYTES have to pass, too.
 */
#include "tests/support/large_range_trace.h"
#include "tests/support/large_training_trace.h"
#include "tests/support/view_cost.h"

#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROUNDS = 5, ROUNDS_MOST = 9, NODES = 5000 };
#define MEGABYTES 80u
/* Durations of all nodes, steps and activities exceed what is kept of them only in a larger trace. */
#define LARGE_MEGABYTES 300u
#define RANGE_EVENT_BYTES 4u
#define TREE_MOST 1.2
/* The page has each layer for itself, too, so its profile has more nodes than that of `tree`. */
#define FLAME_MOST 1.4
#define PAGE_MOST 2.5
#define PAGE_BYTES_MOST 6000000
#define MEMORY_MOST_KIB ((64 << 10) + 300 * NODES / 1024)
#define WRITTEN "bench-pages.out"

/* The reference of a view: `tree`, or all views before `flame` together. */
static const struct {
	const char *words[VIEW_WORDS];
	double most; /* 0: a part of the reference */
	bool is_page;
} views[] = {
	{ { "tree", "-o", WRITTEN }, 0, false },
	{ { "idle", "-o", WRITTEN }, 0, false },
	{ { "memory", "-o", WRITTEN }, 0, false },
	{ { "flame", "-o", WRITTEN }, FLAME_MOST, true },
	{ { "export", "folded", "-o", WRITTEN }, TREE_MOST, false },
	{ { "export", "speedscope", "-o", WRITTEN }, TREE_MOST, false },
	{ { "export", "pprof", "-o", WRITTEN }, TREE_MOST, false },
	{ { "export", "dot", "-o", WRITTEN }, TREE_MOST, false },
	{ { "html", "-o", WRITTEN }, PAGE_MOST, true },
};
enum { VIEWS = sizeof views / sizeof *views, REFERENCES = 3 };

struct measured {
	double seconds[ROUNDS_MOST];
	long kib;
	off_t bytes;
};

static bool measure(
	const char *report, const char *trace, unsigned rounds, struct measured measured[VIEWS])
{
	struct view_cost cost;
	struct stat written;

	for (unsigned round = 0; round < rounds; round++)
		for (unsigned i = 0; i < VIEWS; i++) {
			struct measured *of = &measured[i];

			if (!view_run(report, views[i].words, trace, &cost) ||
				stat(WRITTEN, &written)) {
				printf("MISSED %s %s: it failed\n", views[i].words[0],
					views[i].words[1]);
				return false;
			}
			of->seconds[round] = cost.seconds;
			of->kib = cost.kib > of->kib ? cost.kib : of->kib;
			of->bytes = written.st_size;
		}
	return true;
}

/* Prints what each view cost. Returns the number of gates that are missed. */
static int print_costs(const struct measured measured[VIEWS], unsigned rounds)
{
	double reference = 0;
	int missed = 0;

	for (unsigned i = 0; i < REFERENCES; i++)
		reference += view_minimum(measured[i].seconds, rounds);
	for (unsigned i = 0; i < VIEWS; i++) {
		const struct measured *of = &measured[i];
		const double seconds = view_minimum(of->seconds, rounds),
			     whole = views[i].most == PAGE_MOST
					     ? reference
					     : view_minimum(measured[0].seconds, rounds);
		const bool good = (views[i].most == 0 || seconds <= views[i].most * whole) &&
				  of->kib <= MEMORY_MOST_KIB &&
				  (!views[i].is_page || of->bytes <= PAGE_BYTES_MOST);

		printf("%-6s %-6s %-10s %6.2f s  %5.2f x %s (at most %g)  %3ld MiB  %8lld bytes\n",
			good ? "ok" : "MISSED", views[i].words[0],
			views[i].words[3] ? views[i].words[1] : "", seconds, seconds / whole,
			views[i].most == PAGE_MOST ? "tree, idle and memory" : "tree",
			views[i].most, of->kib >> 10, (long long)of->bytes);
		missed += !good;
	}
	return missed;
}

static int bench(const char *report, const char *trace, const char *what, uint64_t events,
	uint64_t bytes, unsigned rounds)
{
	struct measured measured[VIEWS] = { { .kib = 0 } };
	int missed = 1;

	printf("%s: %.1f million events, %.0f MB\n", what, (double)events / 1e6,
		(double)bytes / 1e6);
	if (measure(report, trace, rounds, measured))
		missed = print_costs(measured, rounds);
	fflush(stdout);
	unlink(trace);
	unlink(WRITTEN);
	return missed;
}

/* Holds memory and size of the largest page for a large trace, in one run. */
static int bench_memory(const char *report, const char *trace, uint64_t megabytes)
{
	static const char *const words[VIEW_WORDS] = { "html", "-o", WRITTEN };
	struct view_cost cost = { .kib = 0 };
	struct stat written = { .st_size = 0 };
	size_t events;
	bool good;

	load_write(trace, (uint32_t)(megabytes * 1000000 / LOAD_STEP_BYTES), NULL, &events);
	good = view_run(report, words, trace, &cost) && !stat(WRITTEN, &written) &&
	       cost.kib <= MEMORY_MOST_KIB && written.st_size <= PAGE_BYTES_MOST;
	printf("%-6s html of %llu MB: %ld MiB (at most %d), %lld bytes (at most %d)\n",
		good ? "ok" : "MISSED", (unsigned long long)megabytes, cost.kib >> 10,
		MEMORY_MOST_KIB >> 10, (long long)written.st_size, PAGE_BYTES_MOST);
	unlink(trace);
	unlink(WRITTEN);
	return !good;
}

int main(int argc, char **argv)
{
	const uint64_t megabytes = argc > 1 ? strtoul(argv[1], NULL, 10) : MEGABYTES;
	const unsigned long asked = argc > 2 ? strtoul(argv[2], NULL, 10) : ROUNDS;
	const unsigned rounds = asked < 1 ? 1 : asked > ROUNDS_MOST ? ROUNDS_MOST : (unsigned)asked;
	const size_t ranges = (size_t)megabytes * 1000000 / RANGE_EVENT_BYTES / 2 * 2;
	const char *trace = "bench-pages.bin";
	size_t events;
	char report[4096];
	uint64_t bytes;
	int missed;

	snprintf(report, sizeof report, "%s/../../pperf-report", dirname(argv[0]));
	bytes = range_trace_write(trace, ranges, 0);
	missed = bench(report, trace, "ranges only", ranges, bytes, rounds);
	bytes = load_write(trace, (uint32_t)(megabytes * 1000000 / LOAD_STEP_BYTES), NULL, &events);
	missed += bench(report, trace, "a training program", events, bytes, rounds);
	if (megabytes < LARGE_MEGABYTES)
		missed += bench_memory(report, trace, LARGE_MEGABYTES);
	return missed != 0;
}
