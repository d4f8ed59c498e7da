/* SPDX-License-Identifier: MIT
 * Launches by a library that has its own runtime inside. */
#include <elf.h>
#include <stdlib.h>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <generated_cuda_runtime_api_meta.h>

#include "driver/table.h"
#include "libraries/library.h"

#define EM_CUDA_DEVICE 190

/* What a tool gets as the library's module: an ELF file for the device with nothing in it. */
static const Elf64_Ehdr image = {
	.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
	.e_type = ET_EXEC,
	.e_machine = EM_CUDA_DEVICE,
	.e_version = EV_CURRENT,
	.e_shoff = sizeof(Elf64_Ehdr),
	.e_ehsize = sizeof(Elf64_Ehdr),
	.e_shentsize = sizeof(Elf64_Shdr),
};

static CUmodule module(void)
{
	static CUmodule made;
	CUmodule now = __atomic_load_n(&made, __ATOMIC_ACQUIRE), mine;

	if (now)
		return now;
	mine = sim_module(&image);
	/* Who comes second leaves a module that nobody uses and no tool is told of. */
	return __atomic_compare_exchange_n(
		       &made, &now, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
		       ? mine
		       : now;
}

int library_ready(void)
{
	CUcontext context;
	CUresult result;

	if (sim_context_current())
		return CUDA_SUCCESS;
	if (!sim_initialised() && (result = sim_driver.cuInit(0)) != CUDA_SUCCESS)
		return (int)result;
	if ((result = sim_driver.cuDevicePrimaryCtxRetain(&context, 0)) != CUDA_SUCCESS)
		return (int)result;
	return (int)sim_driver.cuCtxSetCurrent(context);
}

static CUresult launch(CUfunction function, const struct library_kernel *k, void *stream)
{
	void *writes = k->writes, *arguments[] = { &writes, NULL };

	return sim_driver.cuLaunchKernel(function, k->grid.x, k->grid.y, k->grid.z, k->block.x,
		k->block.y, k->block.z, k->shared, (CUstream)stream, arguments, NULL);
}

int library_launch(const struct library_kernel *k, void *stream)
{
	static struct sim_function function = { .name = "cudaLaunchKernel", .domain = SIM_RUNTIME };
	int result = library_ready();
	CUfunction kernel;
	void *writes = k->writes, *arguments[] = { &writes, NULL };
	cudaLaunchKernel_v7000_params params = {
		.gridDim = { k->grid.x, k->grid.y, k->grid.z },
		.blockDim = { k->block.x, k->block.y, k->block.z },
		.args = arguments,
		.sharedMem = k->shared,
		.stream = (cudaStream_t)stream,
	};
	struct sim_scope scope = { .function = &function, .params = &params, .result = &result };

	if (result != CUDA_SUCCESS)
		return result;
	kernel = sim_get_library_kernel(module(), k->name);
	params.func = (const void *)kernel;
	scope.symbol = sim_kernel_name(kernel);
	sim_enter(&scope);
	result = (int)launch(kernel, k, stream);
	sim_leave(&scope);
	return result;
}

static CUresult launch_driver(const struct library_kernel *k, void *stream)
{
	void *writes = k->writes, *arguments[] = { &writes, NULL };
	CUlaunchConfig config = {
		.gridDimX = k->grid.x,
		.gridDimY = k->grid.y,
		.gridDimZ = k->grid.z,
		.blockDimX = k->block.x,
		.blockDimY = k->block.y,
		.blockDimZ = k->block.z,
		.sharedMemBytes = k->shared,
		.hStream = (CUstream)stream,
	};

	return sim_driver.cuLaunchKernelEx(
		&config, sim_get_library_kernel(module(), k->name), arguments, NULL);
}

int library_launch_on(int device, const struct library_kernel *k, void *stream)
{
	struct sim_context *before = sim_context_current();
	CUcontext context;
	CUresult result;

	if (before && sim_context_device(before) == device)
		return (int)launch_driver(k, stream);
	result = sim_driver.cuDevicePrimaryCtxRetain(&context, device);
	if (result != CUDA_SUCCESS)
		return (int)result;
	sim_driver.cuCtxSetCurrent(context);
	result = launch_driver(k, stream);
	sim_driver.cuCtxSetCurrent((CUcontext)before);
	return (int)result;
}

struct sim_dim library_grid(uint64_t elements, unsigned block, unsigned each, unsigned most)
{
	uint64_t share = (uint64_t)block * each, blocks = (elements + share - 1) / share;

	return (struct sim_dim){ blocks < 1 ? 1 : blocks > most ? most : (unsigned)blocks, 1, 1 };
}

void *library_new(size_t bytes)
{
	return calloc(1, bytes);
}

void library_read(void *target, const void *source, size_t bytes)
{
	sim_values_read(target, source, bytes);
}

void library_written(void *address, size_t bytes)
{
	sim_values_written(address, bytes);
}
