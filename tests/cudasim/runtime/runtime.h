/*
 * The simulated libcudart: thin calls into the driver, through its table, so that tools see both
 * domains nested as in reality. State of its own: the device each thread chose, each thread's last
 * error, and what the program registered (kernels, variables).
 *
 * Built once for each major version (SIM_MAJOR) from the headers of CUDA 13; what 12 has otherwise
 * is written out where it differs.
 */
#ifndef RUNTIME_H
#define RUNTIME_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <generated_cuda_runtime_api_meta.h>

#include "driver/table.h"
#include "core/entry.h"

/* Keeps the error as the thread's last, unless it is none or cudaErrorNotReady, and returns it. */
cudaError_t runtime_note(cudaError_t error);
/* Initialises CUDA and makes a context of the thread's device current, if there is none. */
cudaError_t runtime_ready(void);
/* The ordinal of the device that calls of this thread mean. */
int runtime_device(void);

/* The kernel behind a host stub, or behind a handle that __cudaGetKernel gave; NULL: none. */
CUfunction registry_kernel(const void *function);
/* Its mangled name, NULL: none. */
const char *registry_name(const void *function);
/* The device address of a registered variable; NULL: none. */
void *registry_variable(const void *symbol, size_t *bytes);

#define RUNTIME_ENTRY(symbol_name, version, twin, proto, args, inside, kernel_name)                \
	ENTRY_POINT(cudaError_t, SIM_RUNTIME, symbol_name, #symbol_name, twin, proto, args,        \
		inside, symbol_name##_v##version##_params params_ = { ENTRY_LIST args }, &params_, \
		kernel_name, runtime_note, runtime_note(cudaErrorInitializationError))

/* The forms are those of entry.h; the versions are in the names of the generated parameter structs.
 */
#define RUNTIME_API(name, version, proto, args)                               \
	static cudaError_t name##_inside proto;                               \
	RUNTIME_ENTRY(name, version, false, proto, args, name##_inside, NULL) \
	static cudaError_t name##_inside proto

#define RUNTIME_API_STREAM(name, version, twin_version, proto, args)                     \
	static cudaError_t name##_inside proto;                                          \
	RUNTIME_ENTRY(name, version, false, proto, args, name##_inside, NULL)            \
	RUNTIME_ENTRY(name##_ptsz, twin_version, true, proto, args, name##_inside, NULL) \
	static cudaError_t name##_inside proto

#define RUNTIME_API_DEFAULT(name, version, twin_version, proto, args)                    \
	static cudaError_t name##_inside proto;                                          \
	RUNTIME_ENTRY(name, version, false, proto, args, name##_inside, NULL)            \
	RUNTIME_ENTRY(name##_ptds, twin_version, true, proto, args, name##_inside, NULL) \
	static cudaError_t name##_inside proto

#define RUNTIME_API_LAUNCH(name, version, twin_version, proto, args, kernel_name)               \
	static cudaError_t name##_inside proto;                                                 \
	RUNTIME_ENTRY(name, version, false, proto, args, name##_inside, kernel_name)            \
	RUNTIME_ENTRY(name##_ptsz, twin_version, true, proto, args, name##_inside, kernel_name) \
	static cudaError_t name##_inside proto

#define RUNTIME_ENTRY_BARE(name, twin, proto, args, inside, kernel_name)                       \
	ENTRY_POINT(cudaError_t, SIM_RUNTIME, name, #name, twin, proto, args, inside, (void)0, \
		NULL, kernel_name, runtime_note, runtime_note(cudaErrorInitializationError))

#define RUNTIME_API_BARE(name, proto, args)                               \
	static cudaError_t name##_inside proto;                           \
	RUNTIME_ENTRY_BARE(name, false, proto, args, name##_inside, NULL) \
	static cudaError_t name##_inside proto

/*
 * CUDA 12's form of a function that CUDA 13's header declares otherwise: `identifier` in C, but
 * exported as `symbol`. _STREAM has a twin: `identifier`_twin, exported as `symbol`_ptsz.
 */
#define RUNTIME_ENTRY_12(identifier, symbol, twin, params_type, proto, args, inside)         \
	cudaError_t identifier proto __asm__(symbol);                                        \
	ENTRY_POINT(cudaError_t, SIM_RUNTIME, identifier, symbol, twin, proto, args, inside, \
		params_type params_ = { ENTRY_LIST args }, &params_, NULL, runtime_note,     \
		runtime_note(cudaErrorInitializationError))

#define RUNTIME_API_12(identifier, symbol, params_type, proto, args)                               \
	static cudaError_t identifier##_inside proto;                                              \
	RUNTIME_ENTRY_12(identifier, symbol, false, params_type, proto, args, identifier##_inside) \
	static cudaError_t identifier##_inside proto

#define RUNTIME_API_12_STREAM(identifier, symbol, params_type, proto, args)                        \
	static cudaError_t identifier##_inside proto;                                              \
	RUNTIME_ENTRY_12(identifier, symbol, false, params_type, proto, args, identifier##_inside) \
	RUNTIME_ENTRY_12(identifier##_twin, symbol "_ptsz", true, params_type, proto, args,        \
		identifier##_inside)                                                               \
	static cudaError_t identifier##_inside proto

/* A call of the driver, and one of the function or its per-thread twin, as the call in progress is.
 */
#define PER_THREAD() (sim_current_scope()->function->per_thread)
#define STREAM_CALL(name, ...)                                            \
	((cudaError_t)(PER_THREAD() ? sim_driver.name##_ptsz(__VA_ARGS__) \
				    : sim_driver.name(__VA_ARGS__)))
#define DEFAULT_CALL(name, ...)                                           \
	((cudaError_t)(PER_THREAD() ? sim_driver.name##_ptds(__VA_ARGS__) \
				    : sim_driver.name(__VA_ARGS__)))
#define DRIVER_CALL(name, ...) ((cudaError_t)sim_driver.name(__VA_ARGS__))

/* A box of the runtime as the driver describes it. */
cudaError_t runtime_box(const struct cudaMemcpy3DParms *parms, CUDA_MEMCPY3D *box);

/* Ends the body with the first error. */
#define CHECK(call)                          \
	do {                                 \
		cudaError_t error_ = (call); \
		if (error_ != cudaSuccess)   \
			return error_;       \
	} while (0)

#endif
