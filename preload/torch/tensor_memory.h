/* SPDX-License-Identifier: MIT
 * Records every block of memory that PyTorch's caching allocator gives to a tensor or frees.
 *
 * libc10_cuda calls c10::reportMemoryUsageToProfiler for each block, even if no profiler runs.
 * Its arguments include the totals of the device after the operation: `allocated` for tensors,
 * `reserved` by the allocator. Before it fails, it calls c10::reportOutOfMemoryToProfiler. Both
 * functions are defined here under PyTorch's mangled names, those of 2.x and those of 1.13. They
 * write a TENSOR or TENSOR_OOM record on the calling thread and then call PyTorch's function, so
 * that its profiler works as before.
 *
 * They run under the allocator's lock of the device, with or without the GIL. So nothing here
 * calls CUDA or Python, or takes a lock that is held while a thread waits for the allocator.
 * PyTorch's functions are looked up during `import torch`. If the import was not seen (a C++
 * program), the first report looks them up and takes the dynamic linker's lock inside the
 * allocator's. CUDA has used that order before, when the first cudaMalloc loads the driver.
 *
 * Only devices of type CUDA are recorded; ROCm's builds use that type too. `allocated` is the
 * total of one device, and the indices of other device types, such as the CPU, start at 0 again.
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

/* Called by the constructor. `wanted`: false if reports are only forwarded, not recorded.
 * `configuration`: PYTORCH_ALLOC_CONF or PYTORCH_CUDA_ALLOC_CONF, or NULL; it is copied. */
void torch_memory_configure(bool wanted, const char *configuration);

/* Writes the last reported totals of each device, after reports that were skipped while
 * recording was paused. */
void torch_memory_write_levels(void);

/* Looks up PyTorch's functions. If libc10_cuda is loaded, writes META torch.allocator and
 * source.torch_memory, once. Called once PyTorch is loaded, repeatedly if needed, with no lock
 * held. `read_environment`: the GIL is held, and the program may have set PYTORCH_ALLOC_CONF itself
 * before it imported torch. */
void torch_memory_look_up(bool read_environment);

/* Checks whether PyTorch's allocator reports its blocks, after a call which returns to `caller` has
 * allocated device memory. `pool`: from a memory pool. If PyTorch's allocator made the call and no
 * block was reported so far, writes to META source.torch_memory that reports are missing: for a
 * pool at once, else at the second such call. */
void torch_memory_check_reported(const void *caller, bool pool);

/* Stores the CUDA stream for which PyTorch's allocator has allocated memory of `device`, by a call
 * that returns to `caller` on this thread. NULL: the default stream. Returns false if another
 * caller made the call, or the stream is not known. */
bool torch_memory_stream(const void *caller, uint32_t device, void **stream);

#endif
