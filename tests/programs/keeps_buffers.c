/*
 * keeps_buffers HOW: 20 steps that are NVTX ranges, without Python. Each step allocates and frees a
 * workspace of 8 MiB, and
 *
 *	leaks    allocates 2 MiB of device memory that it never frees
 *	pins     the same with pinned memory of the host
 *	manages  the same with managed memory
 *	frees    frees at its end what it allocates
 *	rotates  keeps the buffers of the last 6 steps
 *	enlarges makes one buffer larger in the first 6 steps, and uses it from then on
 *
 * Prints the bytes that are held when the last step ends.
 */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

#define STEPS 20
#define KEPT 6
#define MIB ((size_t)1 << 20)

KERNEL(solve)

static size_t held;
static float *kept[KEPT], *largest;

static void check(cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "keeps_buffers: %s: %s\n", what, cudaGetErrorString(error));
	exit(1);
}

static void *device_memory(size_t bytes)
{
	void *memory = NULL;

	check(cudaMalloc(&memory, bytes), "cudaMalloc");
	held += bytes;
	return memory;
}

static void free_memory(void *memory, size_t bytes)
{
	check(cudaFree(memory), "cudaFree");
	held -= memory ? bytes : 0;
}

/* The buffer of a step that is kept, by `how`. */
static void keep_buffer(const char *how, int step)
{
	void *memory = NULL;

	nvtxRangePushA("keep");
	if (strcmp(how, "leaks") == 0) {
		device_memory(2 * MIB);
	} else if (strcmp(how, "pins") == 0) {
		check(cudaMallocHost(&memory, 2 * MIB), "cudaMallocHost");
		held += 2 * MIB;
	} else if (strcmp(how, "manages") == 0) {
		check(cudaMallocManaged(&memory, 2 * MIB, cudaMemAttachGlobal),
			"cudaMallocManaged");
		held += 2 * MIB;
	} else if (strcmp(how, "frees") == 0) {
		free_memory(device_memory(2 * MIB), 2 * MIB);
	} else if (strcmp(how, "rotates") == 0) {
		free_memory(kept[step % KEPT], 2 * MIB);
		kept[step % KEPT] = device_memory(2 * MIB);
	} else if (step < KEPT) {
		free_memory(largest, (size_t)step * 2 * MIB);
		largest = device_memory((size_t)(step + 1) * 2 * MIB);
	}
	nvtxRangePop();
}

static void run_step(const char *how, int step)
{
	char name[32];
	float *workspace;

	snprintf(name, sizeof name, "step: %d", step);
	nvtxRangePushA(name);
	nvtxRangePushA("solve");
	workspace = device_memory(8 * MIB);
	check(LAUNCH(solve, 64, 256, 0, NULL, workspace, 2 * MIB), "solve");
	check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	free_memory(workspace, 8 * MIB);
	nvtxRangePop();
	keep_buffer(how, step);
	nvtxRangePop();
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "leaks";
	void *weights = device_memory(32 * MIB);

	for (int step = 0; step < STEPS; step++)
		run_step(how, step);
	printf("%zu\n", held);
	free_memory(weights, 32 * MIB);
	return 0;
}
