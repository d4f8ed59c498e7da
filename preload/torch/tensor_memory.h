/* SPDX-License-Identifier: MIT
 * torch_memory.h: what PyTorch's caching allocator tells of every block of memory that it gives to a tensor or takes back.
 *
 * libc10_cuda calls c10::reportMemoryUsageToProfiler each time, whether a profiler is at work or not, with what the device's tensors (allocated) and the
 * allocator itself (reserved) hold after it; and c10::reportOutOfMemoryToProfiler before it gives up. Both are defined here (torch_memory.c; names
 * with PyTorch's own mangling, of 2.x and of 1.13), write a TENSOR or TENSOR_OOM record on the calling thread, and go on to PyTorch's, which tells
 * its profiler: that sees what it always saw.
 *
 * They run under the allocator's lock of the device, with or without the GIL: nothing here calls CUDA or Python or takes a lock that is held while
 * anybody waits for the allocator. PyTorch's functions are looked up beforehand, as `import torch` ends. Where that was not seen (a C++ program), the first
 * report looks them up: the dynamic linker's lock inside of the allocator's, an order which CUDA's own loading of its driver inside of
 * the first cudaMalloc has made before.
 *
 * Only devices of type CUDA (ROCm's builds call theirs so, too): `allocated` is a level of one device, and the numbers of other types'
 * devices, the CPU's among them, begin at 0 again.
 */
#ifndef PPERF_PRELOAD_TORCH_TENSOR_MEMORY_H
#define PPERF_PRELOAD_TORCH_TENSOR_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct torch_device { /* c10::Device */
	int8_t type, index;
};
#define TORCH_DEVICE_CUDA 1

/* By the constructor. wanted false: reports are passed on and not recorded. configuration: PYTORCH_ALLOC_CONF or PYTORCH_CUDA_ALLOC_CONF, or NULL;
 * it is copied. */
void torch_memory_configure(bool wanted, const char *configuration);

/* Records what tensors and the allocator hold on each device, as it was said last: after reports that were not recorded (collector/stream/recording_switch.h). */
void torch_memory_write_levels(void);

/* PyTorch has been loaded: finds its functions, says in the trace what is known of its allocator. Any number of times; not under a lock.
 * ask_python: with the GIL: the program may have set PYTORCH_ALLOC_CONF itself, before it imported torch. */
void torch_memory_begin(bool ask_python);

/* A call that returns to `caller` has taken device memory, from a pool or not. Where it was PyTorch's allocator that called, and no report follows, that
 * is said in the trace. */
void torch_memory_note_allocation(const void *caller, bool pool);

#endif
