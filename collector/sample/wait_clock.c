/* SPDX-License-Identifier: MIT */
#include "collector/sample/wait_clock.h"

#include "collector/process/high_descriptor.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* An open file with its identity: the program may close it, and have another file under its number.
 * A forked child inherits them, and closes them. */
static struct {
	int descriptor; /* plus 1; 0: free */
	dev_t device;
	ino_t inode;
} clocks[WAIT_CLOCKS_MAX];

static int open_high(uint32_t tid)
{
	char path[48];
	int low, high;

	snprintf(path, sizeof path, "/proc/self/task/%u/schedstat", tid);
	low = open(path, O_RDONLY | O_CLOEXEC);
	high = low < 0 ? -1 : high_descriptor(low);
	if (low >= 0)
		close(low);
	return high;
}

uint32_t wait_clock_open(uint32_t tid)
{
	struct stat status;
	uint32_t i = 0;
	int file;

	while (i < WAIT_CLOCKS_MAX && clocks[i].descriptor)
		i++;
	if (i == WAIT_CLOCKS_MAX || (file = open_high(tid)) < 0)
		return 0;
	if (fstat(file, &status))
		return 0;
	clocks[i].descriptor = file + 1;
	clocks[i].device = status.st_dev;
	clocks[i].inode = status.st_ino;
	return i + 1;
}

static bool is_ours(uint32_t number)
{
	struct stat status;

	return clocks[number - 1].descriptor &&
	       !fstat(clocks[number - 1].descriptor - 1, &status) &&
	       status.st_dev == clocks[number - 1].device &&
	       status.st_ino == clocks[number - 1].inode;
}

bool wait_clock_read(uint32_t number, uint64_t *waited_ns)
{
	char text[96], *end;
	ssize_t got;

	if (!number || !is_ours(number))
		return false;
	got = pread(clocks[number - 1].descriptor - 1, text, sizeof text - 1, 0);
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
	if (!number)
		return;
	if (is_ours(number))
		close(clocks[number - 1].descriptor - 1);
	clocks[number - 1].descriptor = 0;
}

void wait_clocks_forked(void)
{
	for (uint32_t number = 1; number <= WAIT_CLOCKS_MAX; number++)
		wait_clock_close(number);
}
