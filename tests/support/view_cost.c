/* SPDX-License-Identifier: MIT */
#include "tests/support/view_cost.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds_of(const struct rusage *use)
{
	return (double)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) +
	       (double)(use->ru_utime.tv_usec + use->ru_stime.tv_usec) / 1e6;
}

/* Starts the program with fork(), not posix_spawn(): this process's memory would count in the
 * child's peak memory. */
static pid_t start(char *const argv[])
{
	const pid_t child = fork();
	int null;

	if (child != 0)
		return child;
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		_exit(127);
	setenv("PPERF_CACHE", "0", 1);
	execv(argv[0], argv);
	_exit(127);
}

bool view_run(const char *report, const char *const words[VIEW_WORDS], const char *trace,
	struct view_cost *cost)
{
	char *argv[VIEW_WORDS + 3] = { (char *)(uintptr_t)report };
	struct rusage use;
	int used = 1, status;
	pid_t child;

	for (int i = 0; i < VIEW_WORDS && words[i]; i++)
		argv[used++] = (char *)(uintptr_t)words[i];
	argv[used] = (char *)(uintptr_t)trace;
	child = start(argv);
	if (child < 0 || wait4(child, &status, 0, &use) != child ||
		(WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
		perror(report);
		exit(2);
	}
	cost->seconds = seconds_of(&use);
	cost->kib = use.ru_maxrss;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

double view_own_seconds(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return seconds_of(&use);
}

static int by_value(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

double view_median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, by_value);
	return values[count / 2];
}

double view_minimum(const double *values, size_t count)
{
	double least = values[0];

	for (size_t i = 1; i < count; i++)
		least = values[i] < least ? values[i] : least;
	return least;
}
