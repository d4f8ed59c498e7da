/* SPDX-License-Identifier: MIT
 * What the stand-ins of CUDA's libraries (cuDNN, NCCL, cuFFT, ...) share. Each sits on the core as
 * the real ones sit on the driver: with a runtime of its own inside, whose calls tools see and
 * nobody can interpose. One entry point is one line above its body:
 *
 *	LIBRARY_API(cudnnStatus_t, cudnnSetStream, (cudnnHandle_t handle, cudaStream_t streamId), (handle, streamId),
 *		CUDNN_STATUS_NOT_INITIALIZED)
 *	{
 *		...
 *	}
 *
 * makes the exported function, which opens a scope around the body: the call is counted (sim_dump),
 * and what it does nests in it. No tool is told of it: CUPTI has no ids for these libraries. The
 * last argument is what it answers in a forked child, where nothing works.
 *
 * Threads: everything here may be called from any thread.
 */
#ifndef LIBRARY_H
#define LIBRARY_H

#include "core/entry.h"

#define LIBRARY_API(type, name, proto, args, forked)                                            \
	static type name##_inside proto;                                                        \
	ENTRY_POINT(type, SIM_RUNTIME, name, #name, false, proto, args, name##_inside, (void)0, \
		NULL, NULL, ENTRY_PLAIN, forked)                                                \
	static type name##_inside proto

struct library_kernel {
	const char *name; /* mangled, as CUPTI reports it; copied */
	struct sim_dim grid, block;
	uint32_t shared; /* bytes, dynamic; at most 40 KiB */
	/* device memory that it would write to, NULL: none; what was copied there is no longer
	 * known */
	void *writes;
};

/* Launches it in `stream` (a cudaStream_t) as the runtime inside a library does: cudaLaunchKernel,
 * and in it cuLaunchKernel. Gives a CUresult. */
int library_launch(const struct library_kernel *kernel, void *stream);
/* The same by cuLaunchKernelEx alone, as NCCL does, and in a stream of that device. */
int library_launch_on(int device, const struct library_kernel *kernel, void *stream);
/* A grid of so many blocks that `threads` of `block` each see to `elements`, `each` a thread; at
 * least one, at most `most`. */
struct sim_dim library_grid(uint64_t elements, unsigned block, unsigned each, unsigned most);
/* Makes a context of the first device current if there is none, as a runtime does at its first
 * call. Gives a CUresult. */
int library_ready(void);
/* Takes bytes out of the device's memory, as a copy would. */
void library_read(void *target, const void *source, size_t bytes);
/* The device's memory has been written: unlike what a kernel may have changed, it is known from now
 * on. */
void library_written(void *address, size_t bytes);
/* Zeroed memory of the host, NULL: there is none. */
void *library_new(size_t bytes);

#endif
