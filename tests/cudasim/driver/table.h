/*
 * The driver functions that the simulated runtime calls. It calls them through this table, as the
 * real one does through pointers it asked the driver for: a preloaded library that defines
 * cuMemAlloc_v2 does not see the runtime's own calls.
 */
#ifndef DRIVER_TABLE_H
#define DRIVER_TABLE_H

#include <cuda.h>

#include "core/sim.h"

/* Declared in a header that not every installation has. */
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);

/* Functions that have a _ptsz twin. */
#define SIM_DRIVER_TWINS(X)                  \
	X(cuLaunchKernel)                    \
	X(cuLaunchKernelEx)                  \
	X(cuLaunchCooperativeKernel)         \
	X(cuLaunchHostFunc)                  \
	X(cuGraphLaunch)                     \
	X(cuGraphUpload)                     \
	X(cuMemAllocAsync)                   \
	X(cuMemAllocFromPoolAsync)           \
	X(cuMemFreeAsync)                    \
	X(cuMemcpyAsync)                     \
	X(cuMemcpyPeerAsync)                 \
	X(cuMemcpyHtoDAsync_v2)              \
	X(cuMemcpyDtoHAsync_v2)              \
	X(cuMemcpyDtoDAsync_v2)              \
	X(cuMemcpy2DAsync_v2)                \
	X(cuMemcpy3DAsync_v2)                \
	X(cuMemsetD8Async)                   \
	X(cuMemsetD2D8Async)                 \
	X(cuStreamSynchronize)               \
	X(cuStreamQuery)                     \
	X(cuStreamWaitEvent)                 \
	X(cuStreamGetFlags)                  \
	X(cuStreamGetPriority)               \
	X(cuStreamGetId)                     \
	X(cuStreamAddCallback)               \
	X(cuStreamBeginCapture_v2)           \
	X(cuStreamEndCapture)                \
	X(cuStreamIsCapturing)               \
	X(cuStreamGetCaptureInfo_v2)         \
	X(cuStreamUpdateCaptureDependencies) \
	X(cuEventRecord)                     \
	X(cuEventRecordWithFlags)

/* Functions whose twin ends in _ptds. */
#define SIM_DRIVER_DEFAULT_TWINS(X) \
	X(cuMemcpy)                 \
	X(cuMemcpyPeer)             \
	X(cuMemcpyHtoD_v2)          \
	X(cuMemcpyDtoH_v2)          \
	X(cuMemcpyDtoD_v2)          \
	X(cuMemcpy2DUnaligned_v2)   \
	X(cuMemcpy3D_v2)            \
	X(cuMemsetD8_v2)            \
	X(cuMemsetD2D8_v2)

#define SIM_DRIVER_CALLS(X)                                     \
	X(cuInit)                                               \
	X(cuDeviceGetCount)                                     \
	X(cuDeviceGetByPCIBusId)                                \
	X(cuDeviceGetPCIBusId)                                  \
	X(cuDeviceCanAccessPeer)                                \
	X(cuDevicePrimaryCtxRetain)                             \
	X(cuDevicePrimaryCtxReset_v2)                           \
	X(cuDevicePrimaryCtxSetFlags_v2)                        \
	X(cuDevicePrimaryCtxGetState)                           \
	X(cuCtxSetCurrent)                                      \
	X(cuCtxSynchronize)                                     \
	X(cuCtxGetStreamPriorityRange)                          \
	X(cuMemAlloc_v2)                                        \
	X(cuMemAllocPitch_v2)                                   \
	X(cuMemAllocManaged)                                    \
	X(cuMemFree_v2)                                         \
	X(cuMemHostAlloc)                                       \
	X(cuMemFreeHost)                                        \
	X(cuMemHostRegister_v2)                                 \
	X(cuMemHostUnregister)                                  \
	X(cuMemGetInfo_v2)                                      \
	X(cuArray3DCreate_v2)                                   \
	X(cuArrayDestroy)                                       \
	X(cuMipmappedArrayCreate)                               \
	X(cuMipmappedArrayGetLevel)                             \
	X(cuMipmappedArrayDestroy)                              \
	X(cuMemPoolCreate)                                      \
	X(cuMemPoolDestroy)                                     \
	X(cuMemPoolTrimTo)                                      \
	X(cuMemPoolSetAttribute)                                \
	X(cuMemPoolGetAttribute)                                \
	X(cuMemPoolSetAccess)                                   \
	X(cuDeviceGetDefaultMemPool)                            \
	X(cuDeviceGetMemPool)                                   \
	X(cuDeviceSetMemPool)                                   \
	X(cuFuncGetAttribute)                                   \
	X(cuFuncSetAttribute)                                   \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) \
	X(cuStreamCreate)                                       \
	X(cuStreamCreateWithPriority)                           \
	X(cuStreamDestroy_v2)                                   \
	X(cuEventCreate)                                        \
	X(cuEventQuery)                                         \
	X(cuEventSynchronize)                                   \
	X(cuEventDestroy_v2)                                    \
	X(cuEventElapsedTime)                                   \
	X(cuThreadExchangeStreamCaptureMode)                    \
	X(cuGraphCreate)                                        \
	X(cuGraphDestroy)                                       \
	X(cuGraphDestroyNode)                                   \
	X(cuGraphAddKernelNode_v2)                              \
	X(cuGraphAddMemcpyNode)                                 \
	X(cuGraphAddMemsetNode)                                 \
	X(cuGraphAddHostNode)                                   \
	X(cuGraphAddEmptyNode)                                  \
	X(cuGraphAddDependencies)                               \
	X(cuGraphGetNodes)                                      \
	X(cuGraphGetRootNodes)                                  \
	X(cuGraphNodeGetType)                                   \
	X(cuGraphInstantiateWithFlags)                          \
	X(cuGraphExecKernelNodeSetParams_v2)                    \
	X(cuGraphExecUpdate_v2)                                 \
	X(cuGraphExecGetFlags)                                  \
	X(cuGraphExecDestroy)                                   \
	X(cuProfilerStart)                                      \
	X(cuProfilerStop)                                       \
	X(cuGetProcAddress_v2)                                  \
	X(cuGetErrorName)                                       \
	X(cuGetErrorString)

#define SIM_DRIVER_MEMBER(name) __typeof__(&name) name;
#define SIM_DRIVER_TWIN_MEMBERS(name) \
	__typeof__(&name) name;       \
	__typeof__(&name) name##_ptsz;
#define SIM_DRIVER_DEFAULT_MEMBERS(name) \
	__typeof__(&name) name;          \
	__typeof__(&name) name##_ptds;

struct sim_driver {
	SIM_DRIVER_TWINS(SIM_DRIVER_TWIN_MEMBERS)
	SIM_DRIVER_DEFAULT_TWINS(SIM_DRIVER_DEFAULT_MEMBERS)
	SIM_DRIVER_CALLS(SIM_DRIVER_MEMBER)
};

extern const struct sim_driver sim_driver;

/* The kernel behind a function that the runtime registered: made in the module, never freed. */
CUfunction sim_get_kernel(CUmodule module, const char *name);
/* The same for a kernel of a simulated library, whose one argument is an address. */
CUfunction sim_get_library_kernel(CUmodule module, const char *name);
/* The mangled name of a CUfunction, NULL: it is none. */
const char *sim_kernel_name(CUfunction function);
/* A module for an image that the runtime registered; loaded, as the tool sees it, when it is
 * needed. */
CUmodule sim_module(const void *image);
/* Bytes of an element of a CUarray, 0: it is none. */
size_t sim_array_element(const void *array);
/* Device memory for a __device__ variable, zeroed; it lives for ever and holds nothing of the
 * capacity. */
void *sim_variable(size_t bytes);
/* Copies bytes out of the device's memory (or the host's); what is not known there arrives as
 * zeros. */
void sim_values_read(void *target, const void *source, size_t bytes);
/* A simulated library has written these bytes: they are known. */
void sim_values_written(const void *address, size_t bytes);
/* What lies at an address, for cudaPointerGetAttributes; false: memory that CUDA does not know. */
bool sim_pointer(const void *address, enum sim_memory_kind *kind, int *device, unsigned *flags);

#endif
