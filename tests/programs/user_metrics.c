/* SPDX-License-Identifier: MIT
 * user_metrics [CALLS]: uses all of pperf.h, and prints what a program sees of it: whether pperf
 * records, that errno stays, and how often callbacks were called. With CALLS it measures instead
 * and prints nanoseconds: of an empty loop, of the floor, of a push or pop, of a metric's value.
 */
#include "preload/user/pperf.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned queue, nested_calls;

static double queue_length(void *length)
{
	/* A range that a callback opens calls no callbacks. */
	nested_calls++;
	pperf_range_push("in a callback");
	pperf_range_pop();
	return *(double *)length;
}

static double no_value(void *unused)
{
	(void)unused;
	errno = ERANGE;
	return (double)NAN;
}

static void *thread(void *number)
{
	char name[32];

	snprintf(name, sizeof name, "thread %ld", (long)(intptr_t)number);
	for (int i = 0; i < 100; i++) {
		pperf_range_push(name);
		pperf_metric_push(pperf_metric("Shared", "items"), i);
		pperf_range_pop();
	}
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[4];

	for (long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, thread, (void *)(intptr_t)i);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void run_frames(void)
{
	const unsigned loss = pperf_metric("Loss", "");
	double length = 1;
	char name[32];

	queue = pperf_metric("Queue", "frames");
	pperf_metric_callback(queue, no_value, NULL);
	pperf_metric_callback(queue, queue_length, &length); /* replaces it */
	pperf_metric_callback(pperf_metric("Nothing", ""), no_value, NULL);
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof name, "frame - kf: %d", i);
		pperf_range_push(name);
		pperf_range_push("track");
		length += i;
		pperf_metric_push(loss, 0.5 * i);
		pperf_range_pop();
		pperf_range_pop();
	}
	pperf_metric_callback(queue, NULL, NULL);
	pperf_range_push(NULL);
	pperf_range_pop();
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Prints the fastest of 25 rounds, in nanoseconds per call. */
#define MEASURE(name, calls, per_statement, statement)                                       \
	do {                                                                                 \
		double best = INFINITY, begin;                                               \
                                                                                             \
		for (int round = 0; round < 25; round++) {                                   \
			begin = now_ns();                                                    \
			for (long i = 0; i < (calls); i++) {                                 \
				statement;                                                   \
				__asm__ volatile("" ::: "memory");                           \
			}                                                                    \
			begin = now_ns() - begin;                                            \
			best = begin < best ? begin : best;                                  \
		}                                                                            \
		printf("%s %.2f\n", name, best / (double)(calls) / (double)(per_statement)); \
	} while (0)

/* What the gates of `make bench` call the floor: a time stamp and a store of 16 bytes. */
static inline void stamp_and_store(void)
{
	static __attribute__((unused)) volatile struct {
		uint64_t stamp, tag;
	} ring[16384];
	static unsigned next;

	next = (next + 1) % 16384;
#ifdef __x86_64__
	ring[next].stamp = __builtin_ia32_rdtsc();
#else
	ring[next].stamp = (uint64_t)now_ns();
#endif
	ring[next].tag = next;
}

static void measure(long calls)
{
	const unsigned metric = pperf_metric("Measured", "");

	MEASURE("empty", calls, 1, (void)0);
	MEASURE("floor", calls, 2, (stamp_and_store(), stamp_and_store()));
	MEASURE("range", calls, 2, (pperf_range_push("measured"), pperf_range_pop()));
	MEASURE("metric", calls, 1, pperf_metric_push(metric, (double)i));
}

int main(int count, char **arguments)
{
	uint64_t request;

	if (count > 1) {
		measure(strtol(arguments[1], NULL, 10));
		return 0;
	}
	errno = EBADF;
	printf("recorded %d\n", pperf_enabled());
	run_frames();
	request = pperf_range_begin("request");
	pperf_mark("half");
	run_threads();
	pperf_range_end(request);
	pperf_range_end(0);
	pperf_metric_push(0, 1);
	printf("errno %d, callbacks %u\n", errno == EBADF, nested_calls);
	return 0;
}
