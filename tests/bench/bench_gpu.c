/* SPDX-License-Identifier: MIT
 * bench_gpu.c [MEGABYTES [FILE]]: what views of a trace of a program that trains cost
 * (large_training_trace.h): ranges, tensors, calls and what GPUs did, all joined. Against the least
 * that could be called a fold of the same events: 32 bytes an event in memory, already decoded and
 * in order; a stack a thread, a hash table of places, tables of correlation ids and addresses; of
 * each place, call and kernel count, sum, least and most, of each range its own time and GPU time,
 * of the GPU its busy time. That has no steps, no percentiles, no worst instance, no idle time by
 * range, and reads no file.
 *
 * Processor time of whole processes, in turns, and the most memory; exits with 1 if a gate is
 * missed. With FILE it only writes the trace there and measures nothing.
 */
#include "tests/support/large_training_trace.h"
#include "tests/support/view_cost.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PLACES = 1 << 14,
	SLOTS = 1 << 16,
	IN_FLIGHT = 1 << 15,
	HELD = 1 << 12,
	DEEPEST = 32,
	ROUNDS = 7
};
#define MEGABYTES 60u
#define MEMORY_MOST (96u << 10) /* KiB, whatever the trace has */

/* ---- the reference ---- */

struct place {
	uint32_t name, parent;
	uint64_t count, sum, self, least, most, gpu, works, taken, given;
};

struct thread {
	uint32_t stack[DEEPEST], depth;
	uint64_t begin[DEEPEST], inner[DEEPEST];
};

struct reference {
	struct place places[PLACES];
	uint32_t slots[SLOTS], count;
	struct thread threads[LOAD_THREADS];
	struct {
		uint32_t id, place;
	} launched[IN_FLIGHT];
	struct {
		uint64_t address;
		uint32_t place, bytes;
	} held[HELD];
	uint64_t level, peak, busy, covered, works;
};

static uint32_t child(struct reference *fold, uint32_t parent, uint32_t name)
{
	size_t i = (((uint64_t)parent << 32 | name) * 0x9e3779b97f4a7c15u) >> 48;

	for (; fold->slots[i]; i = (i + 1) & (SLOTS - 1))
		if (fold->places[fold->slots[i]].parent == parent &&
			fold->places[fold->slots[i]].name == name)
			return fold->slots[i];
	fold->slots[i] = ++fold->count;
	fold->places[fold->count] = (struct place){
		.name = name, .parent = parent, .least = UINT64_MAX
	};
	return fold->count;
}

static void count(struct place *place, uint64_t duration)
{
	place->count++;
	place->sum += duration;
	place->least = duration < place->least ? duration : place->least;
	place->most = duration > place->most ? duration : place->most;
}

static void end_range(struct reference *fold, struct thread *thread, uint64_t stamp)
{
	struct place *place = &fold->places[thread->stack[thread->depth]];
	const uint64_t duration = stamp - thread->begin[thread->depth];

	count(place, duration);
	place->self += duration - thread->inner[thread->depth];
	thread->inner[--thread->depth] += duration;
}

static size_t slot_of(const struct reference *fold, uint64_t address)
{
	size_t i = (address * 0x9e3779b97f4a7c15u) >> 52;

	while (fold->held[i].address && fold->held[i].address != address)
		i = (i + 1) & (HELD - 1);
	return i;
}

static void hold(struct reference *fold, uint32_t place, uint64_t address, uint32_t bytes)
{
	const size_t i = slot_of(fold, address);

	fold->held[i].address = address;
	fold->held[i].place = place;
	fold->held[i].bytes = bytes;
	fold->places[place].taken += bytes;
	fold->level += bytes;
	fold->peak = fold->level > fold->peak ? fold->level : fold->peak;
}

/* Its slot stays its own: the load takes the same addresses again and again. */
static void give(struct reference *fold, uint64_t address)
{
	const size_t i = slot_of(fold, address);

	fold->places[fold->held[i].place].given += fold->held[i].bytes;
	fold->level -= fold->held[i].bytes;
	fold->held[i].bytes = 0;
}

static void work(struct reference *fold, const struct load_event *event)
{
	const uint32_t of = event->id % IN_FLIGHT,
		       owner = fold->launched[of].id == event->id ? fold->launched[of].place : 0;
	const uint64_t end = event->stamp + event->value,
		       from = event->stamp > fold->covered ? event->stamp : fold->covered;

	fold->places[owner].gpu += event->value;
	fold->works += owner != 0;
	count(&fold->places[child(fold, owner, event->name)], event->value);
	fold->busy += end > from ? end - from : 0;
	fold->covered = end > fold->covered ? end : fold->covered;
}

static void fold_event(struct reference *fold, const struct load_event *event)
{
	struct thread *thread = &fold->threads[event->thread];
	const uint32_t place = thread->stack[thread->depth];

	switch (event->kind) {
	case LOAD_PUSH:
		thread->depth++;
		thread->stack[thread->depth] = child(fold, place, event->name);
		thread->begin[thread->depth] = event->stamp;
		thread->inner[thread->depth] = 0;
		break;
	case LOAD_POP:
		end_range(fold, thread, event->stamp);
		break;
	case LOAD_CALL:
		fold->launched[event->id % IN_FLIGHT].id = event->id;
		fold->launched[event->id % IN_FLIGHT].place = place;
		count(&fold->places[child(fold, place, event->name)], event->value);
		break;
	case LOAD_WAIT:
		count(&fold->places[child(fold, place, event->name)], event->value);
		break;
	case LOAD_ALLOC:
		hold(fold, place, event->value, event->id);
		break;
	case LOAD_FREE:
		give(fold, event->value);
		break;
	default:
		work(fold, event);
	}
}

static double fold_all(const struct load_event *events, size_t event_count)
{
	struct reference *fold = calloc(1, sizeof *fold);
	const double start = view_own_seconds();
	uint64_t works = 0;
	double took;

	if (!fold)
		abort();
	for (size_t i = 0; i < event_count; i++)
		fold_event(fold, &events[i]);
	took = view_own_seconds() - start;
	for (size_t i = 0; i < event_count; i++)
		works += events[i].kind == LOAD_WORK;
	if (fold->works != works || fold->level) {
		fprintf(stderr, "the reference lost count\n");
		exit(2);
	}
	free(fold);
	return took;
}

/* A process of its own: what a child of this one takes at most would not be less than what this one
 * has. */
struct runner {
	int ask, answer; /* pipes */
	pid_t pid;
	size_t event_count;
	uint64_t bytes;
};

static void must(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(2);
}

static void serve(int asked, int answer, const char *path, uint32_t steps)
{
	struct load_event *events = malloc((size_t)steps * LOAD_STEP_MOST * sizeof *events);
	struct runner made = { .ask = 0 };
	char byte;

	must(events != NULL, "the reference");
	made.bytes = load_write(path, steps, events, &made.event_count);
	must(write(answer, &made, sizeof made) == sizeof made, "the reference");
	while (read(asked, &byte, 1) == 1) {
		const double took = fold_all(events, made.event_count);

		must(write(answer, &took, sizeof took) == sizeof took, "the reference");
	}
	_exit(0);
}

/* Once the trace is written. */
static struct runner start(const char *path, uint32_t steps)
{
	struct runner runner, made;
	int ask[2], answer[2];

	must(!pipe2(ask, O_CLOEXEC) && !pipe2(answer, O_CLOEXEC), "pipe");
	runner.pid = fork();
	must(runner.pid >= 0, "fork");
	if (runner.pid == 0) {
		close(ask[1]);
		serve(ask[0], answer[1], path, steps);
	}
	runner.ask = ask[1];
	runner.answer = answer[0];
	must(read(runner.answer, &made, sizeof made) == sizeof made, "the reference");
	runner.bytes = made.bytes;
	runner.event_count = made.event_count;
	return runner;
}

static double run_reference(const struct runner *runner)
{
	double took = 0;

	must(write(runner->ask, "", 1) == 1 &&
			read(runner->answer, &took, sizeof took) == sizeof took,
		"the reference");
	return took;
}

/* ---- the views ---- */

/* most: times the reference. */
static const struct {
	const char *words[VIEW_WORDS];
	double most;
} views[] = {
	{ { "kernels" }, 18 },
	{ { "tree" }, 18 },
	{ { "summary" }, 70 },
	{ { "tree", "-f", "json" }, 22 },
	{ { "table" }, 18 },
	{ { "memory" }, 18 },
	{ { "memory", "--map" }, 36 },
	{ { "steps" }, 36 },
	{ { "idle" }, 38 },
	{ { "critical-path" }, 55 }, /* the aim is 33 */
	{ { "diagnose" }, 65 },
	{ { "scene" }, 80 },
};
enum { VIEWS = sizeof views / sizeof *views };

static int tell(double costs[VIEWS][ROUNDS], const long *kib, double reference)
{
	int missed = 0;

	for (unsigned i = 0; i < VIEWS; i++) {
		const double seconds = view_minimum(costs[i], ROUNDS);
		const bool good = seconds <= views[i].most * reference &&
				  kib[i] <= (long)MEMORY_MOST;

		printf("%-6s %-14s %-8s %6.2f s  %5.1f x the reference (at most %g)  %4ld MiB\n",
			good ? "ok" : "MISSED", views[i].words[0],
			views[i].words[2]   ? views[i].words[2]
			: views[i].words[1] ? views[i].words[1]
					    : "",
			seconds, seconds / reference, views[i].most, kib[i] >> 10);
		missed += !good;
	}
	return missed;
}

static int measure(const char *report, const char *path, const struct runner *runner)
{
	static double costs[VIEWS][ROUNDS];
	static long kib[VIEWS];
	double reference[ROUNDS], usual;
	struct view_cost cost;

	for (unsigned round = 0; round < ROUNDS; round++) {
		reference[round] = run_reference(runner);
		for (unsigned i = 0; i < VIEWS; i++) {
			if (!view_run(report, views[i].words, path, &cost)) {
				printf("MISSED %s: it failed\n", views[i].words[0]);
				return 1;
			}
			costs[i][round] = cost.seconds;
			kib[i] = cost.kib > kib[i] ? cost.kib : kib[i];
		}
	}
	usual = view_minimum(reference, ROUNDS);
	printf("a trace of %.0f MB, %.1f million events; the reference takes %.3f s, %.1f ns an "
	       "event\n",
		(double)runner->bytes / 1e6, (double)runner->event_count / 1e6, usual,
		usual * 1e9 / (double)runner->event_count);
	return tell(costs, kib, usual) != 0;
}

int main(int argc, char **argv)
{
	const uint32_t megabytes = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : MEGABYTES,
		       steps = (uint32_t)((uint64_t)megabytes * 1000000 / LOAD_STEP_BYTES);
	const char *path = argc > 2 ? argv[2] : "bench-gpu.bin";
	struct runner runner;
	char report[4096];
	size_t event_count;
	int missed;

	if (argc > 2) {
		load_write(path, steps, NULL, &event_count);
		return 0;
	}
	snprintf(report, sizeof report, "%s/../../pperf-report", dirname(argv[0]));
	runner = start(path, steps);
	missed = measure(report, path, &runner);
	close(runner.ask);
	waitpid(runner.pid, NULL, 0);
	unlink(path);
	return missed;
}
