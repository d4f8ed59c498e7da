/* SPDX-License-Identifier: MIT
 * cuda_calls [threads N COUNT | fork]: makes the runtime's calls that take and give back memory,
 * launch and capture, with results of all kinds, and prints after each all that a program can see:
 * the result, errno, the last error, whether it was given something. Linked with the simulated
 * runtime 12 or 13.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels.h"

KERNEL(small_kernel)

enum { THREADS = 64 };

static int each;

static void show(const char *call, cudaError_t result, const void *given)
{
	int error = errno, peeked = (int)cudaPeekAtLastError(), last = (int)cudaGetLastError();

	printf("%s: %d, errno %d, last error %d %d, %s\n", call, (int)result, error, peeked, last,
		given ? "given" : "nothing");
}

#define CALL(given, name, ...)                           \
	do {                                             \
		errno = 0;                               \
		cudaError_t result_ = name(__VA_ARGS__); \
		show(#name, result_, given);             \
	} while (0)

static void device_memory(void)
{
	struct cudaPitchedPtr pitched = { 0 };
	size_t pitch = 0;
	void *p = NULL;

	CALL(p, cudaMalloc, &p, 1000);
	CALL(NULL, cudaFree, p);
	CALL(NULL, cudaFree, p);
	CALL(NULL, cudaMalloc, &p, (size_t)1 << 50);
	CALL(NULL, cudaFree, NULL);
	CALL(NULL, cudaFree, (void *)0x1234);
	CALL(p, cudaMallocPitch, &p, &pitch, 100, 20);
	printf("pitch %zu\n", pitch);
	CALL(NULL, cudaFree, p);
	CALL(pitched.ptr, cudaMalloc3D, &pitched, (struct cudaExtent){ 100, 10, 5 });
	CALL(NULL, cudaFree, pitched.ptr);
	CALL(p, cudaMallocManaged, &p, 5000, cudaMemAttachGlobal);
	CALL(NULL, cudaFree, p);
}

static void arrays(void)
{
	struct cudaChannelFormatDesc texel = { 32, 32, 0, 0, cudaChannelFormatKindFloat };
	cudaArray_t array = NULL;
	cudaMipmappedArray_t mipmapped = NULL;

	CALL(array, cudaMallocArray, &array, &texel, 16, 8, 0);
	CALL(NULL, cudaFreeArray, array);
	CALL(array, cudaMalloc3DArray, &array, &texel, (struct cudaExtent){ 16, 8, 4 }, 0);
	CALL(NULL, cudaFreeArray, array);
	CALL(mipmapped, cudaMallocMipmappedArray, &mipmapped, &texel,
		(struct cudaExtent){ 16, 8, 4 }, 3, 0);
	CALL(NULL, cudaFreeMipmappedArray, mipmapped);
}

static void host_memory(void)
{
	void *p = NULL, *own = malloc(8192);

	CALL(p, cudaMallocHost, &p, 777);
	CALL(NULL, cudaFreeHost, p);
	CALL(p, cudaHostAlloc, &p, 888, cudaHostAllocMapped);
	CALL(NULL, cudaFreeHost, p);
	CALL(NULL, cudaHostRegister, own, 8192, cudaHostRegisterDefault);
	CALL(NULL, cudaHostUnregister, own);
	free(own);
}

static void pools(cudaStream_t stream)
{
	cudaMemPool_t pool = NULL;
	void *p = NULL;

	cudaDeviceGetDefaultMemPool(&pool, 0);
	CALL(p, cudaMallocAsync, &p, 4001, stream);
	CALL(NULL, cudaFreeAsync, p, stream);
	CALL(p, cudaMallocFromPoolAsync, &p, 4002, pool, stream);
	CALL(NULL, cudaFreeAsync, p, stream);
}

static void launches(cudaStream_t stream)
{
	void *data = NULL, *args[] = { &data, &(size_t){ 16 } };
	cudaLaunchConfig_t config = { .gridDim = { 2, 1, 1 },
		.blockDim = { 32, 1, 1 },
		.dynamicSmemBytes = 64,
		.stream = stream };

	CALL(data, cudaMalloc, &data, 64);
	CALL(NULL, LAUNCH, small_kernel, 3, 64, 0, stream, data, 16);
	CALL(NULL, LAUNCH, small_kernel, 3, 4096, 0, stream, data, 16);
	CALL(NULL, cudaLaunchKernel, &small_kernel, (dim3){ 4, 1, 1 }, (dim3){ 32, 1, 1 }, args, 8,
		stream);
	CALL(NULL, cudaLaunchKernel, &each, (dim3){ 4, 1, 1 }, (dim3){ 32, 1, 1 }, args, 8, stream);
	CALL(NULL, cudaLaunchKernelExC, &config, &small_kernel, args);
	CALL(NULL, cudaLaunchCooperativeKernel, &small_kernel, (dim3){ 1, 1, 1 },
		(dim3){ 32, 1, 1 }, args, 0, stream);
	cudaStreamSynchronize(stream);
	CALL(NULL, cudaFree, data);
}

static void capture(cudaStream_t stream)
{
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec = NULL;
	void *data = NULL;

	CALL(data, cudaMalloc, &data, 64);
	CALL(NULL, cudaStreamBeginCapture, stream, cudaStreamCaptureModeRelaxed);
	CALL(NULL, LAUNCH, small_kernel, 5, 64, 0, stream, data, 16);
	CALL(NULL, LAUNCH, small_kernel, 6, 64, 0, stream, data, 16);
	CALL(graph, cudaStreamEndCapture, stream, &graph);
	CALL(NULL, LAUNCH, small_kernel, 7, 64, 0, stream, data, 16);
	CALL(exec, cudaGraphInstantiate, &exec, graph, 0);
	CALL(NULL, cudaGraphLaunch, exec, stream);
	CALL(NULL, cudaGraphLaunch, exec, stream);
	CALL(NULL, cudaStreamSynchronize, stream);
	CALL(NULL, cudaStreamEndCapture, stream, &graph);
	cudaGraphExecDestroy(exec);
	cudaGraphDestroy(graph);
	CALL(NULL, cudaFree, data);
}

static void *work(void *result)
{
	cudaStream_t stream;
	void *p;
	int bad = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess;

	for (int i = 0; i < each && !bad; i++) {
		bad |= cudaMalloc(&p, 256 + (size_t)i) != cudaSuccess;
		bad |= LAUNCH(small_kernel, 1, 32, 0, stream, p, 1) != cudaSuccess;
		bad |= cudaFree(p) != cudaSuccess;
	}
	*(int *)result = bad;
	return NULL;
}

static int threads(int count)
{
	pthread_t ids[THREADS];
	int results[THREADS], bad = 0;

	for (int i = 0; i < count; i++)
		pthread_create(&ids[i], NULL, work, &results[i]);
	for (int i = 0; i < count; i++) {
		pthread_join(ids[i], NULL);
		bad |= results[i];
	}
	return bad;
}

/* CUDA is of no use in a forked child once the parent has it; the child must see that as without
 * us. */
static int forked(void)
{
	int status = 1;
	void *p = NULL;
	pid_t child;

	CALL(p, cudaMalloc, &p, 100);
	fflush(stdout);
	child = fork();
	if (!child) {
		CALL(NULL, cudaMalloc, &p, 200);
		CALL(NULL, cudaFree, p);
		exit(7);
	}
	waitpid(child, &status, 0);
	printf("the child ended with %d\n", WEXITSTATUS(status));
	CALL(NULL, cudaFree, p);
	return 0;
}

int main(int count, char **arguments)
{
	cudaStream_t stream;

	if (count > 3 && !strcmp(arguments[1], "threads")) {
		each = atoi(arguments[3]);
		return threads(atoi(arguments[2]));
	}
	if (count > 1 && !strcmp(arguments[1], "fork"))
		return forked();
	CALL(NULL, cudaSetDevice, 0);
	CALL(NULL, cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
	device_memory();
	arrays();
	host_memory();
	pools(stream);
	launches(stream);
	capture(stream);
	show("cudaDeviceSynchronize", cudaDeviceSynchronize(), NULL);
	return 0;
}
