/* SPDX-License-Identifier: MIT
 * Another library that is preloaded for the sake of cudaMalloc: counts the calls, says so at the
 * end, and goes on to the next.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

static int calls;

__attribute__((visibility("default"))) int cudaMalloc(void **address, size_t bytes);

int cudaMalloc(void **address, size_t bytes)
{
	int (*real)(void **, size_t);

	calls++;
	*(void **)&real = dlsym(RTLD_NEXT, "cudaMalloc");
	return real ? real(address, bytes) : 3;
}

__attribute__((destructor)) static void say(void)
{
	printf("the other one saw %d\n", calls);
}
