/* The simulated runtime's launches: registration, every way to launch, limits, occupancy. */
#include <dlfcn.h>
#include <string.h>

#include "tests/check_cuda.h"

KERNEL(work)

static const dim3 one = { 1, 1, 1 };
static const dim3 block = { 32, 1, 1 };
static char unknown;

static int attribute(enum cudaDeviceAttr attr)
{
	int value;

	OK(cudaDeviceGetAttribute(&value, attr, 0));
	return value;
}

START_TEST(registered_kernels_launch_in_every_way)
{
	cudaLaunchConfig_t config;
	void *args[1] = { NULL };

	memset(&config, 0, sizeof(config));
	config.gridDim = one;
	config.blockDim = block;
	OK(cudaLaunchKernel(&work, one, block, args, 0, 0));
	OK(cudaLaunchCooperativeKernel(&work, one, block, args, 0, 0));
	OK(cudaLaunchKernelExC(&config, &work, args));
	OK(cudaDeviceSynchronize());
}
END_TEST

START_TEST(handles_launch_as_host_stubs_of_nvcc_13_do)
{
	cudaKernel_t kernel, same;

	OK(__cudaGetKernel(&kernel, &work));
	OK(cudaGetKernel(&same, &work));
	ck_assert_ptr_eq(kernel, same);
	OK(__cudaLaunchKernel(kernel, one, block, NULL, 0, 0));
	FAILS(__cudaGetKernel(&kernel, &unknown), cudaErrorInvalidDeviceFunction);
}
END_TEST

#if SIM_MAJOR == 12
struct cudaLaunchParams {
	void *func;
	dim3 gridDim, blockDim;
	void **args;
	size_t sharedMem;
	cudaStream_t stream;
};
cudaError_t cudaLaunchCooperativeKernelMultiDevice(
	struct cudaLaunchParams *list, unsigned count, unsigned flags);

START_TEST(cuda_12_launches_on_several_devices_together)
{
	struct cudaLaunchParams params = { (void *)&work, one, block, NULL, 0, NULL };

	OK(cudaStreamCreate(&params.stream));
	OK(cudaLaunchCooperativeKernelMultiDevice(&params, 1, 0));
}
END_TEST
#define LAUNCH_OF_THE_MAJOR cuda_12_launches_on_several_devices_together
#else
START_TEST(cuda_13_has_no_launch_on_several_devices)
{
	ck_assert_ptr_null(dlsym(RTLD_DEFAULT, "cudaLaunchCooperativeKernelMultiDevice"));
}
END_TEST
#define LAUNCH_OF_THE_MAJOR cuda_13_has_no_launch_on_several_devices
#endif

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 threads, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *threads, size_t *shared, void *stream);

START_TEST(configurations_are_popped_last_first)
{
	dim3 grid, threads, two = { 2, 1, 1 };
	cudaStream_t stream;
	size_t shared;

	ck_assert_uint_eq(__cudaPushCallConfiguration(one, block, 16, 0), 0);
	ck_assert_uint_eq(__cudaPushCallConfiguration(two, block, 32, 0), 0);
	OK(__cudaPopCallConfiguration(&grid, &threads, &shared, &stream));
	ck_assert_uint_eq(grid.x, 2);
	ck_assert_uint_eq(shared, 32);
	OK(__cudaPopCallConfiguration(&grid, &threads, &shared, &stream));
	ck_assert_uint_eq(shared, 16);
	FAILS(__cudaPopCallConfiguration(&grid, &threads, &shared, &stream),
		cudaErrorMissingConfiguration);
}
END_TEST

START_TEST(bad_launches_are_refused_as_in_reality)
{
	dim3 none = { 0, 1, 1 }, large = { 1025, 1, 1 }, crowd = { 100000, 1, 1 };

	FAILS(cudaLaunchKernel(&unknown, one, block, NULL, 0, 0), cudaErrorInvalidDeviceFunction);
	FAILS(cudaLaunchKernel(&work, none, block, NULL, 0, 0), cudaErrorInvalidConfiguration);
	FAILS(cudaLaunchKernel(&work, one, large, NULL, 0, 0), cudaErrorInvalidConfiguration);
	FAILS(cudaLaunchKernel(&work, one, none, NULL, 0, 0), cudaErrorInvalidConfiguration);
	FAILS(cudaLaunchKernel(&work, one, block, NULL, 60000, 0), cudaErrorInvalidValue);
	FAILS(cudaLaunchCooperativeKernel(&work, crowd, block, NULL, 0, 0),
		cudaErrorCooperativeLaunchTooLarge);
	FAILS(cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);
}
END_TEST

START_TEST(shared_memory_beyond_the_default_must_be_requested)
{
	struct cudaFuncAttributes attributes;
	size_t most;

	OK(cudaFuncGetAttributes(&attributes, &work));
	most = 232448 - attributes.sharedSizeBytes;
	OK(cudaFuncSetAttribute(&work, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most));
	OK(cudaLaunchKernel(&work, one, block, NULL, most, 0));
	FAILS(cudaFuncSetAttribute(
		      &work, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most + 1),
		cudaErrorInvalidValue);
}
END_TEST

START_TEST(occupancy_follows_from_the_limits_of_an_sm)
{
	struct cudaFuncAttributes attributes;
	int blocks, by_threads, by_registers;

	OK(cudaFuncGetAttributes(&attributes, &work));
	ck_assert_int_gt(attributes.numRegs, 0);
	ck_assert_int_eq(attributes.maxThreadsPerBlock, 1024);
	ck_assert_int_eq(attributes.ptxVersion, 90);
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &work, 256, 0));
	by_threads = attribute(cudaDevAttrMaxThreadsPerMultiProcessor) / 256;
	by_registers = attribute(cudaDevAttrMaxRegistersPerMultiprocessor) /
		       (attributes.numRegs * 256);
	ck_assert_int_eq(blocks, by_threads < by_registers ? by_threads : by_registers);
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, &work, 32, 0, 0));
	ck_assert_int_eq(blocks, attribute(cudaDevAttrMaxBlocksPerMultiprocessor));
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &work, 32, 100000));
	ck_assert_int_eq(blocks, 2);
	FAILS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &work, 0, 0),
		cudaErrorInvalidValue);
}
END_TEST

START_TEST(kernels_have_their_mangled_names)
{
	const char *name;

	OK(cudaFuncGetName(&name, &work));
	ck_assert_str_eq(name, "_Z4workPfm");
}
END_TEST

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
	size_t bytes, int constant, int global);

START_TEST(variables_have_memory_on_the_device)
{
	static char shadow[16];
	char in[16] = "hello, device", out[16] = "";
	size_t bytes;
	void *address;

	__cudaRegisterVar(NULL, shadow, NULL, "shadow", 0, sizeof(shadow), 0, 0);
	OK(cudaMemcpyToSymbol(shadow, in, sizeof(in), 0, cudaMemcpyHostToDevice));
	OK(cudaMemcpyFromSymbol(out, shadow, sizeof(out), 0, cudaMemcpyDeviceToHost));
	ck_assert_str_eq(out, in);
	OK(cudaGetSymbolAddress(&address, shadow));
	OK(cudaGetSymbolSize(&bytes, shadow));
	ck_assert_uint_eq(bytes, 16);
	FAILS(cudaMemcpyToSymbol(shadow, in, 16, 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	FAILS(cudaMemcpyToSymbol(&unknown, in, 1, 0, cudaMemcpyHostToDevice),
		cudaErrorInvalidSymbol);
}
END_TEST

START_TEST(the_driver_launches_functions_of_loaded_modules)
{
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction function;
	CUlaunchConfig config;
	int registers;

	OK(cuInit(0));
	OK(cuDeviceGet(&device, 0));
	OK(cuDevicePrimaryCtxRetain(&context, device));
	FAILS(cuModuleLoadData(&module, ".version 9.0\n"), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxSetCurrent(context));
	OK(cuModuleLoadData(&module, ".version 9.0\n"));
	OK(cuModuleGetFunction(&function, module, "saxpy"));
	OK(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
	ck_assert_int_gt(registers, 0);
	OK(cuLaunchKernel(function, 4, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL));
	memset(&config, 0, sizeof(config));
	config.gridDimX = config.gridDimY = config.gridDimZ = 1;
	config.blockDimX = config.blockDimY = config.blockDimZ = 1;
	OK(cuLaunchKernelEx(&config, function, NULL, NULL));
	OK(cuLaunchCooperativeKernel(function, 4, 1, 1, 128, 1, 1, 0, NULL, NULL));
	FAILS(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxSynchronize());
	OK(cuModuleUnload(module));
	FAILS(cuModuleGetFunction(&function, module, "saxpy"), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

SUITE("cudasim launches", registered_kernels_launch_in_every_way,
	handles_launch_as_host_stubs_of_nvcc_13_do, LAUNCH_OF_THE_MAJOR,
	configurations_are_popped_last_first, bad_launches_are_refused_as_in_reality,
	shared_memory_beyond_the_default_must_be_requested,
	occupancy_follows_from_the_limits_of_an_sm, kernels_have_their_mangled_names,
	variables_have_memory_on_the_device, the_driver_launches_functions_of_loaded_modules)
