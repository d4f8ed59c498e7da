/* The runtime: launches. */
#include <string.h>

#include "runtime/runtime.h"

#define CONFIGURATIONS 16

/* What <<<>>> pushed and the host stub takes. */
struct configuration {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
};

static _Thread_local struct configuration pending[CONFIGURATIONS];
static _Thread_local unsigned pending_count;

static unsigned push(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream)
{
	if (pending_count == CONFIGURATIONS)
		return 1;
	pending[pending_count++] = (struct configuration){ grid, block, shared, stream };
	return 0;
}

ENTRY_POINT(unsigned, SIM_RUNTIME, __cudaPushCallConfiguration, "__cudaPushCallConfiguration",
	false, (dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream),
	(grid, block, shared, stream), push, (void)0, NULL, NULL, ENTRY_PLAIN, 1)

RUNTIME_API_BARE(__cudaPopCallConfiguration,
	(dim3 * grid, dim3 *block, size_t *shared, void *stream), (grid, block, shared, stream))
{
	const struct configuration *top;

	if (pending_count == 0)
		return cudaErrorMissingConfiguration;
	top = &pending[--pending_count];
	*grid = top->grid;
	*block = top->block;
	*shared = top->shared;
	*(cudaStream_t *)stream = top->stream;
	return cudaSuccess;
}

static bool is_configuration(dim3 grid, dim3 block)
{
	uint64_t threads = (uint64_t)block.x * block.y * block.z;

	return grid.x && grid.y && grid.z && grid.y <= 65535 && grid.z <= 65535 && threads &&
	       threads <= 1024 && block.z <= 64;
}

/* The driver calls every bad argument an invalid value; the runtime tells the configuration apart.
 */
static cudaError_t translate(cudaError_t error, dim3 grid, dim3 block)
{
	return error == cudaErrorInvalidValue && !is_configuration(grid, block)
		       ? cudaErrorInvalidConfiguration
		       : error;
}

static cudaError_t launch(const void *function, dim3 grid, dim3 block, void **args, size_t shared,
	cudaStream_t stream)
{
	CUfunction kernel = registry_kernel(function);

	CHECK(runtime_ready());
	if (!kernel)
		return cudaErrorInvalidDeviceFunction;
	return translate(STREAM_CALL(cuLaunchKernel, kernel, grid.x, grid.y, grid.z, block.x,
				 block.y, block.z, (unsigned)shared, stream, args, NULL),
		grid, block);
}

RUNTIME_API_LAUNCH(cudaLaunchKernel, 7000, 7000,
	(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
		cudaStream_t stream),
	(func, gridDim, blockDim, args, sharedMem, stream), registry_name(func))
{
	return launch(func, gridDim, blockDim, args, sharedMem, stream);
}

static cudaError_t launch_together(const void *function, dim3 grid, dim3 block, void **args,
	size_t shared, cudaStream_t stream)
{
	CUfunction kernel = registry_kernel(function);

	CHECK(runtime_ready());
	if (!kernel)
		return cudaErrorInvalidDeviceFunction;
	return translate(STREAM_CALL(cuLaunchCooperativeKernel, kernel, grid.x, grid.y, grid.z,
				 block.x, block.y, block.z, (unsigned)shared, stream, args),
		grid, block);
}

RUNTIME_API_LAUNCH(cudaLaunchCooperativeKernel, 9000, 9000,
	(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
		cudaStream_t stream),
	(func, gridDim, blockDim, args, sharedMem, stream), registry_name(func))
{
	return launch_together(func, gridDim, blockDim, args, sharedMem, stream);
}

_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "attributes are the same");

RUNTIME_API_LAUNCH(cudaLaunchKernelExC, 11060, 11060,
	(const cudaLaunchConfig_t *config, const void *func, void **args), (config, func, args),
	registry_name(func))
{
	CUfunction kernel = registry_kernel(func);
	CUlaunchConfig driver_config = {
		.gridDimX = config->gridDim.x,
		.gridDimY = config->gridDim.y,
		.gridDimZ = config->gridDim.z,
		.blockDimX = config->blockDim.x,
		.blockDimY = config->blockDim.y,
		.blockDimZ = config->blockDim.z,
		.sharedMemBytes = (unsigned)config->dynamicSmemBytes,
		.hStream = config->stream,
		.attrs = (CUlaunchAttribute *)(void *)config->attrs,
		.numAttrs = config->numAttrs,
	};

	CHECK(runtime_ready());
	if (!kernel)
		return cudaErrorInvalidDeviceFunction;
	return translate(STREAM_CALL(cuLaunchKernelEx, &driver_config, kernel, args, NULL),
		config->gridDim, config->blockDim);
}

RUNTIME_API_STREAM(cudaLaunchHostFunc, 10000, 10000,
	(cudaStream_t stream, cudaHostFn_t fn, void *userData), (stream, fn, userData))
{
	CHECK(runtime_ready());
	return STREAM_CALL(cuLaunchHostFunc, stream, fn, userData);
}

static cudaError_t get_kernel(cudaKernel_t *handle, const void *function)
{
	CUfunction kernel = registry_kernel(function);

	*handle = (cudaKernel_t)(void *)kernel;
	return kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

RUNTIME_API(cudaGetKernel, 12000, (cudaKernel_t * kernelPtr, const void *entryFuncAddr),
	(kernelPtr, entryFuncAddr))
{
	return get_kernel(kernelPtr, entryFuncAddr);
}

RUNTIME_API(cudaGetFuncBySymbol, 11000, (cudaFunction_t * functionPtr, const void *symbolPtr),
	(functionPtr, symbolPtr))
{
	*functionPtr = (cudaFunction_t)registry_kernel(symbolPtr);
	return *functionPtr ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

/*
 * What host stubs made by nvcc 13 call; late libraries of 12 have them, too. CUPTI 13 has ids for
 * them, but no parameter structs.
 */
RUNTIME_API_BARE(__cudaGetKernel, (cudaKernel_t * kernel, const void *function), (kernel, function))
{
	return get_kernel(kernel, function);
}

static cudaError_t launch_handle(
	cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
	return launch((const void *)kernel, grid, block, args, shared, stream);
}

RUNTIME_ENTRY_BARE(__cudaLaunchKernel, false,
	(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
		cudaStream_t stream),
	(kernel, grid, block, args, shared, stream), launch_handle,
	registry_name((const void *)kernel))
RUNTIME_ENTRY_BARE(__cudaLaunchKernel_ptsz, true,
	(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
		cudaStream_t stream),
	(kernel, grid, block, args, shared, stream), launch_handle,
	registry_name((const void *)kernel))

#if SIM_MAJOR == 12

/* Gone in 13, and so are its types. */
struct cudaLaunchParams {
	void *func;
	dim3 gridDim;
	dim3 blockDim;
	void **args;
	size_t sharedMem;
	cudaStream_t stream;
};

typedef struct {
	struct cudaLaunchParams *launchParamsList;
	unsigned numDevices;
	unsigned flags;
} cudaLaunchCooperativeKernelMultiDevice_v9000_params;

RUNTIME_API(cudaLaunchCooperativeKernelMultiDevice, 9000,
	(struct cudaLaunchParams * launchParamsList, unsigned int numDevices, unsigned int flags),
	(launchParamsList, numDevices, flags))
{
	(void)flags;
	for (unsigned i = 0; i < numDevices; i++) {
		const struct cudaLaunchParams *p = &launchParamsList[i];

		CHECK(launch_together(
			p->func, p->gridDim, p->blockDim, p->args, p->sharedMem, p->stream));
	}
	return cudaSuccess;
}

#endif

static cudaError_t attribute(CUfunction kernel, CUfunction_attribute which, int *value)
{
	return DRIVER_CALL(cuFuncGetAttribute, value, which, kernel);
}

/* The structs of 12 and 13 differ in reserved members at the end: those are left alone. */
RUNTIME_API(cudaFuncGetAttributes, 3020, (struct cudaFuncAttributes * attr, const void *func),
	(attr, func))
{
	CUfunction kernel = registry_kernel(func);
	int shared;

	CHECK(runtime_ready());
	if (!kernel)
		return cudaErrorInvalidDeviceFunction;
	CHECK(attribute(kernel, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &shared));
	memset(attr, 0, offsetof(struct cudaFuncAttributes, clusterDimMustBeSet));
	attr->sharedSizeBytes = (size_t)shared;
	CHECK(attribute(
		kernel, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &attr->maxThreadsPerBlock));
	CHECK(attribute(kernel, CU_FUNC_ATTRIBUTE_NUM_REGS, &attr->numRegs));
	CHECK(attribute(kernel, CU_FUNC_ATTRIBUTE_PTX_VERSION, &attr->ptxVersion));
	CHECK(attribute(kernel, CU_FUNC_ATTRIBUTE_BINARY_VERSION, &attr->binaryVersion));
	return attribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
		&attr->maxDynamicSharedSizeBytes);
}

RUNTIME_API(cudaFuncSetAttribute, 9000, (const void *func, enum cudaFuncAttribute attr, int value),
	(func, attr, value))
{
	CUfunction kernel = registry_kernel(func);

	CHECK(runtime_ready());
	if (!kernel)
		return cudaErrorInvalidDeviceFunction;
	return DRIVER_CALL(cuFuncSetAttribute, kernel, (CUfunction_attribute)attr, value);
}

RUNTIME_API(cudaFuncSetCacheConfig, 3020, (const void *func, enum cudaFuncCache cacheConfig),
	(func, cacheConfig))
{
	(void)cacheConfig;
	return registry_kernel(func) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

RUNTIME_API(cudaFuncGetName, 12030, (const char **name, const void *func), (name, func))
{
	*name = registry_name(func);
	return *name ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

static cudaError_t occupancy(
	int *blocks, const void *function, int threads, size_t shared, unsigned flags)
{
	CUfunction kernel = registry_kernel(function);

	CHECK(runtime_ready());
	if (!kernel)
		return cudaErrorInvalidDeviceFunction;
	return DRIVER_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, blocks, kernel,
		threads, shared, flags);
}

RUNTIME_API(cudaOccupancyMaxActiveBlocksPerMultiprocessor, 6050,
	(int *numBlocks, const void *func, int blockSize, size_t dynamicSmemSize),
	(numBlocks, func, blockSize, dynamicSmemSize))
{
	return occupancy(numBlocks, func, blockSize, dynamicSmemSize, 0);
}

RUNTIME_API(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000,
	(int *numBlocks, const void *func, int blockSize, size_t dynamicSMemSize,
		unsigned int flags),
	(numBlocks, func, blockSize, dynamicSMemSize, flags))
{
	return occupancy(numBlocks, func, blockSize, dynamicSMemSize, flags);
}
