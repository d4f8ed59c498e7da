/* The driver API: modules, functions, launches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"

SIM_EXPORT CUmodule sim_module(const void *image)
{
	return (CUmodule)(void *)module_new(image, image_bytes(image));
}

SIM_EXPORT CUfunction sim_get_kernel(CUmodule module, const char *name)
{
	return (CUfunction)(void *)kernel_get(HANDLE(module, module), name);
}

SIM_EXPORT CUfunction sim_get_library_kernel(CUmodule module, const char *name)
{
	CUfunction function = sim_get_kernel(module, name);

	kernel_takes_address(HANDLE(kernel, function));
	return function;
}

SIM_EXPORT const char *sim_kernel_name(CUfunction function)
{
	const struct kernel *kernel = HANDLE(kernel, function);

	return kernel_valid(kernel) ? kernel->name : NULL;
}

/* The program may free its image when it is loaded. */
static struct module *module_of_copy(const void *image)
{
	size_t bytes = image_bytes(image);
	void *copy = bytes ? zalloc(bytes) : NULL;

	if (copy)
		memcpy(copy, image, bytes);
	return module_new(copy, bytes);
}

/* Modules loaded by the program are there at once. */
static CUresult load(CUmodule *out, const void *image)
{
	struct sim_context *context;
	struct module *module;

	TRY(require_context(&context));
	if (!image)
		return CUDA_ERROR_INVALID_VALUE;
	module = module_of_copy(image);
	module_touch(module);
	*out = (CUmodule)(void *)module;
	return CUDA_SUCCESS;
}

DRIVER_API(cuModuleLoadData, (CUmodule * module, const void *image), (module, image))
{
	return load(module, image);
}

/* The file's bytes and a zero, NULL: it cannot be read. */
static char *read_file(const char *path)
{
	FILE *file = path ? fopen(path, "rbe") : NULL;
	char *bytes = NULL;
	size_t room = 0, count = 0, part;

	if (!file)
		return NULL;
	do {
		if (count + 1 >= room) {
			room = room ? 2 * room : 1 << 16;
			bytes = grow(bytes, room);
		}
		part = fread(bytes + count, 1, room - count - 1, file);
		count += part;
	} while (part > 0);
	fclose(file);
	bytes[count] = '\0';
	return bytes;
}

DRIVER_API(cuModuleLoad, (CUmodule * module, const char *fname), (module, fname))
{
	char *image = read_file(fname);
	CUresult result = image ? load(module, image) : CUDA_ERROR_FILE_NOT_FOUND;

	free(image);
	return result;
}

DRIVER_API(cuModuleLoadFatBinary, (CUmodule * module, const void *fatCubin), (module, fatCubin))
{
	return load(module, fatCubin);
}

DRIVER_API(cuModuleLoadDataEx,
	(CUmodule * module, const void *image, unsigned int numOptions, CUjit_option *options,
		void **optionValues),
	(module, image, numOptions, options, optionValues))
{
	(void)numOptions;
	(void)options;
	(void)optionValues;
	return load(module, image);
}

DRIVER_API(cuModuleUnload, (CUmodule hmod), (hmod))
{
	TRY(require_init());
	return module_unload(HANDLE(module, hmod));
}

/* Nothing is parsed: every module has every function. */
DRIVER_API(cuModuleGetFunction, (CUfunction * hfunc, CUmodule hmod, const char *name),
	(hfunc, hmod, name))
{
	TRY(require_init());
	if (!module_valid(HANDLE(module, hmod)))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name || !*name)
		return CUDA_ERROR_NOT_FOUND;
	*hfunc = sim_get_kernel(hmod, name);
	return CUDA_SUCCESS;
}

/* A library is a module, and its kernels are functions already. */
DRIVER_API(cuLibraryLoadData,
	(CUlibrary * library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
		unsigned int numJitOptions, CUlibraryOption *libraryOptions,
		void **libraryOptionValues, unsigned int numLibraryOptions),
	(library, code, jitOptions, jitOptionsValues, numJitOptions, libraryOptions,
		libraryOptionValues, numLibraryOptions))
{
	(void)jitOptions;
	(void)jitOptionsValues;
	(void)numJitOptions;
	(void)libraryOptions;
	(void)libraryOptionValues;
	(void)numLibraryOptions;
	TRY(require_init());
	if (!code)
		return CUDA_ERROR_INVALID_VALUE;
	*library = (CUlibrary)(void *)module_of_copy(code);
	return CUDA_SUCCESS;
}

DRIVER_API(cuLibraryUnload, (CUlibrary library), (library))
{
	TRY(require_init());
	return module_unload(HANDLE(module, library));
}

DRIVER_API(cuLibraryGetKernel, (CUkernel * pKernel, CUlibrary library, const char *name),
	(pKernel, library, name))
{
	TRY(require_init());
	if (!module_valid(HANDLE(module, library)))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name || !*name)
		return CUDA_ERROR_NOT_FOUND;
	*pKernel = (CUkernel)(void *)kernel_get(HANDLE(module, library), name);
	return CUDA_SUCCESS;
}

DRIVER_API(cuKernelGetFunction, (CUfunction * pFunc, CUkernel kernel), (pFunc, kernel))
{
	TRY(require_init());
	if (!kernel_valid(HANDLE(kernel, kernel)))
		return CUDA_ERROR_INVALID_HANDLE;
	*pFunc = (CUfunction)(void *)kernel;
	return CUDA_SUCCESS;
}

DRIVER_API(cuFuncGetName, (const char **name, CUfunction hfunc), (name, hfunc))
{
	TRY(require_init());
	*name = sim_kernel_name(hfunc);
	return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER_API(cuFuncGetAttribute, (int *pi, CUfunction_attribute attrib, CUfunction hfunc),
	(pi, attrib, hfunc))
{
	TRY(require_init());
	return kernel_attribute(HANDLE(kernel, hfunc), attrib, pi);
}

DRIVER_API(cuFuncSetAttribute, (CUfunction hfunc, CUfunction_attribute attrib, int value),
	(hfunc, attrib, value))
{
	TRY(require_init());
	return kernel_set_attribute(HANDLE(kernel, hfunc), attrib, value);
}

/* Known where the program brought the kernel's code. */
static CUresult parameter(struct kernel *kernel, size_t index, size_t *offset, size_t *bytes)
{
	TRY(require_init());
	if (!kernel_valid(kernel))
		return CUDA_ERROR_INVALID_HANDLE;
	kernel_learn(kernel);
	if (!kernel->described)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!offset || index >= kernel->parameter_count)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = kernel->parameters[index].offset;
	if (bytes)
		*bytes = kernel->parameters[index].bytes;
	return CUDA_SUCCESS;
}

DRIVER_API(cuFuncGetParamInfo,
	(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize),
	(func, paramIndex, paramOffset, paramSize))
{
	return parameter(HANDLE(kernel, func), paramIndex, paramOffset, paramSize);
}

DRIVER_API(cuKernelGetParamInfo,
	(CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize),
	(kernel, paramIndex, paramOffset, paramSize))
{
	return parameter(HANDLE(kernel, kernel), paramIndex, paramOffset, paramSize);
}

/* Of kernels, attributes are the same on all devices here. */
static CUresult on_device(CUdevice device)
{
	TRY(require_init());
	return device < 0 || device >= sim_device_count() ? CUDA_ERROR_INVALID_DEVICE
							  : CUDA_SUCCESS;
}

DRIVER_API(cuKernelGetAttribute,
	(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev),
	(pi, attrib, kernel, dev))
{
	TRY(on_device(dev));
	return kernel_attribute(HANDLE(kernel, kernel), attrib, pi);
}

DRIVER_API(cuKernelSetAttribute,
	(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev),
	(attrib, val, kernel, dev))
{
	TRY(on_device(dev));
	return kernel_set_attribute(HANDLE(kernel, kernel), attrib, val);
}

DRIVER_API(cuKernelSetCacheConfig, (CUkernel kernel, CUfunc_cache config, CUdevice dev),
	(kernel, config, dev))
{
	(void)config;
	TRY(on_device(dev));
	return kernel_valid(HANDLE(kernel, kernel)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER_API(cuKernelGetName, (const char **name, CUkernel hfunc), (name, hfunc))
{
	TRY(require_init());
	*name = sim_kernel_name((CUfunction)(void *)hfunc);
	return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER_API(cuFuncSetCacheConfig, (CUfunction hfunc, CUfunc_cache config), (hfunc, config))
{
	(void)config;
	TRY(require_init());
	return kernel_valid(HANDLE(kernel, hfunc)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult occupancy(int *blocks, CUfunction function, int threads, size_t shared)
{
	TRY(require_init());
	if (!kernel_valid(HANDLE(kernel, function)))
		return CUDA_ERROR_INVALID_HANDLE;
	if (threads <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	kernel_learn(HANDLE(kernel, function));
	*blocks = kernel_occupancy(HANDLE(kernel, function), threads, shared);
	return CUDA_SUCCESS;
}

DRIVER_API(cuOccupancyMaxActiveBlocksPerMultiprocessor,
	(int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize),
	(numBlocks, func, blockSize, dynamicSMemSize))
{
	return occupancy(numBlocks, func, blockSize, dynamicSMemSize);
}

DRIVER_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
	(int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize,
		unsigned int flags),
	(numBlocks, func, blockSize, dynamicSMemSize, flags))
{
	(void)flags;
	return occupancy(numBlocks, func, blockSize, dynamicSMemSize);
}

static CUresult launch(const struct op_kernel *kernel, CUstream handle)
{
	struct op op = { .kind = SIM_KERNEL, .node_kind = SIM_NODE_KERNEL, .kernel = *kernel };
	struct sim_stream *stream;

	TRY(stream_resolve(handle, &stream));
	TRY(kernel_check(kernel));
	return submit(stream, &op);
}

DRIVER_API_LAUNCH(cuLaunchKernel,
	(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
		unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
		unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra),
	(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream,
		kernelParams, extra),
	sim_kernel_name(f))
{
	if (extra)
		values_touch_all();
	return launch(
		&(struct op_kernel){
			.kernel = HANDLE(kernel, f),
			.grid = { gridDimX, gridDimY, gridDimZ },
			.block = { blockDimX, blockDimY, blockDimZ },
			.dynamic_shared = sharedMemBytes,
			.arguments = kernelParams,
		},
		hStream);
}

DRIVER_API_LAUNCH(cuLaunchCooperativeKernel,
	(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
		unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
		unsigned int sharedMemBytes, CUstream hStream, void **kernelParams),
	(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream,
		kernelParams),
	sim_kernel_name(f))
{
	return launch(
		&(struct op_kernel){
			.kernel = HANDLE(kernel, f),
			.grid = { gridDimX, gridDimY, gridDimZ },
			.block = { blockDimX, blockDimY, blockDimZ },
			.dynamic_shared = sharedMemBytes,
			.arguments = kernelParams,
			.cooperative = true,
		},
		hStream);
}

/* The attributes that leave a trace in what is reported. */
static void take_attributes(struct op_kernel *kernel, const CUlaunchConfig *config)
{
	for (unsigned i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttribute *attribute = &config->attrs[i];

		if (attribute->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
			kernel->cooperative = attribute->value.cooperative != 0;
		if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			kernel->cluster = (struct sim_dim){
				attribute->value.clusterDim.x,
				attribute->value.clusterDim.y,
				attribute->value.clusterDim.z,
			};
	}
}

DRIVER_API_LAUNCH(cuLaunchKernelEx,
	(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra),
	(config, f, kernelParams, extra), sim_kernel_name(f))
{
	struct op_kernel kernel = {
		.kernel = HANDLE(kernel, f),
		.grid = { config->gridDimX, config->gridDimY, config->gridDimZ },
		.block = { config->blockDimX, config->blockDimY, config->blockDimZ },
		.dynamic_shared = config->sharedMemBytes,
		.arguments = kernelParams,
	};

	if (extra)
		values_touch_all();
	take_attributes(&kernel, config);
	return launch(&kernel, config->hStream);
}

DRIVER_API_STREAM(
	cuLaunchHostFunc, (CUstream hStream, CUhostFn fn, void *userData), (hStream, fn, userData))
{
	struct op op = {
		.kind = SIM_HOST_FUNCTION,
		.node_kind = SIM_NODE_HOST,
		.host = { fn, userData },
	};
	struct sim_stream *stream;

	TRY(stream_resolve(hStream, &stream));
	return fn ? submit(stream, &op) : CUDA_ERROR_INVALID_VALUE;
}
