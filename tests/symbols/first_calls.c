/* SPDX-License-Identifier: MIT
 * first_calls THREADS: the first call of the runtime, from all threads at once. Opening an object
 * takes so long here that all of them look for the runtime before one has found it. Prints how many
 * calls failed.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SLOW_US 50000u

int cudaFree(void *address);

/* In place of the C library's, for all. */
__attribute__((visibility("default"))) void *dlopen(const char *path, int flags)
{
	void *(*next)(const char *, int);

	*(void **)&next = dlsym(RTLD_NEXT, "dlopen");
	if (flags & RTLD_NOLOAD)
		usleep(SLOW_US);
	return next(path, flags);
}

static pthread_barrier_t barrier;
static _Atomic unsigned failed;

static void *call_first(void *unused)
{
	pthread_barrier_wait(&barrier);
	if (cudaFree(NULL))
		failed++;
	return unused;
}

int main(int argc, char **argv)
{
	const unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	pthread_t *threads = calloc(count, sizeof *threads);

	pthread_barrier_init(&barrier, NULL, count);
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, call_first, NULL))
			return 2;
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	printf("%u failed\n", failed);
	return 0;
}
