/* SPDX-License-Identifier: MIT
 * closes VICTIM HOW: a program that closes descriptors which it never opened, as daemons do, while
 * it is recorded: HOW is close (all from 3 on), or reuse (and puts the file VICTIM on every number
 * up to 4095; it must stay as it is).
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <nvtx3/nvToolsExt.h>

static void ranges(const char *name, int count)
{
	for (int i = 0; i < count; i++) {
		nvtxRangePushA(name);
		nvtxRangePop();
	}
}

static int close_all(void)
{
	return close_range(3, ~0u, 0);
}

static int reuse_all(const char *victim)
{
	struct rlimit limit = { 4096, 4096 };
	int fd = open(victim, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, "precious", 8) != 8)
		return -1;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 3; i < 4096; i++)
		if (i != fd)
			dup2(fd, i);
	return 0;
}

int main(int count, char **arguments)
{
	const char *victim = count > 1 ? arguments[1] : "victim",
		   *how = count > 2 ? arguments[2] : "close";

	ranges("before", 1000);
	if (close_all())
		return 2;
	if (!strcmp(how, "reuse") && reuse_all(victim))
		return 2;
	ranges("after", 200000);
	return 0;
}
