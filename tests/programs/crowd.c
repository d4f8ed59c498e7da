/* SPDX-License-Identifier: MIT
 * crowd HOW COUNT: much at once. HOW is threads (COUNT of them, all alive, with a range open on
 * small stacks), children (COUNT forked without waiting for any; each has a range), or descriptors
 * (takes every one there is, opens and closes COUNT ranges, gives one back, and COUNT ranges more),
 * or late (the same after COUNT ranges).
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nvtx3/nvToolsExt.h>

static pthread_barrier_t all_there;

static void *thread(void *unused)
{
	(void)unused;
	nvtxRangePushA("in the crowd");
	pthread_barrier_wait(&all_there);
	nvtxRangePop();
	return NULL;
}

static int threads(int count)
{
	pthread_t *ids = calloc((size_t)count, sizeof *ids);
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 32 << 10);
	pthread_barrier_init(&all_there, NULL, (unsigned)count);
	for (int i = 0; ids && i < count; i++)
		if (pthread_create(&ids[i], &small, thread, NULL))
			_exit(77);
	for (int i = 0; ids && i < count; i++)
		pthread_join(ids[i], NULL);
	free(ids);
	return 0;
}

static int children(int count)
{
	int status, bad = 0;

	nvtxMarkA("parent");
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 77;
		if (pid == 0) {
			nvtxRangePushA("child");
			nvtxRangePop();
			_exit(7);
		}
	}
	while (wait(&status) > 0)
		bad += !WIFEXITED(status) || WEXITSTATUS(status) != 7;
	return bad;
}

static void ranges(int count)
{
	for (int i = 0; i < count; i++) {
		nvtxRangePushA("range");
		nvtxRangePop();
	}
}

static int descriptors(int count, bool late)
{
	struct rlimit limit = { 300, 300 };
	int last = -1, fd;

	setrlimit(RLIMIT_NOFILE, &limit);
	if (late)
		ranges(count);
	while ((fd = open("/dev/null", O_RDONLY)) >= 0)
		last = fd;
	ranges(count);
	close(last);
	ranges(count);
	return 0;
}

int main(int count, char **arguments)
{
	const char *how = count == 3 ? arguments[1] : "";
	int number = count == 3 ? atoi(arguments[2]) : 0;

	if (!strcmp(how, "threads"))
		return threads(number);
	if (!strcmp(how, "children"))
		return children(number);
	if (!strcmp(how, "descriptors") || !strcmp(how, "late"))
		return descriptors(number, *how == 'l');
	return 2;
}
