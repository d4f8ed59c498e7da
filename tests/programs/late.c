/* SPDX-License-Identifier: MIT
 * late [thread]: makes its first NVTX call in main, beside another thread if asked; prints which
 * variables are then set, and what dlerror then returns.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <nvtx3/nvToolsExt.h>

static void *wait_for_the_end(void *unused)
{
	pause();
	return unused;
}

int main(int count, char **arguments)
{
	static const char *const variables[] = { "NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH",
		"PPERF_RUN" };
	const char *error;
	pthread_t thread;

	(void)arguments;
	if (count > 1 && pthread_create(&thread, NULL, wait_for_the_end, NULL))
		return 2;
	nvtxRangePushA("late");
	nvtxRangePop();
	error = dlerror();
	if (error)
		puts(error);
	for (int i = 0; i < 3; i++)
		if (getenv(variables[i]))
			puts(variables[i]);
	return 0;
}
