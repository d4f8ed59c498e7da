/* SPDX-License-Identifier: MIT */
#include "collector/sample/wait_clock.h"

#include "collector/process/private_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int clocks[WAIT_CLOCKS_MAX]; /* descriptors, plus 1; 0: free */

void wait_clocks_begin(void)
{
	memset(clocks, 0, sizeof clocks);
}

uint32_t wait_clock_open(uint32_t tid)
{
	char path[48];
	uint32_t i = 0;

	while (i < WAIT_CLOCKS_MAX && clocks[i])
		i++;
	if (i == WAIT_CLOCKS_MAX || !private_files_here())
		return 0;
	snprintf(path, sizeof path, "/proc/self/task/%u/schedstat", tid);
	clocks[i] = open(path, O_RDONLY | O_CLOEXEC) + 1;
	return clocks[i] ? i + 1 : 0;
}

bool wait_clock_read(uint32_t number, uint64_t *waited_ns)
{
	char text[96], *end;
	ssize_t got;

	if (!number || !clocks[number - 1])
		return false;
	got = pread(clocks[number - 1] - 1, text, sizeof text - 1, 0);
	if (got <= 0)
		return false;
	text[got] = '\0';
	strtoull(text, &end, 10); /* time on a core */
	if (*end != ' ')
		return false;
	*waited_ns = strtoull(end + 1, &end, 10);
	return *end == ' ';
}

void wait_clock_close(uint32_t number)
{
	if (!number || !clocks[number - 1])
		return;
	close(clocks[number - 1] - 1);
	clocks[number - 1] = 0;
}
