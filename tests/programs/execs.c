/* SPDX-License-Identifier: MIT
 * execs COUNT: one range, then the process becomes itself again, COUNT times.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <nvtx3/nvToolsExt.h>

int main(int count, char **arguments)
{
	int left = count > 1 ? atoi(arguments[1]) : 0;
	char name[32], next[16];

	snprintf(name, sizeof name, "%d left", left);
	nvtxRangePushA(name);
	nvtxRangePop();
	if (left == 0)
		return 0;
	snprintf(next, sizeof next, "%d", left - 1);
	execl("/proc/self/exe", arguments[0], next, (char *)NULL);
	return 2;
}
