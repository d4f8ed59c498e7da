/* SPDX-License-Identifier: MIT
 * phases: for each number N read from standard input, opens and closes N ranges named "phase 1",
 * "phase 2", ..., and says that it has; what happens to it in between is the test's affair.
 */
#include <stdio.h>
#include <nvtx3/nvToolsExt.h>

int main(void)
{
	unsigned long phase = 0, pairs;
	char name[32];

	while (scanf("%lu", &pairs) == 1) {
		snprintf(name, sizeof name, "phase %lu", ++phase);
		for (unsigned long i = 0; i < pairs; i++) {
			nvtxRangePushA(name);
			nvtxRangePop();
		}
		printf("%s\n", name);
		fflush(stdout);
	}
	return 0;
}
