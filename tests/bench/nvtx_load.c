/* SPDX-License-Identifier: MIT
 * nvtx_load PAIRS THREADS: every thread opens and closes PAIRS ranges, five deep, among 1000 names of 31 to 35 bytes. Prints the
 * nanoseconds that a pair took on the slowest thread: elapsed, and of its CPU time.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <nvtx3/nvToolsExt.h>

enum { DEPTH = 5, NAMES = 1000, THREADS_MAX = 8 };

static char names[NAMES][40];
static uint64_t pairs;
static pthread_barrier_t barrier;

struct cost {
	double elapsed, cpu;
};

static double now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void load(uint64_t count)
{
	for (uint64_t i = 0, name = 0; i < count; i += DEPTH, name = name >= NAMES - DEPTH ? 0 : name + 1) {
		for (unsigned d = 0; d < DEPTH; d++)
			nvtxRangePushA(names[name + d]);
		for (unsigned d = 0; d < DEPTH; d++)
			nvtxRangePop();
	}
}

static void *thread(void *result)
{
	struct cost *cost = result;
	double start, start_cpu;

	load(2 * NAMES * DEPTH); /* every name is known before the clock starts */
	pthread_barrier_wait(&barrier);
	start = now_ns(CLOCK_MONOTONIC);
	start_cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
	load(pairs);
	cost->cpu = (now_ns(CLOCK_THREAD_CPUTIME_ID) - start_cpu) / (double)pairs;
	cost->elapsed = (now_ns(CLOCK_MONOTONIC) - start) / (double)pairs;
	return NULL;
}

int main(int count, char **arguments)
{
	int threads = count > 2 ? atoi(arguments[2]) : 1;
	struct cost results[THREADS_MAX], slowest = { 0, 0 };
	pthread_t ids[THREADS_MAX];

	pairs = count > 1 ? strtoull(arguments[1], NULL, 10) : 1000000;
	if (threads < 1 || threads > THREADS_MAX)
		return 2;
	for (int i = 0; i < NAMES; i++)
		snprintf(names[i], sizeof names[i], "transformer.layer.%d.attention_%d", i / 10, i % 10);
	pthread_barrier_init(&barrier, NULL, (unsigned)threads);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, thread, &results[i]))
			return 2;
	for (int i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		slowest.elapsed = results[i].elapsed > slowest.elapsed ? results[i].elapsed : slowest.elapsed;
		slowest.cpu = results[i].cpu > slowest.cpu ? results[i].cpu : slowest.cpu;
	}
	printf("%.3f %.3f\n", slowest.elapsed, slowest.cpu);
	return 0;
}
