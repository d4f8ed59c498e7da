/* SPDX-License-Identifier: MIT
 * Interposes the runtime's functions that launch kernels and graphs, and those that begin and end a
 * capture. Copies, memsets and waits are seen by CUPTI's callbacks only.
 *
 * nvcc 13 compiles `k<<<>>>()` into __cudaLaunchKernel, whose first argument is a kernel handle.
 * The other functions name the kernel by the address of its host function, which the report
 * resolves in the object that contains it.
 */
#include "preload/cuda/traced_call.h"
#include "collector/file/dictionary.h"
#include "collector/file/loaded_objects.h"
#include "collector/stream/stream.h"
#include "preload/cuda/cupti_callbacks.h"
#include "preload/cuda/driver_query.h"
#include "preload/cuda/real.h"

#include <string.h>

/* Entries of the caches of host functions and of kernel handles; a power of two. */
#define FUNCTION_SLOTS 4096u

/* The arguments of a launch. */
struct launch_arguments {
	const void *function; /* address of the host function, or kernel handle */
	struct cuda_dim3 grid, block;
	size_t shared_bytes;
	const void *stream;
	uint32_t name; /* 0: unknown */
};

/* The caches are direct-mapped by address: two addresses with one slot replace each other. */
#define SLOT_OF(pointer, slots) \
	((uintptr_t)(pointer)*UINT64_C(0x9e3779b97f4a7c15) >> (64 - __builtin_ctz(slots)))

/* Records the object that contains `function`, because the report resolves the function in it. A
 * kernel handle without a name may be passed too: no object contains it. */
static void record_function_object(const void *function)
{
	static const void *_Atomic covered[FUNCTION_SLOTS];
	const void *_Atomic *slot = &covered[SLOT_OF(function, FUNCTION_SLOTS)];
	uint64_t address = (uintptr_t)function;

	if (atomic_load_explicit(slot, memory_order_relaxed) == function || !stream_enter())
		return;
	loaded_objects_record(&address, 1);
	stream_leave();
	atomic_store_explicit(slot, function, memory_order_relaxed);
}

static inline __attribute__((always_inline)) void write_launch(
	struct traced_function *traced, int result, const struct launch_arguments *launch_arguments)
{
	const uint64_t rest[CALL_WORDS(trace_launch)] = {
		call_stream(traced, launch_arguments->stream),
		(uintptr_t)launch_arguments->function,
		call_pair(launch_arguments->grid.x, launch_arguments->grid.y),
		call_pair(launch_arguments->grid.z, launch_arguments->block.x),
		call_pair(launch_arguments->block.y, launch_arguments->block.z),
		call_pair((uint32_t)launch_arguments->shared_bytes, launch_arguments->name),
	};

	if (call_write(traced, TRACE_LAUNCH, result, launch_arguments->stream, rest,
		    CALL_WORDS(trace_launch)) &&
		!launch_arguments->name)
		record_function_object(launch_arguments->function);
}

/* Records a launch that returned `result` if it is the outermost call, and ends the call. Returns
 * `result`. */
static inline __attribute__((always_inline)) int end_launch(struct traced_function *traced,
	uint32_t outer, int result, const struct launch_arguments *arguments)
{
	if (outer == 0)
		write_launch(traced, result, arguments);
	call_end(outer);
	return result;
}

int cudaLaunchKernel REAL_LAUNCH_PARAMETERS
{
	static struct traced_function traced = { .name = "cudaLaunchKernel", .type = CALL_LAUNCH };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaLaunchKernel(function, grid, block, arguments, shared_bytes, stream);

	return end_launch(&traced, outer, result,
		&(struct launch_arguments){ function, grid, block, shared_bytes, stream, 0 });
}

int cudaLaunchKernel_ptsz REAL_LAUNCH_PARAMETERS
{
	static struct traced_function traced = {
		.name = "cudaLaunchKernel_ptsz", .type = CALL_LAUNCH, .per_thread = true
	};
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaLaunchKernel_ptsz(
		function, grid, block, arguments, shared_bytes, stream);

	return end_launch(&traced, outer, result,
		&(struct launch_arguments){ function, grid, block, shared_bytes, stream, 0 });
}

int cudaLaunchCooperativeKernel REAL_LAUNCH_PARAMETERS
{
	static struct traced_function traced = { .name = "cudaLaunchCooperativeKernel",
		.type = CALL_LAUNCH };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaLaunchCooperativeKernel(
		function, grid, block, arguments, shared_bytes, stream);

	return end_launch(&traced, outer, result,
		&(struct launch_arguments){ function, grid, block, shared_bytes, stream, 0 });
}

int cudaLaunchCooperativeKernel_ptsz REAL_LAUNCH_PARAMETERS
{
	static struct traced_function traced = {
		.name = "cudaLaunchCooperativeKernel_ptsz", .type = CALL_LAUNCH, .per_thread = true
	};
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaLaunchCooperativeKernel_ptsz(
		function, grid, block, arguments, shared_bytes, stream);

	return end_launch(&traced, outer, result,
		&(struct launch_arguments){ function, grid, block, shared_bytes, stream, 0 });
}

/* Cache of kernel names. An entry is one word: the handle, shifted left by 16, and in its low
 * NAME_BITS the name id. 0: free.
 *
 * After libraries are unloaded and loaded, a handle may denote another kernel. But the code that
 * launches it got the handle from __cudaGetKernel once, when the library was new. The wrapper of
 * that function clears the entry. */
static _Atomic uint64_t kernels[FUNCTION_SLOTS];
/* Free bits of a shifted handle, if the handle is below 2^48 and a multiple of 8. */
#define NAME_BITS 19

static uint32_t query_kernel_name(const void *kernel)
{
	uint64_t handle = (uintptr_t)kernel;
	const char *text;
	uint32_t name;

	call_returned();
	text = driver_kernel_name(kernel);
	if (!text || !stream_enter())
		return 0;
	name = name_id_always(text, strlen(text));
	stream_leave();
	if (!(handle & 7) && handle < UINT64_C(1) << 48 && name < 1u << NAME_BITS)
		atomic_store_explicit(&kernels[SLOT_OF(kernel, FUNCTION_SLOTS)],
			handle << 16 | name, memory_order_relaxed);
	return name;
}

/* Returns the name id of a kernel; 0 if it is unknown. */
static inline uint32_t cached_kernel_name(const void *kernel)
{
	uint64_t cached = atomic_load_explicit(
		&kernels[SLOT_OF(kernel, FUNCTION_SLOTS)], memory_order_relaxed);

	return cached >> NAME_BITS << NAME_BITS == (uint64_t)(uintptr_t)kernel << 16 && cached
		       ? (uint32_t)cached & ((1u << NAME_BITS) - 1)
		       : query_kernel_name(kernel);
}

int __cudaGetKernel(const void **kernel, const void *function)
{
	int result = real_of(CALLER)->__cudaGetKernel(kernel, function);

	if (result == 0 && kernel)
		atomic_store_explicit(
			&kernels[SLOT_OF(*kernel, FUNCTION_SLOTS)], 0, memory_order_relaxed);
	return result;
}

/* As end_launch, for functions whose `function` is a kernel handle: looks up the kernel's name
 * first. A launch that failed or is nested in another call gets none. */
static inline __attribute__((always_inline)) int end_kernel_launch(struct traced_function *traced,
	uint32_t outer, int result, struct launch_arguments arguments)
{
	if (outer == 0 && result == 0 && call_enabled)
		arguments.name = cached_kernel_name(arguments.function);
	return end_launch(traced, outer, result, &arguments);
}

int __cudaLaunchKernel REAL_LAUNCH_PARAMETERS
{
	static struct traced_function traced = { .name = "__cudaLaunchKernel",
		.type = CALL_LAUNCH };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->__cudaLaunchKernel(
		function, grid, block, arguments, shared_bytes, stream);

	return end_kernel_launch(&traced, outer, result,
		(struct launch_arguments){ function, grid, block, shared_bytes, stream, 0 });
}

int __cudaLaunchKernel_ptsz REAL_LAUNCH_PARAMETERS
{
	static struct traced_function traced = {
		.name = "__cudaLaunchKernel_ptsz", .type = CALL_LAUNCH, .per_thread = true
	};
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->__cudaLaunchKernel_ptsz(
		function, grid, block, arguments, shared_bytes, stream);

	return end_kernel_launch(&traced, outer, result,
		(struct launch_arguments){ function, grid, block, shared_bytes, stream, 0 });
}

static struct launch_arguments launch_from_config(
	const struct cuda_launch_config *config, const void *function)
{
	if (!config)
		return (struct launch_arguments){ .function = function };
	return (struct launch_arguments){ function, config->grid, config->block,
		config->shared_bytes, config->stream, 0 };
}

int cudaLaunchKernelExC(
	const struct cuda_launch_config *config, const void *function, void **arguments)
{
	static struct traced_function traced = { .name = "cudaLaunchKernelExC",
		.type = CALL_LAUNCH };
	const struct launch_arguments launch_arguments = launch_from_config(config, function);
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaLaunchKernelExC(config, function, arguments);

	return end_launch(&traced, outer, result, &launch_arguments);
}

int cudaLaunchKernelExC_ptsz(
	const struct cuda_launch_config *config, const void *function, void **arguments)
{
	static struct traced_function traced = {
		.name = "cudaLaunchKernelExC_ptsz", .type = CALL_LAUNCH, .per_thread = true
	};
	const struct launch_arguments launch_arguments = launch_from_config(config, function);
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaLaunchKernelExC_ptsz(config, function, arguments);

	return end_launch(&traced, outer, result, &launch_arguments);
}

/* Writes one record for each device's kernel. */
static void write_launches(struct traced_function *traced, int result,
	const struct cuda_launch_params *launches, unsigned count)
{
	call_returned();
	for (unsigned i = 0; launches && i < count; i++) {
		const struct cuda_launch_params *one = &launches[i];

		write_launch(traced, result,
			&(struct launch_arguments){ one->function, one->grid, one->block,
				one->shared_bytes, one->stream, 0 });
	}
}

int cudaLaunchCooperativeKernelMultiDevice(
	struct cuda_launch_params *launches, unsigned count, unsigned flags)
{
	static struct traced_function traced = { .name = "cudaLaunchCooperativeKernelMultiDevice",
		.type = CALL_LAUNCH };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaLaunchCooperativeKernelMultiDevice(launches, count, flags);

	if (outer == 0)
		write_launches(&traced, result, launches, count);
	call_end(outer);
	return result;
}

/* ---- graphs ---- */

static int end_graph_launch(struct traced_function *traced, uint32_t outer, int result,
	const void *exec, const void *stream)
{
	const uint64_t rest[CALL_WORDS(trace_graph_launch)] = {
		call_stream(traced, stream),
		(uintptr_t)exec,
		call_pair(cupti_callbacks_graph_id(), 0),
	};

	if (outer == 0)
		call_write(traced, TRACE_GRAPH_LAUNCH, result, stream, rest,
			CALL_WORDS(trace_graph_launch));
	call_end(outer);
	return result;
}

int cudaGraphLaunch(void *exec, void *stream)
{
	static struct traced_function traced = { .name = "cudaGraphLaunch", .type = CALL_LAUNCH };
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaGraphLaunch(exec, stream);

	return end_graph_launch(&traced, outer, result, exec, stream);
}

int cudaGraphLaunch_ptsz(void *exec, void *stream)
{
	static struct traced_function traced = {
		.name = "cudaGraphLaunch_ptsz", .type = CALL_LAUNCH, .per_thread = true
	};
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);
	int result = real->cudaGraphLaunch_ptsz(exec, stream);

	return end_graph_launch(&traced, outer, result, exec, stream);
}

static int capture_began(uint32_t outer, int result)
{
	if (outer == 0 && result == 0)
		call_capture_began();
	call_end(outer);
	return result;
}

/* Some errors end the capture, too. With others (wrong stream, wrong thread) the capture
 * continues. */
static int capture_ended(uint32_t outer, int result)
{
	if (outer == 0 && (result == 0 || result == CUDA_ERROR_CAPTURE_INVALIDATED ||
				  result == CUDA_ERROR_CAPTURE_UNJOINED))
		call_capture_ended();
	call_end(outer);
	return result;
}

int cudaStreamBeginCapture(void *stream, int mode)
{
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);

	return capture_began(outer, real->cudaStreamBeginCapture(stream, mode));
}

int cudaStreamBeginCapture_ptsz(void *stream, int mode)
{
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);

	return capture_began(outer, real->cudaStreamBeginCapture_ptsz(stream, mode));
}

int cudaStreamBeginCaptureToGraph(void *stream, void *graph, const void *dependencies,
	const void *edges, size_t count, int mode)
{
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);

	return capture_began(outer, real->cudaStreamBeginCaptureToGraph(
					    stream, graph, dependencies, edges, count, mode));
}

int cudaStreamBeginCaptureToGraph_ptsz(void *stream, void *graph, const void *dependencies,
	const void *edges, size_t count, int mode)
{
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);

	return capture_began(outer, real->cudaStreamBeginCaptureToGraph_ptsz(
					    stream, graph, dependencies, edges, count, mode));
}

int cudaStreamBeginRecaptureToGraph(void *stream, int mode, void *graph, void *callback)
{
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);

	return capture_began(
		outer, real->cudaStreamBeginRecaptureToGraph(stream, mode, graph, callback));
}

int cudaStreamBeginRecaptureToGraph_ptsz(void *stream, int mode, void *graph, void *callback)
{
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);

	return capture_began(
		outer, real->cudaStreamBeginRecaptureToGraph_ptsz(stream, mode, graph, callback));
}

int cudaStreamEndCapture(void *stream, void **graph)
{
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);

	return capture_ended(outer, real->cudaStreamEndCapture(stream, graph));
}

int cudaStreamEndCapture_ptsz(void *stream, void **graph)
{
	const struct real *real = real_of(CALLER);
	uint32_t outer = call_begin(CALLER);

	return capture_ended(outer, real->cudaStreamEndCapture_ptsz(stream, graph));
}
