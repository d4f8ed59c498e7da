/* SPDX-License-Identifier: MIT
 * churn COUNT: COUNT short threads, up to eight at a time, one range each.
 */
#include <pthread.h>
#include <stdlib.h>
#include <nvtx3/nvToolsExt.h>

enum { AT_A_TIME = 8 };

static void *thread(void *unused)
{
	nvtxRangePushA("a short thread");
	nvtxRangePop();
	return unused;
}

int main(int count, char **arguments)
{
	pthread_t threads[AT_A_TIME];
	long left = count > 1 ? atol(arguments[1]) : 1000;

	for (; left > 0; left -= AT_A_TIME) {
		long batch = left < AT_A_TIME ? left : AT_A_TIME;

		for (long i = 0; i < batch; i++)
			if (pthread_create(&threads[i], NULL, thread, NULL))
				return 2;
		for (long i = 0; i < batch; i++)
			pthread_join(threads[i], NULL);
	}
	return 0;
}
