/* SPDX-License-Identifier: MIT
 * ending HOW: a thousand marks on each of two threads, one of them still waiting, then the process
 * ends: by return, exit, _exit, quick_exit, abort, kill, segv, overflow (of the stack), memory
 * (until there is none, then abort), starve (takes memory until it is killed), interrupt and
 * terminate (by those signals), or thread (the main thread leaves first). Or: ending race
 * MICROSECONDS, so long after a thread has begun.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <nvtx3/nvToolsExt.h>

static pthread_barrier_t barrier;
static int last;

static void marks(const char *name)
{
	for (int i = 0; i < 1000; i++)
		nvtxMarkA(name);
	nvtxRangePushA("left open");
}

static void *thread(void *unused)
{
	marks("second thread");
	pthread_barrier_wait(&barrier);
	if (last)
		exit(0);
	pause();
	return unused;
}

static int race(useconds_t after)
{
	pthread_t id;

	nvtxInitialize(NULL);
	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&id, NULL, thread, NULL))
		return 2;
	usleep(after);
	return 0;
}

static void segfault(void)
{
	int *volatile nowhere = (int *)8;

	*nowhere = 1;
}

static int deeper(volatile int *above)
{
	volatile int here[1000];

	here[0] = *above + 1;
	if (here[0] < 0) /* never */
		return 0;
	return deeper(here) + here[0];
}

/* As in a small container. */
static void use_up_memory(void)
{
	struct rlimit limit = { UINT64_C(600) << 20, UINT64_C(600) << 20 };
	size_t bytes = 64 << 20;

	setrlimit(RLIMIT_AS, &limit);
	while (bytes > 16) {
		char *block = malloc(bytes);

		if (block)
			block[0] = 1;
		else
			bytes /= 2;
	}
	abort();
}

static void starve(void)
{
	const size_t bytes = 1 << 20;

	for (char *block; (block = malloc(bytes));)
		memset(block, 1, bytes);
}

int main(int count, char **arguments)
{
	const char *how = count > 1 ? arguments[1] : "return";
	pthread_t id;

	if (count > 2)
		return race((useconds_t)atoi(arguments[2]));
	last = !strcmp(how, "thread");
	pthread_barrier_init(&barrier, NULL, 2);
	marks("first thread");
	if (pthread_create(&id, NULL, thread, NULL))
		return 2;
	if (last) {
		pthread_barrier_wait(&barrier);
		pthread_exit(NULL);
	}
	pthread_barrier_wait(&barrier);
	if (!strcmp(how, "exit"))
		exit(3);
	else if (!strcmp(how, "_exit"))
		_exit(4);
	else if (!strcmp(how, "quick_exit"))
		quick_exit(5);
	else if (!strcmp(how, "abort"))
		abort();
	else if (!strcmp(how, "kill"))
		raise(SIGKILL);
	else if (!strcmp(how, "segv"))
		segfault();
	else if (!strcmp(how, "overflow"))
		deeper(&last);
	else if (!strcmp(how, "memory"))
		use_up_memory();
	else if (!strcmp(how, "starve"))
		starve();
	else if (!strcmp(how, "interrupt"))
		raise(SIGINT);
	else if (!strcmp(how, "terminate"))
		raise(SIGTERM);
	return 0;
}
