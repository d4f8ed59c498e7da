/* SPDX-License-Identifier: MIT
 * The load that every recorder is measured with: LOAD PAIRS THREADS [kill]. Each thread opens and
 * closes PAIRS ranges, five deep, among 1000 names of 31 to 35 bytes. Prints the nanoseconds that a
 * pair took on the slowest thread, elapsed and of its CPU time, and how many ranges the process
 * closed in all; `kill` then ends it as kill -9 does.
 *
 * Who includes this defines chain(): opens names[first] to names[first + DEPTH - 1], one in the
 * other, and closes them.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEPTH = 5, NAMES = 1000, THREADS_MAX = 8, WARM_UP = 2 * NAMES * DEPTH };

static char names[NAMES][40];
static uint64_t pairs;
static pthread_barrier_t barrier;

struct cost {
	double elapsed, cpu;
	unsigned index;
};

static inline void chain(unsigned first);

static double now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t load(uint64_t count)
{
	uint64_t done = 0;

	for (unsigned first = 0; done < count;
		done += DEPTH, first = first >= NAMES - DEPTH ? 0 : first + 1)
		chain(first);
	return done;
}

/* Thread 0 stays on the first CPU that the process may use, thread 1 on the second: a recorder's
 * helpers have the others. */
static void stay(unsigned index)
{
	cpu_set_t may, one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof may, &may))
		return;
	index %= (unsigned)CPU_COUNT(&may);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &may) && index-- == 0)
			CPU_SET(cpu, &one);
	pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

static void *thread(void *result)
{
	struct cost *cost = result;
	double start, start_cpu;

	stay(cost->index);
	load(pairs < WARM_UP ? 0 : WARM_UP); /* every name is known before the clock starts */
	pthread_barrier_wait(&barrier);
	start = now_ns(CLOCK_MONOTONIC);
	start_cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
	load(pairs);
	cost->cpu = (now_ns(CLOCK_THREAD_CPUTIME_ID) - start_cpu) / (double)pairs;
	cost->elapsed = (now_ns(CLOCK_MONOTONIC) - start) / (double)pairs;
	return NULL;
}

static uint64_t closed_by_each(void)
{
	return (pairs + DEPTH - 1) / DEPTH * DEPTH + (pairs < WARM_UP ? 0 : WARM_UP);
}

int main(int count, char **arguments)
{
	unsigned threads = count > 2 ? (unsigned)atoi(arguments[2]) : 1;
	struct cost results[THREADS_MAX], slowest = { 0, 0, 0 };
	pthread_t ids[THREADS_MAX];

	pairs = count > 1 ? strtoull(arguments[1], NULL, 10) : 1000000;
	if (!pairs || threads < 1 || threads > THREADS_MAX)
		return 2;
	for (int i = 0; i < NAMES; i++)
		snprintf(names[i], sizeof names[i], "transformer.layer.%d.attention_%d", i / 10,
			i % 10);
	pthread_barrier_init(&barrier, NULL, threads);
	for (unsigned i = 0; i < threads; i++) {
		results[i].index = i;
		if (pthread_create(&ids[i], NULL, thread, &results[i]))
			return 2;
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		slowest.elapsed = results[i].elapsed > slowest.elapsed ? results[i].elapsed
								       : slowest.elapsed;
		slowest.cpu = results[i].cpu > slowest.cpu ? results[i].cpu : slowest.cpu;
	}
	printf("%.3f %.3f %llu\n", slowest.elapsed, slowest.cpu,
		(unsigned long long)(threads * closed_by_each()));
	fflush(stdout);
	if (count > 3 && !strcmp(arguments[3], "kill"))
		raise(SIGKILL);
	return 0;
}
