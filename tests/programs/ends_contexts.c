/* SPDX-License-Identifier: MIT
 * ends_contexts reset | primary | contexts: takes memory of several kinds, ends the context that
 * has it, and goes on. reset: cudaDeviceReset; primary: the driver's reset of the device's own
 * context; contexts: two of the program's own, of which one ends. What is left is said last: bytes
 * of device memory. Ranges: before, end, after.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <string.h>

enum { MIB = 1 << 20 };

static int failed;

static void ok(int result)
{
	failed += result != 0;
}

static void take_by_runtime(void)
{
	const struct cudaChannelFormatDesc texel = { 32, 0, 0, 0, cudaChannelFormatKindFloat };
	cudaArray_t array;
	void *p;

	ok((int)cudaMalloc(&p, 3 * MIB));
	ok((int)cudaMallocManaged(&p, 2 * MIB, cudaMemAttachGlobal));
	ok((int)cudaMallocHost(&p, MIB));
	ok((int)cudaMallocArray(&array, &texel, 64, 64, 0));
}

static void *take(size_t bytes)
{
	CUdeviceptr p = 0;

	ok((int)cuMemAlloc(&p, bytes));
	return (void *)p;
}

static void in_a_range(const char *name, void (*work)(void))
{
	nvtxRangePushA(name);
	work();
	nvtxRangePop();
}

static void take_in_primary(void)
{
	CUcontext primary;

	ok((int)cuInit(0));
	ok((int)cuDevicePrimaryCtxRetain(&primary, 0));
	ok((int)cuCtxSetCurrent(primary));
	take(3 * MIB);
}

static void reset(void)
{
	ok((int)cudaDeviceReset());
}

static void reset_primary(void)
{
	ok((int)cuDevicePrimaryCtxReset(0));
}

static void take_after(void)
{
	void *p;

	ok((int)cudaMalloc(&p, 5 * MIB));
}

static void take_again(void)
{
	CUcontext primary;

	ok((int)cuDevicePrimaryCtxRetain(&primary, 0));
	ok((int)cuCtxSetCurrent(primary));
	take(5 * MIB);
}

static CUcontext first, second;

static void take_in_both(void)
{
	ok((int)cuInit(0));
	ok((int)cuCtxCreate(&first, NULL, 0, 0));
	take(3 * MIB);
	ok((int)cuCtxCreate(&second, NULL, 0, 0));
	take(5 * MIB);
}

static void end_first(void)
{
	ok((int)cuCtxDestroy(first));
}

static void nothing(void)
{
}

int main(int count, char **arguments)
{
	const char *how = count > 1 ? arguments[1] : "reset";

	if (!strcmp(how, "contexts")) {
		in_a_range("before", take_in_both);
		in_a_range("end", end_first);
		in_a_range("after", nothing);
	} else if (!strcmp(how, "primary")) {
		in_a_range("before", take_in_primary);
		in_a_range("end", reset_primary);
		in_a_range("after", take_again);
	} else {
		in_a_range("before", take_by_runtime);
		in_a_range("end", reset);
		in_a_range("after", take_after);
	}
	printf("%d\n", 5 * MIB);
	return failed;
}
