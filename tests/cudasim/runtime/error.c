/* Each thread's last error, and the texts of errors. */
#include "runtime/runtime.h"

static _Thread_local cudaError_t last;

cudaError_t runtime_note(cudaError_t error)
{
	if (error != cudaSuccess && error != cudaErrorNotReady)
		last = error;
	return error;
}

static cudaError_t take_last(void)
{
	cudaError_t error = last;

	last = cudaSuccess;
	return error;
}

static cudaError_t peek_last(void)
{
	return last;
}

/* These two answer in a forked child, too. */
ENTRY_POINT(cudaError_t, SIM_RUNTIME, cudaGetLastError, "cudaGetLastError", false, (void), (),
	take_last, (void)0, NULL, NULL, ENTRY_PLAIN, take_last())
ENTRY_POINT(cudaError_t, SIM_RUNTIME, cudaPeekAtLastError, "cudaPeekAtLastError", false, (void), (),
	peek_last, (void)0, NULL, NULL, ENTRY_PLAIN, peek_last())

static const struct {
	cudaError_t error;
	const char *name, *text;
} errors[] = {
	{ cudaSuccess, "cudaSuccess", "no error" },
	{ cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument" },
	{ cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory" },
	{ cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error" },
	{ cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
		"invalid configuration argument" },
	{ cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument" },
	{ cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol" },
	{ cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
		"invalid copy direction for memcpy" },
	{ cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction",
		"invalid device function" },
	{ cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected" },
	{ cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal" },
	{ cudaErrorDeviceUninitialized, "cudaErrorDeviceUninitialized", "invalid device context" },
	{ cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle",
		"invalid resource handle" },
	{ cudaErrorIllegalState, "cudaErrorIllegalState",
		"the operation cannot be performed in the present state" },
	{ cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound", "named symbol not found" },
	{ cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
		"an illegal memory access was encountered" },
	{ cudaErrorNotReady, "cudaErrorNotReady", "device not ready" },
	{ cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
		"too many resources requested for launch" },
	{ cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
		"peer access is already enabled" },
	{ cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
		"part or all of the requested memory range is already mapped" },
	{ cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
		"pointer does not correspond to a registered memory region" },
	{ cudaErrorCooperativeLaunchTooLarge, "cudaErrorCooperativeLaunchTooLarge",
		"too many blocks in cooperative launch" },
	{ cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported" },
	{ cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
		"operation not permitted when stream is capturing" },
	{ cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
		"operation failed due to a previous error during capture" },
	{ cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
		"operation would result in a merge of separate capture sequences" },
	{ cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
		"capture was not ended in the same stream as it began" },
	{ cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
		"capturing stream has unjoined work" },
	{ cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
		"dependency created on uncaptured work in another stream" },
	{ cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
		"operation would make the legacy stream depend on a capturing blocking stream" },
	{ cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
		"operation not permitted on an event last recorded in a capturing stream" },
	{ cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
		"attempt to terminate a thread-local capture sequence from another thread" },
	{ cudaErrorGraphExecUpdateFailure, "cudaErrorGraphExecUpdateFailure",
		"the graph update was not performed because it included changes which violated "
		"constraints specific to instantiated graph update" },
};

SIM_EXPORT const char *cudaGetErrorName(cudaError_t error)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].error == error)
			return errors[i].name;
	return "unrecognized error code";
}

SIM_EXPORT const char *cudaGetErrorString(cudaError_t error)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].error == error)
			return errors[i].text;
	return "unrecognized error code";
}
