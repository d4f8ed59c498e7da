/* SPDX-License-Identifier: MIT
 * The threads are known by their name, pt_autograd_N, which PyTorch gives them. A thread that waits
 * for the GIL becomes runnable in the moment it is released, so a thread that the kernel reports as
 * sleeping several times in a row has nothing left to free.
 */
#include "preload/torch/autograd_threads.h"

#include "preload/python/python.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 64
#define NAME "(pt_autograd_"
#define POLLS_MAX 1000
#define POLL_NS 100000 /* all polls: 0.1 s */
#define SLEEPING_POLLS 3

/* Reads "TID (NAME) STATE ..." of a thread of this process. Returns NULL if it has ended. */
static const char *read_stat(int tid, char text[128])
{
	char path[64];
	ssize_t got;
	int fd;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	got = read(fd, text, 127);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0 ? text : NULL;
}

/* Returns the number of autograd threads. */
static int find_threads(int tids[THREADS_MAX])
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	char text[128];
	int count = 0;

	while (tasks && count < THREADS_MAX && (entry = readdir(tasks))) {
		const char *stat = read_stat(atoi(entry->d_name), text);

		if (stat && strstr(stat, NAME))
			tids[count++] = atoi(entry->d_name);
	}
	if (tasks)
		closedir(tasks);
	return count;
}

/* True if the thread runs, waits for a processor, or for the disk. */
static bool is_busy(int tid)
{
	char text[128];
	const char *stat = read_stat(tid, text), *name_end = stat ? strrchr(stat, ')') : NULL;

	return name_end && (name_end[1] == ' ') && (name_end[2] == 'R' || name_end[2] == 'D');
}

static bool any_is_busy(const int *tids, int count)
{
	for (int i = 0; i < count; i++)
		if (is_busy(tids[i]))
			return true;
	return false;
}

static void wait_until_idle(const int *tids, int count)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };

	for (int polls = 0, sleeping = 0; polls < POLLS_MAX && sleeping < SLEEPING_POLLS; polls++) {
		syscall(SYS_nanosleep, &pause, NULL); /* no cancellation point */
		sleeping = any_is_busy(tids, count) ? 0 : sleeping + 1;
	}
}

void autograd_threads_finish(void)
{
	int tids[THREADS_MAX], saved = errno, count = find_threads(tids);
	void *state;

	if (count) {
		state = python.PyEval_SaveThread();
		wait_until_idle(tids, count);
		python.PyEval_RestoreThread(state);
	}
	errno = saved;
}
