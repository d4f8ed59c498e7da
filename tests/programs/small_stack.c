/* SPDX-License-Identifier: MIT
 * small_stack KIBIBYTES [exits]: makes its first calls to CUDA, and to NVTX, on a thread whose
 * stack is so small. Prints what they returned. exits: the program makes them before, and ends from
 * that thread.
 */
#include "kernels.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <nvtx3/nvToolsExt.h>

KERNEL(scale)

static int results[4];

static void *thread(void *unused)
{
	void *data = NULL;

	(void)unused;
	results[0] = (int)cudaMalloc(&data, 4096);
	nvtxRangePushA("on a small stack");
	LAUNCH(scale, 1, 32, 0, 0, data, 1024);
	results[1] = (int)cudaGetLastError();
	results[2] = (int)cudaDeviceSynchronize();
	results[3] = (int)cudaFree(data);
	nvtxRangePop();
	return NULL;
}

static void say(void)
{
	printf("%d %d %d %d\n", results[0], results[1], results[2], results[3]);
}

static void *end(void *unused)
{
	(void)unused;
	exit(0);
}

int main(int count, char **arguments)
{
	const bool exits = count > 2;
	size_t bytes = (count > 1 ? strtoul(arguments[1], NULL, 10) : 64) << 10;
	char *stack = mmap(
		NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t small;
	pthread_t id;

	if (exits) {
		thread(NULL);
		say();
		fflush(stdout);
	}
	if (stack == MAP_FAILED || mprotect(stack, 4096, PROT_NONE) || pthread_attr_init(&small) ||
		pthread_attr_setstack(&small, stack + 4096, bytes) ||
		pthread_create(&id, &small, exits ? end : thread, NULL) || pthread_join(id, NULL))
		return 2;
	say();
	return 0;
}
