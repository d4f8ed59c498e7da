/* The runtime: devices, their properties, and the context that a thread's calls mean. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/properties12.h"
#include "runtime/runtime.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primaries[SIM_DEVICES_MAX]; /* retained by us, NULL: not yet */
static _Thread_local int chosen;             /* by cudaSetDevice */

int runtime_device(void)
{
	const struct sim_context *context = sim_context_current();

	return context ? sim_context_device(context) : chosen;
}

static cudaError_t initialise(void)
{
	return sim_initialised() ? cudaSuccess : DRIVER_CALL(cuInit, 0);
}

static cudaError_t retain(int device, CUcontext *context)
{
	cudaError_t result = cudaSuccess;

	pthread_mutex_lock(&lock);
	if (!primaries[device])
		result = DRIVER_CALL(cuDevicePrimaryCtxRetain, &primaries[device], device);
	*context = primaries[device];
	pthread_mutex_unlock(&lock);
	return result;
}

/* Makes the device's primary context current to this thread. */
static cudaError_t bind(int device)
{
	CUcontext context;

	CHECK(retain(device, &context));
	return DRIVER_CALL(cuCtxSetCurrent, context);
}

cudaError_t runtime_ready(void)
{
	if (sim_context_current())
		return cudaSuccess;
	CHECK(initialise());
	return bind(chosen);
}

static cudaError_t check_device(int device)
{
	CHECK(initialise());
	return device >= 0 && device < sim_device_count() ? cudaSuccess : cudaErrorInvalidDevice;
}

RUNTIME_API(cudaGetDeviceCount, 3020, (int *count), (count))
{
	*count = 0;
	CHECK(initialise());
	return DRIVER_CALL(cuDeviceGetCount, count);
}

RUNTIME_API(cudaGetDevice, 3020, (int *device), (device))
{
	CHECK(initialise());
	*device = runtime_device();
	return cudaSuccess;
}

RUNTIME_API(cudaSetDevice, 3020, (int device), (device))
{
	CHECK(check_device(device));
	chosen = device;
	return bind(device);
}

RUNTIME_API(cudaInitDevice, 12000, (int device, unsigned int deviceFlags, unsigned int flags),
	(device, deviceFlags, flags))
{
	CUcontext context;

	(void)deviceFlags;
	(void)flags;
	CHECK(check_device(device));
	return retain(device, &context);
}

RUNTIME_API(cudaSetDeviceFlags, 3020, (unsigned int flags), (flags))
{
	CHECK(initialise());
	return DRIVER_CALL(cuDevicePrimaryCtxSetFlags_v2, runtime_device(), flags);
}

RUNTIME_API(cudaGetDeviceFlags, 7000, (unsigned int *flags), (flags))
{
	int active;

	CHECK(initialise());
	return DRIVER_CALL(cuDevicePrimaryCtxGetState, runtime_device(), flags, &active);
}

RUNTIME_API_BARE(cudaDeviceSynchronize, (void), ())
{
	CHECK(runtime_ready());
	return (cudaError_t)sim_driver.cuCtxSynchronize();
}

/* The next call makes a new context. */
RUNTIME_API_BARE(cudaDeviceReset, (void), ())
{
	int device;
	cudaError_t result;

	CHECK(initialise());
	device = runtime_device();
	pthread_mutex_lock(&lock);
	primaries[device] = NULL;
	result = DRIVER_CALL(cuDevicePrimaryCtxReset_v2, device);
	pthread_mutex_unlock(&lock);
	return result;
}

RUNTIME_API(cudaDeviceGetAttribute, 5000, (int *value, enum cudaDeviceAttr attr, int device),
	(value, attr, device))
{
	CHECK(check_device(device));
	*value = sim_device_attribute((int)attr, device);
	return cudaSuccess;
}

RUNTIME_API(cudaDeviceGetStreamPriorityRange, 5050, (int *leastPriority, int *greatestPriority),
	(leastPriority, greatestPriority))
{
	CHECK(runtime_ready());
	return DRIVER_CALL(cuCtxGetStreamPriorityRange, leastPriority, greatestPriority);
}

RUNTIME_API(
	cudaDeviceGetPCIBusId, 4010, (char *pciBusId, int len, int device), (pciBusId, len, device))
{
	CHECK(check_device(device));
	return DRIVER_CALL(cuDeviceGetPCIBusId, pciBusId, len, device);
}

RUNTIME_API(cudaDeviceGetByPCIBusId, 4010, (int *device, const char *pciBusId), (device, pciBusId))
{
	CHECK(initialise());
	return DRIVER_CALL(cuDeviceGetByPCIBusId, device, pciBusId);
}

RUNTIME_API(cudaDeviceCanAccessPeer, 4000, (int *canAccessPeer, int device, int peerDevice),
	(canAccessPeer, device, peerDevice))
{
	CHECK(check_device(device));
	return DRIVER_CALL(cuDeviceCanAccessPeer, canAccessPeer, device, peerDevice);
}

/* Addresses are unified and every device reaches every other: nothing is left to enable. */
RUNTIME_API(
	cudaDeviceEnablePeerAccess, 4000, (int peerDevice, unsigned int flags), (peerDevice, flags))
{
	CHECK(check_device(peerDevice));
	return flags ? cudaErrorInvalidValue : cudaSuccess;
}

RUNTIME_API(cudaDeviceDisablePeerAccess, 4000, (int peerDevice), (peerDevice))
{
	return check_device(peerDevice);
}

RUNTIME_API(cudaDriverGetVersion, 3020, (int *driverVersion), (driverVersion))
{
	*driverVersion = SIM_CUDA_VERSION;
	return cudaSuccess;
}

RUNTIME_API(cudaRuntimeGetVersion, 3020, (int *runtimeVersion), (runtimeVersion))
{
	*runtimeVersion = SIM_CUDA_VERSION;
	return cudaSuccess;
}

RUNTIME_API_BARE(cudaProfilerStart, (void), ())
{
	CHECK(runtime_ready());
	return (cudaError_t)sim_driver.cuProfilerStart();
}

RUNTIME_API_BARE(cudaProfilerStop, (void), ())
{
	CHECK(runtime_ready());
	return (cudaError_t)sim_driver.cuProfilerStop();
}

/* The members that both layouts have. */
#define FILL_PROPERTIES(p, device)                                                                \
	do {                                                                                      \
		memset(p, 0, sizeof(*(p)));                                                       \
		snprintf((p)->name, sizeof((p)->name), "%s", SIM_DEVICE_NAME);                    \
		sim_device_uuid(device, (unsigned char *)(p)->uuid.bytes);                        \
		(p)->totalGlobalMem = sim_device_memory();                                        \
		(p)->sharedMemPerBlock = 49152;                                                   \
		(p)->regsPerBlock = ATTRIBUTE(MAX_REGISTERS_PER_BLOCK, device);                   \
		(p)->warpSize = ATTRIBUTE(WARP_SIZE, device);                                     \
		(p)->memPitch = 2147483647;                                                       \
		(p)->maxThreadsPerBlock = ATTRIBUTE(MAX_THREADS_PER_BLOCK, device);               \
		(p)->maxThreadsDim[0] = ATTRIBUTE(MAX_BLOCK_DIM_X, device);                       \
		(p)->maxThreadsDim[1] = ATTRIBUTE(MAX_BLOCK_DIM_Y, device);                       \
		(p)->maxThreadsDim[2] = ATTRIBUTE(MAX_BLOCK_DIM_Z, device);                       \
		(p)->maxGridSize[0] = ATTRIBUTE(MAX_GRID_DIM_X, device);                          \
		(p)->maxGridSize[1] = ATTRIBUTE(MAX_GRID_DIM_Y, device);                          \
		(p)->maxGridSize[2] = ATTRIBUTE(MAX_GRID_DIM_Z, device);                          \
		(p)->totalConstMem = 65536;                                                       \
		(p)->major = ATTRIBUTE(COMPUTE_CAPABILITY_MAJOR, device);                         \
		(p)->minor = ATTRIBUTE(COMPUTE_CAPABILITY_MINOR, device);                         \
		(p)->textureAlignment = 512;                                                      \
		(p)->texturePitchAlignment = 32;                                                  \
		(p)->multiProcessorCount = ATTRIBUTE(MULTIPROCESSOR_COUNT, device);               \
		(p)->canMapHostMemory = 1;                                                        \
		(p)->surfaceAlignment = 512;                                                      \
		(p)->concurrentKernels = 1;                                                       \
		(p)->ECCEnabled = 1;                                                              \
		(p)->pciBusID = ATTRIBUTE(PCI_BUS_ID, device);                                    \
		(p)->asyncEngineCount = ATTRIBUTE(ASYNC_ENGINE_COUNT, device);                    \
		(p)->unifiedAddressing = 1;                                                       \
		(p)->memoryBusWidth = ATTRIBUTE(GLOBAL_MEMORY_BUS_WIDTH, device);                 \
		(p)->l2CacheSize = ATTRIBUTE(L2_CACHE_SIZE, device);                              \
		(p)->maxThreadsPerMultiProcessor = ATTRIBUTE(                                     \
			MAX_THREADS_PER_MULTIPROCESSOR, device);                                  \
		(p)->streamPrioritiesSupported = 1;                                               \
		(p)->sharedMemPerMultiprocessor = 233472;                                         \
		(p)->regsPerMultiprocessor = ATTRIBUTE(MAX_REGISTERS_PER_MULTIPROCESSOR, device); \
		(p)->managedMemory = 1;                                                           \
		(p)->concurrentManagedAccess = 1;                                                 \
		(p)->computePreemptionSupported = 1;                                              \
		(p)->cooperativeLaunch = 1;                                                       \
		(p)->sharedMemPerBlockOptin = 232448;                                             \
		(p)->maxBlocksPerMultiProcessor = ATTRIBUTE(                                      \
			MAX_BLOCKS_PER_MULTIPROCESSOR, device);                                   \
		(p)->reservedSharedMemPerBlock = 1024;                                            \
		(p)->hostRegisterSupported = 1;                                                   \
		(p)->memoryPoolsSupported = 1;                                                    \
		(p)->clusterLaunch = 1;                                                           \
	} while (0)

#define ATTRIBUTE(name, device) sim_device_attribute(CU_DEVICE_ATTRIBUTE_##name, device)

#if SIM_MAJOR >= 13

RUNTIME_API(
	cudaGetDeviceProperties, 12000, (struct cudaDeviceProp * prop, int device), (prop, device))
{
	CHECK(check_device(device));
	FILL_PROPERTIES(prop, device);
	return cudaSuccess;
}

#else

RUNTIME_API_12(properties_12, "cudaGetDeviceProperties_v2", cudaGetDeviceProperties_v12000_params,
	(struct cudaDeviceProp * prop, int device), (prop, device))
{
	struct properties12 *old = (void *)prop;

	CHECK(check_device(device));
	FILL_PROPERTIES(old, device);
	old->clockRate = ATTRIBUTE(CLOCK_RATE, device);
	old->memoryClockRate = ATTRIBUTE(MEMORY_CLOCK_RATE, device);
	old->deviceOverlap = 1;
	old->singleToDoublePrecisionPerfRatio = 2;
	return cudaSuccess;
}

#endif

static cudaError_t entry_point(const char *symbol, void **address, unsigned version,
	unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
	CUdriverProcAddressQueryResult found;

	*address = NULL;
	if (PER_THREAD())
		flags |= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	sim_driver.cuGetProcAddress_v2(symbol, address, (int)version, flags, &found);
	if (status)
		*status = *address ? cudaDriverEntryPointSuccess
				   : cudaDriverEntryPointSymbolNotFound;
	return *address || status ? cudaSuccess : cudaErrorSymbolNotFound;
}

RUNTIME_API_STREAM(cudaGetDriverEntryPoint, 11030, 11030,
	(const char *symbol, void **funcPtr, unsigned long long flags,
		enum cudaDriverEntryPointQueryResult *driverStatus),
	(symbol, funcPtr, flags, driverStatus))
{
	return entry_point(symbol, funcPtr, SIM_CUDA_VERSION, flags, driverStatus);
}

RUNTIME_API_STREAM(cudaGetDriverEntryPointByVersion, 12050, 12050,
	(const char *symbol, void **funcPtr, unsigned int cudaVersion, unsigned long long flags,
		enum cudaDriverEntryPointQueryResult *driverStatus),
	(symbol, funcPtr, cudaVersion, flags, driverStatus))
{
	return entry_point(symbol, funcPtr, cudaVersion, flags, driverStatus);
}
