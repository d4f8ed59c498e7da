/* The driver API: start, devices, contexts. */
#include <stdio.h>
#include <string.h>

#include "driver/driver.h"

DRIVER_API(cuInit, (unsigned int Flags), (Flags))
{
	return Flags ? CUDA_ERROR_INVALID_VALUE : initialise();
}

DRIVER_API(cuDriverGetVersion, (int *driverVersion), (driverVersion))
{
	*driverVersion = SIM_CUDA_VERSION;
	return CUDA_SUCCESS;
}

static CUresult check_device(CUdevice device)
{
	TRY(require_init());
	return device >= 0 && device < settings()->devices ? CUDA_SUCCESS
							   : CUDA_ERROR_INVALID_DEVICE;
}

DRIVER_API(cuDeviceGetCount, (int *count), (count))
{
	TRY(require_init());
	*count = settings()->devices;
	return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGet, (CUdevice * device, int ordinal), (device, ordinal))
{
	TRY(check_device(ordinal));
	*device = ordinal;
	return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetName, (char *name, int len, CUdevice dev), (name, len, dev))
{
	TRY(check_device(dev));
	snprintf(name, (size_t)len, "%s", SIM_DEVICE_NAME);
	return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice dev), (uuid, dev))
{
	TRY(check_device(dev));
	sim_device_uuid(dev, (unsigned char *)uuid->bytes);
	return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice dev), (bytes, dev))
{
	TRY(check_device(dev));
	*bytes = settings()->memory;
	return CUDA_SUCCESS;
}

DRIVER_API(
	cuDeviceGetAttribute, (int *pi, CUdevice_attribute attrib, CUdevice dev), (pi, attrib, dev))
{
	TRY(check_device(dev));
	if (settings()->query_ns)
		wait_until(sim_time_ns() + settings()->query_ns);
	*pi = sim_device_attribute((int)attrib, dev);
	return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceComputeCapability, (int *major, int *minor, CUdevice dev), (major, minor, dev))
{
	TRY(check_device(dev));
	*major = sim_device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev);
	*minor = sim_device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev);
	return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetPCIBusId, (char *pciBusId, int len, CUdevice dev), (pciBusId, len, dev))
{
	TRY(check_device(dev));
	snprintf(pciBusId, (size_t)len, "0000:%02X:00.0",
		(unsigned)sim_device_attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, dev));
	return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetByPCIBusId, (CUdevice * dev, const char *pciBusId), (dev, pciBusId))
{
	unsigned domain, bus;

	TRY(require_init());
	if (sscanf(pciBusId, "%x:%x", &domain, &bus) != 2)
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < settings()->devices; i++) {
		if ((unsigned)sim_device_attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, i) != bus)
			continue;
		*dev = i;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

DRIVER_API(cuDeviceCanAccessPeer, (int *canAccessPeer, CUdevice dev, CUdevice peerDev),
	(canAccessPeer, dev, peerDev))
{
	TRY(check_device(dev));
	TRY(check_device(peerDev));
	*canAccessPeer = dev != peerDev;
	return CUDA_SUCCESS;
}

DRIVER_API(cuDevicePrimaryCtxRetain, (CUcontext * pctx, CUdevice dev), (pctx, dev))
{
	struct sim_context *context;

	TRY(primary_retain(&context, dev));
	*pctx = (CUcontext)context;
	return CUDA_SUCCESS;
}

DRIVER_API(cuDevicePrimaryCtxRelease_v2, (CUdevice dev), (dev))
{
	return primary_release(dev);
}

DRIVER_API(cuDevicePrimaryCtxReset_v2, (CUdevice dev), (dev))
{
	return primary_reset(dev);
}

DRIVER_API(cuDevicePrimaryCtxSetFlags_v2, (CUdevice dev, unsigned int flags), (dev, flags))
{
	return primary_set_flags(dev, flags);
}

DRIVER_API(cuDevicePrimaryCtxGetState, (CUdevice dev, unsigned int *flags, int *active),
	(dev, flags, active))
{
	unsigned now;

	TRY(check_device(dev));
	*active = primary_state(dev, &now);
	if (flags)
		*flags = now;
	return CUDA_SUCCESS;
}

static CUresult create(CUcontext *out, unsigned flags, CUdevice device)
{
	struct sim_context *context;

	TRY(context_create(&context, flags, device));
	*out = (CUcontext)context;
	return CUDA_SUCCESS;
}

DRIVER_API(cuCtxCreate_v2, (CUcontext * pctx, unsigned int flags, CUdevice dev), (pctx, flags, dev))
{
	return create(pctx, flags, dev);
}

DRIVER_API(cuCtxCreate_v3,
	(CUcontext * pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
		CUdevice dev),
	(pctx, paramsArray, numParams, flags, dev))
{
	(void)paramsArray;
	return numParams ? CUDA_ERROR_NOT_SUPPORTED : create(pctx, flags, dev);
}

DRIVER_API(cuCtxCreate_v4,
	(CUcontext * pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev),
	(pctx, ctxCreateParams, flags, dev))
{
	(void)ctxCreateParams;
	return create(pctx, flags, dev);
}

DRIVER_API(cuCtxDestroy_v2, (CUcontext ctx), (ctx))
{
	TRY(require_init());
	return context_destroy((struct sim_context *)ctx);
}

DRIVER_API(cuCtxSetCurrent, (CUcontext ctx), (ctx))
{
	return context_set_current((struct sim_context *)ctx);
}

DRIVER_API(cuCtxGetCurrent, (CUcontext * pctx), (pctx))
{
	TRY(require_init());
	*pctx = (CUcontext)sim_context_current();
	return CUDA_SUCCESS;
}

DRIVER_API(cuCtxPushCurrent_v2, (CUcontext ctx), (ctx))
{
	return context_push((struct sim_context *)ctx);
}

DRIVER_API(cuCtxPopCurrent_v2, (CUcontext * pctx), (pctx))
{
	struct sim_context *context;

	TRY(context_pop(&context));
	if (pctx)
		*pctx = (CUcontext)context;
	return CUDA_SUCCESS;
}

DRIVER_API(cuCtxGetDevice, (CUdevice * device), (device))
{
	struct sim_context *context;

	TRY(require_context(&context));
	*device = context->device;
	return CUDA_SUCCESS;
}

DRIVER_API(cuCtxGetFlags, (unsigned int *flags), (flags))
{
	struct sim_context *context;

	TRY(require_context(&context));
	*flags = context->flags;
	return CUDA_SUCCESS;
}

DRIVER_API(cuCtxGetId, (CUcontext ctx, unsigned long long *ctxId), (ctx, ctxId))
{
	struct sim_context *context = (struct sim_context *)ctx;

	if (!context)
		TRY(require_context(&context));
	if (!context_valid(context))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*ctxId = context->id;
	return CUDA_SUCCESS;
}

DRIVER_API(cuCtxGetApiVersion, (CUcontext ctx, unsigned int *version), (ctx, version))
{
	(void)ctx;
	*version = 3020;
	return CUDA_SUCCESS;
}

DRIVER_API(cuCtxGetStreamPriorityRange, (int *leastPriority, int *greatestPriority),
	(leastPriority, greatestPriority))
{
	struct sim_context *context;

	TRY(require_context(&context));
	if (leastPriority)
		*leastPriority = 0;
	if (greatestPriority)
		*greatestPriority = -5;
	return CUDA_SUCCESS;
}

DRIVER_API_BARE(cuCtxSynchronize, (void), ())
{
	return context_sync();
}

DRIVER_API(cuCtxEnablePeerAccess, (CUcontext peerContext, unsigned int Flags), (peerContext, Flags))
{
	TRY(require_init());
	if (!context_valid((struct sim_context *)peerContext))
		return CUDA_ERROR_INVALID_CONTEXT;
	return Flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

DRIVER_API(cuCtxDisablePeerAccess, (CUcontext peerContext), (peerContext))
{
	TRY(require_init());
	return context_valid((struct sim_context *)peerContext) ? CUDA_SUCCESS
								: CUDA_ERROR_INVALID_CONTEXT;
}

DRIVER_API_BARE(cuProfilerStart, (void), ())
{
	return CUDA_SUCCESS;
}

DRIVER_API_BARE(cuProfilerStop, (void), ())
{
	return CUDA_SUCCESS;
}
