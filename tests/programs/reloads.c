/* SPDX-License-Identifier: MIT
 * reloads COPY COUNT: loads a library with an NVTX instance of its own, uses it, unloads it, COUNT
 * times; then many threads make the very first NVTX call of this program's own instance at once.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <nvtx3/nvToolsExt.h>

static pthread_barrier_t barrier;

static void *first_call(void *after)
{
	pthread_barrier_wait(&barrier);
	usleep((useconds_t)(uintptr_t)after); /* the others meet an instance that is beginning */
	nvtxRangePushA("at once");
	nvtxRangePop();
	return NULL;
}

static int reload(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*copy_push)(const char *), (*copy_pop)(void);

	if (!library)
		return -1;
	*(void **)&copy_push = dlsym(library, "copy_push");
	*(void **)&copy_pop = dlsym(library, "copy_pop");
	copy_push("reloaded");
	copy_pop();
	return dlclose(library);
}

int main(int count, char **arguments)
{
	pthread_t threads[8];

	for (int i = count > 2 ? atoi(arguments[2]) : 1; i > 0; i--)
		if (reload(count > 1 ? arguments[1] : "./lib_nvtx_copy.so")) {
			fprintf(stderr, "%s\n", dlerror());
			return 2;
		}
	pthread_barrier_init(&barrier, NULL, 8);
	for (int i = 0; i < 8; i++)
		if (pthread_create(&threads[i], NULL, first_call, (void *)(uintptr_t)(i * 5000)))
			return 2;
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
